//! libFuzzer drives `trimtab_fuzz::json`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trimtab_fuzz::json(data));

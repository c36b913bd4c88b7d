//! libFuzzer drives `trimtab_fuzz::facts`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trimtab_fuzz::facts(data));

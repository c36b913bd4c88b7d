//! libFuzzer drives `trimtab_fuzz::config`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trimtab_fuzz::config(data));

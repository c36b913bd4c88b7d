//! libFuzzer drives `trimtab_fuzz::signatures`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trimtab_fuzz::signatures(data));

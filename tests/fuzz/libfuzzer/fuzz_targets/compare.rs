//! libFuzzer drives `trimtab_fuzz::compare`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trimtab_fuzz::compare(data));

//! libFuzzer drives `trimtab_fuzz::grants`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trimtab_fuzz::grants(data));

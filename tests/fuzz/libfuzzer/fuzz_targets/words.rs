//! libFuzzer drives `trimtab_fuzz::words`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trimtab_fuzz::words(data));

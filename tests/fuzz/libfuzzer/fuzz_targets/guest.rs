//! libFuzzer drives `trimtab_fuzz::guest`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trimtab_fuzz::guest(data));

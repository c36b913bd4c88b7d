//! libFuzzer drives `trimtab_fuzz::watch`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trimtab_fuzz::watch(data));

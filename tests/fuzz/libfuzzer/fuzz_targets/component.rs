//! libFuzzer drives `trimtab_fuzz::component`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trimtab_fuzz::component(data));

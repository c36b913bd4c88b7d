//! libFuzzer drives `trimtab_fuzz::policies`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trimtab_fuzz::policies(data));

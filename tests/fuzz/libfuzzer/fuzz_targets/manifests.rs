//! libFuzzer drives `trimtab_fuzz::manifests`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| trimtab_fuzz::manifests(data));

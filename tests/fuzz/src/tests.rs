//! Every target is driven by both drivers, and holds for every seed.

use super::TARGETS;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn names(folder: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn every_target_has_seeds_and_a_libfuzzer_binary() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names("seeds"), targets);
    assert_eq!(names("libfuzzer/fuzz_targets"), targets);
}

#[test]
fn every_seed_and_every_input_that_once_broke_something_holds() {
    for (name, target) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(name);
        let mut seeds = 0;
        for entry in fs::read_dir(folder).unwrap() {
            target(&fs::read(entry.unwrap().path()).unwrap());
            seeds += 1;
        }
        assert!(seeds > 0, "{name} has no seed");
    }
}

#[test]
fn the_signatures_among_the_seeds_count_until_a_byte_is_altered() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/signatures");
    for name in ["minisign", "openpgp", "ssh-ek", "ssh-rk", "ssh-sk"] {
        let mut seed = fs::read(folder.join(name)).unwrap();
        assert!(super::signatures::signed(&seed), "{name}");
        // Within the base64 of the signature itself.
        let at = seed.len() * 2 / 3;
        seed[at] = if seed[at] == b'A' { b'B' } else { b'A' };
        assert!(!super::signatures::signed(&seed), "{name}, altered");
    }
}

//! The compiled-code cache: nothing is loaded from it that this host did not compile.

use crate::guest::{compare, file};
use std::fs;
use std::path::{Path, PathBuf};
use trimtab_core::decision::Comparison;
use trimtab_wasm::{Error, Plugin, Sandbox, SandboxOptions};

fn sandbox(dir: &Path) -> Sandbox {
    let cache_dir = Some(dir.join("compiled"));
    Sandbox::new(SandboxOptions { cache_dir, ..SandboxOptions::default() }).unwrap()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("compiled")).unwrap();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

#[test]
fn a_second_start_loads_what_the_first_compiled() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = file("", "");
    Plugin::load(&bytes, &sandbox(dir.path())).unwrap();
    let entry = entries(dir.path()).pop().unwrap();
    let before = fs::metadata(&entry).unwrap().modified().unwrap();
    let plugin = Plugin::load(&bytes, &sandbox(dir.path())).unwrap();
    assert_eq!(compare(&plugin), Ok(Comparison::InSync));
    assert_eq!(entries(dir.path()), std::slice::from_ref(&entry));
    assert_eq!(fs::metadata(&entry).unwrap().modified().unwrap(), before, "not written anew");
}

#[test]
fn an_entry_that_was_changed_is_compiled_anew() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = file("", "");
    Plugin::load(&bytes, &sandbox(dir.path())).unwrap();
    let entry = entries(dir.path()).pop().unwrap();
    let good = fs::read(&entry).unwrap();
    for bad in [
        {
            let mut bad = good.clone();
            bad[good.len() / 2] ^= 1;
            bad
        },
        good[..good.len() - 1].to_vec(),
        b"short".to_vec(),
        Vec::new(),
    ] {
        fs::write(&entry, &bad).unwrap();
        let plugin = Plugin::load(&bytes, &sandbox(dir.path())).unwrap();
        assert_eq!(compare(&plugin), Ok(Comparison::InSync));
        assert_ne!(fs::read(&entry).unwrap(), bad, "replaced by what was compiled");
    }
}

#[test]
fn an_entry_of_one_plugin_cannot_stand_in_for_anothers() {
    let dir = tempfile::tempdir().unwrap();
    let (honest, evil) = (file("", ""), file("", "unreachable"));
    Plugin::load(&evil, &sandbox(dir.path())).unwrap();
    let evil_entry = entries(dir.path()).pop().unwrap();
    Plugin::load(&honest, &sandbox(dir.path())).unwrap();
    let honest_entry = entries(dir.path()).into_iter().find(|entry| *entry != evil_entry).unwrap();
    fs::copy(&evil_entry, &honest_entry).unwrap();
    let plugin = Plugin::load(&honest, &sandbox(dir.path())).unwrap();
    assert_eq!(compare(&plugin), Ok(Comparison::InSync));
}

#[test]
fn an_entry_under_another_hosts_key_is_compiled_anew() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bytes = file("", "");
    Plugin::load(&bytes, &sandbox(theirs.path())).unwrap();
    let foreign = entries(theirs.path()).pop().unwrap();
    let sandbox = sandbox(ours.path());
    let planted = ours.path().join("compiled").join(foreign.file_name().unwrap());
    fs::copy(&foreign, &planted).unwrap();
    Plugin::load(&bytes, &sandbox).unwrap();
    assert_ne!(fs::read(&planted).unwrap(), fs::read(&foreign).unwrap());
}

#[cfg(unix)]
#[test]
fn key_and_entries_are_for_the_hosts_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    Plugin::load(&file("", ""), &sandbox(dir.path())).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let key = dir.path().join("compiled.key");
    assert_eq!((mode(&key), mode(&dir.path().join("compiled"))), (0o600, 0o700));
    assert_eq!(mode(&entries(dir.path())[0]), 0o600);

    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let cache_dir = Some(dir.path().join("compiled"));
    let error = Sandbox::new(SandboxOptions { cache_dir, ..SandboxOptions::default() });
    assert!(matches!(error, Err(Error::Sandbox(text)) if text.contains("others may read")));
}

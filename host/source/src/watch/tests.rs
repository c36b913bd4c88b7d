//! Live reload on real files: what is changed on disk, and what is told of it.

use crate::{Directory, SourceError, SourceUpdate, WatchOptions, watch, watch_asked};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Receiver;

/// Far beyond what any of this takes, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Long enough that only events explain an update.
const BY_EVENTS: WatchOptions = WatchOptions {
    debounce: Duration::from_millis(50),
    rescan: Duration::from_secs(3600),
    retry: Duration::from_secs(3600),
};

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

fn start(path: &Path, options: WatchOptions) -> Receiver<SourceUpdate> {
    watch(Arc::new(Directory::new("pier", path, "default")), options)
}

/// The next update: names of the objects, or `!` and the error.
async fn next(updates: &mut Receiver<SourceUpdate>) -> String {
    match tokio::time::timeout(PATIENCE, updates.recv()).await {
        Ok(Some(SourceUpdate::Loaded(revision))) => {
            let names: Vec<_> = revision.manifests.iter().map(|manifest| &*manifest.name).collect();
            names.join(" ")
        }
        Ok(Some(SourceUpdate::Failed(error))) => format!("!{error}"),
        Ok(Some(SourceUpdate::Looked)) => "looked".into(),
        Ok(None) => panic!("the watch ended"),
        Err(_) => panic!("no update came"),
    }
}

/// Updates until this one; what an unlucky moment shows in between does not matter.
async fn until(updates: &mut Receiver<SourceUpdate>, wanted: &str) {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if next(updates).await == wanted {
            return;
        }
    }
    panic!("{wanted:?} never came");
}

async fn nothing_comes(updates: &mut Receiver<SourceUpdate>) {
    let update = tokio::time::timeout(Duration::from_millis(600), updates.recv()).await;
    assert!(update.is_err(), "an update without a change: {update:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_renamed_into_place_is_found_by_events() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), config_map("lamp")).unwrap();
    let mut updates = start(folder.path(), BY_EVENTS);
    assert_eq!(next(&mut updates).await, "lamp");
    fs::write(folder.path().join(".new"), config_map("horn")).unwrap();
    fs::rename(folder.path().join(".new"), folder.path().join("a.yaml")).unwrap();
    assert_eq!(next(&mut updates).await, "horn");
    fs::create_dir(folder.path().join("deck")).unwrap();
    fs::write(folder.path().join("deck/b.yaml"), config_map("bell")).unwrap();
    until(&mut updates, "horn bell").await;
    fs::remove_file(folder.path().join("a.yaml")).unwrap();
    assert_eq!(next(&mut updates).await, "bell");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_fails_the_source_until_it_is_mended() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), config_map("lamp")).unwrap();
    fs::write(folder.path().join("b.yaml"), config_map("horn")).unwrap();
    let mut updates = start(folder.path(), BY_EVENTS);
    assert_eq!(next(&mut updates).await, "lamp horn");
    let swap = |text: &str| {
        fs::write(folder.path().join(".new"), text).unwrap();
        fs::rename(folder.path().join(".new"), folder.path().join("b.yaml")).unwrap();
    };
    swap("kind: [broken");
    let failed = next(&mut updates).await;
    assert!(failed.starts_with("!b.yaml:1:"), "{failed}");
    swap(&config_map("horn"));
    assert_eq!(next(&mut updates).await, "lamp horn");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swapped_mount_is_read_as_one_change() {
    let mount = tempfile::tempdir().unwrap();
    let write = |version: &str, a: &str, b: &str| {
        let hidden = mount.path().join(format!("..{version}"));
        fs::create_dir(&hidden).unwrap();
        fs::write(hidden.join("a.yaml"), config_map(a)).unwrap();
        fs::write(hidden.join("b.yaml"), config_map(b)).unwrap();
        symlink(format!("..{version}"), mount.path().join("..data_tmp")).unwrap();
        fs::rename(mount.path().join("..data_tmp"), mount.path().join("..data")).unwrap();
    };
    write("2026_1", "lamp", "horn");
    symlink("..data/a.yaml", mount.path().join("a.yaml")).unwrap();
    symlink("..data/b.yaml", mount.path().join("b.yaml")).unwrap();
    let mut updates = start(mount.path(), BY_EVENTS);
    assert_eq!(next(&mut updates).await, "lamp horn");
    write("2026_2", "bell", "flag");
    fs::remove_dir_all(mount.path().join("..2026_1")).unwrap();
    assert_eq!(next(&mut updates).await, "bell flag");
    // One file of a mount as the whole source.
    let mut updates = start(&mount.path().join("a.yaml"), BY_EVENTS);
    assert_eq!(next(&mut updates).await, "bell");
    write("2026_3", "buoy", "flag");
    assert_eq!(next(&mut updates).await, "buoy");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_comes_and_goes_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("fleet");
    let mut updates = start(&root, BY_EVENTS);
    assert!(next(&mut updates).await.contains("does not exist"));
    let put = |release: &str, name: &str| {
        fs::create_dir(folder.path().join(release)).unwrap();
        fs::write(folder.path().join(release).join("a.yaml"), config_map(name)).unwrap();
        symlink(release, folder.path().join("next")).unwrap();
        fs::rename(folder.path().join("next"), &root).unwrap();
    };
    put("r1", "lamp");
    until(&mut updates, "lamp").await;
    put("r2", "horn");
    until(&mut updates, "horn").await;
    fs::write(folder.path().join("r2/b.yaml"), config_map("bell")).unwrap();
    until(&mut updates, "horn bell").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rescan_alone_finds_a_change() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), config_map("lamp")).unwrap();
    let rescan = Duration::from_millis(100);
    // Events that are collected for an hour are none.
    let options = WatchOptions { debounce: Duration::from_secs(3600), rescan, retry: rescan };
    let mut updates = start(folder.path(), options);
    assert_eq!(next(&mut updates).await, "lamp");
    fs::write(folder.path().join("a.yaml"), config_map("horn")).unwrap();
    until(&mut updates, "horn").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_change_of_content_nothing_is_told() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), config_map("lamp")).unwrap();
    fs::write(folder.path().join("notes.txt"), "none").unwrap();
    let mut updates = start(folder.path(), BY_EVENTS);
    assert_eq!(next(&mut updates).await, "lamp");
    fs::write(folder.path().join("a.yaml"), config_map("lamp")).unwrap();
    fs::write(folder.path().join("notes.txt"), "some").unwrap();
    nothing_comes(&mut updates).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_watch_ends_with_its_receiver() {
    let folder = tempfile::tempdir().unwrap();
    let source = Arc::new(Directory::new("pier", folder.path(), "default"));
    let mut updates = watch(source.clone(), BY_EVENTS);
    assert_eq!(next(&mut updates).await, "");
    drop(updates);
    let started = Instant::now();
    while Arc::strong_count(&source) > 1 && started.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(Arc::strong_count(&source), 1);
}

#[test]
fn errors_compare_so_that_the_same_failure_is_told_once() {
    let missing = || SourceError::Missing { path: "a".into() };
    assert_eq!(missing(), missing());
    assert_ne!(missing(), SourceError::Unsettled { path: "a".into() });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_that_is_asked_for_is_answered_after_what_it_found() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("source");
    fs::create_dir(&place).unwrap();
    let (ask, asked) = tokio::sync::mpsc::channel(1);
    let source = Arc::new(Directory::new("pier", &place, "default"));
    let mut updates = watch_asked(source, BY_EVENTS, asked);
    until(&mut updates, "").await;
    ask.send(()).await.unwrap();
    assert_eq!(next(&mut updates).await, "looked");
    // The folder is another one: no event of the old tells of it.
    fs::rename(&place, folder.path().join("old")).unwrap();
    fs::create_dir(&place).unwrap();
    fs::write(place.join("a.yaml"), config_map("a")).unwrap();
    ask.send(()).await.unwrap();
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| last != "looked") {
        seen.push(next(&mut updates).await);
    }
    assert!(seen.iter().any(|it| it == "a") || next(&mut updates).await == "a", "{seen:?}");
}

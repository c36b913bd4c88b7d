//! A directory as a source, on real files: what is read, what is refused, and that nothing outside
//! the root is. Git as a source has its tests in the folder beside this file.

mod git;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;
use trimtab_source::{Directory, Problem, Source, SourceError, limits};

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn source(path: &Path) -> Directory {
    Directory::new("pier", path, "default")
}

/// Where each object is declared, and its name.
fn read(path: &Path) -> Vec<String> {
    let revision = source(path).read().unwrap();
    revision.manifests.iter().map(|one| format!("{} {}", one.origin, one.name)).collect()
}

fn problems(path: &Path) -> Vec<Problem> {
    match source(path).read().unwrap_err() {
        SourceError::Refused(problems) => problems.to_vec(),
        other => panic!("{other}"),
    }
}

/// Code and file of each problem.
fn refusals(path: &Path) -> Vec<String> {
    problems(path).iter().map(|problem| format!("{} {}", problem.code, problem.file)).collect()
}

#[test]
fn manifests_of_all_folders_are_read_in_the_order_of_their_paths() {
    let two = format!("{}---\n{}", config_map("c"), config_map("d"));
    let folder = folder(&[
        ("z.json", r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"z"}}"#),
        ("deck/aft/a.yml", &config_map("a")),
        ("deck/b.yaml", &two),
        ("README.md", "words: [not YAML"),
        (".git/x.yaml", "broken: ["),
        (".hidden.yaml", "broken: ["),
    ]);
    assert_eq!(
        read(folder.path()),
        ["deck/aft/a.yml:1 a", "deck/b.yaml:1 c", "deck/b.yaml:5 d", "z.json:1 z"]
    );
}

#[test]
fn a_single_file_is_a_source_whatever_its_name() {
    let folder = folder(&[("objects", &config_map("a")), ("kustomization.yaml", &config_map("k"))]);
    assert_eq!(read(&folder.path().join("objects")), ["objects:1 a"]);
    assert_eq!(read(&folder.path().join("kustomization.yaml")), ["kustomization.yaml:1 k"]);
}

#[test]
fn a_missing_path_and_an_empty_folder_are_not_the_same() {
    let folder = folder(&[]);
    assert!(source(folder.path()).read().unwrap().manifests.is_empty());
    let missing = source(&folder.path().join("gone")).read().unwrap_err();
    assert!(matches!(missing, SourceError::Missing { .. }), "{missing}");
    fs::write(folder.path().join("a.yaml"), "").unwrap();
    let missing = source(&folder.path().join("a.yaml/b")).read().unwrap_err();
    assert!(matches!(missing, SourceError::Missing { .. }), "{missing}");
}

#[test]
fn one_broken_file_refuses_the_whole_source_and_every_problem_is_told() {
    let folder = folder(&[
        ("a.yaml", &config_map("a")),
        ("c.yaml", "kind: [open"),
        ("b.yaml", "apiVersion: v1\n---\nkind: Pod\n"),
        ("d.yaml", &config_map("a")),
    ]);
    let told: Vec<_> = problems(folder.path())
        .iter()
        .map(|problem| (problem.file.to_string(), problem.line))
        .collect();
    let place = |file: &str, line| (file.to_owned(), Some(line));
    assert_eq!(
        told,
        [place("b.yaml", 1), place("b.yaml", 3), place("c.yaml", 1), place("d.yaml", 1)]
    );
    let text = source(folder.path()).read().unwrap_err().to_string();
    assert!(
        text.contains("d.yaml:1: ConfigMap default/a is declared before, in a.yaml:1"),
        "{text}"
    );
}

#[test]
fn the_id_is_the_content_and_not_the_time() {
    let one = folder(&[("a.yaml", &config_map("a")), ("b.yaml", &config_map("b"))]);
    let two = folder(&[("b.yaml", &config_map("b")), ("a.yaml", &config_map("a")), ("x.txt", "x")]);
    let id = |folder: &TempDir| source(folder.path()).read().unwrap().id;
    assert_eq!(id(&one), id(&two));
    assert!(id(&one).starts_with("sha256:") && id(&one).len() == 71);
    fs::rename(two.path().join("b.yaml"), two.path().join("c.yaml")).unwrap();
    assert_ne!(id(&one), id(&two));
    fs::write(one.path().join("b.yaml"), format!("{}# more\n", config_map("b"))).unwrap();
    assert_ne!(id(&one), id(&two));
}

#[test]
fn a_mounted_config_map_is_read_once_by_its_visible_names() {
    let mount = folder(&[
        ("..2026_11_30/a.yaml", &config_map("a")),
        ("..2026_11_30/deck/b.yaml", &config_map("b")),
    ]);
    symlink("..2026_11_30", mount.path().join("..data")).unwrap();
    symlink("..data/a.yaml", mount.path().join("a.yaml")).unwrap();
    symlink("..data/deck", mount.path().join("deck")).unwrap();
    symlink("..data/deck", mount.path().join("same")).unwrap();
    symlink("..data/a.yaml", mount.path().join("z.yaml")).unwrap();
    assert_eq!(read(mount.path()), ["a.yaml:1 a", "deck/b.yaml:1 b"]);
}

#[test]
fn links_within_the_root_do_not_read_a_file_twice() {
    let folder = folder(&[
        ("deck/a.yaml", &config_map("a")),
        ("deck/b.txt", &config_map("b")),
        ("r/r.yaml", &config_map("r")),
    ]);
    symlink("deck/a.yaml", folder.path().join("again.yaml")).unwrap();
    symlink("deck", folder.path().join("same")).unwrap();
    symlink("..", folder.path().join("deck/up")).unwrap();
    symlink("b.txt", folder.path().join("deck/b.yaml")).unwrap();
    assert_eq!(read(folder.path()), ["deck/a.yaml:1 a", "deck/b.yaml:1 b", "r/r.yaml:1 r"]);
    // The root itself may be a link.
    let outside = tempfile::tempdir().unwrap();
    symlink(folder.path(), outside.path().join("root")).unwrap();
    assert_eq!(read(&outside.path().join("root")).len(), 3);
}

#[test]
fn links_that_leave_the_root_are_refused_and_not_followed() {
    let outside =
        folder(&[("secret.yaml", "password: hunter2"), ("folder/x.yaml", "password: hunter2")]);
    let root = folder(&[("a.yaml", &config_map("a"))]);
    let name = root.path().file_name().unwrap().to_str().unwrap();
    symlink(outside.path().join("secret.yaml"), root.path().join("absolute.yaml")).unwrap();
    symlink("../nowhere.yaml", root.path().join("above.yaml")).unwrap();
    symlink(format!("../{name}/a.yaml"), root.path().join("returns.yaml")).unwrap();
    symlink(outside.path().join("folder"), root.path().join("folder")).unwrap();
    fs::create_dir(root.path().join("deck")).unwrap();
    symlink("..", root.path().join("deck/up")).unwrap();
    symlink("up/../a.yaml", root.path().join("deck/chain.yaml")).unwrap();
    assert_eq!(
        refusals(root.path()),
        [
            "symlink_escape above.yaml",
            "symlink_escape absolute.yaml",
            "symlink_escape deck/chain.yaml",
            "symlink_escape folder",
            "symlink_escape returns.yaml",
        ]
    );
    let text = source(root.path()).read().unwrap_err().to_string();
    assert!(!text.contains("hunter2") && !text.contains("nowhere"), "{text}");
}

#[test]
fn links_to_nothing_and_in_circles_are_refused() {
    let root = folder(&[]);
    symlink("gone.yaml", root.path().join("a.yaml")).unwrap();
    symlink("c.yaml", root.path().join("b.yaml")).unwrap();
    symlink("b.yaml", root.path().join("c.yaml")).unwrap();
    assert_eq!(
        refusals(root.path()),
        ["not_a_file a.yaml", "not_a_file b.yaml", "not_a_file c.yaml"]
    );
}

#[test]
fn what_needs_a_renderer_says_so_and_not_more() {
    let root = folder(&[
        ("plain.yaml", &config_map("a")),
        ("base/kustomization.yaml", "resources: [patch.yaml]"),
        ("base/patch.yaml", "spec: {replicas: 2}"),
        ("base/deep/kustomization.yml", "resources: []"),
        ("chart/Chart.yaml", "apiVersion: v2\nname: c"),
        ("chart/values.yaml", "a: 1"),
        ("chart/templates/x.yaml", "a: {{ .Values.a }}"),
        ("cue/objects.cue", "a: 1"),
        ("cue.mod/module.cue", "module: \"pier.test\""),
        ("files/helmfile.yaml", "releases: []"),
        ("kpt/Kptfile", "apiVersion: kpt.dev/v1"),
        ("kpt/a.yaml", &config_map("kpt")),
        ("lib/main.jsonnet", "{}"),
        ("tanka/tkrc.yaml", ""),
    ]);
    assert_eq!(refusals(root.path()), ["not_rendered cue.mod"]);
    fs::remove_dir_all(root.path().join("cue.mod")).unwrap();
    assert_eq!(
        refusals(root.path()),
        [
            "not_rendered base/kustomization.yaml",
            "not_rendered chart/Chart.yaml",
            "not_rendered cue/objects.cue",
            "not_rendered files/helmfile.yaml",
            "not_rendered kpt/Kptfile",
            "not_rendered lib/main.jsonnet",
            "not_rendered tanka/tkrc.yaml",
        ]
    );
    assert!(problems(root.path()).iter().all(|problem| problem.remedy.contains("the result")));
}

#[test]
fn a_generators_inputs_above_the_root_are_not_opened_and_not_shown() {
    let outside = folder(&[("secret.yaml", "password: hunter2")]);
    let root = folder(&[]);
    let wanted = outside.path().join("secret.yaml");
    let text = format!("configMapGenerator: [{{name: x, files: [{}]}}]", wanted.display());
    fs::write(root.path().join("kustomization.yaml"), text).unwrap();
    let told = source(root.path()).read().unwrap_err().to_string();
    assert!(told.contains("not_rendered") && !told.contains("hunter2"), "{told}");
}

#[test]
fn what_is_encrypted_as_a_whole_or_kept_elsewhere_is_no_manifest() {
    let root = folder(&[
        ("dotenv.yaml", "sops_mac: ENC[AES256_GCM,data:x]\nsops_version: 3.9.0\n"),
        (
            "whole.yaml",
            "apiVersion: ENC[AES256_GCM,data:x]\nkind: ENC[AES256_GCM,data:x]\nsops: {mac: m}\n",
        ),
        ("binary.json", r#"{"data":"ENC[AES256_GCM,data:x]","sops":{"mac":"m"}}"#),
        ("large.yaml", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"),
    ]);
    assert_eq!(
        refusals(root.path()),
        [
            "secret_encrypted_not_decrypted binary.json",
            "not_a_kubernetes_object dotenv.yaml",
            "not_followed large.yaml",
            "secret_encrypted_not_decrypted whole.yaml",
        ]
    );
    let sealed = "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: s}\nspec: {encryptedData: {a: x}}\n";
    let root = folder(&[("sealed.yaml", sealed)]);
    assert_eq!(read(root.path()), ["sealed.yaml:1 s"]);
}

#[test]
fn devices_and_pipes_are_not_opened() {
    let root = folder(&[]);
    let made =
        std::process::Command::new("mkfifo").arg(root.path().join("pipe.yaml")).status().unwrap();
    assert!(made.success());
    assert_eq!(refusals(root.path()), ["not_a_file pipe.yaml"]);
}

#[test]
fn sizes_depths_and_paths_have_limits() {
    let root = folder(&[]);
    let large = fs::File::create(root.path().join("large.yaml")).unwrap();
    large.set_len(limits::MAX_FILE_BYTES + 1).unwrap();
    let mut deep = root.path().to_owned();
    for _ in 0..=limits::MAX_FOLDER_DEPTH {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    let told = refusals(root.path());
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|problem| problem.starts_with("too_large ")), "{told:?}");
    let root = folder(&[]);
    for number in 0..=limits::MAX_TOTAL_BYTES / limits::MAX_FILE_BYTES {
        let file = fs::File::create(root.path().join(format!("{number}.yaml"))).unwrap();
        file.set_len(limits::MAX_FILE_BYTES).unwrap();
    }
    let told = problems(root.path());
    assert!(told.iter().any(|problem| problem.message.contains("more than 128 MiB")), "{told:?}");
}

#[test]
fn a_name_that_is_no_utf8_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let root = folder(&[]);
    fs::write(root.path().join(std::ffi::OsStr::from_bytes(b"a\xff.yaml")), "").unwrap();
    assert!(refusals(root.path())[0].starts_with("not_a_file a"));
}

#[test]
fn a_fingerprint_holds_while_nothing_changes_and_proves_it_only_once_settled() {
    let root = folder(&[("a.yaml", &config_map("a"))]);
    let source = source(root.path());
    let fresh = source.fingerprint().unwrap();
    assert!(
        !fresh.still_holds(&source.fingerprint().unwrap()),
        "a second write could hide in this tick"
    );
    std::thread::sleep(limits::RACY_AGE + std::time::Duration::from_millis(1100));
    let settled = source.fingerprint().unwrap();
    assert!(settled.still_holds(&source.fingerprint().unwrap()));
    fs::write(root.path().join("a.yaml"), config_map("b")).unwrap();
    assert!(!settled.still_holds(&source.fingerprint().unwrap()));
}

#[test]
fn a_tree_that_never_rests_is_not_half_read() {
    let root = folder(&[]);
    for number in 0..200 {
        fs::write(root.path().join(format!("{number}.yaml")), config_map(&format!("n{number}")))
            .unwrap();
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                round += 1;
                fs::write(root.path().join("7.yaml"), format!("{}# {round}\n", config_map("n7")))
                    .unwrap();
            }
        });
        let outcome = source(root.path()).read();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        outcome
    });
    match outcome {
        // A lucky moment between two writes.
        Ok(revision) => assert_eq!(revision.manifests.len(), 200),
        Err(error) => assert!(matches!(error, SourceError::Unsettled { .. }), "{error}"),
    }
}

#[test]
fn a_file_that_is_being_written_is_not_taken_for_an_empty_one() {
    let root = folder(&[("a.yaml", &config_map("a")), ("b.yaml", &config_map("b"))]);
    let path = root.path().join("b.yaml");
    // Truncated now, written a moment later, as an editor or `cp` does it.
    let file = fs::File::create(&path).unwrap();
    let writer = std::thread::spawn(move || {
        std::thread::sleep(limits::QUIET / 3);
        std::io::Write::write_all(&mut &file, config_map("c").as_bytes()).unwrap();
    });
    assert_eq!(read(root.path()), ["a.yaml:1 a", "b.yaml:1 c"]);
    writer.join().unwrap();
}

#[test]
fn looking_again_at_a_large_tree_costs_no_reading() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..1000 {
        let text =
            format!("{}data: {{text: {}}}\n", config_map(&format!("n{number}")), "x".repeat(4000));
        fs::write(root.path().join(format!("{number}.yaml")), text).unwrap();
    }
    let source = source(root.path());
    let started = std::time::Instant::now();
    assert_eq!(source.read().unwrap().manifests.len(), 1000);
    let reading = started.elapsed();
    let started = std::time::Instant::now();
    source.fingerprint().unwrap();
    let looking = started.elapsed();
    eprintln!(
        "1000 files of 4 KB: reading {reading:.1?} with the quiet moment, looking {looking:.1?}"
    );
    assert!(looking < reading, "looking took {looking:?}, reading {reading:?}");
}

//! Repositories that are made to harm: every one is refused by name, in bounded time and memory, and
//! nothing of it is read.

use super::*;
use std::time::{Duration, Instant};

/// The refusals of a tree whose root has these entries beside a harmless one.
fn refused_entries(make: impl Fn(&Repo) -> Vec<(&'static str, Vec<u8>, String)>) -> Vec<String> {
    let repo = Repo::of_tree(|repo| {
        let harmless = repo.blob(config_map("a").as_bytes());
        let mut entries = make(repo);
        entries.push(("100644", b"a.yaml".to_vec(), harmless));
        let entries: Vec<_> =
            entries.iter().map(|(mode, name, id)| (*mode, name.as_slice(), id.as_str())).collect();
        repo.tree(&entries)
    });
    refusals(&source(&repo))
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for name in [
        &b".."[..],
        b".",
        b".git",
        b".GIT",
        b".Git",
        b"git~1",
        b"GIT~1",
        b".git ",
        b".git.",
        b".git::$INDEX_ALLOCATION",
        ".g\u{200c}it".as_bytes(),
        b"x\\..\\y.yaml",
        b"con.yaml",
        b"NUL",
        b"aux.d.yaml",
        b"a\nb.yaml",
        b"\x1b]0;x.yaml",
        b"a/b.yaml",
        b"../b.yaml",
    ] {
        let refused = refused_entries(|repo| {
            let blob = repo.blob(config_map("evil").as_bytes());
            vec![("100644", name.to_vec(), blob.clone())]
        });
        assert_eq!(refused.len(), 1, "{:?}: {refused:?}", String::from_utf8_lossy(name));
        assert!(refused[0].starts_with("unsafe_name "), "{refused:?}");
        assert!(!refused[0].chars().any(char::is_control), "{refused:?}");
        // The same as a folder.
        let refused = refused_entries(|repo| {
            let blob = repo.blob(config_map("evil").as_bytes());
            let tree = repo.tree(&[("100644", b"evil.yaml", &blob)]);
            vec![("40000", name.to_vec(), tree)]
        });
        assert!(refused.len() == 1 && refused[0].starts_with("unsafe_name "), "{refused:?}");
    }
    let refused =
        refused_entries(|repo| vec![("100644", b"\xff\xfe.yaml".to_vec(), repo.blob(b""))]);
    assert_eq!(refused, ["not_a_file \u{fffd}\u{fffd}.yaml"]);
}

#[test]
fn two_names_that_are_one_elsewhere_and_two_entries_of_one_name_are_refused() {
    let of = |names: &'static [&'static str]| {
        refused_entries(move |repo| {
            let blob = repo.blob(config_map("b").as_bytes());
            names.iter().map(|name| ("100644", name.as_bytes().to_vec(), blob.clone())).collect()
        })
    };
    assert_eq!(of(&["A.yaml"]), ["unsafe_name a.yaml"]);
    assert_eq!(of(&["\u{c4}.yaml", "\u{e4}.yaml"]), ["unsafe_name \u{e4}.yaml"]);
    assert_eq!(of(&["a.yaml"]), ["unsafe_name a.yaml"]);
    let refused = refused_entries(|repo| {
        let blob = repo.blob(config_map("b").as_bytes());
        let tree = repo.tree(&[("100644", b"b.yaml", &blob)]);
        vec![("40000", b"Deck".to_vec(), tree.clone()), ("40000", b"deck".to_vec(), tree)]
    });
    assert_eq!(refused, ["unsafe_name deck"]);
    // What is not read may differ in case as it likes.
    let repo = Repo::of_tree(|repo| {
        let blob = repo.blob(b"words");
        repo.tree(&[("100644", b"README", &blob), ("100644", b"readme", &blob)])
    });
    assert_eq!(read(&source(&repo)), [""; 0]);
}

#[test]
fn modes_that_git_does_not_have_submodules_and_pointers_are_not_followed() {
    let refused = refused_entries(|repo| vec![("100000", b"b.yaml".to_vec(), repo.blob(b"x"))]);
    assert_eq!(refused, ["not_a_file b.yaml"]);
    let refused = refused_entries(|_| vec![("160000", b"vendor".to_vec(), "1".repeat(40))]);
    assert_eq!(refused, ["not_followed vendor"]);
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 7\n";
    let refused =
        refused_entries(|repo| vec![("100644", b"b.yaml".to_vec(), repo.blob(pointer.as_bytes()))]);
    assert_eq!(refused, ["not_followed b.yaml"]);
}

#[test]
fn a_submodule_beside_the_sources_folder_does_not_concern_it() {
    let repo = Repo::of_tree(|repo| {
        let blob = repo.blob(config_map("a").as_bytes());
        let modules =
            repo.blob(b"[submodule \"e\"]\n\turl = git@git.test:private.git\n\tpath = vendor/e\n");
        let deploy = repo.tree(&[("100644", b"a.yaml", &blob)]);
        let vendor = repo.tree(&[("160000", b"e", &"1".repeat(40))]);
        repo.tree(&[
            ("100644", b".gitmodules", &modules),
            ("40000", b"deploy", &deploy),
            ("40000", b"vendor", &vendor),
        ])
    });
    let mut options = options(&repo.address());
    options.path = "deploy".into();
    assert_eq!(read(&open(options, &repo.state())), ["a.yaml:1 a"]);
    assert_eq!(refusals(&source(&repo)), ["not_followed vendor/e"]);
}

#[test]
fn links_that_leave_the_folder_are_refused_and_what_they_lead_to_is_not_shown() {
    let repo = Repo::of_tree(|repo| {
        let secret = repo.blob(b"password: hunter2");
        let inside = repo.blob(config_map("a").as_bytes());
        let mut links: Vec<(String, String)> = [
            ("absolute.yaml", "/var/run/secrets/kubernetes.io/serviceaccount/token"),
            ("above.yaml", "../secret.yaml"),
            ("returns.yaml", "../deploy/a.yaml"),
            ("far.yaml", "../../../../../../etc/passwd"),
            ("folder", ".."),
            ("self.yaml", "self.yaml"),
            ("one.yaml", "two.yaml"),
            ("two.yaml", "one.yaml"),
            ("gone.yaml", "nothing.yaml"),
            ("through.yaml", "a.yaml/b.yaml"),
            ("chain.yaml", "sub/up/../a.yaml"),
        ]
        .map(|(name, target)| (name.to_owned(), repo.blob(target.as_bytes())))
        .into();
        let up = repo.blob(b"..");
        let sub = repo.tree(&[("120000", b"up", &up)]);
        links.push(("long.yaml".into(), repo.blob(&[b'x'; 5000])));
        let mut entries: Vec<_> =
            links.iter().map(|(name, id)| ("120000", name.as_bytes(), id.as_str())).collect();
        entries.push(("100644", b"a.yaml", &inside));
        entries.push(("40000", b"sub", &sub));
        let deploy = repo.tree(&entries);
        repo.tree(&[("40000", b"deploy", &deploy), ("100644", b"secret.yaml", &secret)])
    });
    let mut options = options(&repo.address());
    options.path = "deploy".into();
    let source = open(options, &repo.state());
    assert_eq!(
        refusals(&source),
        [
            "symlink_escape above.yaml",
            "symlink_escape absolute.yaml",
            "symlink_escape chain.yaml",
            "symlink_escape far.yaml",
            "symlink_escape folder",
            "not_a_file gone.yaml",
            "not_a_file long.yaml",
            "not_a_file one.yaml",
            "symlink_escape returns.yaml",
            "not_a_file self.yaml",
            "not_a_file through.yaml",
            "not_a_file two.yaml",
        ]
    );
    let told = source.read().unwrap_err().to_string();
    for word in ["hunter2", "secrets", "passwd"] {
        assert!(!told.contains(word), "{told}");
    }
}

#[test]
fn a_hundred_thousand_files_are_too_many() {
    let repo = Repo::empty();
    let mut stream = String::from("blob\nmark :1\n");
    let text = config_map("a");
    stream.push_str(&format!("data {}\n{text}\n", text.len()));
    stream.push_str(
        "commit refs/heads/main\ncommitter Bo <bo@pier.test> 1700000000 +0000\ndata 4\nmany\n",
    );
    for number in 0..100_000 {
        stream.push_str(&format!("M 100644 :1 {}/{number}.yaml\n", number % 100));
    }
    repo.git_with(&["fast-import", "--quiet"], stream.as_bytes());
    let started = Instant::now();
    let problems = problems(&source(&repo));
    assert_eq!(problems.len(), 1);
    assert!(problems[0].message.contains("more than 10000 manifest files"), "{}", problems[0]);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

#[test]
fn folders_in_folders_without_end_are_refused() {
    // Ten thousand of them, one in the other.
    let repo = Repo::empty();
    let blob = repo.blob(config_map("a").as_bytes());
    let mut stream = String::from(
        "commit refs/heads/main\ncommitter Bo <bo@pier.test> 1700000000 +0000\ndata 4\ndeep\n",
    );
    stream.push_str(&format!("M 100644 {blob} {}a.yaml\n", "d/".repeat(10_000)));
    repo.git_with(&["fast-import", "--quiet"], stream.as_bytes());
    let mut options = options(&repo.address());
    options.timeout = Duration::from_secs(60);
    let refused = refusals(&open(options, &repo.state()));
    assert!(refused.len() == 1 && refused[0].starts_with("too_large d/d/"), "{refused:?}");
}

#[test]
fn a_tree_that_names_itself_many_times_is_bounded() {
    // Ten levels of ten names each: ten thousand million files in eleven objects.
    let repo = Repo::of_tree(|repo| {
        let mut id = repo.blob(config_map("a").as_bytes());
        let mut mode = "100644";
        for _ in 0..10 {
            let names: Vec<String> = (0..10)
                .map(|number| match mode {
                    "40000" => format!("d{number}"),
                    _ => format!("f{number}.yaml"),
                })
                .collect();
            let entries: Vec<_> =
                names.iter().map(|name| (mode, name.as_bytes(), id.as_str())).collect();
            id = repo.tree(&entries);
            mode = "40000";
        }
        id
    });
    let started = Instant::now();
    let refused = refusals(&source(&repo));
    assert!(refused.len() == 1 && refused[0].starts_with("too_large "), "{}", refused.len());
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

/// The most memory that this process has had, in MiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

#[test]
fn a_gibibyte_in_a_megabyte_is_refused_before_it_is_unpacked() {
    let repo = Repo::empty();
    let path = repo.path().join("zeros.yaml");
    std::fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
    repo.git(&["config", "core.bigFileThreshold", "1m"]);
    repo.git(&["config", "core.compression", "1"]);
    repo.commit(&[]);
    std::fs::remove_file(&path).unwrap();
    let before = peak_memory();
    let error = source(&repo).read().unwrap_err();
    assert!(matches!(error, SourceError::OverLimit { .. }), "{error:?}");
    assert!(error.to_string().contains("64 MiB"), "{error}");
    let cost = peak_memory() - before;
    assert!(cost < 512, "{cost} MiB more");
}

#[test]
fn a_file_that_may_be_held_and_is_no_manifest_is_refused_by_its_size() {
    let repo = Repo::empty();
    let file = std::fs::File::create(repo.path().join("zeros.yaml")).unwrap();
    file.set_len(17 << 20).unwrap();
    repo.commit(&[("a.yaml", &config_map("a"))]);
    assert_eq!(refusals(&source(&repo)), ["too_large zeros.yaml"]);
}

#[test]
fn aliases_that_multiply_are_refused() {
    let mut bomb = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..10 {
        let alias = format!("*a{}", level - 1);
        let list = [alias.as_str(); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    let repo = Repo::with(&[("bomb.yaml", &bomb)]);
    assert_eq!(refusals(&source(&repo)), ["too_large bomb.yaml"]);
}

#[test]
fn filters_hooks_and_configuration_of_a_repository_never_run() {
    let repo = Repo::empty();
    let mark = repo.parent().join("ran");
    let run = format!("touch {}", mark.display());
    repo.commit(&[
        ("a.yaml", &config_map("a")),
        (".gitattributes", "*.yaml filter=evil text eol=crlf ident\n"),
        (".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c touch% ran\n"),
    ]);
    for (name, value) in [
        ("filter.evil.smudge", run.as_str()),
        ("filter.evil.process", &run),
        ("uploadpack.packObjectsHook", &run),
        ("core.fsmonitor", &run),
        ("core.sshCommand", &run),
        ("credential.helper", &run),
        ("core.gitProxy", &run),
    ] {
        repo.git(&["config", name, value]);
    }
    let revision = source(&repo).read().unwrap();
    assert_eq!(names(&revision), ["a.yaml:1 a"]);
    assert!(!mark.exists());
}

#[test]
fn a_server_whose_history_is_cut_short_is_refused() {
    let repo = Repo::with(&[("a.yaml", &config_map("a"))]);
    repo.commit(&[("b.yaml", &config_map("b"))]);
    let shallow = repo.parent().join("shallow");
    let clone = repository::git(&repo.parent())
        .args(["clone", "-q", "--depth", "1", &repo.address(), shallow.to_str().unwrap()])
        .status()
        .unwrap();
    assert!(clone.success());
    let address = format!("file://{}", shallow.display());
    let error = open(options(&address), &repo.state()).read().unwrap_err();
    assert!(error.to_string().contains("shallow"), "{error}");
}

//! The way from a server to the mirror, and what becomes of a mirror that is broken.

use super::server::{Manner, Server};
use super::*;
use std::fs;
use std::path::PathBuf;
use trimtab_source::git::Credentials;

/// A repository with some history, behind HTTP.
fn served() -> (Repo, Server) {
    let repo = Repo::with(&[("deploy/a.yaml", &config_map("a"))]);
    repo.write("big.bin", &noise(200_000));
    repo.commit(&[]);
    let server = Server::of(&repo.parent());
    (repo, server)
}

/// Text that does not compress to nothing.
fn noise(bytes: usize) -> String {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
    };
    (0..bytes).map(|_| next()).collect()
}

fn over_http(repo: &Repo, server: &Server) -> Git {
    open(options(&server.address("pier/.git")), &repo.state())
}

#[test]
fn a_look_is_two_requests_and_a_change_brings_only_what_is_new() {
    let (repo, server) = served();
    let source = over_http(&repo, &server);
    let first = take(&source);
    let whole: usize = server.asked().iter().map(|asked| asked.sent).sum();
    let before = source.fingerprint().unwrap();
    let asked = server.asked();
    let lines: Vec<_> = asked.iter().map(|asked| asked.line.as_str()).collect();
    assert_eq!(
        lines,
        ["GET /pier/.git/info/refs?service=git-upload-pack", "POST /pier/.git/git-upload-pack"]
    );
    assert!(String::from_utf8_lossy(&asked[1].body).contains("command=ls-refs"));
    assert!(before.still_holds(&source.fingerprint().unwrap()));
    repo.git(&["branch", "unrelated"]);
    repo.git(&["tag", "v1"]);
    assert!(before.still_holds(&source.fingerprint().unwrap()), "other references do not count");
    repo.commit(&[("deploy/b.yaml", &config_map("b"))]);
    assert!(!before.still_holds(&source.fingerprint().unwrap()));
    server.asked();
    let second = take(&source);
    let change: usize = server.asked().iter().map(|asked| asked.sent).sum();
    assert_ne!(first.id, second.id);
    assert_eq!(second.manifests.len(), 2);
    assert!(whole > 100_000 && change < 5_000, "{whole} bytes, then {change}");
}

#[test]
fn the_mirror_has_no_work_tree_no_hooks_no_tags_and_no_configuration_of_the_servers() {
    let (repo, server) = served();
    repo.git(&["tag", "v1"]);
    repo.git(&["config", "core.fsmonitor", "touch /tmp/never"]);
    let source = over_http(&repo, &server);
    take(&source);
    let mirror = source.folder().join("mirror");
    let mut names: Vec<_> =
        fs::read_dir(&mirror).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["HEAD", "config", "objects", "refs"]);
    let config = fs::read_to_string(mirror.join("config")).unwrap();
    assert!(!config.contains("127.0.0.1") && !config.contains("remote"), "{config}");
    let refs = repository::git(&mirror).args(["for-each-ref"]).output().unwrap();
    let refs = String::from_utf8(refs.stdout).unwrap();
    assert_eq!(refs.lines().count(), 2, "{refs}");
    // Git itself finds nothing wrong with it.
    let fsck = repository::git(&mirror).args(["fsck", "--strict"]).output().unwrap();
    assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stderr));
}

#[test]
fn a_connection_that_is_cut_in_the_middle_of_a_pack_leaves_what_was_there() {
    let (repo, server) = served();
    let source = over_http(&repo, &server);
    server.set(Manner::Cut(50_000));
    let error = source.read().unwrap_err();
    assert!(matches!(error, SourceError::Unreachable { .. }), "{error:?}");
    server.set(Manner::Serve);
    let accepted = take(&source);
    repo.write("more.bin", &noise(300_000));
    let newer = repo.commit(&[("deploy/b.yaml", &config_map("b"))]);
    for bytes in [0, 1, 40, 400, 4_000, 40_000, 150_000] {
        server.set(Manner::Cut(bytes));
        let error = source.read().unwrap_err();
        assert!(matches!(error, SourceError::Unreachable { .. }), "{bytes}: {error:?}");
        assert_eq!(source.last_good().unwrap().id, accepted.id);
    }
    server.set(Manner::Serve);
    assert_eq!(&*take(&source).id, newer);
}

/// The largest pack of a mirror.
fn pack(source: &Git) -> PathBuf {
    let packs = fs::read_dir(source.folder().join("mirror/objects/pack")).unwrap();
    packs
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "pack"))
        .max_by_key(|path| path.metadata().unwrap().len())
        .unwrap()
}

#[test]
fn a_mirror_that_is_broken_in_any_way_is_made_anew() {
    let (repo, server) = served();
    let source = over_http(&repo, &server);
    let whole = take(&source);
    let writable = |path: &PathBuf| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    type Break<'a> = Box<dyn Fn() + 'a>;
    let mirror = source.folder().join("mirror");
    let at = |name: &str| mirror.join(name);
    let (objects, config, fetched, head) =
        (at("objects"), at("config"), at("refs/trimtab/fetched"), at("HEAD"));
    let (alternates, shallow) = (at("objects/info/alternates"), at("shallow"));
    let source_of = &source;
    let breaks: Vec<(&str, Break<'_>)> = vec![
        ("no objects", Box::new(move || fs::remove_dir_all(&objects).unwrap())),
        ("no pack", Box::new(move || fs::remove_file(pack(source_of)).unwrap())),
        (
            "no index",
            Box::new(move || {
                fs::remove_file(pack(source_of).with_extension("idx")).unwrap();
            }),
        ),
        (
            "half a pack",
            Box::new(move || {
                let pack = pack(source_of);
                writable(&pack);
                let half = pack.metadata().unwrap().len() / 2;
                fs::File::options().write(true).open(&pack).unwrap().set_len(half).unwrap();
            }),
        ),
        (
            "an empty pack",
            Box::new(move || {
                let pack = pack(source_of);
                writable(&pack);
                fs::write(&pack, "").unwrap();
            }),
        ),
        (
            "another configuration",
            Box::new(move || {
                fs::write(&config, "[core]\n\tbare = true\n[include]\n\tpath = /etc/passwd\n")
                    .unwrap();
            }),
        ),
        ("alternates", Box::new(move || fs::write(&alternates, "/elsewhere\n").unwrap())),
        ("a shallow edge", Box::new(move || fs::write(&shallow, "\n").unwrap())),
        ("no head", Box::new(move || fs::remove_file(&head).unwrap())),
        ("a name of nothing", Box::new(move || fs::write(&fetched, "nonsense\n").unwrap())),
    ];
    for (what, break_it) in breaks {
        break_it();
        let again = source.read().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((again.id.clone(), names(&again)), (whole.id.clone(), names(&whole)), "{what}");
        source.accept(&again).unwrap();
        // And it is whole again.
        let fsck = repository::git(&mirror).args(["fsck", "--full"]).output().unwrap();
        assert!(fsck.status.success(), "{what}: {}", String::from_utf8_lossy(&fsck.stderr));
        assert!(source.last_good().is_some(), "{what}");
    }
}

#[test]
fn one_altered_byte_in_the_mirror_is_never_read_as_content() {
    let (repo, server) = served();
    let source = over_http(&repo, &server);
    let whole = take(&source);
    let pack = pack(&source);
    use std::os::unix::fs::PermissionsExt as _;
    let good = fs::read(&pack).unwrap();
    for at in (12..good.len()).step_by(good.len() / 60) {
        fs::set_permissions(&pack, fs::Permissions::from_mode(0o600)).unwrap();
        let mut bad = good.clone();
        bad[at] ^= 0x20;
        fs::write(&pack, bad).unwrap();
        // Another process: nothing is known from before.
        let again = over_http(&repo, &server).read().unwrap();
        assert_eq!((&again.id, names(&again)), (&whole.id, names(&whole)), "byte {at}");
    }
}

#[test]
fn a_mirror_that_cannot_be_made_anew_keeps_what_was_accepted() {
    let (repo, server) = served();
    let source = over_http(&repo, &server);
    let accepted = take(&source);
    fs::write(source.folder().join("mirror/refs/trimtab/fetched"), "nonsense\n").unwrap();
    server.set(Manner::Say(500, "", ""));
    assert!(source.read().is_err());
    assert_eq!(source.last_good().unwrap().id, accepted.id);
    server.set(Manner::Serve);
    assert_eq!(source.read().unwrap().id, accepted.id);
}

#[test]
fn a_rewound_branch_is_refused_and_what_was_accepted_outlives_its_mirror() {
    let (repo, server) = served();
    let source = over_http(&repo, &server);
    repo.commit(&[("deploy/b.yaml", &config_map("b"))]);
    let accepted = take(&source);
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let error = source.read().unwrap_err();
    assert!(matches!(error, SourceError::SteppedBack { .. }), "{error}");
    repo.commit(&[("deploy/c.yaml", &config_map("c"))]);
    let error = source.read().unwrap_err();
    assert!(matches!(error, SourceError::SteppedBack { .. }), "{error}");
    assert_eq!(source.last_good().unwrap().id, accepted.id);
    // The server gives the old commit away still, so it goes into the new mirror.
    fs::write(source.folder().join("mirror/config"), "").unwrap();
    assert!(matches!(source.read().unwrap_err(), SourceError::SteppedBack { .. }));
    // Forward again.
    repo.git(&["reset", "-q", "--hard", &accepted.id]);
    let forward = repo.commit(&[("deploy/d.yaml", &config_map("d"))]);
    assert_eq!(&*take(&source).id, forward);
}

#[test]
fn credentials_go_to_the_one_host_and_nowhere_else() {
    const TOKEN: &str = "hunter2hunter2";
    let (repo, server) = served();
    let file = repo.parent().join("token");
    let with = |file: &std::path::Path| {
        let mut options = options(&server.address("pier/.git"));
        options.credentials = Credentials::TokenFile(file.to_owned());
        open(options, &repo.state())
    };
    // ada:hunter2hunter2
    server.set(Manner::Ask("YWRhOmh1bnRlcjJodW50ZXIy"));
    let error = over_http(&repo, &server).read().unwrap_err();
    assert!(matches!(error, SourceError::AuthRefused { .. }), "{error:?}");
    assert!(error.to_string().contains("who are you?"), "{error}");
    fs::write(&file, format!("eve:{TOKEN}\n")).unwrap();
    let error = with(&file).read().unwrap_err();
    assert!(matches!(error, SourceError::AuthRefused { .. }), "{error:?}");
    // Read anew each time.
    let source = with(&file);
    fs::write(&file, format!("ada:{TOKEN}\n")).unwrap();
    server.asked();
    assert_eq!(take(&source).manifests.len(), 1);
    assert!(server.asked().iter().all(|asked| asked.authorization.is_some()));
    // A server that repeats what it was shown.
    let echo = "wrong: YWRhOmh1bnRlcjJodW50ZXIy hunter2hunter2 https://ada:hunter2hunter2@git.test";
    server.set(Manner::Say(403, "Content-Type: text/plain\r\n", echo));
    let error = source.read().unwrap_err();
    let told = format!("{error} {error:?} {source:?}");
    assert!(matches!(error, SourceError::AuthRefused { .. }), "{error:?}");
    assert!(!told.contains("hunter2") && !told.contains("YWRhOmh1"), "{told}");
    // Another host is not asked at all.
    let other = Server::of(&repo.parent());
    server.set(Manner::Move(other.address("").trim_end_matches('/').to_owned()));
    let error = source.read().unwrap_err().to_string();
    assert!(error.contains("another host"), "{error}");
    assert!(other.asked().is_empty());
    let everything = std::process::Command::new("grep")
        .args(["-rlF", "-e", TOKEN, "-e", "YWRhOmh1bnRlcjJodW50ZXIy"])
        .arg(repo.state())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&everything.stdout), "");
    fs::write(&file, "\n").unwrap();
    let error = source.read().unwrap_err();
    assert!(matches!(error, SourceError::Misconfigured { .. }), "{error}");
    fs::remove_file(&file).unwrap();
    let error = source.read().unwrap_err().to_string();
    assert!(error.contains("the token cannot be read"), "{error}");
}

#[test]
fn over_tls_the_server_must_be_vouched_for_and_sends_nobody_out_of_it() {
    let repo = Repo::with(&[("a.yaml", &config_map("a"))]);
    let server = Server::over_tls(&repo.parent());
    let (authority, token) = (repo.parent().join("ca.pem"), repo.parent().join("token"));
    fs::write(&authority, server.certificate()).unwrap();
    fs::write(&token, "hunter2\n").unwrap();
    let with = |ca_file: Option<PathBuf>| {
        let mut options = options(&server.address("pier/.git"));
        options.credentials = Credentials::TokenFile(token.clone());
        options.ca_file = ca_file;
        open(options, &repo.state())
    };
    let error = with(None).read().unwrap_err();
    assert!(matches!(error, SourceError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("certificate"), "{error}");
    assert!(server.asked().is_empty(), "nothing is said to whom nobody vouches for");
    let source = with(Some(authority));
    assert_eq!(read(&source), ["a.yaml:1 a"]);
    // x-access-token:hunter2
    let login = Some("Basic eC1hY2Nlc3MtdG9rZW46aHVudGVyMg==".to_owned());
    let asked = server.asked();
    assert!(asked.iter().all(|asked| asked.authorization == login), "{asked:?}");
    let plain = Server::of(&repo.parent());
    server.set(Manner::Move(plain.address("").trim_end_matches('/').to_owned()));
    let error = source.read().unwrap_err();
    assert!(error.to_string().contains("another protocol"), "{error}");
    assert!(plain.asked().is_empty());
}

#[test]
fn a_repository_that_moved_on_its_own_host_is_followed_there() {
    let (repo, server) = served();
    let source = open(options(&server.address("old/.git")), &repo.state());
    fs::rename(repo.path(), repo.parent().join("new")).unwrap();
    std::os::unix::fs::symlink(repo.parent().join("new"), repo.path()).unwrap();
    let error = source.read().unwrap_err().to_string();
    assert!(error.contains("404"), "{error}");
    server.asked();
    // Only the first request may be sent on; the rest goes where it led.
    let moved = Server::of(&repo.parent());
    server.set(Manner::Move(moved.address("").trim_end_matches('/').to_owned()));
    assert!(source.read().is_err() && moved.asked().is_empty());
}

#[test]
fn a_mirror_of_a_source_is_used_by_one_process_at_a_time() {
    let (repo, server) = served();
    let sources = [over_http(&repo, &server), over_http(&repo, &server)];
    std::thread::scope(|scope| {
        for source in &sources {
            scope.spawn(move || {
                for _ in 0..5 {
                    assert_eq!(take(source).manifests.len(), 1);
                }
            });
        }
    });
}

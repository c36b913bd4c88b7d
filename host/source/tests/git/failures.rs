//! Servers that answer as they should not: what is said of it, and that nothing waits for ever.

use super::server::{Manner, Server};
use super::*;
use std::time::{Duration, Instant};
use trimtab_source::git::Credentials;

fn failing(manner: Manner, change: impl FnOnce(&mut GitOptions)) -> SourceError {
    let repo = Repo::with(&[("a.yaml", &config_map("a"))]);
    let server = Server::of(&repo.parent());
    server.set(manner);
    let mut options = options(&server.address("pier/.git"));
    change(&mut options);
    let error = open(options, &repo.state()).read().unwrap_err();
    let told = error.to_string();
    assert!(told.contains("the source pier") && told.contains("127.0.0.1"), "{told}");
    assert!(told.contains("default branch"), "{told}");
    error
}

#[test]
fn an_answer_that_is_none_of_gits_is_told_in_the_servers_words() {
    let text = "Content-Type: text/plain\r\n";
    for (status, headers, words, expected) in [
        (401, text, "no \x1b[2Jentry", "no \u{fffd}[2Jentry"),
        (403, text, "not you", "not you"),
        (404, text, "nothing here", "nothing here"),
        (500, text, "broken", "broken"),
        (503, "Content-Type: text/html\r\n", "<html>", "503"),
        (200, "Content-Type: text/html\r\n", "<html>welcome", "application/x-git-upload-pack"),
        (302, "", "", "does not say where"),
        (302, "Location: ftp://127.0.0.1/x\r\n", "", "another protocol"),
        (302, "Location: http://127.0.0.1:1/info/refs\r\n", "", "another host"),
        (302, "Location: //git.test/x\r\n", "", "elsewhere"),
        (302, "Location: /login\r\n", "", "no repository"),
    ] {
        let error = failing(Manner::Say(status, headers, words), |_| {});
        let is_refusal = matches!(error, SourceError::AuthRefused { .. });
        assert_eq!(is_refusal, status == 401 || status == 403, "{error:?}");
        assert!(error.to_string().contains(expected), "{status} {expected}: {error}");
        assert!(!error.is_of_content());
    }
}

#[test]
fn garbage_is_no_repository() {
    let kind = "Content-Type: application/x-git-upload-pack-advertisement\r\n";
    for words in ["", "0000", "zzzz", "001e# service=git-upload-pack\n0000", "ffff", "0005"] {
        let error = failing(Manner::Say(200, kind, words), |_| {});
        // A list of nothing is what an empty repository has.
        let is_told =
            matches!(error, SourceError::Unreachable { .. } | SourceError::ReferenceMissing { .. });
        assert!(is_told, "{words:?}: {error:?}");
    }
}

#[test]
fn a_server_that_sends_without_end_is_over_a_limit() {
    let error = failing(Manner::Endless, |options| options.limits.received_bytes = 4 << 20);
    assert!(matches!(error, SourceError::OverLimit { .. }), "{error:?}");
    assert!(error.to_string().contains("4 MiB"), "{error}");
}

#[test]
fn a_server_that_says_nothing_costs_the_timeout_and_no_more() {
    let started = Instant::now();
    let error = failing(Manner::Silent, |options| options.timeout = Duration::from_millis(800));
    assert!(matches!(error, SourceError::Unreachable { .. }), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn a_program_that_says_nothing_is_ended() {
    use std::os::unix::fs::PermissionsExt as _;
    let repo = Repo::with(&[("a.yaml", &config_map("a"))]);
    let program = repo.parent().join("never");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 60\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut options = options(&repo.address());
    options.programs.upload_pack = program;
    options.timeout = Duration::from_millis(500);
    let started = Instant::now();
    let error = open(options, &repo.state()).read().unwrap_err();
    assert!(error.to_string().contains("longer than 0.5 seconds"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn a_repository_on_this_machine_that_is_none_says_so() {
    let repo = Repo::empty();
    let error = open(options("file:///nowhere/at/all"), &repo.state()).read().unwrap_err();
    assert!(error.to_string().contains("nothing at /nowhere/at/all"), "{error}");
    let folder = repo.parent().join("plain");
    std::fs::create_dir(&folder).unwrap();
    let address = format!("file://{}", folder.display());
    let error = open(options(&address), &repo.state()).read().unwrap_err();
    assert!(error.to_string().contains("not appear to be a git repository"), "{error}");
}

#[test]
fn what_the_options_say_is_judged_before_anybody_is_asked() {
    let repo = Repo::with(&[("a.yaml", &config_map("a"))]);
    let refused = |address: &str, change: &dyn Fn(&mut GitOptions)| {
        let mut options = options(address);
        change(&mut options);
        match Git::open("pier", options, &repo.state(), "default").map(|source| source.read()) {
            Err(error) | Ok(Err(error)) => {
                assert!(matches!(error, SourceError::Misconfigured { .. }), "{error:?}");
                error.to_string()
            }
            Ok(Ok(_)) => panic!("{address}"),
        }
    };
    let token = repo.parent().join("token");
    std::fs::write(&token, "t").unwrap();
    let told = refused("http://git.test/a", &|options| options.allow_plain_http = false);
    assert!(told.contains("HTTP without TLS proves neither"), "{told}");
    let told = refused("http://git.test/a", &|options| {
        options.credentials = Credentials::TokenFile(token.clone());
    });
    assert!(told.contains("not sent over HTTP without TLS"), "{told}");
    let told = refused("https://git.test/a", &|options| options.ca_file = Some(token.clone()));
    assert!(told.contains("holds no certificate"), "{told}");
    let told = refused("https://git.test/a", &|options| options.path = "../x".into());
    assert!(told.contains(".."), "{told}");
    for name in ["", ".", "..", "a/b", ".hidden", "a b"] {
        let options = options("https://git.test/a");
        let error = Git::open(name, options, &repo.state(), "default").unwrap_err();
        assert!(matches!(error, SourceError::Misconfigured { .. }), "{name:?}");
    }
    // None of them made a folder.
    assert!(!repo.state().join("sources").exists() || repo.state().join("sources/pier").exists());
}

#[test]
fn a_state_folder_that_cannot_be_used_is_told_as_that() {
    let repo = Repo::with(&[("a.yaml", &config_map("a"))]);
    std::fs::create_dir_all(repo.state()).unwrap();
    std::fs::write(repo.state().join("sources"), "a file").unwrap();
    let error = source(&repo).read().unwrap_err();
    assert!(matches!(error, SourceError::State { .. }), "{error:?}");
}

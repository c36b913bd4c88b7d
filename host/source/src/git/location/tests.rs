//! Locations as people write them.

use super::*;

fn git(text: &str) -> (String, Reference, String) {
    match parse_location(text) {
        Ok(Location::Git { url, reference, path }) => (url.to_string(), reference, path),
        other => panic!("{text}: {other:?}"),
    }
}

fn refused(text: &str) -> String {
    parse_location(text).unwrap_err().to_string()
}

#[test]
fn a_location_is_an_address_a_reference_and_a_folder() {
    let branch = |name: &str| Reference::Branch(name.into());
    let tag = |name: &str| Reference::Tag(name.into());
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let host = "https://git.test/pier.git";
    for (text, url, reference, path) in [
        ("https://git.test/pier.git", host, Reference::Default, ""),
        ("https://git.test/pier.git#", host, Reference::Default, ""),
        ("https://git.test/pier.git#:deploy", host, Reference::Default, "deploy"),
        ("https://GIT.test/pier.git#main:clusters/prod", host, branch("main"), "clusters/prod"),
        ("https://git.test/pier.git#refs/tags/v1:", host, tag("v1"), ""),
        ("https://git.test/pier.git#v1", host, branch("v1"), ""),
        ("https://git.test/pier.git#v1.2.3", host, tag("v1.2.3"), ""),
        ("https://git.test/pier.git#v1.2.3-rc.1:./a//b/", host, tag("v1.2.3-rc.1"), "a/b"),
        ("https://git.test/pier.git#refs/heads/v1.2.3", host, branch("v1.2.3"), ""),
        ("https://user@git.test/pier.git#team/main", host, branch("team/main"), ""),
        ("git@git.test:team/pier.git#main", "git@git.test:team/pier.git", branch("main"), ""),
        ("ssh://git@git.test:2222/p", "ssh://git@git.test:2222/p", Reference::Default, ""),
        ("file:///srv/pier.git#main:a", "/srv/pier.git", branch("main"), "a"),
    ] {
        assert_eq!(git(text), (url.to_owned(), reference, path.to_owned()), "{text}");
    }
    let (_, reference, _) = git(&format!("{host}#{}", commit.to_uppercase()));
    assert_eq!(reference, Reference::Commit(commit.into()));
}

#[test]
fn a_local_path_is_a_directory_unless_it_is_a_repository_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let directory = |text: &str| {
        assert_eq!(parse_location(text), Ok(Location::Directory(text.into())), "{text}")
    };
    directory(path);
    directory(&format!("{path}#main"));
    directory("deploy/a:b");
    directory("host:path");
    std::fs::create_dir_all(folder.path().join(".git/objects")).unwrap();
    std::fs::write(folder.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    directory(path);
    let (url, reference, at) = git(&format!("{path}#main:deploy"));
    assert_eq!((url.as_str(), at.as_str()), (path, "deploy"));
    assert_eq!(reference, Reference::Branch("main".into()));
}

#[test]
fn what_is_no_location_is_refused_with_what_to_write() {
    for (text, word) in [
        ("", "is empty"),
        ("git://git.test/a", "proves neither"),
        ("ext::sh -c id://x", "space"),
        ("gopher://git.test/a", "is not known"),
        ("https://git.test", "no repository"),
        ("https:///a", "no host"),
        ("https://git.test:99999/a", "port"),
        ("ssh://-oProxyCommand=id/a", "dash"),
        ("ssh://-u@git.test/a", "dash"),
        ("git@git.test:-a", "dash"),
        ("https://git.test/a#..", "no name of a branch"),
        ("https://git.test/a#-b", "dash"),
        ("https://git.test/a#refs/notes/x", "neither a branch"),
        ("https://git.test/a#0123abc", "all 40 digits"),
        ("https://git.test/a#main:../b", ".."),
        ("https://git.test/a#main:x/.git/hooks", ".git"),
        ("file://git.test/a", "no host"),
        ("https://git.test/a\u{7}", "control"),
    ] {
        let told = refused(text);
        assert!(told.contains(word), "{text}: {told}");
    }
}

#[test]
fn a_password_in_an_address_is_refused_and_not_repeated() {
    for text in ["https://user:hunter2@git.test/a", "https://hunter2:x@git.test/a#main:b"] {
        let told = refused(text);
        assert!(told.contains("credentials") && !told.contains("hunter2"), "{told}");
    }
    // A user alone may be a token that somebody put there.
    let (shown, ..) = git("https://hunter2@git.test/a");
    assert!(!shown.contains("hunter2"), "{shown}");
}

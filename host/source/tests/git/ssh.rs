//! Over ssh: what OpenSSH's client is told. Where a server of OpenSSH's is installed, a real one
//! answers; elsewhere a stand-in for the client shows what it was given and runs git at once.

use super::*;
use std::os::unix::fs::PermissionsExt as _;
use trimtab_source::git::Credentials;

fn with_key(repo: &Repo, address: &str) -> GitOptions {
    let folder = repo.parent();
    std::fs::write(folder.join("key"), "").unwrap();
    std::fs::write(folder.join("known"), "").unwrap();
    let mut options = options(address);
    options.credentials =
        Credentials::SshKey { private_key: folder.join("key"), known_hosts: folder.join("known") };
    options
}

#[test]
fn ssh_asks_nobody_trusts_no_unknown_host_and_takes_no_configuration() {
    let repo = Repo::with(&[("a.yaml", &config_map("a"))]);
    let stand_in = repo.parent().join("ssh-stand-in");
    let told = repo.parent().join("told");
    let script = format!(
        "#!/bin/sh\nfor word; do echo \"$word\"; last=$word; done > {}\nenv >> {}\nexec sh -c \"$last\"\n",
        told.display(),
        told.display()
    );
    std::fs::write(&stand_in, script).unwrap();
    std::fs::set_permissions(&stand_in, std::fs::Permissions::from_mode(0o755)).unwrap();
    let address = format!("ssh://git@git.test:2222{}", repo.path().display());
    let mut options = with_key(&repo, &address);
    options.programs.ssh = stand_in;
    assert_eq!(read(&open(options, &repo.state())), ["a.yaml:1 a"]);
    let told = std::fs::read_to_string(told).unwrap();
    for line in [
        "-F\nnone\n",
        "BatchMode=yes\n",
        "StrictHostKeyChecking=yes\n",
        "GlobalKnownHostsFile=/dev/null\n",
        "IdentitiesOnly=yes\n",
        "IdentityAgent=none\n",
        "-p\n2222\n",
        "--\ngit@git.test\n",
        "GIT_PROTOCOL=version=2\n",
    ] {
        assert!(told.contains(line), "{line:?} in {told}");
    }
    assert!(
        told.contains(&format!("UserKnownHostsFile=\"{}\"", repo.parent().join("known").display()))
    );
    assert!(!told.contains("SSH_AUTH_SOCK"), "{told}");
}

#[test]
fn ssh_without_a_key_and_a_path_that_is_no_path_are_refused() {
    let repo = Repo::with(&[("a.yaml", &config_map("a"))]);
    let error = open(options("git@git.test:pier"), &repo.state()).read().unwrap_err();
    assert!(matches!(error, SourceError::Misconfigured { .. }), "{error}");
    let mut options = with_key(&repo, "git@git.test:pier");
    options.credentials = Credentials::SshKey {
        private_key: repo.parent().join("gone"),
        known_hosts: repo.parent().join("known"),
    };
    let error = open(options, &repo.state()).read().unwrap_err().to_string();
    assert!(error.contains("the private key cannot be read"), "{error}");
}

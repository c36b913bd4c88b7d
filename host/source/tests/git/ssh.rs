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

/// OpenSSH's server, if it is installed.
fn sshd() -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut folders: Vec<_> = std::env::split_paths(&path).collect();
    folders.push("/usr/sbin".into());
    folders.into_iter().map(|folder| folder.join("sshd")).find(|program| program.is_file())
}

struct Daemon(std::process::Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = std::process::Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_real_server_of_openssh_lets_the_key_in_and_no_other_and_must_be_known() {
    let Some(sshd) = sshd() else {
        eprintln!("SKIPPED: there is no sshd here (install openssh-server to run this)");
        return;
    };
    let repo = Repo::with(&[("a.yaml", &config_map("a"))]);
    let at = |name: &str| repo.parent().join(name);
    for key in ["host", "other-host", "user", "other-user"] {
        let file = at(key);
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", file.to_str().unwrap()]);
    }
    let public = |key: &str| std::fs::read_to_string(at(key).with_extension("pub")).unwrap();
    std::fs::write(at("authorized"), public("user")).unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
         UsePAM no\nPidFile none\nPasswordAuthentication no\nAcceptEnv GIT_PROTOCOL\n",
        at("host").display(),
        at("authorized").display()
    );
    std::fs::write(at("config"), config).unwrap();
    let log = std::fs::File::create(at("log")).unwrap();
    let child = std::process::Command::new(sshd)
        .args(["-D", "-e", "-f"])
        .arg(at("config"))
        .stderr(log)
        .spawn()
        .unwrap();
    let _daemon = Daemon(child);
    let up = |_: &u32| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    };
    let is_up = (0..100).any(|try_number| up(&try_number));
    assert!(is_up, "{}", std::fs::read_to_string(at("log")).unwrap());
    let user = run("id", &["-un"]);
    let with = |key: &str, host: &str| {
        let address = format!("ssh://{user}@127.0.0.1:{port}{}", repo.path().display());
        let known = at("known");
        std::fs::write(&known, format!("[127.0.0.1]:{port} {}", public(host))).unwrap();
        let mut options = options(&address);
        options.credentials = Credentials::SshKey { private_key: at(key), known_hosts: known };
        open(options, &repo.state()).read()
    };
    assert_eq!(names(&with("user", "host").unwrap()), ["a.yaml:1 a"]);
    for (key, host, word) in
        [("other-user", "host", "Permission denied"), ("user", "other-host", "verification failed")]
    {
        let error = with(key, host).unwrap_err();
        assert!(matches!(error, SourceError::AuthRefused { .. }), "{error:?}");
        assert!(error.to_string().contains(word), "{error}");
    }
}

//! Repositories made by Git itself and signed by ssh-keygen and gpg, in a folder of their own that
//! no configuration of a user reaches.

use super::super::*;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 2026-06-01: when tests commit and judge, if they say nothing else.
pub(super) const NOW: u64 = 1_780_272_000;
pub(super) const DAY: u64 = 86_400;

pub(super) struct World {
    pub(super) dir: tempfile::TempDir,
    /// When Git commits, seconds since 1970.
    pub(super) at: std::cell::Cell<u64>,
}

impl World {
    /// An empty repository; `None`, said aloud, where a program is missing.
    pub(super) fn new() -> Option<Self> {
        for (program, argument) in
            [("git", "--version"), ("ssh-keygen", "-?"), ("gpg", "--version")]
        {
            let there = Command::new(program)
                .arg(argument)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            if there.is_err() {
                eprintln!("skipped: {program} is not installed");
                return None;
            }
        }
        let world = Self { dir: tempfile::tempdir().unwrap(), at: NOW.into() };
        for folder in ["repo", "keys", "signs", "trusts"] {
            use std::os::unix::fs::DirBuilderExt as _;
            fs::DirBuilder::new().mode(0o700).create(world.path(folder)).unwrap();
        }
        world.git(&["init", "-q", "-b", "main", "."]);
        Some(world)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let at = format!("@{} +0000", self.at.get());
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("GNUPGHOME", self.path("signs"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_AUTHOR_NAME", "Mallory")
            .env("GIT_AUTHOR_EMAIL", "anybody@example.com")
            .env("GIT_COMMITTER_NAME", "Mallory")
            .env("GIT_COMMITTER_EMAIL", "anybody@example.com")
            .env("GIT_AUTHOR_DATE", &at)
            .env("GIT_COMMITTER_DATE", &at)
            .current_dir(self.path("repo"));
        command
    }

    /// What a program says, which must end well.
    pub(super) fn run(&self, program: &str, arguments: &[&str], input: &[u8]) -> String {
        let (good, out, err) = self.attempt(program, arguments, input);
        assert!(good, "{program} {arguments:?}: {err}");
        String::from_utf8(out).unwrap().trim_end().to_owned()
    }

    fn attempt(&self, program: &str, arguments: &[&str], input: &[u8]) -> (bool, Vec<u8>, String) {
        let mut child = self
            .command(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).ok();
        let out = child.wait_with_output().unwrap();
        (out.status.success(), out.stdout, String::from_utf8_lossy(&out.stderr).into_owned())
    }

    pub(super) fn git(&self, arguments: &[&str]) -> String {
        self.run("git", arguments, b"")
    }

    /// Writes a file of the work tree and puts it into the index.
    pub(super) fn write(&self, path: &str, text: &str) {
        let file = self.path("repo").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        self.git(&["add", "--", path]);
    }

    /// Commits what is in the index, one second after the last commit.
    pub(super) fn commit(&self, key: Option<&Key>) -> Commit {
        self.make(&["commit", "-q", "--allow-empty", "-m", "a change"], key);
        self.head()
    }

    /// Runs Git so that what it makes is signed by this key.
    pub(super) fn make(&self, arguments: &[&str], key: Option<&Key>) {
        self.at.set(self.at.get() + 1);
        let mut all: Vec<String> = Vec::new();
        if let Some(key) = key {
            all.extend(key.configuration(self));
        } else {
            all.extend(["-c".into(), "commit.gpgSign=false".into()]);
        }
        all.extend(arguments.iter().map(|it| (*it).to_owned()));
        self.git(&all.iter().map(String::as_str).collect::<Vec<_>>());
    }

    pub(super) fn head(&self) -> Commit {
        self.id("HEAD")
    }

    pub(super) fn id(&self, revision: &str) -> Commit {
        self.git(&["rev-parse", revision]).parse().unwrap()
    }

    /// A file change and a commit of it.
    pub(super) fn change(&self, path: &str, text: &str, key: Option<&Key>) -> Commit {
        self.write(path, text);
        self.commit(key)
    }

    /// The raw bytes of an object.
    pub(super) fn raw(&self, kind: &str, id: Commit) -> Vec<u8> {
        self.attempt("git", &["cat-file", kind, &id.to_string()], b"").1
    }

    /// Puts raw bytes into the repository as an object.
    pub(super) fn store(&self, kind: &str, bytes: &[u8]) -> Commit {
        let arguments = ["hash-object", "-t", kind, "-w", "--literally", "--stdin"];
        self.run("git", &arguments, bytes).parse().unwrap()
    }

    pub(super) fn objects(&self) -> gix::Repository {
        gix::open_opts(self.path("repo"), gix::open::Options::isolated()).unwrap()
    }

    /// What `git verify-commit` (or `verify-tag`) thinks, with the same keys.
    pub(super) fn git_trusts(&self, what: &str, id: Commit) -> bool {
        let allowed =
            format!("gpg.ssh.allowedSignersFile={}", self.path("allowed_signers").display());
        // ssh-keygen takes the commit's own date; gpg would take today's.
        let gpg = self.path("trust");
        script(&gpg, &format!("exec gpg --faked-system-time {} \"$@\"", NOW + DAY));
        let gpg = format!("gpg.program={}", gpg.display());
        let mut command = self.command("git");
        command.env("GNUPGHOME", self.path("trusts"));
        command.args(["-c", &allowed, "-c", &gpg, what, &id.to_string()]);
        command.output().unwrap().status.success()
    }

    /// Lists keys as allowed: what `verification` reads, and what Git is asked with.
    pub(super) fn allow(&self, lines: &[String], openpgp: &[&Key]) {
        fs::write(self.path("allowed_signers"), lines.join("\n") + "\n").unwrap();
        let mut all = String::new();
        for key in openpgp {
            all.push_str(&self.run("gpg", &["--armor", "--export", &key.name], b""));
            all.push('\n');
        }
        fs::write(self.path("keys.asc"), &all).unwrap();
        if !openpgp.is_empty() {
            let trusts = self.path("trusts");
            let file = self.path("keys.asc");
            let arguments = [
                "--homedir",
                trusts.to_str().unwrap(),
                "--batch",
                "-q",
                "--import",
                file.to_str().unwrap(),
            ];
            self.run("gpg", &arguments, b"");
        }
    }

    pub(super) fn verification(&self, mode: Mode) -> Verification {
        let mut signers = Vec::new();
        for (file, source) in [
            ("allowed_signers", SignerSource::AllowedSigners as fn(PathBuf) -> SignerSource),
            ("keys.asc", SignerSource::OpenPgp as fn(PathBuf) -> SignerSource),
        ] {
            let file = self.path(file);
            if fs::metadata(&file).is_ok_and(|it| it.len() > 1) {
                signers.push(source(file));
            }
        }
        Verification { mode, signers, limits: vec![], tags: false, since: None }
    }

    pub(super) fn ssh(&self, kind: &str, bits: &str, name: &str) -> Key {
        let file = self.path("keys").join(name);
        let mut arguments =
            vec!["-q", "-t", kind, "-N", "", "-C", name, "-f", file.to_str().unwrap()];
        if !bits.is_empty() {
            arguments.extend(["-b", bits]);
        }
        self.run("ssh-keygen", &arguments, b"");
        Key { name: name.to_owned(), form: Form::Ssh }
    }

    /// The line of allowed signers for a key.
    pub(super) fn line(&self, key: &Key, options: &str) -> String {
        let public =
            fs::read_to_string(self.path("keys").join(format!("{}.pub", key.name))).unwrap();
        format!("{}@example.com {options} {}", key.name, public.trim_end())
    }

    /// An OpenPGP key, made at a time, with an expiry as gpg words it; further arguments of gpg are
    /// given when it signs.
    pub(super) fn gpg(&self, user: &str, kind: &str, usage: &str, made: u64, expires: &str) -> Key {
        let user_id = format!("{user} <{user}@example.com>");
        let before = self.gpg_keys();
        self.gpg_at(made, &["--quick-gen-key", &user_id, kind, usage, expires], b"");
        let name = self.gpg_keys().into_iter().find(|key| !before.contains(key)).unwrap();
        Key { name, form: Form::OpenPgp { at: None, arguments: vec![] } }
    }

    /// The key of this user, which is there already.
    pub(super) fn gpg_named(&self, user: &str) -> Key {
        let text = self.run("gpg", &["--list-keys", "--with-colons", user], b"");
        let line = text.lines().find(|line| line.starts_with("fpr:")).unwrap();
        let name = line.split(':').nth(9).unwrap().to_owned();
        Key { name, form: Form::OpenPgp { at: None, arguments: vec![] } }
    }

    /// Fingerprints of primary keys.
    fn gpg_keys(&self) -> Vec<String> {
        let text = self.run("gpg", &["--list-keys", "--with-colons"], b"");
        let mut primary = false;
        let mut all = Vec::new();
        for line in text.lines() {
            let fields: Vec<_> = line.split(':').collect();
            match fields[0] {
                "pub" => primary = true,
                "fpr" if std::mem::take(&mut primary) => all.push(fields[9].to_owned()),
                _ => {}
            }
        }
        all
    }

    /// Fingerprints of a key's subkeys.
    pub(super) fn subkeys(&self, key: &Key) -> Vec<String> {
        let text = self.run("gpg", &["--list-keys", "--with-colons", &key.name], b"");
        let fingerprints = text.lines().filter(|line| line.starts_with("fpr:"));
        fingerprints.skip(1).map(|line| line.split(':').nth(9).unwrap().to_owned()).collect()
    }

    /// gpg without questions, at a time.
    pub(super) fn gpg_at(&self, at: u64, arguments: &[&str], input: &[u8]) -> String {
        let time = at.to_string();
        let mut all = vec!["--batch", "-q", "--pinentry-mode", "loopback", "--passphrase", ""];
        all.extend(["--faked-system-time", &time]);
        all.extend(arguments);
        self.run("gpg", &all, input)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for home in ["signs", "trusts"] {
            let _ = Command::new("gpgconf")
                .env("GNUPGHOME", self.path(home))
                .args(["--kill", "all"])
                .stderr(Stdio::null())
                .status();
        }
    }
}

#[derive(Clone)]
pub(super) struct Key {
    /// An SSH key's file, an OpenPGP key's fingerprint.
    pub(super) name: String,
    form: Form,
}

#[derive(Clone)]
enum Form {
    Ssh,
    OpenPgp { at: Option<u64>, arguments: Vec<String> },
}

impl Key {
    pub(super) fn is_ssh(&self) -> bool {
        matches!(self.form, Form::Ssh)
    }

    /// The same OpenPGP key, which signs at another time.
    pub(super) fn at(&self, time: u64) -> Self {
        let mut key = self.clone();
        if let Form::OpenPgp { at, .. } = &mut key.form {
            *at = Some(time);
        }
        key
    }

    /// The same OpenPGP key, with further arguments when it signs.
    pub(super) fn with(&self, more: &[&str]) -> Self {
        let mut key = self.clone();
        if let Form::OpenPgp { arguments, .. } = &mut key.form {
            arguments.extend(more.iter().map(|it| (*it).to_owned()));
        }
        key
    }

    /// By another key of the same certificate, named by its fingerprint.
    pub(super) fn by(&self, fingerprint: &str) -> Self {
        Self { name: format!("{fingerprint}!"), form: self.form.clone() }
    }

    fn configuration(&self, world: &World) -> Vec<String> {
        let mut all = vec!["-c".to_owned(), "commit.gpgSign=true".to_owned()];
        let mut set =
            |name: &str, value: &str| all.extend(["-c".into(), format!("{name}={value}")]);
        match &self.form {
            Form::Ssh => {
                let file = world.path("keys").join(&self.name);
                set("gpg.format", "ssh");
                set("user.signingKey", file.to_str().unwrap());
            }
            Form::OpenPgp { at, arguments } => {
                let program = world.path("sign");
                let at = at.unwrap_or(world.at.get());
                let more = arguments.join(" ");
                script(
                    &program,
                    &format!(
                        "exec gpg --batch -q --pinentry-mode loopback --passphrase '' --faked-system-time {at} {more} \"$@\""
                    ),
                );
                set("gpg.format", "openpgp");
                set("gpg.program", program.to_str().unwrap());
                set("user.signingKey", &self.name);
            }
        }
        all
    }
}

fn script(file: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(file, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

pub(super) fn moment(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// The head alone, found by a branch, with nothing accepted before.
pub(super) fn judge(
    world: &World,
    commit: Commit,
    wanted: &Verification,
) -> Result<Accepted, Refused> {
    judge_since(world, commit, None, wanted)
}

pub(super) fn judge_since(
    world: &World,
    commit: Commit,
    last: Option<Commit>,
    wanted: &Verification,
) -> Result<Accepted, Refused> {
    let target = Target { commit, tag: Tag::None };
    verify(&world.objects(), &target, last, wanted, moment(NOW + DAY))
}

/// `ok`, or the reason's code.
pub(super) fn word<T>(judged: &Result<T, Refused>) -> &'static str {
    judged.as_ref().map_or_else(|refused| refused.reason.code(), |_| "ok")
}

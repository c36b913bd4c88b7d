//! Repositories for tests, made by git itself: without any configuration but what stands here.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

/// A repository with a work tree, in a folder that goes with it.
pub(super) struct Repo {
    folder: TempDir,
}

pub(super) fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

/// `git` in a folder, with nothing of this machine's configuration.
pub(super) fn git(folder: &Path) -> Command {
    static CLOCK: AtomicU64 = AtomicU64::new(1_700_000_000);
    let date = format!("{} +0000", CLOCK.fetch_add(10, Ordering::Relaxed));
    let mut command = Command::new("git");
    command.current_dir(folder).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap());
    for (name, value) in [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_AUTHOR_NAME", "Ada"),
        ("GIT_AUTHOR_EMAIL", "ada@pier.test"),
        ("GIT_COMMITTER_NAME", "Bo"),
        ("GIT_COMMITTER_EMAIL", "bo@pier.test"),
        ("GIT_AUTHOR_DATE", &date),
        ("GIT_COMMITTER_DATE", &date),
    ] {
        command.env(name, value);
    }
    command
}

impl Repo {
    /// An empty repository with the branch `main`.
    pub(super) fn empty() -> Self {
        let repo = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(repo.path()).unwrap();
        repo.git(&["init", "-q", "-b", "main"]);
        repo.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
        repo
    }

    /// A repository with these files in one commit.
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let repo = Self::empty();
        repo.commit(files);
        repo
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("pier")
    }

    /// The folder that holds the repository.
    pub(super) fn parent(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub(super) fn address(&self) -> String {
        format!("file://{}", self.path().display())
    }

    /// Where a source may keep its state.
    pub(super) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Runs git; gives what it says.
    pub(super) fn git(&self, arguments: &[&str]) -> String {
        self.git_with(arguments, b"")
    }

    pub(super) fn git_with(&self, arguments: &[&str], input: &[u8]) -> String {
        let mut command = git(&self.path());
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {words}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Commits these files beside what is there; gives the commit.
    pub(super) fn commit(&self, files: &[(&str, &str)]) -> String {
        for (name, text) in files {
            self.write(name, text);
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "a change\n\nwith words"]);
        self.head()
    }

    pub(super) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Writes a blob; gives its id.
    pub(super) fn blob(&self, content: &[u8]) -> String {
        self.git_with(&["hash-object", "-w", "--stdin"], content)
    }

    /// Writes a tree as it is given, whatever git thinks of it; gives its id.
    pub(super) fn tree(&self, entries: &[(&str, &[u8], &str)]) -> String {
        let mut bytes = Vec::new();
        for (mode, name, id) in entries {
            bytes.extend_from_slice(mode.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(name);
            bytes.push(0);
            let digits = id.as_bytes().chunks(2);
            bytes.extend(
                digits
                    .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()),
            );
        }
        self.git_with(&["hash-object", "-t", "tree", "-w", "--stdin", "--literally"], &bytes)
    }

    /// Makes a commit of a tree on top of main; gives it.
    pub(super) fn commit_tree(&self, tree: &str) -> String {
        let parent = self.git(&["for-each-ref", "--format=%(objectname)", "refs/heads/main"]);
        let mut arguments = vec!["commit-tree", tree, "-m", "made"];
        if !parent.is_empty() {
            arguments.extend(["-p", &parent]);
        }
        let commit = self.git(&arguments);
        self.git(&["update-ref", "refs/heads/main", &commit]);
        commit
    }

    /// A repository whose main is a tree that was written by hand.
    pub(super) fn of_tree(make: impl FnOnce(&Repo) -> String) -> Self {
        let repo = Self::empty();
        let tree = make(&repo);
        repo.commit_tree(&tree);
        repo
    }
}

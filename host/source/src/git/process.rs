//! Conversations with a program: OpenSSH's client, or git's own `git-upload-pack` for a repository
//! on this machine.
//!
//! Both get an environment of ours: no configuration, no agent, no terminal, no prompt. An address
//! is checked before (`location.rs`), so that no part of it is an option.

use super::link::{Bounded, Budget, Cause, Told};
use super::location::Scheme;
use super::{Credentials, GitOptions};
use crate::limits::MAX_WORDS;
use gix_transport::client::blocking_io::Transport;
use gix_transport::client::git::ConnectMode;
use gix_transport::client::git::blocking_io::Connection;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};

/// A program that runs until it is ended.
pub(crate) struct Child {
    child: std::process::Child,
    words: Option<std::thread::JoinHandle<()>>,
}

impl Child {
    /// Ends the program, if it has not, and waits for its last words.
    pub(crate) fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(words) = self.words.take() {
            let _ = words.join();
        }
    }
}

/// Starts the program that the address needs.
///
/// # Errors
/// [`Cause::Options`] if it cannot be started.
pub(crate) fn connect(
    options: &GitOptions,
    budget: Budget,
    told: &Told,
) -> Result<(Box<dyn Transport + Send>, Child), Cause> {
    let mut command = match options.url.scheme {
        Scheme::Ssh => ssh(options)?,
        _ => upload_pack(options)?,
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|error| {
        Cause::Options(format!("the program {program} cannot be started: {error}; install it"))
    })?;
    let (Some(output), Some(input), Some(words)) =
        (child.stdout.take(), child.stdin.take(), child.stderr.take())
    else {
        return Err(Cause::Options(format!("the program {program} has no output")));
    };
    let told = told.clone();
    let words = std::thread::Builder::new().name("git-words".into()).spawn(move || {
        if let Some(cause) = last_words(words) {
            told.tell(cause);
        }
    });
    let child = Child { child, words: words.ok() };
    let connection = Connection::new(
        budget.bounds(output),
        input,
        gix_transport::Protocol::V2,
        options.url.path.as_str(),
        None::<(String, Option<u16>)>,
        ConnectMode::Process,
        false,
    );
    let connection: Connection<Bounded<_>, _> =
        connection.custom_url(Some("file:///source".into()));
    Ok((Box::new(connection), child))
}

/// What a program says before it ends. Empty while all goes well.
fn last_words(mut words: ChildStderr) -> Option<Cause> {
    const MAX_BYTES: u64 = 4096;
    let mut said = Vec::new();
    let _ = words.by_ref().take(MAX_BYTES).read_to_end(&mut said);
    // The rest is read so that the program does not wait for it.
    let _ = std::io::copy(&mut words, &mut std::io::sink());
    let said = String::from_utf8_lossy(&said).into_owned();
    if said.trim().is_empty() {
        return None;
    }
    // A long text comes with its point at the end: warnings first, then what they led to.
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let said = if said.len() > MAX_WORDS { last.to_owned() } else { said };
    let is_refusal = ["Permission denied", "Authentication failed", "Host key verification failed"]
        .iter()
        .any(|words| said.contains(words));
    Some(if is_refusal { Cause::Refused(said) } else { Cause::Other(said) })
}

fn ssh(options: &GitOptions) -> Result<Command, Cause> {
    let Credentials::SshKey { private_key, known_hosts } = &options.credentials else {
        return Err(Cause::Options(
            "over ssh a private key and the known hosts must be named as credentials".into(),
        ));
    };
    for (path, what) in [(private_key, "the private key"), (known_hosts, "the known hosts")] {
        std::fs::File::open(path).map_err(|error| {
            Cause::Options(format!("{what} cannot be read from {}: {error}", path.display()))
        })?;
    }
    let mut command = bare(&options.programs.ssh);
    // A file of the user's or the system's could run commands, or let others answer.
    command.args(["-F", "none", "-T", "-x", "-a"]);
    for option in [
        "BatchMode=yes",
        // Banners are no reason why something failed.
        "LogLevel=ERROR",
        "StrictHostKeyChecking=yes",
        "GlobalKnownHostsFile=/dev/null",
        "UpdateHostKeys=no",
        "CheckHostIP=no",
        "IdentitiesOnly=yes",
        "IdentityAgent=none",
        "PreferredAuthentications=publickey",
        "PermitLocalCommand=no",
        "ClearAllForwardings=yes",
        "ControlPath=none",
        "ServerAliveInterval=15",
        "SendEnv=GIT_PROTOCOL",
    ] {
        command.args(["-o", option]);
    }
    command.args(["-o", &format!("ConnectTimeout={}", options.timeout.as_secs().clamp(1, 60))]);
    command.arg("-o").arg(file_option("UserKnownHostsFile", known_hosts)?);
    command.arg("-i").arg(private_key);
    let url = &options.url;
    if let Some(port) = url.port() {
        command.args(["-p", port]);
    }
    let host = url.host().trim_matches(['[', ']']);
    let user = url.user.as_deref().map(|user| format!("{user}@")).unwrap_or_default();
    command.arg("--").arg(format!("{user}{host}"));
    command.arg(format!("git-upload-pack {}", quoted(&url.path)));
    command.env("GIT_PROTOCOL", "version=2");
    Ok(command)
}

/// An option of ssh whose value is a file. ssh splits such a value at blanks and expands `%`.
fn file_option(name: &str, path: &Path) -> Result<OsString, Cause> {
    let text = path.to_str().filter(|text| !text.contains(['"', '%', '\n', '$']));
    let Some(text) = text else {
        return Err(Cause::Options(format!(
            "the path {} holds a quote, a percent or dollar sign: rename it",
            path.display()
        )));
    };
    Ok(format!("{name}=\"{text}\"").into())
}

/// For the shell at the other end.
fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', "'\\''"))
}

fn upload_pack(options: &GitOptions) -> Result<Command, Cause> {
    let path = Path::new(&options.url.path);
    if !path.exists() {
        return Err(Cause::Other(format!("there is nothing at {}", path.display())));
    }
    let mut command = bare(&options.programs.upload_pack);
    command.arg(path);
    for (name, value) in [
        ("GIT_PROTOCOL", "version=2"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
    ] {
        command.env(name, value);
    }
    Ok(command)
}

/// A program with nothing of our environment but where programs are.
fn bare(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command.env("LC_ALL", "C").env("HOME", "/nonexistent").current_dir("/");
    command
}

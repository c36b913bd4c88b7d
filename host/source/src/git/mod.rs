//! A repository of Git as a source: one folder of one commit's tree.
//!
//! [`Git::fingerprint`] asks the server for one reference and reads nothing. [`Git::read`] goes the
//! whole way, and every stage takes the value of the one before:
//!
//! ```text
//! fetch.rs ──► mirror.rs ──► judge.rs ──► files.rs ──► content.rs
//! the new      a bare copy,  may this     names and    manifests, those of
//! objects      nothing else  commit?      sizes        unchanged files kept
//! ```
//!
//! Objects are read from the commit's own tree in the mirror, each held against its own id. There
//! never is a work tree, an index, a hook, a filter, a submodule or a credential in it, and no
//! configuration of a user or of the system is taken into account.

mod content;
mod fetch;
mod files;
mod http;
mod judge;
mod link;
pub mod location;
mod mirror;
mod names;
mod process;
mod source;
pub mod trust;
mod words;

pub use source::Git;

use crate::limits;
use location::Url;
use std::path::PathBuf;
use std::time::Duration;

/// What a source of Git is.
#[derive(Clone, Debug)]
pub struct GitOptions {
    /// Where the repository is.
    pub url: Url,
    /// Which of its states.
    pub reference: Reference,
    /// The folder in the tree, with `/`; empty for the root.
    pub path: String,
    /// What lets us in.
    pub credentials: Credentials,
    /// Certificates (PEM) that the server's must be signed by; none for the web's usual ones.
    pub ca_file: Option<PathBuf>,
    /// Whether HTTP without TLS may be used. Credentials are sent over it to this machine alone.
    pub allow_plain_http: bool,
    /// Whose signatures are asked for; none are if there is nothing here.
    pub verify: Option<trust::Verification>,
    /// What becomes of a commit that does not descend from the last accepted one.
    pub history: trust::HistoryPolicy,
    /// How long one conversation with the server may take, from connecting to the last byte.
    pub timeout: Duration,
    /// What one fetch may cost.
    pub limits: Limits,
    /// Programs that are run.
    pub programs: Programs,
}

impl GitOptions {
    /// The default branch's root, without credentials or verification, in two minutes at most.
    pub fn new(url: Url) -> Self {
        Self {
            url,
            reference: Reference::Default,
            path: String::new(),
            credentials: Credentials::None,
            ca_file: None,
            allow_plain_http: false,
            verify: None,
            history: trust::HistoryPolicy::default(),
            timeout: Duration::from_secs(120),
            limits: Limits::default(),
            programs: Programs::default(),
        }
    }
}

/// Which state of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The head of a branch, without `refs/heads/`.
    Branch(String),
    /// A tag, without `refs/tags/`.
    Tag(String),
    /// One commit, by 40 hex digits.
    Commit(String),
    /// What the repository itself says: its HEAD.
    Default,
}

/// What lets us in. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// Nothing.
    None,
    /// A file that holds `user:token` or a token alone, for HTTP. Read anew for each conversation.
    TokenFile(PathBuf),
    /// A key for ssh, and the keys of the hosts that may answer.
    SshKey {
        /// The private key's file, without a passphrase.
        private_key: PathBuf,
        /// As ssh's `known_hosts`.
        known_hosts: PathBuf,
    },
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Credentials::None => "None",
            Credentials::TokenFile(_) => "TokenFile",
            Credentials::SshKey { .. } => "SshKey",
        })
    }
}

/// What one fetch may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that the server may send in one conversation.
    pub received_bytes: u64,
    /// Bytes of one object, known before it is unpacked.
    pub object_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { received_bytes: limits::MAX_RECEIVED_BYTES, object_bytes: limits::MAX_OBJECT_BYTES }
    }
}

/// Programs that are run: by name, as PATH has them, or by path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// OpenSSH's client, for ssh.
    pub ssh: PathBuf,
    /// Git's own, for a repository on this machine.
    pub upload_pack: PathBuf,
}

impl Default for Programs {
    fn default() -> Self {
        Self { ssh: "ssh".into(), upload_pack: "git-upload-pack".into() }
    }
}

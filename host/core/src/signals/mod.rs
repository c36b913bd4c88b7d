//! Signals: what a quiet reconciler would swallow.
//!
//! Takes records of passes, what the watches show, how sources and plugins stand, and lines of the
//! API server's own audit log; gives [`Finding`]s. Each signal is a pure function over what it is
//! given and a small state of its own, testable without IO. Memory is bounded whatever the number
//! of objects: every state here has a constant that says how much it may hold.
//!
//! | file | signal |
//! | --- | --- |
//! | `recreation.rs` | `unexpected-recreation` |
//! | `rollback.rs` | `unsafe-rollback` |
//! | `edit.rs`, `witness.rs` | `manual-edit`, `manual-edit-mismatch` |
//! | `contest.rs` | `fight` |
//! | `misplaced.rs`, `shapes.rs` | `misplaced-secret` |
//! | `trust.rs` | `trust` |
//! | `stale.rs` | `stale` |
//!
//! `findings.rs` keeps what they say, each once. Nothing here shows a value of a Secret: records
//! come redacted, and `misplaced.rs` knows values by keyed hashes and tells places alone.

mod bounded;

pub mod contest;
pub mod edit;
pub mod findings;
pub mod misplaced;
pub mod recreation;
pub mod rollback;
pub mod shapes;
pub mod stale;
pub mod trust;
pub mod witness;

pub use self::bounded::{Id, Rings, id_of};
pub use self::findings::{Finding, Findings};

use crate::decision::Severity;
use crate::identity::{Gvk, ObjectKey};
use std::fmt;
use std::sync::Arc;

/// Longest message or evidence that is kept, in characters.
const CHARS_AT_MOST: usize = 512;
/// Pieces of evidence of one finding.
const EVIDENCE_AT_MOST: usize = 12;

/// What a finding is called. The words are a contract: alerts are written on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Name {
    /// An object is there under another UID, and we deleted nothing; or it is made too often.
    UnexpectedRecreation,
    /// A field returns again and again to a value that policy denies.
    UnsafeRollback,
    /// Somebody changed what was in force, past its source.
    ManualEdit,
    /// managedFields and the API server's audit log name different people for one edit.
    ManualEditMismatch,
    /// Two write one field in turns.
    Fight,
    /// Secret material stands where it does not belong.
    MisplacedSecret,
    /// Something unsigned, altered, stepped back, denied or beyond its grant was turned away.
    Trust,
    /// A source, a watch or a plugin has stopped answering.
    Stale,
}

impl Name {
    /// Every name, in the order of the documentation.
    pub const ALL: [Name; 8] = [
        Self::UnexpectedRecreation,
        Self::UnsafeRollback,
        Self::ManualEdit,
        Self::ManualEditMismatch,
        Self::Fight,
        Self::MisplacedSecret,
        Self::Trust,
        Self::Stale,
    ];

    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnexpectedRecreation => "unexpected-recreation",
            Self::UnsafeRollback => "unsafe-rollback",
            Self::ManualEdit => "manual-edit",
            Self::ManualEditMismatch => "manual-edit-mismatch",
            Self::Fight => "fight",
            Self::MisplacedSecret => "misplaced-secret",
            Self::Trust => "trust",
            Self::Stale => "stale",
        }
    }

    /// The same as the reason of a Kubernetes Event.
    pub fn as_reason(self) -> &'static str {
        match self {
            Self::UnexpectedRecreation => "UnexpectedRecreation",
            Self::UnsafeRollback => "UnsafeRollback",
            Self::ManualEdit => "ManualEdit",
            Self::ManualEditMismatch => "ManualEditMismatch",
            Self::Fight => "Fight",
            Self::MisplacedSecret => "MisplacedSecret",
            Self::Trust => "Trust",
            Self::Stale => "Stale",
        }
    }

    /// The name with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == word)
    }
}

/// What a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// One object of the cluster.
    Object(ObjectKey),
    /// A source, by name.
    Source(Arc<str>),
    /// A plugin, by name or by its file where it has none.
    Plugin(Arc<str>),
    /// The watch of a kind.
    Watch(Gvk),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(key) => key.fmt(f),
            Self::Source(name) => write!(f, "source {name}"),
            Self::Plugin(name) => write!(f, "plugin {name}"),
            Self::Watch(gvk) => write!(f, "watch of {gvk}"),
        }
    }
}

/// One thing that a signal saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// What it is called.
    pub name: Name,
    /// How urgent.
    pub severity: Severity,
    /// What it is about.
    pub subject: Subject,
    /// What makes two observations of one name on one subject different findings: who, or where.
    pub about: String,
    /// For people.
    pub message: String,
    /// Each a name in camelCase and a text.
    pub evidence: Vec<(&'static str, String)>,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

impl Observation {
    /// One without evidence.
    pub fn new(
        name: Name,
        severity: Severity,
        subject: Subject,
        message: impl Into<String>,
        at_ms: u64,
    ) -> Self {
        let (about, evidence) = (String::new(), Vec::new());
        Self { name, severity, subject, about, message: message.into(), evidence, at_ms }
    }

    /// The same about this.
    pub fn about(mut self, about: impl Into<String>) -> Self {
        self.about = about.into();
        self
    }

    /// The same with a piece of evidence; an empty one is none.
    pub fn with(mut self, name: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() && self.evidence.len() < EVIDENCE_AT_MOST {
            self.evidence.push((name, text));
        }
        self
    }
}

/// The text as far as it is kept.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(CHARS_AT_MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

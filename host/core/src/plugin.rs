//! What a plugin says of itself: its manifest, read from the file without running anything.

use crate::decision::ActionKind;
use crate::identity::{Digest, GroupKind};
use std::collections::BTreeSet;
use std::fmt;

/// A pattern over kinds: `Deployment.apps`, `Service` (core group), `*.apps`, or `*`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KindPattern {
    /// Every kind of every group.
    Any,
    /// Every kind of one group.
    Group(String),
    /// One kind.
    Exact(GroupKind),
}

impl KindPattern {
    /// Reads `Kind.group`, `Kind`, `*.group` or `*`.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        if text == "*" {
            return Ok(Self::Any);
        }
        let word = |c: char| c.is_ascii_alphanumeric();
        let group_ok = group
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-');
        if !group_ok || group.ends_with('.') || text.ends_with('.') {
            return Err(format!("{text:?} has no valid API group after the first dot"));
        }
        if kind == "*" {
            return Ok(Self::Group(group.to_owned()));
        }
        if !kind.starts_with(|c: char| c.is_ascii_uppercase()) || !kind.chars().all(word) {
            return Err(format!(
                "{text:?} is not a kind: write Kind.group (Deployment.apps), Kind for the core group (Service), *.group or *"
            ));
        }
        Ok(Self::Exact(GroupKind::new(group, kind)))
    }

    /// Whether the pattern covers this kind.
    pub fn covers(&self, kind: &GroupKind) -> bool {
        match self {
            Self::Any => true,
            Self::Group(group) => **group == *kind.group,
            Self::Exact(exact) => exact == kind,
        }
    }

    /// How closely it fits: an exact claim is served before a group's, a group's before any.
    pub fn specificity(&self) -> u8 {
        match self {
            Self::Any => 0,
            Self::Group(_) => 1,
            Self::Exact(_) => 2,
        }
    }
}

impl fmt::Display for KindPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Group(group) => write!(f, "*.{group}"),
            Self::Exact(kind) => write!(f, "{kind}"),
        }
    }
}

/// The manifest that a component carries in its custom section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginManifest {
    /// Name, an RFC 1123 label.
    pub name: String,
    /// The author's version, semver.
    pub version: String,
    /// One line for people.
    pub description: String,
    /// Version of the WIT package that it was built against, such as `0.1.0`.
    pub wit: String,
    /// Kinds that it reconciles.
    pub claims: Vec<KindPattern>,
    /// Kinds that it may ask `lookup` for.
    pub reads: Vec<KindPattern>,
    /// Actions that it may ask for.
    pub actions: BTreeSet<ActionKind>,
}

impl PluginManifest {
    /// The closest of its claims that covers this kind.
    pub fn claim_for(&self, kind: &GroupKind) -> Option<&KindPattern> {
        self.claims
            .iter()
            .filter(|claim| claim.covers(kind))
            .max_by_key(|claim| claim.specificity())
    }
}

/// Which code answered: for records, memos and grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginIdentity {
    /// The manifest's name.
    pub name: String,
    /// The manifest's version.
    pub version: String,
    /// SHA-256 of the file.
    pub digest: Digest,
}

impl fmt::Display for PluginIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.name, self.version, self.digest.short())
    }
}

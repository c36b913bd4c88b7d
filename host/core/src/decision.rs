//! What plugins answer: differences and decisions, as plain data.

use std::fmt;

/// How live differs from desired at one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DifferenceKind {
    /// Desired states a value and live has another.
    Changed,
    /// Desired states a value and live has none; at the root path the object is absent.
    Missing,
    /// Live has a value that desired does not state, in a place that desired owns.
    Stray,
    /// We stated the value before and state it no longer.
    Released,
    /// Desired states a field that the type's schema does not have: the server would drop it.
    Pruned,
}

impl DifferenceKind {
    /// The word used in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Stray => "stray",
            Self::Released => "released",
            Self::Pruned => "pruned",
        }
    }

    /// The kind with this word.
    pub fn parse(word: &str) -> Option<Self> {
        let all = [Self::Changed, Self::Missing, Self::Stray, Self::Released, Self::Pruned];
        all.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// One path where live is not what desired asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// JSON pointer with keyed steps; the root is the empty string.
    pub path: String,
    /// How they differ.
    pub kind: DifferenceKind,
    /// JSON text of the value as desired states it.
    pub desired: Option<Vec<u8>>,
    /// JSON text of the value as live has it.
    pub live: Option<Vec<u8>>,
    /// Where the value cannot change once the object exists: the path of the field that cannot.
    pub immutable: Option<String>,
    /// Who last wrote the live value, by `managedFields`: a hint, not a proof. Filled in by the
    /// host, never by a plugin.
    pub managers: Vec<Manager>,
}

/// One entry of `metadata.managedFields` that covers a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// The field manager's name, as the client declared it.
    pub name: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// Subresource that was written through; empty for the object itself.
    pub subresource: String,
    /// RFC 3339 time of the entry's last change; empty if not recorded.
    pub time: String,
}

impl Manager {
    /// Whether it is ourselves, by an earlier write: by the name alone, as everything here.
    pub fn is_ours(&self) -> bool {
        self.name == crate::ownership::FIELD_MANAGER
    }
}

/// What `compare` answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Live is what desired asks.
    InSync,
    /// Live differs; the list is not empty.
    Different(Vec<Difference>),
    /// Desired is wrong in itself, and how.
    Invalid(String),
    /// The plugin cannot tell, and why.
    Unknown(String),
}

/// One thing that a plugin asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Server-side apply the desired bytes, without these paths.
    ApplyDesired {
        /// Paths to leave out; each must exist in desired.
        without: Vec<String>,
    },
    /// Server-side apply content that the plugin made (JSON text).
    ApplyContent(Vec<u8>),
    /// Remove these paths of live.
    RemoveFields(Vec<String>),
    /// Delete the live object, then create the desired one.
    Recreate,
    /// Delete the live object.
    Delete,
    /// Server-side apply this (JSON text) as the status subresource.
    PatchStatus(Vec<u8>),
    /// Apply desired even where other managers own desired fields.
    Adopt,
    /// Do nothing, and why.
    Leave(String),
}

/// The kinds of action that a manifest asks for and a grant allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ActionKind {
    /// [`Action::ApplyDesired`]
    ApplyDesired,
    /// [`Action::ApplyContent`]
    ApplyContent,
    /// [`Action::RemoveFields`]
    RemoveFields,
    /// [`Action::Recreate`]
    Recreate,
    /// [`Action::Delete`]
    Delete,
    /// [`Action::PatchStatus`]
    PatchStatus,
    /// [`Action::Adopt`]
    Adopt,
}

impl ActionKind {
    /// Every kind, in the order in which they are listed to people.
    pub const ALL: [ActionKind; 7] = [
        Self::ApplyDesired,
        Self::RemoveFields,
        Self::Adopt,
        Self::ApplyContent,
        Self::PatchStatus,
        Self::Recreate,
        Self::Delete,
    ];

    /// The word used in manifests and grants.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ApplyDesired => "apply-desired",
            Self::ApplyContent => "apply-content",
            Self::RemoveFields => "remove-fields",
            Self::Recreate => "recreate",
            Self::Delete => "delete",
            Self::PatchStatus => "patch-status",
            Self::Adopt => "adopt",
        }
    }

    /// The kind with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

impl fmt::Display for ActionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Action {
    /// Which kind it is; `None` for [`Action::Leave`], which needs no permission.
    pub fn kind(&self) -> Option<ActionKind> {
        Some(match self {
            Self::ApplyDesired { .. } => ActionKind::ApplyDesired,
            Self::ApplyContent(_) => ActionKind::ApplyContent,
            Self::RemoveFields(_) => ActionKind::RemoveFields,
            Self::Recreate => ActionKind::Recreate,
            Self::Delete => ActionKind::Delete,
            Self::PatchStatus(_) => ActionKind::PatchStatus,
            Self::Adopt => ActionKind::Adopt,
            Self::Leave(_) => return None,
        })
    }
}

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// `True`
    True,
    /// `False`
    False,
    /// `Unknown`
    Unknown,
}

impl ConditionStatus {
    /// As the API conventions spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A condition after the Kubernetes API conventions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// CamelCase type.
    pub type_: String,
    /// Its status.
    pub status: ConditionStatus,
    /// CamelCase reason.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// How urgent a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Info,
    /// Someone should look.
    Warning,
    /// Someone should look now.
    Critical,
}

impl Severity {
    /// The word used in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// Something that a person should see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stable kebab-case name.
    pub name: String,
    /// How urgent.
    pub severity: Severity,
    /// For people.
    pub message: String,
    /// The path it is about.
    pub path: Option<String>,
}

/// What a plugin decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// In order.
    pub actions: Vec<Action>,
    /// To show for the object.
    pub conditions: Vec<Condition>,
    /// To show to a person.
    pub findings: Vec<Finding>,
    /// Milliseconds after which to look again even if nothing happens.
    pub look_again_after_ms: Option<u64>,
}

/// What `decide` answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Do this.
    Decided(Decision),
    /// Cannot tell, and why.
    Unknown(String),
    /// Not now.
    Defer {
        /// Why.
        reason: String,
        /// Milliseconds to wait.
        after_ms: u64,
    },
}

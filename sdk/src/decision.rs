//! What `decide` answers: actions, and what a person should see.

use crate::{Path, Unknown, Value};
use std::fmt;
use std::time::Duration;

/// What should be done about an object's differences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This.
    Decided(Decision),
    /// The plugin cannot tell, and why. Nothing is written and the object is not in sync.
    Unknown(String),
    /// Not now: never the same as doing nothing.
    Defer {
        /// Why, for people.
        reason: String,
        /// How long to wait; the host enforces bounds.
        after: Duration,
    },
}

impl Verdict {
    /// *Not now*, and when to ask again.
    pub fn defer(reason: impl Into<String>, after: Duration) -> Self {
        Self::Defer { reason: reason.into(), after }
    }

    /// The plugin cannot tell, and why.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown(reason.into())
    }

    /// Adds something that a person should see, if something is decided.
    #[must_use]
    pub fn finding(mut self, finding: Finding) -> Self {
        if let Self::Decided(decision) = &mut self {
            decision.findings.push(finding);
        }
        self
    }
}

impl From<Decision> for Verdict {
    fn from(decision: Decision) -> Self {
        Self::Decided(decision)
    }
}

impl From<Unknown> for Verdict {
    fn from(unknown: Unknown) -> Self {
        Self::Unknown(unknown.reason)
    }
}

/// What to do, in order, and what to show. Built step by step:
///
/// ```
/// # use trimtab_sdk::{Decision, Finding, Path};
/// let replicas = Path::parse("/spec/replicas").unwrap();
/// let decision = Decision::new()
///     .apply_desired_without([replicas.clone()])
///     .finding(Finding::info("field-owned-by-autoscaler", "left to the autoscaler").at(replicas));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// In the order in which they are to be done. Empty means the same as one `Leave`.
    pub actions: Vec<Action>,
    /// Conditions to show for the object.
    pub conditions: Vec<Condition>,
    /// What a person should see.
    pub findings: Vec<Finding>,
    /// Look at the object again after this time, even if nothing happens.
    pub look_again_after: Option<Duration>,
}

impl Decision {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an action.
    #[must_use]
    pub fn action(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// Adds: server-side apply desired, which the host holds.
    #[must_use]
    pub fn apply_desired(self) -> Self {
        self.apply_desired_without([])
    }

    /// Adds: server-side apply desired, except for these paths.
    #[must_use]
    pub fn apply_desired_without(self, paths: impl IntoIterator<Item = Path>) -> Self {
        self.action(Action::ApplyDesired { without: paths.into_iter().collect() })
    }

    /// Adds: remove these paths of live, which desired does not state.
    #[must_use]
    pub fn remove_fields(self, paths: impl IntoIterator<Item = Path>) -> Self {
        self.action(Action::RemoveFields(paths.into_iter().collect()))
    }

    /// Adds: do nothing, and why.
    #[must_use]
    pub fn leave(self, reason: impl Into<String>) -> Self {
        self.action(Action::Leave(reason.into()))
    }

    /// Adds something that a person should see.
    #[must_use]
    pub fn finding(mut self, finding: Finding) -> Self {
        self.findings.push(finding);
        self
    }

    /// Adds a condition.
    #[must_use]
    pub fn condition(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Asks to look again after this time, even if nothing happens.
    #[must_use]
    pub fn look_again_after(mut self, after: Duration) -> Self {
        self.look_again_after = Some(after);
        self
    }
}

/// One thing to do. The host's gate decides whether it is done: each kind but `Leave` is declared
/// in the manifest and granted by the administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Server-side apply the desired bytes, which the host holds.
    ApplyDesired {
        /// Paths to leave out; each must exist in desired.
        without: Vec<Path>,
    },
    /// Server-side apply content of the plugin's own making.
    ApplyContent(Value<'static>),
    /// Remove these paths of live, which desired does not state.
    RemoveFields(Vec<Path>),
    /// Delete the live object and create the desired one.
    Recreate,
    /// Delete the live object.
    Delete,
    /// Server-side apply this as the status subresource.
    PatchStatus(Value<'static>),
    /// Apply desired even where other managers own desired fields.
    Adopt,
    /// Do nothing, and why.
    Leave(String),
}

impl Action {
    /// The word for it in manifests, grants and output.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ApplyDesired { .. } => "apply-desired",
            Self::ApplyContent(_) => "apply-content",
            Self::RemoveFields(_) => "remove-fields",
            Self::Recreate => "recreate",
            Self::Delete => "delete",
            Self::PatchStatus(_) => "patch-status",
            Self::Adopt => "adopt",
            Self::Leave(_) => "leave",
        }
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

/// A condition to show for the object, after the Kubernetes API conventions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// CamelCase type, such as `Ready`.
    pub type_: String,
    /// Its status.
    pub status: ConditionStatus,
    /// CamelCase reason, not empty.
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

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        })
    }
}

/// Something that a person should see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// A stable name in kebab-case, such as `field-owned-by-autoscaler`.
    pub name: String,
    /// How urgent.
    pub severity: Severity,
    /// For people.
    pub message: String,
    /// The path it is about; `None`: the whole object.
    pub path: Option<Path>,
}

impl Finding {
    /// A finding about the whole object.
    pub fn new(severity: Severity, name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { name: name.into(), severity, message: message.into(), path: None }
    }

    /// Good to know.
    pub fn info(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Info, name, message)
    }

    /// Someone should look.
    pub fn warning(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, name, message)
    }

    /// The same finding about one path.
    #[must_use]
    pub fn at(mut self, path: Path) -> Self {
        self.path = Some(path);
        self
    }
}

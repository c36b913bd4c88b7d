//! What `compare` answers: differences, or why there is no telling.

use crate::lookup::LookupError;
use crate::{Path, Value};
use std::borrow::Cow;
use std::fmt;
use trimtab_compare::Kind;

/// How live differs from desired at one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DifferenceKind {
    /// Desired states a value and live has another.
    Changed,
    /// Desired states a value and live has none. At the root path: the object is absent.
    Missing,
    /// Live has a value that desired does not state, in a place that desired owns.
    Stray,
    /// We stated the value before and state it no longer.
    Released,
    /// Desired states a field that the type's schema does not have: the server would drop it.
    Pruned,
}

impl fmt::Display for DifferenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Stray => "stray",
            Self::Released => "released",
            Self::Pruned => "pruned",
        })
    }
}

/// One path where live is not what desired asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference<'a> {
    /// Where; the root path for the whole object.
    pub path: Path,
    /// How.
    pub kind: DifferenceKind,
    /// The value as desired states it.
    pub desired: Option<Cow<'a, Value<'a>>>,
    /// The value as live has it.
    pub live: Option<Cow<'a, Value<'a>>>,
    /// Where the value cannot change once the object exists: the path of the field that cannot,
    /// which is this path or one above it.
    pub immutable: Option<Path>,
}

impl<'a> Difference<'a> {
    /// A value that is another than desired asks.
    pub fn changed(
        path: Path,
        desired: impl Into<Cow<'a, Value<'a>>>,
        live: impl Into<Cow<'a, Value<'a>>>,
    ) -> Self {
        Self {
            path,
            kind: DifferenceKind::Changed,
            desired: Some(desired.into()),
            live: Some(live.into()),
            immutable: None,
        }
    }

    /// A value that desired asks and live does not have.
    pub fn missing(path: Path, desired: impl Into<Cow<'a, Value<'a>>>) -> Self {
        let desired = Some(desired.into());
        Self { path, kind: DifferenceKind::Missing, desired, live: None, immutable: None }
    }

    /// A value that live has and desired does not state.
    pub fn stray(path: Path, live: impl Into<Cow<'a, Value<'a>>>) -> Self {
        let live = Some(live.into());
        Self { path, kind: DifferenceKind::Stray, desired: None, live, immutable: None }
    }
}

impl<'a> From<trimtab_compare::Difference<'a>> for Difference<'a> {
    fn from(from: trimtab_compare::Difference<'a>) -> Self {
        Self {
            path: from.path,
            kind: match from.kind {
                Kind::Changed => DifferenceKind::Changed,
                Kind::Missing => DifferenceKind::Missing,
                Kind::Pruned => DifferenceKind::Pruned,
                Kind::Stray => DifferenceKind::Stray,
                Kind::Released => DifferenceKind::Released,
            },
            desired: from.desired,
            live: from.live.map(Cow::Borrowed),
            immutable: from.immutable,
        }
    }
}

/// What `compare` found. No difference: in sync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison<'a> {
    /// The differences, in the order in which they are shown.
    pub differences: Vec<Difference<'a>>,
}

impl<'a> Comparison<'a> {
    /// Live is what desired asks.
    pub fn in_sync() -> Self {
        Self::default()
    }

    /// Leaves out what the plugin knows to be no difference.
    #[must_use]
    pub fn except(mut self, mut is_none: impl FnMut(&Difference<'a>) -> bool) -> Self {
        self.differences.retain(|difference| !is_none(difference));
        self
    }

    /// Says that nothing within these fields can change, where the schema does not say so.
    #[must_use]
    pub fn immutable(mut self, fields: &[Path]) -> Self {
        for difference in &mut self.differences {
            if difference.immutable.is_none() {
                let field = fields.iter().find(|field| difference.path.starts_with(field));
                difference.immutable = field.cloned();
            }
        }
        self
    }

    /// Whether one of the differences lies at this path or within it.
    pub fn touches(&self, path: &Path) -> bool {
        self.differences.iter().any(|difference| difference.path.starts_with(path))
    }
}

impl<'a> From<Vec<Difference<'a>>> for Comparison<'a> {
    fn from(differences: Vec<Difference<'a>>) -> Self {
        Self { differences }
    }
}

/// Why `compare` has no answer. Neither is ever counted as in sync, and nothing is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoComparison {
    /// Desired is wrong in itself, and how: a person has to correct it.
    Invalid(String),
    /// The plugin cannot tell, and why.
    Unknown(String),
}

impl fmt::Display for NoComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(how) => write!(f, "desired is invalid: {how}"),
            Self::Unknown(why) => write!(f, "unknown: {why}"),
        }
    }
}

impl std::error::Error for NoComparison {}

impl From<Unknown> for NoComparison {
    fn from(unknown: Unknown) -> Self {
        Self::Unknown(unknown.reason)
    }
}

impl From<LookupError> for NoComparison {
    fn from(error: LookupError) -> Self {
        Unknown::from(error).into()
    }
}

/// The plugin cannot tell, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// For people.
    pub reason: String,
}

impl Unknown {
    /// With a reason for people.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Unknown {}

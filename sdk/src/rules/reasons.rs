//! What the rules of a policy found, on its way to a verdict.

use super::Bad;
use crate::{Path, Reason, ReviewVerdict};

/// What a rule does about what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Effect {
    /// It denies.
    #[default]
    Deny,
    /// It warns.
    Warn,
    /// It says nothing.
    Allow,
}

/// All that the rules of a policy found in one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons {
    /// Why it is denied.
    pub denied: Vec<Reason>,
    /// What is told, and stops nothing.
    pub warned: Vec<Reason>,
}

impl Reasons {
    /// Adds a finding of a rule with this effect.
    pub fn add(
        &mut self,
        effect: Effect,
        control: &'static str,
        message: impl Into<String>,
        path: Path,
    ) {
        let list = match effect {
            Effect::Deny => &mut self.denied,
            Effect::Warn => &mut self.warned,
            Effect::Allow => return,
        };
        list.push(Reason::new(control, message).at(path));
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.denied.is_empty() && self.warned.is_empty()
    }
}

/// A configuration that cannot be used denies everything: the control is `configuration`.
impl From<Bad> for Reasons {
    fn from(bad: Bad) -> Self {
        let reason =
            Reason::new("configuration", format!("{bad}; nothing is allowed until it is mended"));
        Self { denied: vec![reason], warned: Vec::new() }
    }
}

impl From<Reasons> for ReviewVerdict {
    fn from(reasons: Reasons) -> Self {
        Self::of(reasons.denied, reasons.warned)
    }
}

//! Why a policy denies or warns.

use crate::Path;

/// One reason of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The rule's stable name, in kebab-case.
    pub control: String,
    /// What is wrong and what to do, for a person.
    pub message: String,
    /// Where in the object.
    pub path: Option<Path>,
}

impl Reason {
    /// Of this rule, with these words.
    pub fn new(control: impl Into<String>, message: impl Into<String>) -> Self {
        Self { control: control.into(), message: message.into(), path: None }
    }

    /// At this place of the object.
    #[must_use]
    pub fn at(mut self, path: Path) -> Self {
        self.path = Some(path);
        self
    }
}

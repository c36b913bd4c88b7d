//! The trait that a policy implements, and what it answers.

use crate::{Reason, Review};

/// Judgement about whether something may be.
///
/// # Flow
/// The host asks when an object of desired state enters ([`crate::Point::Enters`]) and before each
/// write ([`crate::Point::BeforeWrite`]), each time in a fresh instance. Several policies may be in
/// force; any deny wins.
///
/// # Guarantees
/// The request is what the host knows: whoever wrote the object cannot reach [`Review::provenance`]
/// or [`Review::configuration`].
///
/// # Caveats
/// A panic, a timeout and an answer that is none are read as a deny, unless the grant says otherwise.
/// What a policy answers at [`crate::Point::Enters`] is kept for as long as the object, its signers,
/// the policy and its configuration stay the same: judge by these, not by the clock. `lookup` is
/// not answered: the request is all that a policy knows.
pub trait Policy {
    /// May this be?
    fn review(review: &Review<'_>) -> ReviewVerdict;
}

/// What a policy answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewVerdict {
    /// Nothing is wrong.
    Allow,
    /// Nothing is stopped, and people are told why they should look. At least one reason.
    Warn(Vec<Reason>),
    /// It is stopped. At least one reason.
    Deny(Vec<Reason>),
}

impl ReviewVerdict {
    /// Denied where something denies, else a warning where something warns, else allowed. What only
    /// warns is left out of a deny.
    pub fn of(denied: Vec<Reason>, warned: Vec<Reason>) -> Self {
        match (denied.is_empty(), warned.is_empty()) {
            (false, _) => Self::Deny(denied),
            (true, false) => Self::Warn(warned),
            (true, true) => Self::Allow,
        }
    }

    /// Denied for one reason.
    pub fn deny(reason: Reason) -> Self {
        Self::Deny(vec![reason])
    }

    /// Warned of one thing.
    pub fn warn(reason: Reason) -> Self {
        Self::Warn(vec![reason])
    }
}

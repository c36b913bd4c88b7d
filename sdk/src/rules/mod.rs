//! What policies share: the rules' findings on their way to a verdict, patterns, and the strict
//! reading of a configuration.
//!
//! A policy that cannot read its configuration does not guess: it denies, and says what is wrong.

mod keys;
mod pattern;
mod reasons;

pub use keys::{Bad, Keys};
pub use pattern::{any, glob, kind};
pub use reasons::{Effect, Reasons};

use crate::{ActionKind, Review, Value};

/// What would be in the cluster afterwards, as far as it is known: what a policy of contents judges.
/// `None` for a deletion and for a status, which make no content.
pub fn written<'r, 'a>(review: &'r Review<'a>) -> Option<&'r Value<'a>> {
    match review.change().map(|change| change.action) {
        Some(ActionKind::Delete | ActionKind::PatchStatus) => None,
        _ => review.content().or_else(|| review.desired()),
    }
}

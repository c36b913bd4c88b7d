//! Where we differ from the server's dry run on purpose: each kind of case with its argument. The
//! same list, in words for people, is in docs/comparison.md.

use super::tally::Case;
use serde_json::Value;

/// A kind of disagreement that is right.
pub(super) struct Exception {
    pub(super) name: &'static str,
    pub(super) why: &'static str,
    pub(super) is: fn(&Case<'_>) -> bool,
}

/// All of them.
pub(super) const ALL: &[Exception] = &[];
#[allow(dead_code)]
fn unused(_: &Value) {}

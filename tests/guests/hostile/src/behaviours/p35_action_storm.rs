//! Asks for very many things at once, or for the end of everything that it can reach.

use crate::shape;
use trimtab_sdk::{Action, Decision, Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    let actions = match shape(snapshot) {
        "delete" => vec![Action::Delete],
        _ => vec![Action::ApplyDesired { without: Vec::new() }; 256],
    };
    Decision { actions, ..Decision::new() }.into()
}

//! Asks for very many things at once, or for the end of everything that it can reach.

use crate::shape;
use trimtab_sdk::{Action, Decision, Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    let actions = match shape(snapshot) {
        "delete" if snapshot.live().is_some() => vec![Action::Delete],
        "delete" => return Decision::new().leave("it is gone").into(),
        _ => vec![Action::ApplyDesired { without: Vec::new() }; 256],
    };
    Decision { actions, ..Decision::new() }.into()
}

//! Asks for its object in somebody else's namespace.

use crate::content::{and_apply, with};
use trimtab_sdk::{Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    and_apply([
        with(snapshot, "metadata namespace", r#""kube-system""#),
        with(snapshot, "metadata namespace", r#""hostile-18-out""#),
        with(snapshot, "metadata namespace", r#""""#),
        with(snapshot, "metadata namespace", "null"),
    ])
}

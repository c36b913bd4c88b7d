//! Asks for a cluster-scoped object as if a namespace held it: the one that is granted.

use crate::content::{and_apply, with};
use trimtab_sdk::{Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    and_apply([with(snapshot, "metadata namespace", r#""hostile-19""#)])
}

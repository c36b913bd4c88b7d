//! Holds its object with a finalizer, or lets go of one that others rely on.

use crate::content::{and_apply, removal, with};
use trimtab_sdk::{Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    and_apply([
        with(snapshot, "metadata finalizers", r#"["hostile.example/mine"]"#),
        with(snapshot, "metadata finalizers", "[]"),
        removal("/metadata/finalizers"),
    ])
}

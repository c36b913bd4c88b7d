//! Asks for an object of a kind that nobody granted, in the place of its own.

use crate::content::{and_apply, with_all};
use trimtab_sdk::{Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    and_apply([
        with_all(snapshot, &[("apiVersion", r#""v1""#), ("kind", r#""Secret""#)]),
        with_all(snapshot, &[("kind", r#""Other""#)]),
    ])
}

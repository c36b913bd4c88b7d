//! Writes what is the host's or the server's to write: status, managedFields, annotations of ours.

use crate::content::{and_apply, with};
use trimtab_sdk::{Action, Object, Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    and_apply([
        with(snapshot, "status", r#"{"conditions":[{"type":"Ready","status":"True"}]}"#),
        with(snapshot, "metadata managedFields", r#"[{"manager":"trimtab","operation":"Apply"}]"#),
        with(
            snapshot,
            "metadata annotations",
            r#"{"trimtab.dev/on-immutable":"recreate-stateful"}"#,
        ),
        with(snapshot, "metadata labels", r#"{"x.trimtab.dev/owner":"mallory"}"#),
        with(snapshot, "metadata uid", r#""00000000-0000-0000-0000-000000000000""#),
        with(snapshot, "metadata resourceVersion", r#""1""#),
        with(snapshot, "metadata deletionTimestamp", r#""2020-01-01T00:00:00Z""#),
        Action::PatchStatus(
            Object::new()
                .with("metadata", Object::new().with("labels", Object::new().with("x", "1")))
                .with("status", Object::new())
                .into(),
        ),
    ])
}

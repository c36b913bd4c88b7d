//! Names its kind otherwise: another version, another group, a subresource, the plural.

use crate::content::{and_apply, with, with_all};
use trimtab_sdk::{Action, Object, Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    and_apply([
        with(snapshot, "apiVersion", r#""hostile.example/v2""#),
        with(snapshot, "apiVersion", r#""Hostile.example/v1""#),
        with(snapshot, "apiVersion", r#""v1""#),
        with(snapshot, "kind", r#""Trial/status""#),
        with(snapshot, "kind", r#""Trial/scale""#),
        with(snapshot, "kind", r#""trials""#),
        with(snapshot, "kind", r#""TRIAL""#),
        with_all(snapshot, &[("apiVersion", r#""autoscaling/v1""#), ("kind", r#""Scale""#)]),
        with(snapshot, "status", r#"{"ready":true}"#),
        Action::PatchStatus(
            Object::new()
                .with("spec", Object::new().with("replicas", 9_u64))
                .with("status", Object::new())
                .into(),
        ),
    ])
}

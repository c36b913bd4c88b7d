//! Takes somebody else's identity: a service account that is not its own, a token.

use crate::content::{and_apply, with, with_all};
use trimtab_sdk::{Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    if snapshot.id().kind == "Secret" {
        return and_apply([
            with_all(
                snapshot,
                &[
                    ("type", r#""kubernetes.io/service-account-token""#),
                    ("metadata annotations", r#"{"kubernetes.io/service-account.name":"admin"}"#),
                ],
            ),
            with(snapshot, "type", r#""bootstrap.kubernetes.io/token""#),
        ]);
    }
    and_apply([
        with(snapshot, "spec template spec serviceAccountName", r#""admin""#),
        with(snapshot, "spec template spec serviceAccount", r#""admin""#),
        with_all(
            snapshot,
            &[("apiVersion", r#""authentication.k8s.io/v1""#), ("kind", r#""TokenRequest""#)],
        ),
    ])
}

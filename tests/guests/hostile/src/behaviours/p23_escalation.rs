//! Asks for rights: what a source declares of them, and more of its own.

use crate::content::{and_apply, with};
use trimtab_sdk::{Action, Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    let rules =
        r#"[{"apiGroups":["*"],"resources":["*"],"verbs":["escalate","bind","impersonate"]}]"#;
    let more = match snapshot.id().kind {
        "Role" | "ClusterRole" => with(snapshot, "rules", rules),
        _ => with(
            snapshot,
            "subjects",
            r#"[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"mallory"}]"#,
        ),
    };
    and_apply([more, Action::Recreate, Action::Adopt])
}

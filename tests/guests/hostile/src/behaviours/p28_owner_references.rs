//! Says that its object is somebody else's: of a foreign UID, in another namespace, its controller.

use crate::content::{and_apply, with};
use trimtab_sdk::{Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    and_apply([
        with(
            snapshot,
            "metadata ownerReferences",
            r#"[{"apiVersion":"v1","kind":"ConfigMap","name":"foreign","uid":"00000000-0000-0000-0000-000000000000"}]"#,
        ),
        with(
            snapshot,
            "metadata ownerReferences",
            r#"[{"apiVersion":"v1","kind":"Namespace","name":"kube-system","uid":"1","controller":true,"blockOwnerDeletion":true}]"#,
        ),
        with(snapshot, "metadata ownerReferences", "[]"),
    ])
}

//! Opens a namespace for privileged pods: by setting the label, and by taking it away.

use crate::content::{and_apply, removal, with};
use trimtab_sdk::{Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    and_apply([
        with(snapshot, "metadata labels", r#"{"pod-security.kubernetes.io/enforce":"privileged"}"#),
        with(snapshot, "metadata labels", r#"{"pod-security.kubernetes.io/warn":"privileged"}"#),
        removal("/metadata/labels/pod-security.kubernetes.io~1enforce"),
        removal("/metadata/labels"),
    ])
}

//! Puts into a harmless pod template what gets a container out of its walls, in each place that a
//! template has.

use crate::content::{and_apply, with};
use trimtab_sdk::{Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    let template = match snapshot.id().kind {
        "Pod" => "spec",
        "CronJob" => "spec jobTemplate spec template spec",
        _ => "spec template spec",
    };
    let at = |field: &str, json: &str| with(snapshot, &format!("{template} {field}"), json);
    let privileged = r#"[{"name":"x","image":"x","securityContext":{"privileged":true}}]"#;
    and_apply([
        at("hostPID", "true"),
        at("hostNetwork", "true"),
        at("hostIPC", "true"),
        at("volumes", r#"[{"name":"x","hostPath":{"path":"/"}}]"#),
        at("containers", privileged),
        at("initContainers", privileged),
        at("ephemeralContainers", privileged),
        at(
            "containers",
            r#"[{"name":"x","image":"x","securityContext":{"capabilities":{"add":["SYS_ADMIN"]}}}]"#,
        ),
    ])
}

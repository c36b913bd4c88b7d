//! Whether an object may be deleted to be made anew: its own manifest says so, beside the grant.
//!
//! Deleting loses what the object holds. So the source has to state it for each object, and for
//! kinds whose deletion loses data, or everything in them, by a word of its own.

use crate::grant::Refusal;
use crate::identity::GroupKind;
use crate::snapshot::Snapshot;

/// The refusal's reason.
pub(crate) const REFUSED: &str = "RecreateNotAllowed";
/// The annotation in desired that allows it.
pub(crate) const ANNOTATION: &str = "trimtab.dev/on-immutable";
const RECREATE: &str = "recreate";
const RECREATE_STATEFUL: &str = "recreate-stateful";

/// Whether desired allows that its object is made anew.
///
/// # Errors
/// The refusal that names the annotation that would.
pub(crate) fn allowed(snapshot: &Snapshot) -> Result<(), Refusal> {
    let kind = &snapshot.key.group_kind;
    let needed = if losing(kind).is_some() { RECREATE_STATEFUL } else { RECREATE };
    let desired = trimtab_json::parse(&snapshot.desired.json);
    let stated = desired
        .as_ref()
        .ok()
        .and_then(|desired| desired.str_at(&["metadata", "annotations", ANNOTATION]));
    if stated == Some(needed) || stated == Some(RECREATE_STATEFUL) {
        return Ok(());
    }
    let loss = losing(kind).map_or_else(String::new, |what| format!("deleting it loses {what}; "));
    Err(Refusal {
        reason: REFUSED,
        message: format!(
            "{} is not made anew: {loss}only the annotation {ANNOTATION}: {needed} in its manifest allows that, and it has {}",
            snapshot.key,
            stated.map_or_else(|| "none".to_owned(), |stated| format!("{stated:?}")),
        ),
    })
}

/// What a deletion loses for good, for kinds where it loses more than the object itself.
pub(crate) fn losing(kind: &GroupKind) -> Option<&'static str> {
    Some(match (&*kind.group, &*kind.kind) {
        ("", "PersistentVolumeClaim") => "the claim, and by its class's policy the volume's data",
        ("", "PersistentVolume") => "the volume, and by its policy the data on it",
        ("", "Namespace") => "every object in it",
        ("apiextensions.k8s.io", "CustomResourceDefinition") => "every object of its kind",
        ("apps", "StatefulSet") => "the one thing that ties its Pods to their volumes",
        _ => return None,
    })
}

/// Whether the dependents of a deleted object stay, for its successor to take over. A StatefulSet
/// is made anew for its volume templates or service name, and its Pods can run on meanwhile: the
/// successor adopts them by its selector. Of all else the dependents go, in the background: they
/// belong to the old UID, and their absence is not waited for.
pub(crate) fn leaves_dependents(kind: &GroupKind) -> bool {
    (&*kind.group, &*kind.kind) == ("apps", "StatefulSet")
}

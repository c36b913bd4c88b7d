//! Whose object is it, and who wrote which field: read from `metadata.managedFields`.
//!
//! managedFields are declared by clients: a hint for people, and for us the memory of our own
//! applies. Nothing here is a proof.

use crate::decision::{Difference, Manager};
use crate::snapshot::Snapshot;
use trimtab_compare::managed_fields::{self, Operation};
use trimtab_json::Path;

/// The field manager of every apply by Trimtab. `kubectl` and others show fields under it.
pub const FIELD_MANAGER: &str = "trimtab";

/// Whether we applied this object before: then drift in our fields is corrected whoever wrote
/// it. An object that we never applied is not overridden without adoption. An object that is not
/// there is no one's.
pub(crate) fn is_ours(snapshot: &Snapshot) -> bool {
    let Some(live) = snapshot.live_object() else { return false };
    if snapshot.applied_uid.as_ref() == Some(&live.uid) {
        return true;
    }
    let Ok(live) = trimtab_json::parse(&live.json) else { return false };
    managed_fields::entries(&live).any(|entry| {
        entry.manager == FIELD_MANAGER
            && entry.operation == Operation::Apply
            && entry.subresource.is_none()
    })
}

/// The managers whose fields are remembered in another version than the object is compared in, each
/// with it; nothing if there are none.
pub(crate) fn of_other_versions(snapshot: &Snapshot) -> Option<String> {
    let live = trimtab_json::parse(&snapshot.live_object()?.json).ok()?;
    let version = snapshot.gvk.api_version();
    let mut names: Vec<String> = managed_fields::entries(&live)
        .filter(|entry| entry.api_version != version)
        .map(|entry| format!("{} ({})", entry.manager, entry.api_version))
        .collect();
    names.dedup();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Names who last wrote each live value.
pub(crate) fn attribute(snapshot: &Snapshot, differences: &mut [Difference]) {
    let Some(live) = snapshot.live_object() else {
        return;
    };
    let Ok(live) = trimtab_json::parse(&live.json) else {
        return;
    };
    let paths: Vec<Path> = differences
        .iter()
        .map(|difference| Path::parse(&difference.path).unwrap_or_default())
        .collect();
    let found = managed_fields::attribute(&live, &paths);
    for (difference, managers) in differences.iter_mut().zip(found) {
        difference.managers = managers
            .iter()
            .map(|manager| Manager {
                name: manager.manager.into(),
                operation: manager.operation.name().into(),
                subresource: manager.subresource.unwrap_or_default().into(),
                time: manager.time.unwrap_or_default().into(),
            })
            .collect();
    }
}

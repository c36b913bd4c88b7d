//! Whose object is it, and who wrote which field: read from `metadata.managedFields`.
//!
//! managedFields are declared by clients: a hint for people, and for us the memory of our own
//! applies. Nothing here is a proof.

use crate::decision::{Difference, Manager};
use crate::snapshot::Snapshot;
use trimtab_compare::managed_fields;
use trimtab_json::{Path, Value};

/// The field manager of every apply by Trimtab. `kubectl` and others show fields under it.
pub const FIELD_MANAGER: &str = "trimtab";

/// Whether we applied this object before: then drift in our fields is corrected whoever wrote
/// it. An object that we never applied is not overridden without adoption. An object that is not
/// there is no one's.
pub(crate) fn is_ours(snapshot: &Snapshot) -> bool {
    let Some(live) = snapshot.live_object() else {
        return false;
    };
    let Ok(live) = trimtab_json::parse(&live.json) else {
        return false;
    };
    let Some(entries) = live
        .at(&["metadata", "managedFields"])
        .and_then(Value::as_array)
    else {
        return false;
    };
    entries.iter().any(|entry| {
        entry.str_at(&["manager"]) == Some(FIELD_MANAGER)
            && entry.str_at(&["operation"]) == Some("Apply")
            && entry.str_at(&["subresource"]).is_none_or(str::is_empty)
    })
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
                operation: manager.operation.into(),
                subresource: manager.subresource.into(),
                time: manager.time.into(),
            })
            .collect();
    }
}

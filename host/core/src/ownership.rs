//! Whose object is it, and who wrote which field: read from `metadata.managedFields`.
//!
//! managedFields are declared by clients: a hint for people, and for us the memory of our own
//! applies. Nothing here is a proof.

use crate::decision::{Difference, Manager};
use crate::snapshot::Snapshot;
use trimtab_compare::managed_fields::{self, Operation};
use trimtab_json::{Object, Path, Value};

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

/// Whether desired states anything that a field set can name, besides what the object is called.
pub(crate) fn states_a_field(snapshot: &Snapshot) -> bool {
    let Ok(desired) = trimtab_json::parse(&snapshot.desired.json) else { return false };
    let states = |value: &Value<'_>, names: &[&str]| {
        let members = value.as_object().into_iter().flat_map(Object::iter);
        members.into_iter().any(|(name, value)| !names.contains(&name) && !value.is_null())
    };
    states(&desired, &["apiVersion", "kind", "metadata", "status"])
        || desired.get("metadata").is_some_and(|value| states(value, &["name", "namespace"]))
}

/// A version in which managedFields name fields and that is not the declared one: of our own
/// entry, if it does, else of the first of the others'.
pub(crate) fn other_version(snapshot: &Snapshot) -> Option<String> {
    let live = trimtab_json::parse(&snapshot.live_object()?.json).ok()?;
    let declared = snapshot.gvk.api_version();
    let others = || managed_fields::entries(&live).filter(|it| it.api_version != declared);
    let ours = others().find(|entry| entry.manager == FIELD_MANAGER);
    ours.or_else(|| others().next()).map(|entry| entry.api_version.to_owned())
}

/// The managers whose fields are named in this version, each once.
pub(crate) fn managers_in(snapshot: &Snapshot, version: &str) -> Vec<String> {
    let Some(live) = snapshot.live_object() else { return Vec::new() };
    let Ok(live) = trimtab_json::parse(&live.json) else { return Vec::new() };
    let theirs = managed_fields::entries(&live).filter(|entry| entry.api_version == version);
    let mut names: Vec<String> = theirs.map(|entry| entry.manager.to_owned()).collect();
    names.sort();
    names.dedup();
    names
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

//! Handing over: replicas that desired stated before and states no longer.
//!
//! An apply releases what it stated before and leaves out, and the API server puts the default in its
//! place at once: for replicas that is one, whatever the workload carries. Whoever takes them out of
//! a manifest hands them to an autoscaler or to a person. So before such an apply our own field set
//! forgets them: they are nobody's then, and stay as they are until somebody scales. Other released
//! fields go to their default, which is what a manifest that does not state them asks for.

use crate::edit;
use crate::gate::{Change, Effect};
use crate::identity::GroupKind;
use crate::ownership::FIELD_MANAGER;
use crate::snapshot::Snapshot;
use trimtab_compare::managed_fields::{self, Operation};
use trimtab_json::{Path, Value};

const REPLICAS: [&str; 2] = ["spec", "replicas"];

/// Whether one of these changes would release the replicas of a workload, and nobody but us has
/// written them. `view` is the object as it will be judged, succession included.
pub(crate) fn is_needed(view: &Snapshot, changes: &[Change]) -> bool {
    let Some(live) = view.live_object().filter(|_| is_scaled(&view.key.group_kind)) else {
        return false;
    };
    let leaves_out = |change: &Change| match change.effect() {
        Effect::Apply { body, .. } if !change.planned().creates => trimtab_json::parse(body)
            .is_ok_and(|body| body.at(&REPLICAS).is_none_or(Value::is_null)),
        _ => false,
    };
    if !changes.iter().any(leaves_out) {
        return false;
    }
    let Ok(live) = trimtab_json::parse(&live.json) else { return false };
    let path = Path::fields(&REPLICAS);
    let mut owners = managed_fields::managers_of(&live, &path).peekable();
    owners.peek().is_some()
        && owners.all(|entry| {
            entry.manager == FIELD_MANAGER
                && entry.operation == Operation::Apply
                && entry.subresource.is_none()
        })
}

/// Takes them out of our own field set. Whether anything changed.
pub(crate) fn let_go(entries: &mut [Value<'_>]) -> bool {
    let ours = entries.iter_mut().filter(|entry| {
        entry.str_at(&["manager"]) == Some(FIELD_MANAGER)
            && entry.str_at(&["operation"]) == Some("Apply")
            && entry.str_at(&["subresource"]).unwrap_or_default().is_empty()
    });
    let mut changed = false;
    for entry in ours {
        let spec = entry
            .as_object_mut()
            .and_then(|entry| entry.get_mut("fieldsV1"))
            .and_then(Value::as_object_mut)
            .and_then(|fields| fields.get_mut("f:spec"))
            .and_then(Value::as_object_mut);
        // Without anything else in it the set would name the whole spec.
        if let Some(spec) = spec.filter(|spec| spec.len() > 1) {
            changed |= spec.remove("f:replicas").is_some();
        }
    }
    changed
}

/// The object as it is after the changes, replicas as they were.
pub(crate) fn keep<'a>(after: &Value<'a>, live: &Value<'a>) -> Value<'a> {
    let mut kept = after.clone();
    edit::put(&mut kept, &Path::fields(&REPLICAS), live, true);
    kept
}

/// The kinds of Kubernetes' own that are scaled.
fn is_scaled(kind: &GroupKind) -> bool {
    matches!(
        (&*kind.group, &*kind.kind),
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet") | ("", "ReplicationController")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(fields: &str) -> (bool, String) {
        let text = format!(
            r#"[{{"manager":"trimtab","operation":"Apply","fieldsV1":{fields}}},{{"manager":"x","operation":"Apply","fieldsV1":{{"f:spec":{{"f:replicas":{{}},"f:a":{{}}}}}}}}]"#
        );
        let mut entries = trimtab_json::parse(text.as_bytes()).unwrap();
        let changed = let_go(entries.as_array_mut().unwrap());
        let mut out = Vec::new();
        let ours = entries.as_array().unwrap().first().and_then(|entry| entry.get("fieldsV1"));
        trimtab_json::write(ours.unwrap(), &mut out);
        (changed, String::from_utf8(out).unwrap())
    }

    #[test]
    fn our_field_set_forgets_the_replicas_and_nothing_else() {
        let left = r#"{"f:spec":{"f:selector":{}}}"#;
        assert_eq!(
            after(r#"{"f:spec":{"f:replicas":{},"f:selector":{}}}"#),
            (true, left.to_owned())
        );
        assert_eq!(after(left), (false, left.to_owned()));
    }
}

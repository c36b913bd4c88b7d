//! What cannot stand beside what desired states (`trimtab_compare::excluded`), and how it goes.
//!
//! An apply removes nothing but what is in our own field set. So before it the set takes up these
//! places, and others' sets lose them: then the apply, which does not state them, removes them. Until
//! then the API server refuses to apply desired, so that a dry run of that says nothing: what is
//! rehearsed instead is a patch to the object as the apply will leave it. (A `null` in the apply would
//! do for scalars; for objects the API server ignores it.)

use crate::after::{self, after};
use crate::effects::preconditions;
use crate::gate::Effect;
use crate::ignore;
use crate::ownership::FIELD_MANAGER;
use crate::snapshot::Snapshot;
use std::sync::Arc;
use trimtab_compare::Facts;
use trimtab_compare::managed_fields::{self, Operation};
use trimtab_json::{Object, Path, Step, Value};

/// Places of live that an apply of this content would leave beside what rules them out. Ignored ones
/// stay, and what is ours alone goes by itself.
///
/// # Errors
/// An object that does not parse.
pub(crate) fn places(snapshot: &Snapshot, content: &[u8]) -> Result<Vec<Path>, String> {
    let Some(live) = snapshot.live_object().filter(|_| !snapshot.facts.is_empty()) else {
        return Ok(Vec::new());
    };
    let (live, content) = (after::read(&live.json)?, after::read(content)?);
    let mut found = trimtab_compare::excluded(&content, &live, Facts::new(&snapshot.facts));
    found.retain(|path| !is_released(path, &live));
    if !found.is_empty() && !snapshot.desired.ignore.is_empty() {
        let ignored = ignore::places(snapshot, &live)?;
        found.retain(|path| !ignored.cover(path, &live));
    }
    Ok(found)
}

/// Whether an apply that leaves a place out removes it: a scalar that nobody but we stated. Of an object
/// it might leave what is no one's.
fn is_released(path: &Path, live: &Value<'_>) -> bool {
    let is_scalar = path.resolve(live).is_some_and(|value| value.scalar_text().is_some());
    let mut owners = managed_fields::managers_of(live, path).peekable();
    is_scalar
        && owners.peek().is_some()
        && owners.all(|it| it.manager == FIELD_MANAGER && it.operation == Operation::Apply)
}

/// A JSON Patch from what is seen to what an apply of this body leaves, to be rehearsed and never
/// written: `view` is the object as it will be judged, succession included.
///
/// # Errors
/// It cannot be told what the apply leaves.
pub(crate) fn rehearsal(view: &Snapshot, body: Arc<[u8]>) -> Result<Arc<[u8]>, String> {
    let Some(seen) = view.live_object() else {
        return Err("there is no object to rehearse a patch of".into());
    };
    let text = after(&Effect::Apply { body, force: true }, view)?;
    let text = text.ok_or("nothing is left of the object")?;
    let (before, left) = (after::read(&seen.json)?, after::read(&text)?);
    let mut patch: Vec<Value<'_>> = preconditions(seen);
    let members = |value: &Value<'_>| -> Vec<String> {
        let members = value.as_object().into_iter().flat_map(Object::iter);
        members.map(|(name, _)| name.to_owned()).collect()
    };
    let mut names = members(&before);
    names.extend(members(&left));
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
    for name in &names {
        let pointer = format!("/{}", escaped(name));
        patch.extend(operation(pointer, before.get(name), left.get(name)));
    }
    for name in ["labels", "annotations"] {
        let at = ["metadata", name];
        patch.extend(operation(format!("/metadata/{name}"), before.at(&at), left.at(&at)));
    }
    let mut bytes = Vec::new();
    trimtab_json::write(&Value::Array(patch), &mut bytes);
    Ok(bytes.into())
}

/// What makes one value of the other.
fn operation<'v>(
    pointer: String,
    before: Option<&Value<'v>>,
    left: Option<&Value<'v>>,
) -> Option<Value<'v>> {
    let operation = Object::new().with("path", pointer);
    match left {
        _ if before == left => None,
        Some(left) => Some(operation.with("op", "add").with("value", left.clone()).into()),
        None => Some(operation.with("op", "remove").into()),
    }
}

/// Makes these places ours alone in managedFields. Whether anything changed.
pub(crate) fn take(entries: &mut Vec<Value<'_>>, paths: &[Path], version: &str) -> bool {
    let ours = |entry: &Value<'_>| {
        entry.str_at(&["manager"]) == Some(FIELD_MANAGER)
            && entry.str_at(&["operation"]) == Some("Apply")
            && entry.str_at(&["subresource"]).unwrap_or_default().is_empty()
            && entry.str_at(&["apiVersion"]) == Some(version)
    };
    let steps: Vec<Vec<String>> = paths.iter().filter_map(field_steps).collect();
    if steps.is_empty() {
        return false;
    }
    for entry in entries.iter_mut().filter(|entry| !ours(entry)) {
        let fields = entry.as_object_mut().and_then(|entry| entry.get_mut("fieldsV1"));
        if let Some(Value::Object(fields)) = fields {
            steps.iter().for_each(|steps| forget(fields, steps));
        }
    }
    entries.retain(|entry| {
        let fields = entry.get("fieldsV1").and_then(Value::as_object);
        fields.is_none_or(|fields| !fields.is_empty())
    });
    let own = match entries.iter().position(ours) {
        Some(own) => own,
        None => {
            let entry = Object::new()
                .with("manager", FIELD_MANAGER)
                .with("operation", "Apply")
                .with("apiVersion", version.to_owned())
                .with("fieldsType", "FieldsV1")
                .with("fieldsV1", Object::new());
            entries.push(entry.into());
            entries.len() - 1
        }
    };
    let fields = entries
        .get_mut(own)
        .and_then(Value::as_object_mut)
        .and_then(|entry| entry.get_mut("fieldsV1"))
        .and_then(Value::as_object_mut);
    let Some(fields) = fields else { return false };
    steps.iter().for_each(|steps| own_whole(fields, steps));
    true
}

/// A path as managedFields spell it. What lies in lists that are not told by text keys is no such
/// place.
fn field_steps(path: &Path) -> Option<Vec<String>> {
    let step = |step: &Step| match step {
        Step::Field(name) => Some(format!("f:{name}")),
        Step::Keyed(keys) => match keys.as_slice() {
            [(name, value)] => {
                let mut bytes = Vec::new();
                let key = Object::new().with(name.clone(), value.clone());
                trimtab_json::write(&key.into(), &mut bytes);
                Some(format!("k:{}", String::from_utf8(bytes).ok()?))
            }
            _ => None,
        },
        Step::Index(_) | Step::Element(_) => None,
    };
    path.steps().iter().map(step).collect()
}

/// Takes a place out of a field set, and what is left empty by that.
fn forget(fields: &mut Object<'_>, steps: &[String]) {
    let Some((first, rest)) = steps.split_first() else { return };
    match fields.get_mut(first) {
        Some(Value::Object(below)) if !rest.is_empty() && !below.is_empty() => {
            forget(below, rest);
            // An empty set would name the place itself.
            if below.is_empty() {
                fields.remove(first);
            }
        }
        Some(_) if rest.is_empty() => {
            fields.remove(first);
        }
        _ => {}
    }
}

/// Puts a place into a field set as a whole.
fn own_whole(fields: &mut Object<'_>, steps: &[String]) {
    let Some((first, rest)) = steps.split_first() else { return };
    if rest.is_empty() || fields.get(first).and_then(Value::as_object).is_none() {
        fields.insert(first.clone(), Object::new());
    }
    if let Some(Value::Object(below)) = fields.get_mut(first) {
        own_whole(below, rest);
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_taking(entries: &str, paths: &[&str]) -> String {
        let mut value = trimtab_json::parse(entries.as_bytes()).unwrap();
        let paths: Vec<Path> = paths.iter().map(|path| Path::parse(path).unwrap()).collect();
        assert!(take(value.as_array_mut().unwrap(), &paths, "v1"));
        let mut out = Vec::new();
        trimtab_json::write(&value, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn entry(manager: &str, operation: &str, fields: &str) -> String {
        format!(
            r#"{{"manager":"{manager}","operation":"{operation}","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{fields}}}"#
        )
    }

    #[test]
    fn a_place_becomes_ours_alone_and_whole() {
        let theirs = entry(
            "x",
            "Update",
            r#"{"f:spec":{"f:a":{},"f:env":{"k:{\"name\":\"A\"}":{"f:value":{}}}}}"#,
        );
        let ours = entry("trimtab", "Apply", r#"{"f:spec":{"f:b":{}}}"#);
        let left = after_taking(
            &format!("[{theirs},{ours}]"),
            &["/spec/env/[name=A]/value", "/spec/strategy/rollingUpdate"],
        );
        let theirs = entry("x", "Update", r#"{"f:spec":{"f:a":{}}}"#);
        let ours = entry(
            "trimtab",
            "Apply",
            r#"{"f:spec":{"f:b":{},"f:env":{"k:{\"name\":\"A\"}":{"f:value":{}}},"f:strategy":{"f:rollingUpdate":{}}}}"#,
        );
        assert_eq!(left, format!("[{theirs},{ours}]"));
    }

    #[test]
    fn where_we_own_nothing_yet_there_is_an_entry_and_an_empty_one_of_others_goes() {
        let theirs = entry("x", "Update", r#"{"f:spec":{"f:value":{"f:deep":{}}}}"#);
        let ours = entry("trimtab", "Apply", r#"{"f:spec":{"f:value":{}}}"#);
        assert_eq!(after_taking(&format!("[{theirs}]"), &["/spec/value"]), format!("[{ours}]"));
    }
}

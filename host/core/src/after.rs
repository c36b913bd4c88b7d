//! What an object is after an effect, as far as that can be told without having it.
//!
//! A dry run is exact, and is used where there is one: for all of desired over a live object. For
//! the rest it is the comparison that says what an apply changes, what it releases included.

use crate::edit;
use crate::gate::Effect;
use crate::ownership::FIELD_MANAGER;
use crate::snapshot::Snapshot;
use trimtab_compare::managed_fields::{self, Operation};
use trimtab_compare::{Facts, Kind, Options};
use trimtab_json::{Path, Value};

/// The object as JSON text after this effect over the snapshot's live object; `None`: it is gone.
/// The texts are owned by the caller: see [`read`].
///
/// # Errors
/// It cannot be told, and why.
pub(crate) fn after(effect: &Effect, snapshot: &Snapshot) -> Result<Option<Vec<u8>>, String> {
    let live = snapshot.live_object().map(|live| &*live.json);
    let tree = match (effect, live) {
        (Effect::Delete { .. }, _) => return Ok(None),
        (Effect::Apply { body, .. }, None) | (Effect::Create { body }, _) => {
            return Ok(Some(body.to_vec()));
        }
        (Effect::ApplyStatus { .. } | Effect::Patch { .. }, None) => return Ok(None),
        (Effect::Apply { body, .. }, Some(live)) => {
            return applied(&read(live)?, &read(body)?, &snapshot.facts).map(Some);
        }
        (Effect::ApplyStatus { body }, Some(live)) => with_status(read(live)?, &read(body)?),
        (Effect::Patch { body }, Some(live)) => patched(read(live)?, &read(body)?),
    };
    Ok(Some(written(&tree)))
}

pub(crate) fn read(json: &[u8]) -> Result<Value<'_>, String> {
    trimtab_json::parse(json).map_err(|error| error.to_string())
}

fn written(tree: &Value<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    trimtab_json::write(tree, &mut bytes);
    bytes
}

fn applied(live: &Value<'_>, body: &Value<'_>, facts: &[u8]) -> Result<Vec<u8>, String> {
    // What we stated in another version is released all the same, by names that we cannot read.
    let ours = |entry: &managed_fields::Entry<'_>| {
        entry.manager == FIELD_MANAGER && entry.operation == Operation::Apply
    };
    if managed_fields::of_other_versions(live).any(|entry| ours(&entry)) {
        return Err(
            "it was applied in another version, and no dry run says what is released".into()
        );
    }
    let options = Options { managers: &[FIELD_MANAGER], ..Options::default() };
    let found = trimtab_compare::compare(body, Some(live), Facts::new(facts), &options)
        .map_err(|error| error.to_string())?;
    let mut tree = live.clone();
    let excluded = trimtab_compare::excluded(body, live, Facts::new(facts));
    let mut gone: Vec<String> = excluded.iter().filter_map(|path| path.pointer(live)).collect();
    for difference in &found {
        match (difference.kind, &difference.desired) {
            (Kind::Stray, _) => {}
            (Kind::Released, _) => gone.extend(difference.path.pointer(live)),
            (_, Some(value)) if edit::set(&mut tree, &difference.path, value.as_ref().clone()) => {}
            _ => return Err(format!("what becomes of {} cannot be told", difference.path)),
        }
    }
    gone.sort_by_cached_key(|pointer| std::cmp::Reverse(edit::order(pointer)));
    for pointer in &gone {
        edit::remove(&mut tree, pointer);
    }
    Ok(written(&tree))
}

/// Live with this status joined to its own, and without what we stated there before and do not now.
fn with_status<'a>(mut live: Value<'a>, body: &Value<'a>) -> Value<'a> {
    let entries = managed_fields::entries(&live).filter(|entry| {
        entry.manager == FIELD_MANAGER
            && entry.operation == Operation::Apply
            && entry.subresource == Some("status")
    });
    let released = |path: &Path| path.resolve(body).is_none();
    let mut gone: Vec<String> = managed_fields::owned(entries)
        .into_iter()
        .filter(|owned| owned.whole && released(&owned.path))
        .filter_map(|owned| owned.path.pointer(&live))
        .collect();
    gone.sort_by_cached_key(|pointer| std::cmp::Reverse(edit::order(pointer)));
    for pointer in &gone {
        edit::remove(&mut live, pointer);
    }
    if let (Some(root), Some(status)) = (live.as_object_mut(), body.get("status")) {
        match root.get_mut("status") {
            Some(held) => join(held, status),
            None => {
                root.insert("status", status.clone());
            }
        }
    }
    live
}

fn join<'a>(held: &mut Value<'a>, more: &Value<'a>) {
    match (held, more) {
        (Value::Object(held), Value::Object(more)) => {
            for (name, value) in more.iter() {
                match held.get_mut(name) {
                    Some(held) => join(held, value),
                    None => {
                        held.insert(name.to_owned(), value.clone());
                    }
                }
            }
        }
        (held, more) => *held = more.clone(),
    }
}

/// Live after the removals of a JSON Patch; our patches replace nothing but managedFields.
fn patched<'a>(mut live: Value<'a>, patch: &Value<'_>) -> Value<'a> {
    for operation in patch.as_array().unwrap_or_default() {
        if let (Some("remove"), Some(path)) =
            (operation.str_at(&["op"]), operation.str_at(&["path"]))
        {
            edit::remove(&mut live, path);
        }
    }
    live
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVE: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","managedFields":[{"manager":"trimtab","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{},"f:old":{}}}},{"manager":"trimtab","operation":"Apply","apiVersion":"v1","subresource":"status","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:was":{}}}}]},"data":{"a":"1","old":"1","theirs":"1"},"status":{"was":1,"is":1}}"#;

    #[test]
    fn an_apply_sets_what_it_states_releases_what_it_left_out_and_keeps_the_rest() {
        let body = br#"{"kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"2","new":"1"}}"#;
        let live = read(LIVE.as_bytes()).unwrap();
        let text = applied(&live, &read(body).unwrap(), &[]).unwrap();
        let tree = read(&text).unwrap();
        let data = tree.get("data").unwrap();
        assert_eq!(data.str_at(&["a"]), Some("2"));
        assert_eq!(data.str_at(&["new"]), Some("1"));
        assert_eq!(data.str_at(&["theirs"]), Some("1"));
        assert!(data.get("old").is_none());
    }

    #[test]
    fn a_status_is_joined_and_what_we_stated_in_it_before_goes() {
        let body = read(br#"{"status":{"is":2,"new":3}}"#).unwrap();
        let tree = with_status(read(LIVE.as_bytes()).unwrap(), &body);
        assert_eq!(written(tree.get("status").unwrap()), br#"{"is":2,"new":3}"#);
    }

    #[test]
    fn a_patch_takes_its_paths_out() {
        let patch = read(
            br#"[{"op":"test","path":"/data/a","value":"1"},{"op":"remove","path":"/data/a"}]"#,
        );
        let tree = patched(read(LIVE.as_bytes()).unwrap(), &patch.unwrap());
        assert!(tree.at(&["data", "a"]).is_none() && tree.at(&["data", "old"]).is_some());
    }
}

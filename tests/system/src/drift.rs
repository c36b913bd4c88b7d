//! Drift for any object: some declared scalar of a live object, changed to another valid value.
//!
//! Which fields are declared is read from managedFields, as any bystander could; which values are
//! valid is the API server's to say: candidates are tried until it takes one and keeps it.

use crate::{Api, Id};
use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

/// How many changes are tried on one object before it counts as one that takes none.
const TRIES: usize = 40;

/// What was changed.
#[derive(Clone, Debug)]
pub struct Drift {
    /// Of which object.
    pub id: Id,
    /// JSON pointer of the field.
    pub pointer: String,
    /// What it was.
    pub before: Value,
    /// What it is now.
    pub after: Value,
}

/// Changes one field that `manager` applied, as the user of `api`. Where no such change can be
/// made, the reason: the API server's first refusal, or that there is no field to change.
///
/// # Errors
/// The object is not there.
pub async fn drift(api: &Api, id: &Id, manager: &str) -> Result<Result<Drift, String>> {
    let live = api.require(id).await?;
    let mut reason = None;
    for (pointer, after) in candidates(&live, manager).into_iter().take(TRIES) {
        let mut changed = live.clone();
        let field = changed.pointer_mut(&pointer).context("a candidate's path")?;
        let before = std::mem::replace(field, after.clone());
        match api.replace(&changed).await {
            Ok(answer) if answer.pointer(&pointer) == Some(&after) => {
                return Ok(Ok(Drift { id: id.clone(), pointer, before, after }));
            }
            Ok(_) => {
                reason.get_or_insert(format!("the API server does not keep another {pointer}"));
            }
            Err(error) => {
                reason.get_or_insert(format!("{pointer}: {error:#}"));
            }
        }
    }
    Ok(Err(reason.unwrap_or_else(|| format!("{manager} states no value in it"))))
}

/// Scalars that this manager applied, each with another value; content before metadata.
fn candidates(live: &Value, manager: &str) -> Vec<(String, Value)> {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let mut found = Vec::new();
    for entry in entries.into_iter().flatten() {
        if entry["manager"] == manager
            && entry["operation"] == "Apply"
            && let Some(fields) = entry["fieldsV1"].as_object()
        {
            walk(fields, live, &mut String::new(), &mut found);
        }
    }
    let secret = live["kind"] == "Secret";
    let mut found: Vec<(String, Value)> = found
        .into_iter()
        .filter_map(|(pointer, value)| {
            let other = if secret && pointer.starts_with("/data/") {
                Value::from("ZHJpZnRlZA==")
            } else {
                another(&value)?
            };
            (other != value).then_some((pointer, other))
        })
        .collect();
    // Content before metadata; but what names a kind is not to be changed while it is in use.
    let definition = live["kind"] == "CustomResourceDefinition";
    found.sort_by_key(|(pointer, _)| pointer.starts_with("/metadata/") != definition);
    found
}

fn walk(
    fields: &Map<String, Value>,
    live: &Value,
    path: &mut String,
    found: &mut Vec<(String, Value)>,
) {
    for (key, below) in fields {
        let Some((step, value)) = step(key, live) else { continue };
        let length = path.len();
        path.push('/');
        path.push_str(&step.replace('~', "~0").replace('/', "~1"));
        match below.as_object() {
            Some(below) if !below.is_empty() => {
                // What names an element of a list is no field of it: another name is another one.
                let mut below = below.clone();
                below.retain(|field, _| !names(key, field));
                walk(&below, value, path, found);
            }
            _ => scalars(value, path, found),
        }
        path.truncate(length);
    }
}

/// The plain values of something that is applied as one.
fn scalars(value: &Value, path: &mut String, found: &mut Vec<(String, Value)>) {
    let steps: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, it)| (name.clone(), it)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(i, it)| (i.to_string(), it)).collect()
        }
        _ => return found.push((path.clone(), value.clone())),
    };
    for (step, value) in steps {
        let length = path.len();
        path.push('/');
        path.push_str(&step.replace('~', "~0").replace('/', "~1"));
        scalars(value, path, found);
        path.truncate(length);
    }
}

/// Whether this field is one of the keys in `k:{…}`.
fn names(element: &str, field: &str) -> bool {
    let keys = element.strip_prefix("k:").and_then(|keys| serde_json::from_str(keys).ok());
    let keys: Map<String, Value> = keys.unwrap_or_default();
    field.strip_prefix("f:").is_some_and(|name| keys.contains_key(name))
}

/// One step of fieldsV1: a member, or the element of a list with these keys.
fn step<'a>(key: &str, live: &'a Value) -> Option<(String, &'a Value)> {
    if let Some(name) = key.strip_prefix("f:") {
        return Some((name.to_owned(), live.get(name)?));
    }
    let keys: Map<String, Value> = serde_json::from_str(key.strip_prefix("k:")?).ok()?;
    let elements = live.as_array()?;
    let is = |element: &Value| keys.iter().all(|(name, value)| element.get(name) == Some(value));
    let index = elements.iter().position(is)?;
    Some((index.to_string(), &elements[index]))
}

fn another(value: &Value) -> Option<Value> {
    Some(match value {
        Value::String(text) => format!("{text}-drifted").into(),
        Value::Bool(is) => (!is).into(),
        Value::Number(number) => (number.as_i64()? + 1).into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn declared_scalars_are_found_through_members_and_keyed_lists() {
        let live = json!({
            "kind": "Service",
            "metadata": {"managedFields": [{
                "manager": "trimtab", "operation": "Apply",
                "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:a/b": {}}},
                    "f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {
                        ".": {}, "f:port": {}, "f:targetPort": {},
                    }}},
                },
            }], "labels": {"a/b": "x"}},
            "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}]},
        });
        let found = candidates(&live, "trimtab");
        let expected = [
            ("/spec/ports/0/targetPort".to_owned(), json!(8081)),
            ("/metadata/labels/a~1b".to_owned(), json!("x-drifted")),
        ];
        assert_eq!(found, expected);
        assert!(candidates(&live, "somebody").is_empty());
    }
}

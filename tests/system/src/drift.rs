//! Drift for any object: some declared scalar of a live object, changed to another valid value.
//!
//! Which fields are declared is read from managedFields, as any bystander could; which values are
//! valid is the API server's to say: candidates are tried until it takes one and keeps it.

use crate::{Api, Id};
use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

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

/// Changes one field that `manager` applied, as the user of `api`. `None` where the API server
/// takes no such change.
///
/// # Errors
/// The object is not there.
pub async fn drift(api: &Api, id: &Id, manager: &str) -> Result<Option<Drift>> {
    let live = api.require(id).await?;
    for (pointer, after) in candidates(&live, manager) {
        let mut changed = live.clone();
        let field = changed.pointer_mut(&pointer).context("a candidate's path")?;
        let before = std::mem::replace(field, after.clone());
        let Ok(answer) = api.replace(&changed).await else { continue };
        if answer.pointer(&pointer) == Some(&after) {
            return Ok(Some(Drift { id: id.clone(), pointer, before, after }));
        }
    }
    Ok(None)
}

/// Scalars that this manager applied, each with another value; content before metadata.
fn candidates(live: &Value, manager: &str) -> Vec<(String, Value)> {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let mut found = Vec::new();
    for entry in entries.into_iter().flatten() {
        if entry["manager"] == manager && entry["operation"] == "Apply" {
            if let Some(fields) = entry["fieldsV1"].as_object() {
                walk(fields, live, &mut String::new(), &mut found);
            }
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
            Some(below) if !below.is_empty() => walk(below, value, path, found),
            _ if value.is_object() || value.is_array() => {}
            _ => found.push((path.clone(), value.clone())),
        }
        path.truncate(length);
    }
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
                    "f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}},
                },
            }], "labels": {"a/b": "x"}},
            "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80, "protocol": "TCP"}]},
        });
        let found = candidates(&live, "trimtab");
        let expected = [
            ("/spec/ports/0/port".to_owned(), json!(81)),
            ("/metadata/labels/a~1b".to_owned(), json!("x-drifted")),
        ];
        assert_eq!(found, expected);
        assert!(candidates(&live, "somebody").is_empty());
    }
}

//! Succession: taking the place of a client-side tool on an object that we adopt, and carrying
//! field sets over from versions that the API server no longer serves.
//!
//! What such a tool applied, it owns by operation *Update*: nobody but it would ever remove a
//! field of that. So its field set is joined to our own, as `kubectl apply --server-side` does
//! with its own past: from then on those fields are ours, and those that desired does not state
//! are released by the next apply. Only managers that are apply tools by name are succeeded: what
//! an editor or a controller wrote by Update is theirs.

use crate::decision::ActionKind;
use crate::grant::Power;
use crate::object::{Live, LiveObject};
use crate::ownership::FIELD_MANAGER;
use crate::snapshot::Snapshot;
use trimtab_json::{Object, Value};

/// Field managers (operation Update) that are succeeded without being named in a grant: client-side
/// `kubectl apply` alone, which has owned nothing but what it applied since it has had that name.
pub const PREDECESSORS: [&str; 1] = ["kubectl-client-side-apply"];

/// Where client-side apply keeps what it applied last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
pub(crate) const LAST_APPLIED_POINTER: &str =
    "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
pub(crate) const MANAGED_FIELDS_POINTER: &str = "/metadata/managedFields";

/// Whom we succeed on this object: nobody unless the grant allows to adopt.
pub(crate) fn predecessors<'p>(power: &'p Power, snapshot: &Snapshot) -> Vec<&'p str> {
    let Ok(grant) = power.allows(&snapshot.key, ActionKind::Adopt) else { return Vec::new() };
    let Some(live) = snapshot.live_object() else { return Vec::new() };
    let named = grant.predecessors.iter().map(String::as_str);
    let written = |name: &&str| contains(&live.json, name);
    PREDECESSORS.into_iter().chain(named).filter(written).collect()
}

/// The snapshot as it reads once we have succeeded them; `None` where nothing would change. What
/// is judged by it is judged as if the fields were ours already.
pub(crate) fn view(power: &Power, snapshot: &Snapshot) -> Option<Snapshot> {
    let predecessors = predecessors(power, snapshot);
    if predecessors.is_empty() {
        return None;
    }
    let live = snapshot.live_object()?;
    let mut object = trimtab_json::parse(&live.json).ok()?;
    if !succeed(managed_fields(&mut object)?, &predecessors) {
        return None;
    }
    let mut json = Vec::with_capacity(live.json.len());
    trimtab_json::write(&object, &mut json);
    let live = Live::Present(LiveObject { json: json.into(), ..live.clone() });
    Some(Snapshot { live, ..snapshot.clone() })
}

/// Whether the annotation of client-side apply goes with its field set.
pub(crate) fn drops_annotation(snapshot: &Snapshot, live: &Value<'_>) -> bool {
    live.at(&["metadata", "annotations", LAST_APPLIED]).is_some()
        && !contains(&snapshot.desired.json, LAST_APPLIED)
}

/// The list, to be changed in place.
pub(crate) fn managed_fields<'v, 'a>(object: &'v mut Value<'a>) -> Option<&'v mut Vec<Value<'a>>> {
    let metadata = object.as_object_mut()?.get_mut("metadata")?;
    metadata.as_object_mut()?.get_mut("managedFields")?.as_array_mut()
}

/// Joins the predecessors' field sets to our own. Whether anything changed.
pub(crate) fn succeed(entries: &mut Vec<Value<'_>>, predecessors: &[&str]) -> bool {
    let is = |entry: &Value<'_>, name: &str, operation: &str| {
        entry.str_at(&["manager"]) == Some(name)
            && entry.str_at(&["operation"]) == Some(operation)
            && entry.str_at(&["subresource"]).unwrap_or_default().is_empty()
    };
    let mut ours = entries.iter().position(|entry| is(entry, FIELD_MANAGER, "Apply"));
    let mut changed = false;
    let mut index = 0;
    while let Some(entry) = entries.get_mut(index) {
        if !predecessors.iter().any(|name| is(entry, name, "Update")) {
            index += 1;
            continue;
        }
        let Some(entry) = entry.as_object_mut() else { break };
        let mut fields = match entry.remove("fieldsV1") {
            Some(Value::Object(fields)) => fields,
            _ => Object::new(),
        };
        strip(&mut fields);
        let Some(heir) = ours else {
            entry.insert("manager", FIELD_MANAGER);
            entry.insert("operation", "Apply");
            entry.insert("fieldsV1", fields);
            ours = Some(index);
            changed = true;
            continue;
        };
        let version = |entry: Option<&Value<'_>>| {
            entry.and_then(|entry| entry.str_at(&["apiVersion"])).map(str::to_owned)
        };
        // Sets of two versions cannot be joined without converting them, which is the server's.
        if version(entries.get(index)) != version(entries.get(heir)) {
            if let Some(entry) = entries.get_mut(index).and_then(Value::as_object_mut) {
                entry.insert("fieldsV1", fields);
            }
            index += 1;
            continue;
        }
        if let Some(heir) = entries.get_mut(heir) {
            join_fields(heir, fields);
        }
        entries.remove(index);
        if index < heir {
            ours = Some(heir - 1);
        }
        changed = true;
    }
    changed
}

/// Names the version `to` in every entry that names `from`, and joins what becomes one entry by
/// that. The managers, if there were any.
pub(crate) fn carry_over<'a>(entries: &mut Vec<Value<'a>>, from: &str, to: &str) -> Vec<String> {
    let mut managers = Vec::new();
    let mut index = 0;
    while let Some(entry) = entries.get_mut(index) {
        let manager = entry.str_at(&["manager"]).unwrap_or_default().to_owned();
        let Some(entry) = entry
            .as_object_mut()
            .filter(|entry| entry.get("apiVersion").and_then(Value::as_str) == Some(from))
        else {
            index += 1;
            continue;
        };
        entry.insert("apiVersion", to.to_owned());
        managers.push(manager);
        let this = entries.get(index).map(identity);
        let same = entries.iter().take(index).position(|other| Some(identity(other)) == this);
        let after = || {
            let later = entries.iter().skip(index + 1);
            later.map(identity).position(|other| Some(other) == this).map(|at| at + index + 1)
        };
        match same.or_else(after) {
            Some(other) => {
                let fields = entries
                    .get_mut(index)
                    .and_then(Value::as_object_mut)
                    .and_then(|entry| entry.remove("fieldsV1"));
                if let (Some(other), Some(Value::Object(fields))) = (entries.get_mut(other), fields)
                {
                    join_fields(other, fields);
                }
                entries.remove(index);
            }
            None => index += 1,
        }
    }
    managers
}

/// What makes an entry one of its own to the server.
fn identity(entry: &Value<'_>) -> [String; 4] {
    ["manager", "operation", "apiVersion", "subresource"]
        .map(|name| entry.str_at(&[name]).unwrap_or_default().to_owned())
}

/// What is never ours to hold: the status, and the annotation that goes.
fn strip(fields: &mut Object<'_>) {
    fields.remove("f:status");
    let annotations = fields
        .get_mut("f:metadata")
        .and_then(Value::as_object_mut)
        .and_then(|metadata| metadata.get_mut("f:annotations"))
        .and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.remove(&format!("f:{LAST_APPLIED}"));
    }
}

fn join_fields<'a>(entry: &mut Value<'a>, fields: Object<'a>) {
    let Some(entry) = entry.as_object_mut() else { return };
    match entry.get_mut("fieldsV1") {
        Some(Value::Object(all)) => join(all, &fields),
        _ => {
            entry.insert("fieldsV1", fields);
        }
    }
}

/// The union of two field sets. An empty set stands for the place itself, which a set with
/// children says by `.`.
fn join<'a>(all: &mut Object<'a>, more: &Object<'a>) {
    if all.is_empty() != more.is_empty() {
        all.insert(".", Object::new());
    }
    for (name, fields) in more.iter() {
        match (all.get_mut(name), fields) {
            (Some(Value::Object(all)), Value::Object(more)) => join(all, more),
            (Some(_), _) => {}
            (None, fields) => {
                all.insert(name.to_owned(), fields.clone());
            }
        }
    }
}

/// JSON is text; what is none holds nothing that is looked for.
fn contains(json: &[u8], part: &str) -> bool {
    std::str::from_utf8(json).is_ok_and(|text| text.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(managed: &str, change: impl FnOnce(&mut Vec<Value<'_>>)) -> String {
        let mut value = trimtab_json::parse(managed.as_bytes()).unwrap();
        change(value.as_array_mut().unwrap());
        let mut out = Vec::new();
        trimtab_json::write(&value, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn entry(manager: &str, operation: &str, version: &str, fields: &str) -> String {
        format!(
            r#"{{"manager":"{manager}","operation":"{operation}","apiVersion":"{version}","fieldsV1":{fields}}}"#
        )
    }

    fn succeeded(entries: &[String]) -> String {
        after(&format!("[{}]", entries.join(",")), |entries| {
            succeed(entries, &PREDECESSORS);
        })
    }

    #[test]
    fn a_predecessors_field_set_becomes_our_own_without_status_and_annotation() {
        let theirs = entry(
            PREDECESSORS[0],
            "Update",
            "v1",
            r#"{"f:data":{"f:a":{}},"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}},"f:status":{"f:x":{}}}"#,
        );
        let ours = entry(
            FIELD_MANAGER,
            "Apply",
            "v1",
            r#"{"f:data":{"f:a":{}},"f:metadata":{"f:annotations":{".":{}}}}"#,
        );
        assert_eq!(succeeded(&[theirs]), format!("[{ours}]"));
    }

    #[test]
    fn it_is_joined_to_what_we_own_already_and_others_are_left_alone() {
        let other = entry("kubectl-edit", "Update", "v1", r#"{"f:data":{"f:x":{}}}"#);
        let all = [
            entry(PREDECESSORS[0], "Update", "v1", r#"{"f:data":{".":{},"f:a":{}},"f:b":{}}"#),
            other.clone(),
            entry(FIELD_MANAGER, "Apply", "v1", r#"{"f:data":{"f:c":{}},"f:b":{"f:d":{}}}"#),
        ];
        let joined = entry(
            FIELD_MANAGER,
            "Apply",
            "v1",
            r#"{"f:data":{"f:c":{},".":{},"f:a":{}},"f:b":{"f:d":{},".":{}}}"#,
        );
        assert_eq!(succeeded(&all), format!("[{other},{joined}]"));
    }

    #[test]
    fn sets_of_two_versions_stay_two() {
        let all = [
            entry(FIELD_MANAGER, "Apply", "v2", r#"{"f:data":{}}"#),
            entry(PREDECESSORS[0], "Update", "v1", r#"{"f:data":{}}"#),
        ];
        assert_eq!(succeeded(&all), format!("[{}]", all.join(",")));
    }

    #[test]
    fn sets_of_a_version_that_is_gone_are_carried_over_and_joined() {
        let all = [
            entry("other", "Apply", "ex.io/v1alpha1", r#"{"f:spec":{"f:a":{}}}"#),
            entry("other", "Apply", "ex.io/v1", r#"{"f:spec":{"f:b":{}}}"#),
            entry("else", "Update", "ex.io/v1alpha1", r#"{"f:spec":{}}"#),
        ];
        let text = after(&format!("[{}]", all.join(",")), |entries| {
            let managers = carry_over(entries, "ex.io/v1alpha1", "ex.io/v1");
            assert_eq!(managers, ["other", "else"]);
        });
        let joined = entry("other", "Apply", "ex.io/v1", r#"{"f:spec":{"f:b":{},"f:a":{}}}"#);
        let moved = entry("else", "Update", "ex.io/v1", r#"{"f:spec":{}}"#);
        assert_eq!(text, format!("[{joined},{moved}]"));
    }
}

//! Objects of the host's own, by no decision of a plugin: the inventory's ConfigMaps, into which
//! nothing but a shard's text goes, under a name that no source chooses; and Events about findings.

use super::{Change, Effect, Planned, Target};
use crate::decision::ActionKind;
use crate::identity::{GroupKind, Gvk, ObjectKey};
use crate::inventory::Place;
use crate::object::LiveObject;
use std::sync::Arc;
use trimtab_json::{Object, Value};

/// The label of each ConfigMap that holds a checkpoint; its value is the log's id.
pub const CHECKPOINT_LABEL: &str = "trimtab.dev/checkpoint";
/// The key of its data that holds the line.
pub const CHECKPOINT_DATA: &str = "checkpoint";

/// The change that writes a shard: over the ConfigMap that was read, or as a new one where none was
/// found. The server refuses it where that is otherwise by now.
pub fn keep(place: &Place, text: &[u8], seen: Option<&LiveObject>) -> Change {
    let mut metadata = Object::new()
        .with("name", place.name.clone())
        .with("namespace", place.namespace.to_string())
        .with("labels", Object::new().with(crate::inventory::LABEL, place.slug.clone()));
    if let Some(live) = seen {
        metadata.insert("uid", live.uid.to_string());
        metadata.insert("resourceVersion", live.resource_version.to_string());
    }
    let text = String::from_utf8_lossy(text).into_owned();
    let object = Object::new()
        .with("apiVersion", "v1")
        .with("kind", "ConfigMap")
        .with("metadata", metadata)
        .with("data", Object::new().with(crate::inventory::DATA, text));
    let body = written(object);
    let effect = match seen {
        Some(_) => Effect::Apply { body, force: true },
        None => Effect::Create { body },
    };
    change(place.key(), effect, ActionKind::ApplyContent, seen.is_none())
}

/// The change that takes a shard's ConfigMap away: its source is no more and nothing is in it.
pub fn discard(place: &Place, seen: &LiveObject) -> Change {
    let effect = Effect::Delete {
        uid: seen.uid.clone(),
        resource_version: seen.resource_version.clone(),
        orphan: false,
    };
    change(place.key(), effect, ActionKind::Delete, false)
}

/// The change that makes the namespace of the inventory.
pub fn home(namespace: &str) -> Change {
    let object = Object::new()
        .with("apiVersion", "v1")
        .with("kind", "Namespace")
        .with("metadata", Object::new().with("name", namespace.to_owned()));
    let key = ObjectKey::new(GroupKind::new("", "Namespace"), "", namespace);
    change(key, Effect::Create { body: written(object) }, ActionKind::ApplyContent, true)
}

/// The change that keeps the newest checkpoint of an audit log (a line of it) in the cluster, where
/// whoever keeps the log cannot cut it off unnoticed. `log` is the log's id, 32 hexadecimal digits.
pub fn vouch(namespace: &str, log: &str, checkpoint: &str) -> Change {
    let name = format!("trimtab-checkpoint-{log}");
    let object = Object::new()
        .with("apiVersion", "v1")
        .with("kind", "ConfigMap")
        .with(
            "metadata",
            Object::new()
                .with("name", name.clone())
                .with("namespace", namespace.to_owned())
                .with("labels", Object::new().with(CHECKPOINT_LABEL, log.to_owned())),
        )
        .with("data", Object::new().with(CHECKPOINT_DATA, checkpoint.to_owned()));
    let key = ObjectKey::new(GroupKind::new("", "ConfigMap"), namespace, &name);
    let effect = Effect::Apply { body: written(object), force: true };
    change(key, effect, ActionKind::ApplyContent, false)
}

/// The change that tells of a finding on its object: a Kubernetes Event, `body` being the whole of
/// it. It changes nothing that anybody declares.
pub fn event(namespace: &str, name: &str, body: Vec<u8>) -> Change {
    about_event(namespace, name, Effect::Create { body: body.into() }, true)
}

/// The change that says how often an Event's finding was observed by now, and when last (RFC 3339
/// with microseconds).
pub fn event_again(namespace: &str, name: &str, count: u64, last: &str) -> Change {
    let series = Object::new().with("count", count).with("lastObservedTime", last.to_owned());
    let operation = Object::new().with("op", "add").with("path", "/series").with("value", series);
    let mut body = Vec::new();
    trimtab_json::write(&Value::Array(vec![Value::from(operation)]), &mut body);
    about_event(namespace, name, Effect::Patch { body: body.into() }, false)
}

fn about_event(namespace: &str, name: &str, effect: Effect, creates: bool) -> Change {
    let gvk = Gvk::from_api_version("events.k8s.io/v1", "Event");
    let key = ObjectKey::new(gvk.group_kind(), namespace, name);
    let planned =
        Planned { action: ActionKind::ApplyContent, paths: Vec::new(), creates, takes: Vec::new() };
    Change::of(Target { key, gvk, acts_as: None }, effect, planned)
}

fn change(key: ObjectKey, effect: Effect, action: ActionKind, creates: bool) -> Change {
    let gvk = Gvk::from_api_version("v1", &key.group_kind.kind);
    let planned = Planned { action, paths: Vec::new(), creates, takes: Vec::new() };
    Change::of(Target { key, gvk, acts_as: None }, effect, planned)
}

fn written(object: Object<'_>) -> Arc<[u8]> {
    let mut body = Vec::new();
    trimtab_json::write(&Value::from(object), &mut body);
    body.into()
}

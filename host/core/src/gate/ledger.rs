//! The inventory's own objects: ConfigMaps that the host keeps for itself, by no decision of a
//! plugin. Nothing but a shard's text goes into one, under a name that no source chooses.

use super::{Change, Effect, Planned, Target};
use crate::decision::ActionKind;
use crate::identity::{GroupKind, Gvk, ObjectKey};
use crate::inventory::Place;
use crate::object::LiveObject;
use std::sync::Arc;
use trimtab_json::{Object, Value};

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

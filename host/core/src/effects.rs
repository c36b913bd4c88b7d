//! What a permitted step is to the API server: bodies, patches, preconditions.
//!
//! Takes a step and the object as it is; gives effects, of which only the gate makes changes.

use crate::decision::{Action, ActionKind};
use crate::edit;
use crate::gate::{Effect, Planned};
use crate::ignore::{self, Places};
use crate::object::LiveObject;
use crate::snapshot::Snapshot;
use crate::{exclusive, handover, recreate, succession};
use std::sync::Arc;
use trimtab_json::{Object, Path, Value};

/// What a permit is for.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// What the plugin asked for.
    Action(Action),
    /// Before an apply that adopts: succeed these field managers.
    Succeed(Vec<String>),
    /// Before an apply that states the replicas of a workload no longer.
    HandOver,
    /// Before an apply that would leave these places beside what rules them out.
    TakeOut(Vec<Path>),
    /// Before anything can be applied: carry field sets over from this version.
    CarryOver(String),
}

/// The effects of one step over the object as it is now; `seen` is what was judged. `whole` is the
/// apply configuration of all of desired over what was seen, if it was made before.
pub(crate) fn effects(
    step: &Step,
    force: bool,
    whole: Option<&Arc<[u8]>>,
    seen: &Snapshot,
    snapshot: &Snapshot,
) -> Result<Vec<(Effect, Planned)>, String> {
    let action = match step {
        Step::Action(action) => action,
        Step::Succeed(_) | Step::HandOver | Step::TakeOut(_) | Step::CarryOver(_) => {
            return Ok(rewrite(step, snapshot)?.into_iter().collect());
        }
    };
    let kind = action.kind().unwrap_or(ActionKind::ApplyDesired);
    let absent = snapshot.live_object().is_none();
    let planned = |paths: &[String], creates| plan(kind, paths.to_vec(), creates);
    let desired = &snapshot.desired.json;
    let version =
        |of: &Snapshot| of.live_object().map(|it| (it.uid.clone(), it.resource_version.clone()));
    let moved = version(seen) != version(snapshot);
    let all = || match whole {
        Some(body) if !moved => Ok(body.clone()),
        _ => apply_body(snapshot, desired, &[]),
    };
    Ok(match action {
        Action::Leave(_) => vec![],
        Action::ApplyDesired { without } => {
            let body = match without.is_empty() {
                true => all()?,
                false => apply_body(snapshot, desired, without)?,
            };
            vec![(Effect::Apply { body, force }, planned(without, absent))]
        }
        Action::Adopt => {
            let body = all()?;
            vec![(Effect::Apply { body, force: true }, planned(&[], absent))]
        }
        Action::ApplyContent(content) => {
            let body = apply_body(snapshot, content, &[])?;
            vec![(Effect::Apply { body, force }, planned(&[], absent))]
        }
        Action::PatchStatus(content) => {
            let body = apply_body(snapshot, content, &[])?;
            vec![(Effect::ApplyStatus { body }, planned(&[], false))]
        }
        Action::RemoveFields(paths) => match removal(seen, snapshot, paths)? {
            Some(body) => vec![(Effect::Patch { body }, planned(paths, false))],
            None => vec![],
        },
        Action::Delete => {
            delete(snapshot, false).map(|it| (it, planned(&[], false))).into_iter().collect()
        }
        Action::Recreate => {
            let orphan = recreate::leaves_dependents(&snapshot.key.group_kind);
            let mut both: Vec<_> =
                delete(snapshot, orphan).map(|it| (it, planned(&[], false))).into_iter().collect();
            let create = Effect::Apply { body: desired.clone(), force: false };
            both.push((create, planned(&[], true)));
            both
        }
    })
}

fn plan(action: ActionKind, paths: Vec<String>, creates: bool) -> Planned {
    Planned { action, paths, creates, takes: Vec::new() }
}

fn delete(snapshot: &Snapshot, orphan: bool) -> Option<Effect> {
    snapshot.live_object().map(|live| Effect::Delete {
        uid: live.uid.clone(),
        resource_version: live.resource_version.clone(),
        orphan,
    })
}

/// The JSON Patch that rewrites managedFields and no field; `None` where there is nothing to
/// rewrite (any more).
fn rewrite(step: &Step, now: &Snapshot) -> Result<Option<(Effect, Planned)>, String> {
    let Some(live) = now.live_object() else { return Ok(None) };
    let mut object = read(&live.json)?;
    let drops = matches!(step, Step::Succeed(_)) && succession::drops_annotation(now, &object);
    let Some(entries) = succession::managed_fields(&mut object) else { return Ok(None) };
    let changed = match step {
        Step::Succeed(names) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            succession::succeed(entries, &names)
        }
        Step::HandOver => handover::let_go(entries),
        Step::TakeOut(paths) => exclusive::take(entries, paths, &now.gvk.api_version()),
        Step::CarryOver(from) => {
            !succession::carry_over(entries, from, &now.gvk.api_version()).is_empty()
        }
        Step::Action(_) => false,
    };
    if !changed {
        return Ok(None);
    }
    let entries = Value::Array(std::mem::take(entries));
    let mut patch = preconditions(live);
    patch.push(
        operation("replace", succession::MANAGED_FIELDS_POINTER).with("value", entries).into(),
    );
    let mut paths = vec![succession::MANAGED_FIELDS_POINTER.to_owned()];
    if drops {
        patch.push(operation("remove", succession::LAST_APPLIED_POINTER).into());
        paths.push(succession::LAST_APPLIED_POINTER.to_owned());
    }
    let body = written(&Value::Array(patch));
    Ok(Some((Effect::Patch { body }, plan(ActionKind::Adopt, paths, false))))
}

/// The apply configuration: this content, under the identity of the snapshot, without these
/// paths, and for an object that was seen with its UID and resourceVersion, and with what is
/// ignored as it is there.
pub(crate) fn apply_body(
    snapshot: &Snapshot,
    content: &[u8],
    without: &[String],
) -> Result<Arc<[u8]>, String> {
    let seen = snapshot.live_object().filter(|_| !snapshot.desired.ignore.is_empty());
    let seen = seen.map(|live| read(&live.json)).transpose()?;
    let mut object = read(content)?;
    let rules = &snapshot.desired.ignore;
    let ignored =
        seen.as_ref().map(|live| (Places::of(rules, &object, Some(live), &snapshot.facts), live));
    let is_ignored =
        |path: &Path| ignored.as_ref().is_some_and(|(places, live)| places.cover(path, live));
    for text in without {
        let path = Path::parse(text).ok();
        // Whoever asks for it was shown live's own value there.
        if path.as_ref().is_some_and(is_ignored) {
            continue;
        }
        let pointer = path
            .and_then(|path| path.pointer(&object))
            .ok_or_else(|| format!("{text} is to be left out and does not exist in desired"))?;
        edit::remove(&mut object, &pointer);
    }
    if let Some((places, live)) = &ignored {
        places.keep(&mut object, live);
    }
    let Value::Object(root) = &mut object else {
        return Err("the content to apply is not a JSON object".into());
    };
    root.insert("apiVersion", snapshot.gvk.api_version());
    root.insert("kind", &*snapshot.gvk.kind);
    if root.get("metadata").is_none() {
        root.insert("metadata", Object::new());
    }
    let Some(Value::Object(metadata)) = root.get_mut("metadata") else {
        return Err("metadata of the content to apply is not an object".into());
    };
    metadata.insert("name", &*snapshot.key.name);
    match &snapshot.key.namespace {
        Some(namespace) => metadata.insert("namespace", &**namespace),
        None => metadata.remove("namespace"),
    };
    if let Some(live) = snapshot.live_object() {
        metadata.insert("uid", &*live.uid);
        metadata.insert("resourceVersion", &*live.resource_version);
    }
    Ok(written(&object))
}

/// A JSON Patch that removes these paths, as far as they hold what was seen; `None` if none does.
/// It is for exactly this object in exactly this version. (Values are no `test` of it: the API
/// server compares their spelling, and has one of its own.)
fn removal(seen: &Snapshot, now: &Snapshot, paths: &[String]) -> Result<Option<Arc<[u8]>>, String> {
    let (Some(before), Some(live)) = (seen.live_object(), now.live_object()) else {
        return Ok(None);
    };
    let (before, object) = (read(&before.json)?, read(&live.json)?);
    let ignored = ignore::places(seen, &object)?;
    let mut pointers = Vec::new();
    for path in paths.iter().filter_map(|path| Path::parse(path).ok()) {
        if path.is_root() {
            return Err("remove-fields names the whole object".into());
        }
        let value = path.resolve(&object);
        if value.is_some() && value == path.resolve(&before) {
            pointers.extend(ignored.around(&path, &object));
        }
    }
    if pointers.is_empty() {
        return Ok(None);
    }
    // From the back, so that a removal does not move what the next one names.
    pointers.sort_by_cached_key(|pointer| std::cmp::Reverse(edit::order(pointer)));
    pointers.dedup();
    let mut patch = preconditions(live);
    patch.extend(pointers.iter().map(|pointer| operation("remove", pointer).into()));
    Ok(Some(written(&Value::Array(patch))))
}

/// What makes a patch fit exactly the object that was seen.
pub(crate) fn preconditions(live: &LiveObject) -> Vec<Value<'static>> {
    let test = |path: &str, value: &Arc<str>| {
        Value::from(operation("test", path).with("value", value.to_string()))
    };
    vec![
        test("/metadata/uid", &live.uid),
        test("/metadata/resourceVersion", &live.resource_version),
    ]
}

fn operation(op: &'static str, path: &str) -> Object<'static> {
    Object::new().with("op", op).with("path", path.to_owned())
}

fn read(json: &[u8]) -> Result<Value<'_>, String> {
    trimtab_json::parse(json).map_err(|error| error.to_string())
}

fn written(value: &Value<'_>) -> Arc<[u8]> {
    let mut bytes = Vec::new();
    trimtab_json::write(value, &mut bytes);
    bytes.into()
}

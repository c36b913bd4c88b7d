//! The gate: the only maker of a [`Change`].
//!
//! Takes a decision and answers what may be written: effective power (manifest ∩ grant) on the
//! canonical identity, action by action. Writes nothing itself. In observe mode it makes no
//! `Change` at all, only [`Planned`] lines, so that an observing plugin cannot write by any path.

use crate::decision::{Action, ActionKind, Decision};
use crate::edit;
use crate::grant::{Mode, Power, Refusal};
use crate::identity::{Gvk, ObjectKey};
use crate::ignore::{self, Places};
use crate::ownership;
use crate::snapshot::Snapshot;
use std::sync::Arc;
use trimtab_json::{Object, Path, Value};

/// One thing that the host may write. Fields are private: only this module makes one.
#[derive(Clone, Debug)]
pub struct Change {
    target: Target,
    effect: Effect,
    planned: Planned,
}

impl Change {
    /// The object to write.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What to write.
    pub fn effect(&self) -> &Effect {
        &self.effect
    }

    /// The same for people and records, without content.
    pub fn planned(&self) -> &Planned {
        &self.planned
    }
}

/// A rehearsal of applying desired. Never written.
#[derive(Clone, Debug)]
pub struct Probe {
    target: Target,
    body: Arc<[u8]>,
    force: bool,
}

impl Probe {
    /// The object that is rehearsed.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// JSON text of the apply configuration.
    pub fn body(&self) -> &Arc<[u8]> {
        &self.body
    }

    /// Whether conflicts with other managers are overridden.
    pub fn force(&self) -> bool {
        self.force
    }
}

/// Which object a request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Identity.
    pub key: ObjectKey,
    /// The version to speak.
    pub gvk: Gvk,
}

/// What is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Server-side apply of this JSON text. For an object that was seen, the text carries its
    /// UID and resourceVersion, so that the server refuses it if the object moved.
    Apply {
        /// The apply configuration.
        body: Arc<[u8]>,
        /// Whether conflicts with other managers are overridden.
        force: bool,
    },
    /// JSON Patch (RFC 6902) whose `test` operations hold the UID and the resourceVersion.
    Patch {
        /// The patch.
        body: Arc<[u8]>,
    },
    /// Delete exactly the object that was seen.
    Delete {
        /// Its UID, as a precondition.
        uid: Arc<str>,
        /// Its resourceVersion, as a precondition.
        resource_version: Arc<str>,
    },
    /// Server-side apply of this JSON text as the status subresource.
    ApplyStatus {
        /// The apply configuration.
        body: Arc<[u8]>,
    },
}

/// One action for people and records: what, and where, without values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// What is done.
    pub action: ActionKind,
    /// Paths that it is limited to or leaves out, as the action says.
    pub paths: Vec<String>,
    /// Whether the object is made by it.
    pub creates: bool,
}

impl Planned {
    /// Whether it applies all of desired over a live object.
    pub(crate) fn is_plain_apply(&self) -> bool {
        let applies = matches!(self.action, ActionKind::ApplyDesired | ActionKind::Adopt);
        applies && self.paths.is_empty() && !self.creates
    }
}

/// What the gate answers.
#[derive(Clone, Debug, Default)]
pub struct Gated {
    /// What may be written, in order. Empty in observe mode.
    pub permits: Vec<Permit>,
    /// What was decided and is inside the power, whether or not it is written.
    pub planned: Vec<Planned>,
    /// What was decided and is not inside the power.
    pub refusals: Vec<Refusal>,
    /// Why the plugin leaves the object, if it does.
    pub left: Option<String>,
}

/// One action that may be done. Each of its changes is made of the object as it is when its turn
/// comes: a change before it may have moved it. Only this module makes one.
#[derive(Clone, Debug)]
pub struct Permit {
    action: Action,
    force: bool,
}

impl Permit {
    /// The changes, over the object as it is now; `seen` is what was judged.
    ///
    /// # Errors
    /// A decision that does not fit the object: the plugin's fault, as text.
    pub fn changes(&self, seen: &Snapshot, now: &Snapshot) -> Result<Vec<Change>, String> {
        let change = |(effect, planned)| Change { target: target(seen), effect, planned };
        Ok(effects(self, seen, now)?.into_iter().map(change).collect())
    }
}

/// Judges a decision. See the module's words.
///
/// # Errors
/// A decision that cannot be read at all (a path that does not exist in desired) is the
/// plugin's fault and comes back as text.
pub fn gate(power: &Power, snapshot: &Snapshot, decision: &Decision) -> Result<Gated, String> {
    let mode = power.mode_for(&snapshot.key);
    let mut gated = Gated::default();
    for action in in_order(&decision.actions) {
        let Some(kind) = action.kind() else {
            if let Action::Leave(reason) = action {
                gated.left.get_or_insert_with(|| reason.clone());
            }
            continue;
        };
        // Without a grant the manifest alone says what the plugin *would* do.
        let allowed = match (&power.grant, power.manifest.actions.contains(&kind)) {
            (None, true) => Ok(()),
            _ => power.allows(&snapshot.key, kind).map(drop),
        };
        if let Err(refusal) = allowed {
            gated.refusals.push(refusal);
            continue;
        }
        let (action, refused) = ignore::permitted(action, snapshot)?;
        gated.refusals.extend(refused);
        let Some(action) = action else { continue };
        let permit = Permit { action, force: may_force(power, snapshot) };
        let changes = permit.changes(snapshot, snapshot)?;
        gated.planned.extend(changes.into_iter().map(|change| change.planned));
        if mode == Mode::Enforce {
            gated.permits.push(permit);
        }
    }
    Ok(gated)
}

/// The rehearsal of applying desired over what was seen.
///
/// # Errors
/// Desired bytes that are no JSON object; placing makes sure that they are.
pub fn probe(power: &Power, snapshot: &Snapshot) -> Result<Probe, String> {
    Ok(Probe {
        target: target(snapshot),
        body: apply_body(snapshot, &snapshot.desired.json, &[])?,
        force: may_force(power, snapshot),
    })
}

/// Whether conflicts with other managers are overridden: on an object that we applied before, or
/// where the grant allows to adopt.
fn may_force(power: &Power, snapshot: &Snapshot) -> bool {
    snapshot.live_object().is_some()
        && (ownership::is_ours(snapshot) || power.allows(&snapshot.key, ActionKind::Adopt).is_ok())
}

fn target(snapshot: &Snapshot) -> Target {
    Target { key: snapshot.key.clone(), gvk: snapshot.gvk.clone() }
}

/// Applies before removals: what an apply releases need not be removed.
fn in_order(actions: &[Action]) -> impl Iterator<Item = &Action> {
    let removal = |action: &&Action| matches!(action, Action::RemoveFields(_));
    actions.iter().filter(move |action| !removal(action)).chain(actions.iter().filter(removal))
}

fn effects(
    permit: &Permit,
    seen: &Snapshot,
    snapshot: &Snapshot,
) -> Result<Vec<(Effect, Planned)>, String> {
    let Permit { action, force } = permit;
    let force = *force;
    let kind = action.kind().unwrap_or(ActionKind::ApplyDesired);
    let absent = snapshot.live_object().is_none();
    let planned =
        |paths: &[String], creates| Planned { action: kind, paths: paths.to_vec(), creates };
    let desired = &snapshot.desired.json;
    Ok(match action {
        Action::Leave(_) => vec![],
        Action::ApplyDesired { without } => {
            let body = apply_body(snapshot, desired, without)?;
            vec![(Effect::Apply { body, force }, planned(without, absent))]
        }
        Action::Adopt => {
            let body = apply_body(snapshot, desired, &[])?;
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
            delete(snapshot).map(|effect| (effect, planned(&[], false))).into_iter().collect()
        }
        Action::Recreate => {
            let mut both: Vec<_> =
                delete(snapshot).map(|effect| (effect, planned(&[], false))).into_iter().collect();
            let create = Effect::Apply { body: desired.clone(), force: false };
            both.push((create, planned(&[], true)));
            both
        }
    })
}

fn delete(snapshot: &Snapshot) -> Option<Effect> {
    snapshot.live_object().map(|live| Effect::Delete {
        uid: live.uid.clone(),
        resource_version: live.resource_version.clone(),
    })
}

/// The apply configuration: this content, under the identity of the snapshot, without these
/// paths, and for an object that was seen with its UID and resourceVersion, and with what is
/// ignored as it is there.
fn apply_body(
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
    let operation =
        |op: &'static str, path: String| Object::new().with("op", op).with("path", path);
    let test = |path: &str, value: &Arc<str>| {
        Value::from(operation("test", path.into()).with("value", value.to_string()))
    };
    let mut patch = vec![
        test("/metadata/uid", &live.uid),
        test("/metadata/resourceVersion", &live.resource_version),
    ];
    patch.extend(pointers.into_iter().map(|pointer| operation("remove", pointer).into()));
    Ok(Some(written(&Value::Array(patch))))
}

fn read(json: &[u8]) -> Result<Value<'_>, String> {
    trimtab_json::parse(json).map_err(|error| error.to_string())
}

fn written(value: &Value<'_>) -> Arc<[u8]> {
    let mut bytes = Vec::new();
    trimtab_json::write(value, &mut bytes);
    bytes.into()
}

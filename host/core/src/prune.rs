//! Pruning: what of a source's inventory is deleted, in which order, and why the rest is not.
//!
//! Takes the inventory, what is declared, and the live objects of the entries that nobody declares;
//! gives one step for each of those ([`plan`]). Holds no state of its own: a plan is made anew after
//! every step, from what is in the cluster, so that a host that was killed anywhere goes on where it
//! was. Deletes nothing: a step that may be done becomes a `Change` in [`crate::gate::prune`] alone.
//!
//! What is not known is never deleted, and where something is not known nothing of the source is.
//! What would be a loss that few mean (many objects at once, all of a kind, a namespace or a
//! definition with what others have in it) is *held* until a person allows exactly that set.

mod limits;
mod sequence;

pub use self::limits::Limits;

use crate::denial::Denial;
use crate::gate;
use crate::identity::{Digest, GroupKind, ObjectKey};
use crate::inventory::{Approval, Entry, Inventory};
use crate::object::LiveObject;
use crate::ownership::FIELD_MANAGER;
use crate::terms::SourceTerms;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use trimtab_compare::managed_fields::{self, Operation};
use trimtab_json::Value;

/// The annotation that keeps an object, on the live object or in its manifest.
pub const KEEP: &str = "trimtab.dev/prune";
const KEEP_VALUE: &str = "disabled";
/// The same as charts state it.
const KEEP_OF_CHARTS: (&str, &str) = ("helm.sh/resource-policy", "keep");

/// What a source's prunings are held to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Hard denials that are lifted for deletions: the second word that some kinds take.
    pub allow: BTreeSet<Denial>,
    /// What is too much at once.
    pub limits: Limits,
}

/// How the source stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// This revision is in force, whole, and everything that it declares has had its pass.
    InForce(Arc<str>),
    /// It is removed from the configuration by a command that says what becomes of its objects.
    Removed,
    /// It is not, and why: then what it does not declare is not known.
    Not(String),
}

/// An entry's object as the API server has it.
#[derive(Clone, Debug)]
pub enum Seen {
    /// It is there.
    Live(LiveObject),
    /// It is not.
    Absent,
    /// The server does not serve its kind: it is gone with its definition, or hidden while an
    /// aggregated API is away.
    Unserved,
    /// It cannot be told, and why.
    Unknown(String),
}

/// What a namespace or a definition would take with it, what is in the inventory aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Nothing.
    Nothing,
    /// This, for people: the first names, and how many there are.
    Some(String),
    /// It cannot be told, and why.
    Unknown(String),
}

/// What is done about one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is deleted now.
    Delete,
    /// It is to be deleted, and something goes before it; the words say what.
    Wait(String),
    /// What it would take with it has to be looked at first.
    Look,
    /// Its deletion was asked for and goes on; the words say what holds it.
    Going(String),
    /// It waits for a person.
    Held(Arc<Held>),
    /// It stays, in the inventory too, and why.
    Keep(String),
    /// It leaves the inventory and nothing else happens, and why.
    Forget(String),
}

/// Deletions that wait for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Why.
    pub reason: String,
    /// The digest over exactly these deletions, by which a person allows them.
    pub digest: Digest,
    /// Which.
    pub keys: Vec<ObjectKey>,
    /// What an approval allows.
    pub allows: Approval,
}

/// What becomes of a source's entries that nobody declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// One step for each, in the order in which they are done.
    pub steps: Vec<(ObjectKey, Step)>,
    /// Why nothing is pruned at all, if so.
    pub stopped: Option<String>,
    /// What waits for a person.
    pub held: Vec<Arc<Held>>,
}

/// What a plan is made of.
#[derive(Debug)]
pub struct Situation<'a> {
    /// What was made for the source.
    pub inventory: &'a Inventory,
    /// How the source stands.
    pub state: &'a SourceState,
    /// How many objects the source declares.
    pub declares: usize,
    /// What the source is held to.
    pub terms: &'a SourceTerms,
    /// The live objects of the entries that the source does not declare.
    pub seen: &'a HashMap<ObjectKey, Seen>,
    /// By namespace or definition: what it would take with it, as far as it was looked at.
    pub contents: &'a HashMap<ObjectKey, Contents>,
}

/// Plans what becomes of the entries that the source does not declare; `declared_by` names the
/// source that declares an object now.
pub fn plan(now: &Situation<'_>, declared_by: impl Fn(&ObjectKey) -> Option<Arc<str>>) -> Plan {
    let own = now.inventory.source();
    let candidates = now.inventory.undeclared(|key| declared_by(key).as_ref() == Some(own));
    let mut plan = Plan::default();
    if candidates.is_empty() {
        return plan;
    }
    let closed = closed(now);
    plan.stopped = closed.clone().or_else(|| unread(now, &candidates));
    let mut doomed: Vec<Doomed<'_>> = Vec::new();
    for key in candidates {
        let Some((key, entry)) = now.inventory.entry(&key) else { continue };
        if let Some(other) = declared_by(key) {
            let step = Step::Forget(format!("source {other} declares it now"));
            plan.steps.push((key.clone(), step));
            continue;
        }
        if let Some(why) = &closed {
            plan.steps.push((key.clone(), Step::Keep(why.clone())));
            continue;
        }
        match judge(now, key, entry) {
            Ok(live) => doomed.push(Doomed { key, entry, live }),
            Err(step) => plan.steps.push((key.clone(), step)),
        }
    }
    if let Some(why) = &plan.stopped {
        let kept = doomed.iter().map(|it| (it.key.clone(), Step::Keep(why.clone())));
        plan.steps.extend(kept);
        return plan;
    }
    let held = limits::held(now, &doomed).map(Arc::new);
    for (key, step) in sequence::steps(now, &doomed) {
        let step = match (&held, step) {
            (Some(held), Step::Delete | Step::Wait(_) | Step::Look) if held.keys.contains(&key) => {
                Step::Held(held.clone())
            }
            (_, Step::Held(other)) => {
                plan.held.push(other.clone());
                Step::Held(other)
            }
            (_, step) => step,
        };
        plan.steps.push((key, step));
    }
    plan.held.extend(held);
    plan
}

/// An entry whose object is to be deleted, or is being deleted.
#[derive(Debug)]
struct Doomed<'a> {
    key: &'a ObjectKey,
    entry: &'a Entry,
    live: &'a LiveObject,
}

/// Why nothing of the source is pruned, whatever is there.
fn closed(now: &Situation<'_>) -> Option<String> {
    match now.state {
        SourceState::Not(why) => return Some(why.clone()),
        SourceState::InForce(_) if now.declares == 0 => {
            return Some(format!(
                "empty_source: source {source} declares nothing, and {} objects were made for it: that is seldom meant; to delete them all use `trimtab source remove {source} --prune`",
                now.inventory.len(),
                source = now.inventory.source(),
            ));
        }
        _ => {}
    }
    (!now.terms.prune).then(|| format!("source {} says prune: false", now.inventory.source()))
}

/// Of which object it is not known whether it is there: then nothing of the source is pruned.
fn unread(now: &Situation<'_>, candidates: &[ObjectKey]) -> Option<String> {
    candidates.iter().find_map(|key| match now.seen.get(key) {
        Some(Seen::Unknown(why)) => {
            Some(format!("prune_incomplete: whether {key} is there cannot be told: {why}"))
        }
        None => Some(format!("{key} has not been read yet")),
        Some(_) => None,
    })
}

/// The live object of an entry, if it is for us to delete; else what becomes of the entry.
fn judge<'a>(now: &Situation<'a>, key: &ObjectKey, entry: &Entry) -> Result<&'a LiveObject, Step> {
    let live = match now.seen.get(key) {
        Some(Seen::Live(live)) => live,
        Some(Seen::Absent) => return Err(Step::Forget("it is gone".into())),
        Some(Seen::Unserved) => {
            return Err(Step::Keep("the API server does not serve its kind any more".into()));
        }
        Some(Seen::Unknown(why)) => return Err(Step::Keep(why.clone())),
        None => return Err(Step::Keep("it has not been read yet".into())),
    };
    let tree = trimtab_json::parse(&live.json)
        .map_err(|error| Step::Keep(format!("it does not decode: {error}")))?;
    match &entry.uid {
        Some(uid) if *uid != live.uid => {
            return Err(Step::Forget(format!(
                "another object has its name now (UID {}, and ours was {uid}): that one is not ours",
                live.uid
            )));
        }
        None if !is_ours(&tree) => {
            return Err(Step::Forget("Trimtab was about to make it and never did".into()));
        }
        _ => {}
    }
    if live.deleting {
        return Err(Step::Going(holds(key, &tree)));
    }
    if entry.keep {
        return Err(Step::Keep(format!("its last manifest has {KEEP}: {KEEP_VALUE}")));
    }
    for (name, value) in [(KEEP, KEEP_VALUE), KEEP_OF_CHARTS] {
        if tree.str_at(&["metadata", "annotations", name]) == Some(value) {
            return Err(Step::Keep(format!("it is annotated {name}: {value}")));
        }
    }
    if let Some(owner) = controller(&tree) {
        return Err(Step::Keep(format!("{owner} is its controller, and the one to delete it")));
    }
    match gate::prune::denied(key, live, now.terms) {
        Some(refusal) => Err(Step::Keep(refusal.to_string())),
        None => Ok(live),
    }
}

/// Whether we ever applied this live object, by its managedFields.
pub fn is_made_by_us(live: &[u8]) -> bool {
    trimtab_json::parse(live).is_ok_and(|tree| is_ours(&tree))
}

/// Whether nobody has applied or set any field of this live object: so it is after an apply that
/// states nothing but a name.
pub fn is_nobodys(live: &[u8]) -> bool {
    trimtab_json::parse(live).is_ok_and(|tree| managed_fields::entries(&tree).next().is_none())
}

fn is_ours(live: &Value<'_>) -> bool {
    managed_fields::entries(live).any(|entry| {
        entry.manager == FIELD_MANAGER
            && entry.operation == Operation::Apply
            && entry.subresource.is_none()
    })
}

/// What a deletion that goes on waits for.
fn holds(key: &ObjectKey, live: &Value<'_>) -> String {
    let names = |path: &[&str]| -> Vec<String> {
        let list = live.at(path).and_then(Value::as_array).unwrap_or_default();
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut finalizers = names(&["metadata", "finalizers"]);
    finalizers.extend(names(&["spec", "finalizers"]));
    let since = live.str_at(&["metadata", "deletionTimestamp"]).unwrap_or_default();
    if finalizers.is_empty() {
        return format!("{key} is being deleted since {since}");
    }
    format!(
        "{key} is being deleted since {since} and waits for its finalizers {}, which whoever put them there has to take off",
        finalizers.join(", ")
    )
}

/// The controller that owns the object.
fn controller(live: &Value<'_>) -> Option<String> {
    let owners = live.at(&["metadata", "ownerReferences"])?.as_array()?;
    let owner =
        owners.iter().find(|it| it.get("controller").and_then(Value::as_bool) == Some(true))?;
    let text = |name| owner.str_at(&[name]).unwrap_or_default();
    Some(format!("{} {}", text("kind"), text("name")))
}

/// Whether a deletion takes with it what is no dependent by owner: it has to be looked at.
pub fn takes_others(kind: &GroupKind) -> bool {
    matches!(
        (&*kind.group, &*kind.kind),
        ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition")
    )
}

/// Whether a manifest keeps its object from being pruned: remembered with its entry, so that it
/// holds when somebody takes the annotation off the live object.
pub fn keeps(desired: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(desired) else { return false };
    if !text.contains(KEEP) && !text.contains(KEEP_OF_CHARTS.0) {
        return false;
    }
    trimtab_json::parse(desired).is_ok_and(|tree| {
        [(KEEP, KEEP_VALUE), KEEP_OF_CHARTS]
            .iter()
            .any(|(name, value)| tree.str_at(&["metadata", "annotations", name]) == Some(value))
    })
}

#[cfg(test)]
mod tests;

//! In which order what is to be deleted goes: dependents first, namespaces and definitions last.
//!
//! Deletions are asked for kind by kind, in the reverse of the order in which kinds are applied, and
//! are not waited for, with three exceptions: what an annotation of a live object names waits until
//! that object is gone; a namespace waits for everything of ours in it, and a definition for
//! everything of ours of its kind.

use super::{Contents, Doomed, Seen, Situation, Step, limits, takes_others};
use crate::identity::{GroupKind, ObjectKey};
use crate::inventory::Approval;
use crate::order::needs;
use crate::placing::rank;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The steps of what is to be deleted, in order.
pub(super) fn steps(now: &Situation<'_>, doomed: &[Doomed<'_>]) -> Vec<(ObjectKey, Step)> {
    let mut sorted: Vec<&Doomed<'_>> = doomed.iter().collect();
    sorted.sort_by(|a, b| last(a.key).cmp(&last(b.key)).then_with(|| a.key.cmp(b.key)));
    let before = before(now);
    sorted.into_iter().map(|it| (it.key.clone(), step(now, it, &before))).collect()
}

/// Sorts what goes first to the front.
fn last(key: &ObjectKey) -> u8 {
    match rank(&key.group_kind) {
        // A namespace goes before a definition: objects of its kind may be in it.
        0 => u8::MAX - 1,
        1 => u8::MAX,
        rank => u8::MAX - 2 - rank,
    }
}

fn step(now: &Situation<'_>, it: &Doomed<'_>, before: &Before) -> Step {
    if let Some(first) = before.of(it.key) {
        return Step::Wait(format!("{first} needs it and is still there"));
    }
    if !takes_others(&it.key.group_kind) {
        return Step::Delete;
    }
    if let Some(first) = remains_within(now, it) {
        return Step::Wait(format!("{first} goes first"));
    }
    if it.entry.approved == Approval::WithContents {
        return Step::Delete;
    }
    let reason = match now.contents.get(it.key) {
        None => return Step::Look,
        Some(Contents::Nothing) => return Step::Delete,
        Some(Contents::Some(what)) => match &*it.key.group_kind.kind {
            "Namespace" => {
                format!("namespace_not_empty: {} holds what is not to be deleted: {what}", it.key)
            }
            _ => format!(
                "definition_in_use: {} has objects that are not to be deleted: {what}",
                it.key
            ),
        },
        Some(Contents::Unknown(why)) => {
            format!("what {} would take with it cannot be told: {why}", it.key)
        }
    };
    Step::Held(Arc::new(limits::of(now, reason, &[it], Approval::WithContents)))
}

/// Something of ours that goes with the namespace or definition, and is still there. What is kept
/// and what others declare now is not waited for: it is what others have in it.
fn remains_within(now: &Situation<'_>, it: &Doomed<'_>) -> Option<ObjectKey> {
    let defined = defined(it);
    let within = |key: &ObjectKey| match &defined {
        Some(kind) => key.group_kind == *kind,
        None => key.namespace.as_ref() == Some(&it.key.name),
    };
    // Looked at is what the source does not declare; of that, what goes or is to go.
    let goes = |key: &ObjectKey, entry| match super::judge(now, key, entry) {
        Ok(_) => true,
        Err(step) => matches!(step, Step::Going(_)),
    };
    let ours = now.inventory.iter().filter(|(key, _)| within(key) && now.seen.contains_key(*key));
    ours.into_iter().find(|(key, entry)| goes(key, entry)).map(|(key, _)| key.clone())
}

/// The kind that a definition defines.
fn defined(it: &Doomed<'_>) -> Option<GroupKind> {
    if &*it.key.group_kind.kind != "CustomResourceDefinition" {
        return None;
    }
    let tree = trimtab_json::parse(&it.live.json).ok()?;
    let kind = tree.str_at(&["spec", "names", "kind"])?;
    Some(GroupKind::new(tree.str_at(&["spec", "group"])?, kind))
}

/// Who has to be gone before whom, by the annotations of live objects.
struct Before(BTreeMap<ObjectKey, BTreeSet<ObjectKey>>);

fn before(now: &Situation<'_>) -> Before {
    let mut before: BTreeMap<ObjectKey, BTreeSet<ObjectKey>> = BTreeMap::new();
    for (key, seen) in now.seen {
        let Seen::Live(live) = seen else { continue };
        for on in needs::named_by(&live.json, key, now.seen) {
            before.entry(on).or_default().insert(key.clone());
        }
    }
    Before(before)
}

impl Before {
    /// One that needs this object and is still there. In a circle nobody goes before another.
    fn of(&self, key: &ObjectKey) -> Option<&ObjectKey> {
        let needing = self.0.get(key)?;
        needing.iter().find(|first| *first != key && !self.leads(key, first))
    }

    /// Whether `to` has to wait for `from`, over any number of others.
    fn leads(&self, from: &ObjectKey, to: &ObjectKey) -> bool {
        let mut seen = BTreeSet::new();
        let mut front = vec![to];
        while let Some(here) = front.pop() {
            for next in self.0.get(here).into_iter().flatten() {
                if next == from {
                    return true;
                }
                if seen.insert(next) {
                    front.push(next);
                }
            }
        }
        false
    }
}

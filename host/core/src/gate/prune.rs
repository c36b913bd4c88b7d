//! The one deletion that no plugin asks for: of an object that was made for a source, and that the
//! source does not declare any more.
//!
//! It is judged by the source's terms and not by a grant, since the plugin may be gone: what it was
//! allowed to make, its source may be allowed to take back. Kinds that hand out power take a second
//! word here as everywhere, in the source's own `deletion.allow`. That the inventory has the object,
//! under this UID, is the other half; labels and annotations that say that it is ours count nothing.

use super::{Change, Draft, Effect, Planned, Target};
use crate::decision::ActionKind;
use crate::denial::{self, Accounts, Denial};
use crate::grant::{Mode, Refusal, is_canonical};
use crate::identity::{Gvk, ObjectKey};
use crate::inventory::Entry;
use crate::object::LiveObject;
use crate::terms::SourceTerms;

/// What the deletion of an object lies outside of, if of anything.
pub(crate) fn denied(key: &ObjectKey, live: &LiveObject, terms: &SourceTerms) -> Option<Refusal> {
    if let Err(refusal) = terms.reaches(key) {
        return Some(refusal);
    }
    if !is_canonical(key) {
        return Some(Refusal {
            reason: "NameNotCanonical",
            message: format!("{:?} is not a name of RFC 1123", key.name),
        });
    }
    let tree = match trimtab_json::parse(&live.json) {
        Ok(tree) => tree,
        Err(error) => {
            let message = format!("{key} does not decode: {error}");
            return Some(Refusal { reason: "EffectUnknown", message });
        }
    };
    let lifted = |denial: &Denial| terms.deletion.allow.contains(denial);
    let denied = denial::judge(key, Some(&tree), None, &Accounts::new());
    denied.iter().find(|it| !lifted(&it.denial)).map(|it| it.refusal_to_prune(key))
}

/// The draft of a change that deletes exactly this object.
///
/// # Errors
/// The refusal that says what it lies outside of.
pub fn prune(
    terms: &SourceTerms,
    key: &ObjectKey,
    gvk: &Gvk,
    entry: &Entry,
    live: &LiveObject,
) -> Result<Draft, Refusal> {
    let refuse = |reason, message: String| Err(Refusal { reason, message });
    if !terms.prune {
        return refuse("PruneOff", format!("{key}: its source says prune: false"));
    }
    if terms.mode != Mode::Enforce {
        return refuse("Observing", format!("{key}: its source is in mode observe"));
    }
    if entry.uid.as_ref().is_some_and(|uid| *uid != live.uid) {
        return refuse("NotOurs", format!("{key} has another UID than what was made"));
    }
    if let Some(refusal) = denied(key, live, terms) {
        return Err(refusal);
    }
    let target = Target { key: key.clone(), gvk: gvk.clone(), acts_as: terms.acts_as.clone() };
    let effect = Effect::Delete {
        uid: live.uid.clone(),
        resource_version: live.resource_version.clone(),
        orphan: false,
    };
    let action = ActionKind::Delete;
    let planned = Planned { action, paths: Vec::new(), creates: false, takes: Vec::new() };
    Ok(Draft(Change::of(target, effect, planned)))
}

//! The gate: the only maker of a [`Change`], and of none that was not reviewed.
//!
//! Takes a decision and answers what may be written: effective power (manifest ∩ grant ∩ hard
//! denials) on the canonical identity, within what the object's source is held to (`terms.rs`),
//! action by action, and for each effect on what it would change (`judge.rs`). Writes nothing
//! itself. What it lets through is a [`Draft`]; [`change`] makes a `Change` of one that the policies
//! have reviewed, and of nothing else. In observe mode, the grant's or the source's, it permits
//! nothing, so that nothing that observes can write by any path.

mod judge;
mod ledger;
pub(crate) mod prune;

pub use self::ledger::{
    CHECKPOINT_DATA, CHECKPOINT_LABEL, discard, event, event_again, home, keep, vouch,
};
pub use self::prune::prune;

use crate::decision::{Action, ActionKind, Decision, Finding};
use crate::denial::Accounts;
use crate::effects::{Step, apply_body, effects};
use crate::grant::{Mode, Power, Refusal};
use crate::identity::{Gvk, ObjectKey};
use crate::ignore;
use crate::review::Reviewed;
use crate::snapshot::Snapshot;
use crate::taint::Taint;
use crate::terms::Account;
use crate::{bookkeeping, exclusive, handover, ownership, recreate, succession};
use std::sync::Arc;
use trimtab_json::Value;

/// One thing that the host may write. Fields are private: only this module makes one.
#[derive(Clone, Debug)]
pub struct Change {
    target: Target,
    effect: Effect,
    planned: Planned,
}

impl Change {
    /// Of the parts; for this module's own.
    fn of(target: Target, effect: Effect, planned: Planned) -> Self {
        Change { target, effect, planned }
    }

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

/// What the gate lets through, before the policies have reviewed it. It cannot be written.
#[derive(Clone, Debug)]
pub struct Draft(Change);

impl Draft {
    /// The object to write.
    pub fn target(&self) -> &Target {
        &self.0.target
    }

    /// What would be written.
    pub fn effect(&self) -> &Effect {
        &self.0.effect
    }

    /// The same for people and records, without content.
    pub fn planned(&self) -> &Planned {
        &self.0.planned
    }
}

/// The change of a draft that no policy stopped.
pub fn change(reviewed: Reviewed) -> Change {
    reviewed.into_draft().0
}

/// A rehearsal of applying desired. Never written.
#[derive(Clone, Debug)]
pub struct Probe {
    target: Target,
    body: Arc<[u8]>,
    force: bool,
    patches: bool,
}

impl Probe {
    /// The object that is rehearsed.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// JSON text of the apply configuration, or of the JSON Patch.
    pub fn body(&self) -> &Arc<[u8]> {
        &self.body
    }

    /// Whether it is a JSON Patch to what the writes will leave: no apply alone leads there.
    pub fn patches(&self) -> bool {
        self.patches
    }

    /// Whether conflicts with other managers are overridden.
    pub fn force(&self) -> bool {
        self.force
    }
}

/// Which object a request is for, and as whom it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Identity.
    pub key: ObjectKey,
    /// The version to speak.
    pub gvk: Gvk,
    /// Whom writes and dry runs are made as; `None`: the host itself.
    pub acts_as: Option<Arc<Account>>,
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
    /// Make an object that is not there; refused where it is.
    Create {
        /// The object.
        body: Arc<[u8]>,
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
        /// Whether its dependents stay; otherwise they go in the background.
        orphan: bool,
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
    /// What a deletion takes with it, as far as can be seen.
    pub takes: Vec<String>,
}

impl Planned {
    /// Whether it deletes the live object, to be made anew or not.
    pub fn deletes(&self) -> bool {
        matches!(self.action, ActionKind::Recreate | ActionKind::Delete) && !self.creates
    }

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
    /// The same with what would be written, for review: over the object as it was judged.
    pub drafts: Vec<Draft>,
    /// What was decided and is not inside the power.
    pub refusals: Vec<Refusal>,
    /// What a person should see of it.
    pub findings: Vec<Finding>,
    /// Why the plugin leaves the object, if it does.
    pub left: Option<String>,
}

/// One action that may be done. Each of its drafts is made of the object as it is when its turn
/// comes: a change before it may have moved it. Only this module makes one.
#[derive(Clone, Debug)]
pub struct Permit {
    step: Step,
    force: bool,
    /// The apply configuration of all of desired, as it was rehearsed.
    whole: Option<Arc<[u8]>>,
}

impl Permit {
    /// The drafts of its changes, over the object as it is now; `seen` is what was judged.
    ///
    /// # Errors
    /// A decision that does not fit the object: the plugin's fault, as text.
    pub fn drafts(&self, seen: &Snapshot, now: &Snapshot) -> Result<Vec<Draft>, String> {
        Ok(self.changes(seen, now)?.into_iter().map(Draft).collect())
    }

    fn changes(&self, seen: &Snapshot, now: &Snapshot) -> Result<Vec<Change>, String> {
        let change = |(effect, planned)| Change { target: target(seen), effect, planned };
        let effects = effects(&self.step, self.force, self.whole.as_ref(), seen, now)?;
        Ok(effects.into_iter().map(change).collect())
    }
}

/// What the gate knows besides power, snapshot and decision.
#[derive(Clone, Debug, Default)]
pub struct Circumstances<'a> {
    /// The live object as a dry run of applying all of desired left it.
    pub rehearsed: Option<&'a Value<'a>>,
    /// What was applied in that dry run.
    pub(crate) applied: Option<Arc<[u8]>>,
    /// Service accounts that the source declares.
    pub accounts: Arc<Accounts>,
    /// Secrets that the plugin saw.
    pub(crate) taint: Taint,
}

impl<'a> Circumstances<'a> {
    /// For a plugin that saw no Secret.
    pub fn untainted(rehearsal: Option<(&Probe, &'a Value<'a>)>, accounts: Arc<Accounts>) -> Self {
        let (probe, rehearsed) = rehearsal.unzip();
        let applied = probe.filter(|probe| !probe.patches).map(|probe| probe.body.clone());
        Self { rehearsed, applied, accounts, taint: Taint::default() }
    }
}

/// Judges a decision. See the module's words.
///
/// # Errors
/// A decision that cannot be read at all (a path that does not exist in desired) is the
/// plugin's fault and comes back as text.
pub fn gate(
    power: &Power,
    snapshot: &Snapshot,
    decision: &Decision,
    known: &Circumstances<'_>,
) -> Result<Gated, String> {
    let mode = mode(power, snapshot);
    let mut gated = Gated::default();
    let mut budget = judge::Budget::of(power);
    let force = may_force(power, snapshot);
    let predecessors = succession::predecessors(power, snapshot);
    let view = match predecessors.is_empty() {
        true => None,
        false => succession::view(power, snapshot),
    };
    // Where we succeed a client-side tool, its fields are released as ours.
    let view = view.as_ref().unwrap_or(snapshot);
    for action in in_order(&decision.actions) {
        let Some(kind) = action.kind() else {
            if let Action::Leave(reason) = action {
                gated.left.get_or_insert_with(|| reason.clone());
            }
            continue;
        };
        let allowed = allowed(power, snapshot, kind);
        let allowed = match action {
            Action::Recreate => allowed.and_then(|()| recreate::allowed(snapshot)),
            _ => allowed,
        };
        if let Err(refusal) = allowed.and_then(|()| budget.take(kind)) {
            gated.refusals.push(refusal);
            continue;
        }
        let made = judge::made(action, snapshot, &known.taint);
        let action = match &made {
            Ok(made) => made.as_ref().unwrap_or(action),
            Err(refusals) => {
                gated.findings.extend(refusals.iter().map(bookkeeping::finding));
                gated.refusals.extend(refusals.iter().cloned());
                continue;
            }
        };
        let (action, refused) = ignore::permitted(action, snapshot)?;
        gated.refusals.extend(refused);
        let Some(action) = action else { continue };
        let succession = succession(&predecessors, &action, &gated);
        let exact = known.rehearsed.filter(|_| {
            succession.is_none() && (force || matches!(action, Action::ApplyDesired { .. }))
        });
        let permit = Permit { step: Step::Action(action), force, whole: known.applied.clone() };
        let changes = permit.changes(snapshot, snapshot)?;
        let hands_over = handover::is_needed(view, &changes);
        let over = judge::Over { view, exact, hands_over };
        let judged = judge::changes(power, snapshot, &over, &changes, &known.accounts);
        gated.findings.extend(judged.findings);
        if !judged.refusals.is_empty() {
            let oversteps =
                judged.refusals.iter().filter(|it| it.reason == bookkeeping::HOST_OWNED);
            gated.findings.extend(oversteps.map(bookkeeping::finding));
            gated.refusals.extend(judged.refusals);
            continue;
        }
        let before = [
            succession,
            hands_over.then_some(Step::HandOver),
            match force {
                true => taken_out(snapshot, &changes, known.applied.as_ref())?,
                false => None,
            },
        ];
        let mut due = Vec::with_capacity(1);
        for step in before.into_iter().flatten() {
            let permit = Permit { step, force, whole: None };
            let changes = permit.changes(snapshot, snapshot)?;
            due.push((permit, changes));
        }
        due.push((permit, changes));
        for (permit, changes) in due {
            gated.planned.extend(changes.iter().map(|change| change.planned.clone()));
            gated.drafts.extend(changes.into_iter().map(Draft));
            if mode == Mode::Enforce {
                gated.permits.push(permit);
            }
        }
    }
    Ok(gated)
}

/// Carrying field sets over from a version in which the server cannot read the object: where we may
/// write the object at all, and may override others on it. Nothing is permitted in observe mode.
///
/// # Errors
/// Why not, and what to do.
pub fn carry_over(power: &Power, snapshot: &Snapshot, version: &str) -> Result<Gated, String> {
    let allowed = allowed(power, snapshot, ActionKind::ApplyDesired);
    allowed.map_err(|refusal| refusal.to_string())?;
    if !may_force(power, snapshot) {
        return Err("Trimtab never applied the object; a grant with `adopt` lets it".into());
    }
    let permit = Permit { step: Step::CarryOver(version.to_owned()), force: true, whole: None };
    let changes = permit.changes(snapshot, snapshot)?;
    let planned = changes.iter().map(|change| change.planned.clone()).collect();
    let drafts = changes.into_iter().map(Draft).collect();
    let enforces = mode(power, snapshot) == Mode::Enforce;
    let permits = if enforces { vec![permit] } else { vec![] };
    Ok(Gated { permits, planned, drafts, ..Gated::default() })
}

/// Whether an object that is as declared is to be taken over: it was never applied by us, the grant
/// allows to adopt, and desired states something that can be owned.
pub(crate) fn may_take_over(power: &Power, snapshot: &Snapshot) -> bool {
    mode(power, snapshot) == Mode::Enforce
        && [ActionKind::Adopt, ActionKind::ApplyDesired]
            .iter()
            .all(|kind| allowed(power, snapshot, *kind).is_ok())
        && snapshot.live_object().is_some()
        && !ownership::is_ours(snapshot)
        && ownership::states_a_field(snapshot)
}

/// Whether an action is within the source's reach and the power. Without a grant the manifest alone says what the plugin
/// *would* do.
fn allowed(power: &Power, snapshot: &Snapshot, kind: ActionKind) -> Result<(), Refusal> {
    snapshot.desired.terms.reaches(&snapshot.key)?;
    match (&power.grant, power.manifest.actions.contains(&kind)) {
        (None, true) => Ok(()),
        _ => power.allows(&snapshot.key, kind).map(drop),
    }
}

/// What comes before the first apply over an object that a client-side tool applied.
fn succession(predecessors: &[&str], action: &Action, gated: &Gated) -> Option<Step> {
    let applies =
        matches!(action, Action::ApplyDesired { .. } | Action::ApplyContent(_) | Action::Adopt);
    let first = gated.planned.iter().all(|planned| planned.action == ActionKind::RemoveFields);
    (applies && first && !predecessors.is_empty())
        .then(|| Step::Succeed(predecessors.iter().map(|name| (*name).to_owned()).collect()))
}

/// What comes before applies over something that they rule out and would leave. An apply that was
/// rehearsed as it is leaves nothing of that kind.
fn taken_out(
    snapshot: &Snapshot,
    changes: &[Change],
    rehearsed: Option<&Arc<[u8]>>,
) -> Result<Option<Step>, String> {
    let mut found = Vec::new();
    for change in changes {
        if let Effect::Apply { body, force: true } = &change.effect
            && !change.planned.creates
            && rehearsed.is_none_or(|it| !Arc::ptr_eq(it, body))
        {
            found.extend(exclusive::places(snapshot, body)?);
        }
    }
    Ok((!found.is_empty()).then_some(Step::TakeOut(found)))
}

/// The rehearsal of applying desired over what was seen.
///
/// # Errors
/// Desired bytes that are no JSON object; placing makes sure that they are.
pub fn probe(power: &Power, snapshot: &Snapshot) -> Result<Probe, String> {
    let (body, force) =
        (apply_body(snapshot, &snapshot.desired.json, &[])?, may_force(power, snapshot));
    let patches = force && !exclusive::places(snapshot, &body)?.is_empty();
    let body = match patches {
        true => {
            let view = succession::view(power, snapshot);
            exclusive::rehearsal(view.as_ref().unwrap_or(snapshot), body)?
        }
        false => body,
    };
    Ok(Probe { target: target(snapshot), body, force, patches })
}

/// Whether conflicts with other managers are overridden: on an object that we applied before, or
/// where the grant allows to adopt.
fn may_force(power: &Power, snapshot: &Snapshot) -> bool {
    // What needs no reading is asked first.
    snapshot.live_object().is_some()
        && (power.allows(&snapshot.key, ActionKind::Adopt).is_ok() || ownership::is_ours(snapshot))
}

/// Observe or enforce: what both the grant and the source say.
pub(crate) fn mode(power: &Power, snapshot: &Snapshot) -> Mode {
    match snapshot.desired.terms.mode {
        Mode::Observe => Mode::Observe,
        Mode::Enforce => power.mode_for(&snapshot.key),
    }
}

pub(crate) fn target(snapshot: &Snapshot) -> Target {
    Target {
        key: snapshot.key.clone(),
        gvk: snapshot.gvk.clone(),
        acts_as: snapshot.desired.terms.acts_as.clone(),
    }
}

/// Applies before removals: what an apply releases need not be removed.
fn in_order(actions: &[Action]) -> impl Iterator<Item = &Action> {
    let removal = |action: &&Action| matches!(action, Action::RemoveFields(_));
    actions.iter().filter(move |action| !removal(action)).chain(actions.iter().filter(removal))
}

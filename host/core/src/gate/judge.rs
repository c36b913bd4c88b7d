//! What the gate judges by what a change would do: content, budgets, denials and fields.

use super::{Change, Effect};
use crate::after::{self, after};
use crate::bookkeeping::{self, Use};
use crate::decision::{Action, ActionKind, Finding, Severity};
use crate::denial::{self, Accounts};
use crate::grant::{Grant, Power, Refusal};
use crate::snapshot::Snapshot;
use crate::taint::Taint;
use crate::{fields, handover};
use trimtab_json::Value;

/// The refusal's reason where it cannot be told what a change would do.
const UNTOLD: &str = "EffectUnknown";
/// The refusal's reason where a pass would do too much.
const OVER: &str = "PassBudgetSpent";

/// What is left of the budgets of one pass.
pub(super) struct Budget<'p> {
    grant: Option<&'p Grant>,
    actions: u32,
    deletes: u32,
}

impl<'p> Budget<'p> {
    pub(super) fn of(power: &'p Power) -> Self {
        let grant = power.grant.as_ref();
        let budgets = grant.map(|grant| grant.terms.budgets).unwrap_or_default();
        Self { grant, actions: budgets.actions_per_pass, deletes: budgets.deletes_per_pass }
    }

    pub(super) fn take(&mut self, kind: ActionKind) -> Result<(), Refusal> {
        let origin = self.grant.map_or("(none)", |grant| grant.origin.as_str());
        let spent = |what: &str| Refusal {
            reason: OVER,
            message: format!("{kind} is beyond budgets.{what} of the grant in {origin}"),
        };
        let deletes = matches!(kind, ActionKind::Delete | ActionKind::Recreate);
        if self.actions == 0 {
            return Err(spent("actionsPerPass"));
        }
        if deletes && self.deletes == 0 {
            return Err(spent("deletesPerPass"));
        }
        self.actions -= 1;
        self.deletes -= u32::from(deletes);
        Ok(())
    }
}

/// Content that the plugin made, as the host lets it stand; `None` where the action has none.
pub(super) fn made(
    action: &Action,
    snapshot: &Snapshot,
    taint: &Taint,
) -> Result<Option<Action>, Vec<Refusal>> {
    let (content, usage) = match action {
        Action::ApplyContent(content) => (content, Use::Content),
        Action::PatchStatus(content) => (content, Use::Status),
        _ => return Ok(None),
    };
    if let Some(refusal) = taint.in_content(content, snapshot) {
        return Err(vec![refusal]);
    }
    let content = bookkeeping::content(content, usage, snapshot)?;
    Ok(Some(match usage {
        Use::Content => Action::ApplyContent(content),
        Use::Status => Action::PatchStatus(content),
    }))
}

/// What is wrong with changes, and what nobody could judge of them.
#[derive(Default)]
pub(super) struct Judged {
    pub(super) refusals: Vec<Refusal>,
    pub(super) findings: Vec<Finding>,
}

/// What changes are judged over.
#[derive(Clone, Copy)]
pub(super) struct Over<'v> {
    /// The object before, as it will be judged, succession included.
    pub(super) view: &'v Snapshot,
    /// The object as applying all of desired would leave it.
    pub(super) exact: Option<&'v Value<'v>>,
    /// Whether replicas are handed over before, and stay as they are.
    pub(super) hands_over: bool,
}

/// Holds changes against hard denials and the grant's fields.
pub(super) fn changes(
    power: &Power,
    snapshot: &Snapshot,
    over: &Over<'_>,
    changes: &[Change],
    accounts: &Accounts,
) -> Judged {
    let mut judged = Judged::default();
    for change in changes {
        if let Err(why) = one(power, snapshot, over, change, accounts, &mut judged) {
            judged.refusals.push(Refusal {
                reason: UNTOLD,
                message: format!(
                    "it cannot be told what {} would change: {why}",
                    change.planned.action
                ),
            });
        }
    }
    judged.refusals.dedup();
    judged
}

fn one(
    power: &Power,
    snapshot: &Snapshot,
    over: &Over<'_>,
    change: &Change,
    accounts: &Accounts,
    judged: &mut Judged,
) -> Result<(), String> {
    let Over { view, exact, hands_over } = *over;
    let removes = change.planned.action == ActionKind::RemoveFields;
    let terms = power.grant.as_ref().map(|grant| &grant.terms);
    let is_open = terms.is_none_or(|terms| terms.fields.is_empty());
    // The usual case: nothing that depends on what the object becomes.
    if is_open && !removes && !denial::concerns(&snapshot.key) {
        return Ok(());
    }
    let (text, made);
    let tree = match (&change.effect, exact) {
        (Effect::Apply { .. }, Some(rehearsed)) if change.planned.is_plain_apply() => {
            Some(rehearsed)
        }
        (Effect::Apply { body, .. }, _) if change.planned.creates => {
            made = after::read(body)?;
            Some(&made)
        }
        (effect, _) => {
            text = after(effect, view)?;
            made = text.as_deref().map(after::read).transpose()?.unwrap_or_default();
            text.is_some().then_some(&made)
        }
    };
    let before = || snapshot.live_object().map(|live| after::read(&live.json)).transpose();
    // Of most kinds what was there can only excuse, and mostly there is nothing to excuse.
    let needs_before = removes || !is_open || denial::depends_on_before(&snapshot.key);
    let applies = matches!(change.effect, Effect::Apply { .. }) && !change.planned.creates;
    let hands_over = hands_over && applies && tree.is_some();
    let mut live = if needs_before || hands_over { before()? } else { None };
    let kept;
    let tree = match (tree, &live) {
        (Some(left), Some(live)) if hands_over => {
            kept = handover::keep(left, live);
            Some(&kept)
        }
        _ => tree,
    };
    let status_only = matches!(change.effect, Effect::ApplyStatus { .. });
    if let (true, Some(before), Some(tree)) = (removes, &live, tree) {
        let desired = after::read(&snapshot.desired.json)?;
        judged.refusals.extend(bookkeeping::removed(before, tree, &desired));
    }
    if let (Some(tree), false) = (tree, status_only)
        && let Some(path) = denial::unjudged_template(&snapshot.key, tree)
    {
        judged.findings.push(unjudged(path));
    }
    let Some(grant) = &power.grant else { return Ok(()) };
    let judge = |live: Option<&Value<'_>>| denial::judge(&snapshot.key, live, tree, accounts);
    let mut denied = judge(live.as_ref());
    if !denied.is_empty() && live.is_none() {
        live = before()?;
        denied = judge(live.as_ref());
    }
    // What is made anew is made, however much of it was there before.
    if change.planned.creates && live.is_some() {
        denied.extend(judge(None));
    }
    denied.retain(|denied| !grant.terms.allow.contains(&denied.denial));
    judged.refusals.extend(denied.iter().map(|it| it.refusal(&snapshot.key, &grant.origin)));
    let outside = grant.terms.fields.outside(live.as_ref(), tree, &snapshot.facts);
    judged.refusals.extend(outside.map(|what| Refusal {
        reason: fields::REFUSED,
        message: format!(
            "{} by {}: {what} (grant in {})",
            snapshot.key, change.planned.action, grant.origin
        ),
    }));
    Ok(())
}

fn unjudged(path: String) -> Finding {
    Finding {
        name: "pod-template-not-judged".into(),
        severity: Severity::Info,
        message: format!(
            "{path} looks like a pod template in a kind that is not Kubernetes' own: whether its pods are privileged is not judged here"
        ),
        path: Some(path),
    }
}

//! What a pass does about whose object it is, where that is all that is to be done: it takes over
//! what is as declared and was only ever written by others, and mends managedFields that lock an
//! object. Both are writes of the host's own accord: no plugin is asked, the gate and the budget
//! are.

use super::{Real, World};
use crate::decision::{Action, Decision, Finding, Severity};
use crate::failed::not_confirmed;
use crate::gate;
use crate::grant::Power;
use crate::ownership;
use crate::ports::{Clock, Cluster, Journal, Judge};
use crate::reason::STALE_MANAGED_FIELDS;
use crate::record::{Outcome, Record};
use crate::snapshot::Snapshot;

impl<J: Judge, C: Cluster, R: Journal, T: Clock> World<'_, J, C, R, T> {
    /// The object is in sync. Where the grant allows to adopt and we never applied it, one apply
    /// makes what is declared our own: from then on it is released when it is declared no longer.
    /// What stands in the way of that is told, and leaves the object in sync.
    pub(super) async fn take_over(
        &self,
        power: &Power,
        snapshot: &Snapshot,
        shown: &Snapshot,
        record: &mut Record,
    ) -> Result<Outcome, Outcome> {
        let taken_back = snapshot.standoff.as_ref().is_some_and(|it| it.concerns(record));
        if !gate::may_take_over(power, snapshot) || taken_back {
            return Ok(Outcome::InSync);
        }
        let probe = gate::probe(power, snapshot).map_err(Outcome::Unknown)?;
        let start = self.clock.elapsed();
        let rehearsed = self.cluster.rehearse(&probe).await;
        record.timings.confirm = self.clock.elapsed() - start;
        let rehearsed = match rehearsed {
            Ok(rehearsed) => rehearsed,
            Err(error) => {
                return match not_confirmed(error, &[]) {
                    again @ (Outcome::Stale | Outcome::Failed { .. }) => Err(again),
                    other => Ok(in_sync(record, &other.message())),
                };
            }
        };
        let decision = Decision { actions: vec![Action::Adopt], ..Decision::default() };
        let real = Real { differences: vec![], refused: None, rehearsed: Some(rehearsed) };
        match self.gate(power, snapshot, &decision, &real, record).await {
            Ok(passed) => self.write(snapshot, shown, &[], passed, record).await,
            Err(Outcome::Refused) => {
                let refusals = std::mem::take(&mut record.refusals);
                let why: Vec<String> = refusals.iter().map(ToString::to_string).collect();
                Ok(in_sync(record, &why.join("; ")))
            }
            Err(other) => Err(other),
        }
    }

    /// Nothing can be applied, not even by others, before managedFields name a version in which
    /// the server can read the object: rewritten where we may, and told otherwise.
    pub(super) async fn carry_over(
        &self,
        power: &Power,
        snapshot: &Snapshot,
        message: &str,
        version: Option<String>,
        record: &mut Record,
    ) -> Outcome {
        let text = |what: &str| format!("{STALE_MANAGED_FIELDS}: {message}; managedFields {what}");
        let Some(version) = version.or_else(|| ownership::other_version(snapshot)) else {
            return Outcome::Rejected(text("name no other version than the one that is declared"));
        };
        let text = text(&format!(
            "of {} name {version}, in which the API server cannot read the object",
            ownership::managers_in(snapshot, &version).join(", ")
        ));
        let carried = match gate::carry_over(power, snapshot, &version) {
            Ok(carried) => carried,
            Err(why) => {
                return Outcome::Rejected(format!("{text}, and are left as they are: {why}"));
            }
        };
        record.planned.extend(carried.planned);
        let reviewed = match self.review(snapshot, &[], carried.drafts, record).await {
            Ok(reviewed) => reviewed,
            Err(outcome) => return outcome,
        };
        if carried.permits.is_empty() {
            record.findings.push(warning("stale-managed-fields", text));
            return Outcome::Observed;
        }
        if let Err(over) = self.within_budget(&record.planned) {
            return over;
        }
        // One permit, whose changes these are.
        for change in reviewed.into_iter().map(gate::change) {
            match self.write_one(snapshot, &change, record).await {
                Ok(written) => record.after = Some(written),
                Err(outcome) => return outcome,
            }
        }
        Outcome::Waiting(format!(
            "{text}; they were carried over to {}",
            snapshot.gvk.api_version()
        ))
    }
}

/// In sync, and not ours yet.
fn in_sync(record: &mut Record, why: &str) -> Outcome {
    let text = format!("it is as declared and stays with whoever applied it: {why}");
    record.findings.push(warning("not-adopted", text));
    Outcome::InSync
}

fn warning(name: &str, message: String) -> Finding {
    Finding { name: name.into(), severity: Severity::Warning, message, path: None }
}

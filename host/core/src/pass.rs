//! The pass: one trip of one key, snapshot → compare → confirm → decide → gate → review → write → record.
//!
//! Each stage takes the last one's value and gives the next, or ends the pass with its outcome.
//! No stage calls back. Whatever happens, the pass ends in exactly one [`Record`].

mod claim;

use crate::approval::Approved;
use crate::budget::{self, Allowance, Amount, Over};
use crate::confirm::Confirmed;
use crate::decision::{Comparison, Decision, Difference, Finding, Severity, Verdict};
use crate::denial::Accounts;
use crate::failed::{not_confirmed, not_written};
use crate::gate::{Change, Circumstances, Draft, Gated, Permit, Planned};
use crate::grant::{Power, Refusal};
use crate::object::Live;
use crate::policy::Policies;
use crate::ports::{ApplyError, Clock, Cluster, Journal, Judge, PluginFault, Written};
use crate::record::{Intent, Outcome, Record, Timings, Trigger};
use crate::redact::{Redactor, is_sensitive};
use crate::review::{self, Reviewed};
use crate::snapshot::Snapshot;
use crate::taint::{self, Taint};
use crate::{
    confirm, fight, gate, ignore, masked, ownership, reason, recreate, succession, suspension,
};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// Shortest time after which a plugin is asked again on its own wish: a plugin cannot spin.
pub const LOOK_AGAIN_AT_LEAST: Duration = Duration::from_secs(1);
/// Longest time that a plugin can ask to be left alone: a mistake of units costs an hour.
pub const LOOK_AGAIN_AT_MOST: Duration = Duration::from_secs(3600);

/// What bounds a pass besides its grant: of the engine's state, as it was when the pass began.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// Service accounts that the source declares.
    pub accounts: Arc<Accounts>,
    /// What is left of the plugin's writes.
    pub allowance: Allowance,
    /// Why the object is not looked at now: its source or its plugin is suspended.
    pub suspended: Option<String>,
    /// What is suspended is looked at all the same: for whoever writes nothing and is asked to show.
    pub despite_suspension: bool,
    /// Since when the object was suspended (RFC 3339, UTC, to the second), for the first pass
    /// after that: what changed meanwhile is told before anything is written.
    pub resumed_from: Option<String>,
    /// What a person approved.
    pub approved: Approved,
    /// Policies that review what is to be written.
    pub policies: Policies,
    /// How the pass ends without that anything is looked at, where the caller knows it already.
    pub instead: Option<Outcome>,
}

/// What a pass needs of the world.
#[derive(Clone, Copy)]
pub struct World<'a, J, C, R, T> {
    /// The plugin in its sandbox.
    pub judge: &'a J,
    /// The API server.
    pub cluster: &'a C,
    /// Where passes are recorded.
    pub journal: &'a R,
    /// Time for measurements.
    pub clock: &'a T,
    /// What hides Secret values in the record.
    pub redactor: &'a Redactor,
    /// What bounds it.
    pub bounds: &'a Bounds,
}

impl<J: Judge, C: Cluster, R: Journal, T: Clock> World<'_, J, C, R, T> {
    /// One trip of one key. The record is redacted, and is the caller's to journal.
    pub async fn pass(&self, power: &Power, snapshot: &Snapshot, trigger: Trigger) -> Record {
        let mut record = open(power, snapshot, trigger);
        if let Some(problem) = snapshot.desired.ignore.problem() {
            // Told as it is, of a Secret too: it quotes an annotation and no value.
            record.outcome = Outcome::Rejected(problem.to_owned());
            return record;
        }
        if let Some(why) = suspension::of(snapshot, self.bounds) {
            record.outcome = Outcome::Suspended(why);
            return record;
        }
        if let Some(outcome) = &self.bounds.instead {
            record.outcome = outcome.clone();
            return record;
        }
        let (Ok(outcome) | Err(outcome)) = self.stages(power, snapshot, &mut record).await;
        self.close(record, outcome)
    }

    async fn stages(
        &self,
        power: &Power,
        snapshot: &Snapshot,
        record: &mut Record,
    ) -> Result<Outcome, Outcome> {
        judgeable(snapshot)?;
        let succeeded = succession::view(power, snapshot);
        let judged = succeeded.as_ref().unwrap_or(snapshot);
        let (shown, ignored) = ignore::snapshot(judged).map_err(Outcome::Unknown)?;
        record.ignored = ignored;
        let shown = match power.grant {
            None if is_sensitive(&snapshot.key.group_kind) => {
                Cow::Owned(masked::snapshot(&shown, self.redactor).map_err(Outcome::Unknown)?)
            }
            _ => shown,
        };
        let seen = match self.compare(&shown, snapshot, record).await {
            Err(Outcome::InSync) => return self.take_over(power, snapshot, &shown, record).await,
            seen => seen?,
        };
        let real = self.confirm(power, snapshot, seen, record).await?;
        suspension::tell(snapshot, self.bounds.resumed_from.as_deref(), record)?;
        stand_off(snapshot, record)?;
        let decision = self.decide(&shown, &real.differences, record).await?;
        let passed = self.gate(power, snapshot, &decision, &real, record).await?;
        self.write(snapshot, &shown, &real.differences, passed, record).await
    }

    /// `judged` is what the plugin sees; who wrote what is read from the snapshot itself.
    async fn compare(
        &self,
        judged: &Snapshot,
        snapshot: &Snapshot,
        record: &mut Record,
    ) -> Result<Vec<Difference>, Outcome> {
        let start = self.clock.elapsed();
        let compared = self.judge.compare(judged).await;
        record.timings.compare = self.clock.elapsed() - start;
        let taint = self.taint(snapshot);
        match taint.comparison(compared.map_err(fault)?) {
            Comparison::InSync => Err(Outcome::InSync),
            Comparison::Invalid(what) => {
                Err(Outcome::Rejected(self.redactor.text(&snapshot.key.group_kind, what)))
            }
            Comparison::Unknown(reason) => {
                Err(Outcome::Unknown(self.redactor.text(&snapshot.key.group_kind, reason)))
            }
            Comparison::Different(differences) => {
                let mut differences = taint.differences(differences, snapshot);
                ownership::attribute(snapshot, &mut differences);
                self.show(snapshot, &differences, record);
                Ok(differences)
            }
        }
    }

    /// Asks the API server what an apply would change. An object that is not there needs no
    /// rehearsal: its creation is its own.
    async fn confirm(
        &self,
        power: &Power,
        snapshot: &Snapshot,
        seen: Vec<Difference>,
        record: &mut Record,
    ) -> Result<Real, Outcome> {
        let Some(live) = snapshot.live_object() else {
            return Ok(Real { differences: seen, refused: None, rehearsed: None });
        };
        let probe = gate::probe(power, snapshot).map_err(Outcome::Unknown)?;
        let start = self.clock.elapsed();
        let rehearsed = self.cluster.rehearse(&probe).await;
        record.timings.confirm = self.clock.elapsed() - start;
        let rehearsed = match rehearsed {
            Ok(rehearsed) => rehearsed,
            // The plugin may have an answer to that: leave the field out, or make the object anew.
            Err(ApplyError::Immutable { message, fields }) => {
                let differences = confirm::immutable(seen, &fields);
                self.show(snapshot, &differences, record);
                let refused = reason::immutable(&snapshot.key.group_kind, &message);
                return Ok(Real { differences, refused: Some(refused), rehearsed: None });
            }
            // A rule of a definition has words of its own; its schema says what it is about.
            Err(ApplyError::Rejected(message))
                if seen.iter().any(|difference| difference.immutable.is_some()) =>
            {
                let refused = reason::immutable(&snapshot.key.group_kind, &message);
                return Ok(Real { differences: seen, refused: Some(refused), rehearsed: None });
            }
            Err(ApplyError::ManagedInUnserved { message, api_version }) => {
                return Err(self.carry_over(power, snapshot, &message, api_version, record).await);
            }
            Err(error) => return Err(not_confirmed(error, &seen)),
        };
        let confirmed = confirm::confirm(seen, &live.json, &rehearsed).map_err(Outcome::Unknown)?;
        let Confirmed { differences, unkept } = confirmed;
        if !unkept.is_empty() {
            let suspects = match confirm::needs_suspects(&unkept) {
                true => self.cluster.suspects(&probe).await,
                false => Ok(Vec::new()),
            };
            record.findings.extend(confirm::findings(&unkept, &suspects));
        }
        if differences.is_empty() && !unkept.is_empty() {
            let reason = confirm::not_kept(&unkept);
            let unkept: Vec<_> = unkept.into_iter().map(|each| each.difference).collect();
            self.show(snapshot, &unkept, record);
            return Err(Outcome::NotKept(reason));
        }
        self.show(snapshot, &differences, record);
        if differences.is_empty() {
            return Err(Outcome::InSyncByServer);
        }
        Ok(Real { differences, refused: None, rehearsed: Some(rehearsed) })
    }

    async fn decide(
        &self,
        snapshot: &Snapshot,
        differences: &[Difference],
        record: &mut Record,
    ) -> Result<Decision, Outcome> {
        let start = self.clock.elapsed();
        let verdict = self.judge.decide(snapshot, differences).await;
        record.timings.decide = self.clock.elapsed() - start;
        match self.taint(snapshot).verdict(verdict.map_err(fault)?, snapshot) {
            Verdict::Decided(decision) => Ok(decision),
            Verdict::Unknown(reason) => {
                Err(Outcome::Unknown(self.redactor.text(&snapshot.key.group_kind, reason)))
            }
            Verdict::Defer { reason, after_ms } => {
                Err(Outcome::Deferred { reason, after: bounded(after_ms) })
            }
        }
    }

    async fn gate(
        &self,
        power: &Power,
        snapshot: &Snapshot,
        decision: &Decision,
        real: &Real,
        record: &mut Record,
    ) -> Result<Passed, Outcome> {
        record.findings.extend(decision.findings.iter().cloned());
        record.conditions.clone_from(&decision.conditions);
        record.look_again = decision.look_again_after_ms.map(bounded);
        let known = Circumstances {
            rehearsed: real.rehearsed.as_deref(),
            accounts: self.bounds.accounts.clone(),
            taint: self.taint(snapshot),
        };
        let gated = gate::gate(power, snapshot, decision, &known);
        let Gated { permits, planned, drafts, refusals, findings, left } =
            gated.map_err(|text| fault(PluginFault::Invalid(text)))?;
        record.findings.extend(findings);
        record.planned = planned;
        record.refusals = refusals;
        self.tell_losses(snapshot, record).await;
        if let Some(message) =
            real.refused.as_ref().filter(|_| record.planned.iter().any(Planned::is_plain_apply))
        {
            return Err(Outcome::Rejected(message.clone()));
        }
        let differences = &real.differences;
        let reviewed = self.review(snapshot, differences, drafts, record).await?;
        if !permits.is_empty() {
            self.bounds.approved.lets(&snapshot.desired.terms.approval, record)?;
            self.within_budget(&record.planned)?;
            return Ok(Passed { permits, reviewed });
        }
        Err(match (record.planned.is_empty(), record.refusals.is_empty()) {
            (false, _) => Outcome::Observed,
            (true, false) => Outcome::Refused,
            (true, true) => {
                Outcome::Left(left.unwrap_or_else(|| "the plugin asks for nothing".into()))
            }
        })
    }

    /// Asks the policies, whether or not it is written: what observes shows what they would say.
    async fn review(
        &self,
        snapshot: &Snapshot,
        differences: &[Difference],
        drafts: Vec<Draft>,
        record: &mut Record,
    ) -> Result<Vec<Reviewed>, Outcome> {
        let (policies, opinions) = (&self.bounds.policies, &mut record.reviews);
        let reviewed =
            review::before_writes(policies, self.redactor, snapshot, differences, drafts, opinions);
        let denied = reviewed.await;
        denied.map_err(|denied| Outcome::Denied { reason: denied.reason, failed: denied.failed })
    }

    /// Takes what is going to be written out of the budgets, before any of it is written.
    fn within_budget(&self, planned: &[Planned]) -> Result<(), Outcome> {
        let count = |all: usize| u32::try_from(all).unwrap_or(u32::MAX);
        let deletes = planned.iter().filter(|planned| planned.deletes()).count();
        let amount = Amount { writes: count(planned.len()), deletes: count(deletes) };
        self.bounds.allowance.take(amount).map_err(|over| {
            let (reason, after) = match over {
                Over::Writes => (
                    format!(
                        "{} writes are to be done, and budgets.writesPerMinute of the plugin's grant leaves fewer in this minute",
                        amount.writes
                    ),
                    budget::LOOK_AGAIN_AFTER,
                ),
                Over::Deletes => (
                    "an object is to be deleted, and budgets.deletesPerHour of the plugin's grant leaves no deletion in this hour: if it is meant, let the grant have more".to_owned(),
                    budget::LOOK_AGAIN_FOR_DELETES,
                ),
            };
            Outcome::OverBudget { reason, after }
        })
    }

    /// What a deletion takes with it belongs to the plan, and to the refusal.
    async fn tell_losses(&self, snapshot: &Snapshot, record: &mut Record) {
        let asked = |refusal: &Refusal| refusal.reason == recreate::REFUSED;
        let deletes = record.planned.iter().any(Planned::deletes);
        let Some(live) = snapshot.live_object() else { return };
        if !deletes && !record.refusals.iter().any(asked) {
            return;
        }
        let target = gate::target(snapshot);
        let takes = self.cluster.dependents(&target, &live.json).await;
        for planned in record.planned.iter_mut().filter(|planned| planned.deletes()) {
            planned.takes.clone_from(&takes);
        }
        for refusal in record.refusals.iter_mut().filter(|refusal| asked(refusal)) {
            if !takes.is_empty() {
                refusal.message.push_str(&format!("; it would take {}", takes.join(", ")));
            }
        }
    }

    async fn write(
        &self,
        snapshot: &Snapshot,
        shown: &Snapshot,
        differences: &[Difference],
        Passed { permits, reviewed }: Passed,
        record: &mut Record,
    ) -> Result<Outcome, Outcome> {
        let start = self.clock.elapsed();
        let mut now = snapshot.clone();
        let mut created = false;
        let mut first = Some(reviewed);
        for permit in &permits {
            let drafts = permit.drafts(snapshot, &now);
            let drafts = drafts.map_err(|text| fault(PluginFault::Invalid(text)))?;
            // Those of the first permit are what was reviewed; after a write the others are new.
            let reviewed = match first.take() {
                Some(mut reviewed) => {
                    reviewed.truncate(drafts.len());
                    reviewed
                }
                None => self.review(&now, differences, drafts, record).await?,
            };
            for change in reviewed.into_iter().map(gate::change) {
                judgeable(&now)?;
                let written = self.write_one(&now, &change, record).await;
                record.timings.write = self.clock.elapsed() - start;
                now.live = after(written?, record);
                created |= change.planned().creates;
            }
        }
        if let Some(Written::Object(json)) = &record.after {
            record.findings.extend(confirm::unkept(differences, &shown.desired.json, json));
        }
        Ok(if created { Outcome::Created } else { Outcome::Corrected })
    }

    async fn write_one(
        &self,
        snapshot: &Snapshot,
        change: &Change,
        record: &Record,
    ) -> Result<Written, Outcome> {
        let intent = Intent {
            at_ms: snapshot.now_ms,
            key: &snapshot.key,
            plugin: &record.plugin,
            planned: change.planned(),
            revision: &record.revision,
        };
        self.journal.intent(&intent).await.map_err(|error| Outcome::Failed {
            message: format!("{error}; nothing was written"),
            retry_after: None,
        })?;
        let written = self.cluster.write(change).await;
        written.map_err(|error| not_written(error, &record.differences))
    }

    fn show(&self, snapshot: &Snapshot, differences: &[Difference], record: &mut Record) {
        record.differences = match self.taint(snapshot).has_read() {
            true => self.redactor.all(differences),
            false => self.redactor.differences(&snapshot.key.group_kind, differences),
        };
    }

    /// Which Secrets the plugin saw until now.
    fn taint(&self, snapshot: &Snapshot) -> Taint {
        Taint::of(snapshot, self.judge.secrets_read())
    }

    fn close(&self, mut record: Record, outcome: Outcome) -> Record {
        let kind = &record.key.group_kind;
        // The server quotes what it refuses, and a fault what the plugin answered.
        let outcome = match outcome {
            Outcome::Rejected(_) if !self.judge.secrets_read().is_empty() => {
                Outcome::Rejected(taint::WITHHELD.into())
            }
            Outcome::Fault(_) if !self.judge.secrets_read().is_empty() => {
                Outcome::Fault(taint::WITHHELD.into())
            }
            other => other,
        };
        record.findings = self.redactor.findings(kind, record.findings);
        record.conditions = self.redactor.conditions(kind, record.conditions);
        record.outcome = self.redactor.outcome(kind, outcome);
        record
    }
}

/// What may be written, and the reviews of all its changes over the object as it was judged.
struct Passed {
    permits: Vec<Permit>,
    reviewed: Vec<Reviewed>,
}

/// What the object is after a write, which the record keeps.
fn after(written: Written, record: &mut Record) -> Live {
    record.after = Some(written);
    match (&record.after, record.written()) {
        (Some(Written::Deleted), _) => Live::Absent,
        (_, Some(object)) => Live::Present(object),
        _ => Live::Unknown("the answer to the write is no object with a UID".into()),
    }
}

/// Differences that are real, why the server refuses to apply desired over them, if it does.
struct Real {
    differences: Vec<Difference>,
    refused: Option<String>,
    /// The object as the dry run left it.
    rehearsed: Option<Arc<[u8]>>,
}

/// Whether there is anything to judge: never on a guess, never on an object that is going away.
fn judgeable(snapshot: &Snapshot) -> Result<(), Outcome> {
    match &snapshot.live {
        Live::Unknown(reason) => Err(Outcome::Unknown(reason.to_string())),
        Live::Present(live) if live.deleting => {
            Err(Outcome::Waiting("it is being deleted; it is made again when it is gone".into()))
        }
        _ => Ok(()),
    }
}

/// In a fight over these very differences, or over what we wrote ourselves, nothing is decided before
/// its pause is over.
fn stand_off(snapshot: &Snapshot, record: &mut Record) -> Result<(), Outcome> {
    let Some(standoff) = snapshot.standoff.as_ref().filter(|it| it.concerns(record)) else {
        return Ok(());
    };
    let reason = fight::reason(&standoff.over, &record.differences);
    record.findings.push(Finding {
        name: "fight-detected".into(),
        severity: Severity::Warning,
        message: reason.clone(),
        path: record.differences.first().map(|difference| difference.path.clone()),
    });
    let after = standoff.until_ms.saturating_sub(snapshot.now_ms);
    Err(Outcome::Contested { reason, after: bounded(after) })
}

fn open(power: &Power, snapshot: &Snapshot, trigger: Trigger) -> Record {
    let desired = &snapshot.desired;
    let live = snapshot.live_object();
    Record {
        at_ms: snapshot.now_ms,
        key: snapshot.key.clone(),
        gvk: snapshot.gvk.clone(),
        trigger,
        plugin: power.plugin.clone(),
        mode: gate::mode(power, snapshot),
        source: desired.source.clone(),
        revision: desired.revision.clone(),
        origin: desired.origin.clone(),
        desired_digest: desired.digest,
        live_uid: live.map(|live| live.uid.clone()),
        live_resource_version: live.map(|live| live.resource_version.clone()),
        ignored: Vec::new(),
        differences: Vec::new(),
        planned: Vec::new(),
        refusals: Vec::new(),
        reviews: Vec::new(),
        findings: Vec::new(),
        conditions: Vec::new(),
        look_again: None,
        outcome: Outcome::InSync,
        after: None,
        timings: Timings::default(),
    }
}

fn bounded(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds).clamp(LOOK_AGAIN_AT_LEAST, LOOK_AGAIN_AT_MOST)
}

fn fault(fault: PluginFault) -> Outcome {
    match fault {
        PluginFault::Held(why) => Outcome::Waiting(why),
        fault => Outcome::Fault(fault.to_string()),
    }
}

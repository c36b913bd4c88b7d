//! The pass: one trip of one key, snapshot → compare → confirm → decide → gate → write → record.
//!
//! Each stage takes the last one's value and gives the next, or ends the pass with its outcome.
//! No stage calls back. Whatever happens, the pass ends in exactly one [`Record`].

use crate::decision::{Comparison, Decision, Difference, Verdict};
use crate::gate::{Change, Gated, Permit, Planned};
use crate::grant::Power;
use crate::object::Live;
use crate::ports::{ApplyError, Clock, Cluster, Journal, Judge, PluginFault, Written};
use crate::record::{Intent, Outcome, Record, Timings, Trigger};
use crate::redact::Redactor;
use crate::snapshot::Snapshot;
use crate::{confirm, gate, ownership, reason};
use std::time::Duration;

/// Shortest time after which a plugin is asked again on its own wish: a plugin cannot spin.
pub const LOOK_AGAIN_AT_LEAST: Duration = Duration::from_secs(1);
/// Longest time that a plugin can ask to be left alone: a mistake of units costs an hour.
pub const LOOK_AGAIN_AT_MOST: Duration = Duration::from_secs(3600);

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
}

impl<J: Judge, C: Cluster, R: Journal, T: Clock> World<'_, J, C, R, T> {
    /// One trip of one key. The record is redacted, and is the caller's to journal.
    pub async fn pass(&self, power: &Power, snapshot: &Snapshot, trigger: Trigger) -> Record {
        let mut record = open(power, snapshot, trigger);
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
        let seen = self.compare(snapshot, record).await?;
        let real = self.confirm(power, snapshot, seen, record).await?;
        let decision = self.decide(snapshot, &real.differences, record).await?;
        let permits = self.gate(power, snapshot, &decision, real.refused, record)?;
        self.write(snapshot, permits, record).await
    }

    async fn compare(
        &self,
        snapshot: &Snapshot,
        record: &mut Record,
    ) -> Result<Vec<Difference>, Outcome> {
        let start = self.clock.elapsed();
        let compared = self.judge.compare(snapshot).await;
        record.timings.compare = self.clock.elapsed() - start;
        match compared.map_err(fault)? {
            Comparison::InSync => Err(Outcome::InSync),
            Comparison::Invalid(what) => {
                Err(Outcome::Rejected(self.redactor.text(&snapshot.key.group_kind, what)))
            }
            Comparison::Unknown(reason) => {
                Err(Outcome::Unknown(self.redactor.text(&snapshot.key.group_kind, reason)))
            }
            Comparison::Different(mut differences) => {
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
            return Ok(Real { differences: seen, refused: None });
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
                return Ok(Real { differences, refused: Some(refused) });
            }
            // A rule of a definition has words of its own; its schema says what it is about.
            Err(ApplyError::Rejected(message))
                if seen.iter().any(|difference| difference.immutable.is_some()) =>
            {
                let refused = reason::immutable(&snapshot.key.group_kind, &message);
                return Ok(Real { differences: seen, refused: Some(refused) });
            }
            Err(ApplyError::Rejected(mut message))
                if reason::word_of(&message) == Some(reason::STALE_MANAGED_FIELDS) =>
            {
                if let Some(managers) = ownership::of_other_versions(snapshot) {
                    message = format!("{message}; they are of {managers}");
                }
                return Err(Outcome::Rejected(message));
            }
            Err(error) => return Err(not_confirmed(error, &seen)),
        };
        let confirmed = confirm::confirm(seen, &live.json, &rehearsed).map_err(Outcome::Unknown)?;
        record.findings.extend(confirmed.findings);
        self.show(snapshot, &confirmed.differences, record);
        if confirmed.differences.is_empty() {
            return Err(Outcome::InSyncByServer);
        }
        Ok(Real { differences: confirmed.differences, refused: None })
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
        match verdict.map_err(fault)? {
            Verdict::Decided(decision) => Ok(decision),
            Verdict::Unknown(reason) => {
                Err(Outcome::Unknown(self.redactor.text(&snapshot.key.group_kind, reason)))
            }
            Verdict::Defer { reason, after_ms } => {
                Err(Outcome::Deferred { reason, after: bounded(after_ms) })
            }
        }
    }

    fn gate(
        &self,
        power: &Power,
        snapshot: &Snapshot,
        decision: &Decision,
        refused: Option<String>,
        record: &mut Record,
    ) -> Result<Vec<Permit>, Outcome> {
        record.findings.extend(decision.findings.iter().cloned());
        record.conditions.clone_from(&decision.conditions);
        record.look_again = decision.look_again_after_ms.map(bounded);
        let Gated { permits, planned, refusals, left } = gate::gate(power, snapshot, decision)
            .map_err(|text| fault(PluginFault::Invalid(text)))?;
        record.planned = planned;
        record.refusals = refusals;
        if let Some(message) =
            refused.filter(|_| record.planned.iter().any(Planned::is_plain_apply))
        {
            return Err(Outcome::Rejected(message));
        }
        if !permits.is_empty() {
            return Ok(permits);
        }
        Err(match (record.planned.is_empty(), record.refusals.is_empty()) {
            (false, _) => Outcome::Observed,
            (true, false) => Outcome::Refused,
            (true, true) => {
                Outcome::Left(left.unwrap_or_else(|| "the plugin asks for nothing".into()))
            }
        })
    }

    async fn write(
        &self,
        snapshot: &Snapshot,
        permits: Vec<Permit>,
        record: &mut Record,
    ) -> Result<Outcome, Outcome> {
        let start = self.clock.elapsed();
        let mut now = snapshot.clone();
        let mut created = false;
        for permit in &permits {
            let changes = permit.changes(snapshot, &now);
            for change in changes.map_err(|text| fault(PluginFault::Invalid(text)))? {
                judgeable(&now)?;
                let written = self.write_one(&now, &change, record).await;
                record.timings.write = self.clock.elapsed() - start;
                now.live = after(written?, record);
                created |= change.planned().creates;
            }
        }
        if let Some(Written::Object(json)) = &record.after {
            record.findings.extend(confirm::unkept(&snapshot.desired.json, json));
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
        self.journal.intent(&intent).map_err(|error| Outcome::Failed {
            message: format!("{error}; nothing was written"),
            retry_after: None,
        })?;
        let written = self.cluster.write(change).await;
        written.map_err(|error| not_written(error, &record.differences))
    }

    fn show(&self, snapshot: &Snapshot, differences: &[Difference], record: &mut Record) {
        record.differences = self.redactor.differences(&snapshot.key.group_kind, differences);
    }

    fn close(&self, mut record: Record, outcome: Outcome) -> Record {
        let kind = &record.key.group_kind;
        record.findings = self.redactor.findings(kind, record.findings);
        record.conditions = self.redactor.conditions(kind, record.conditions);
        record.outcome = self.redactor.outcome(kind, outcome);
        record
    }
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

/// Differences that are real, and why the server refuses to apply desired over them, if it does.
struct Real {
    differences: Vec<Difference>,
    refused: Option<String>,
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

fn open(power: &Power, snapshot: &Snapshot, trigger: Trigger) -> Record {
    let desired = &snapshot.desired;
    let live = snapshot.live_object();
    Record {
        at_ms: snapshot.now_ms,
        key: snapshot.key.clone(),
        gvk: snapshot.gvk.clone(),
        trigger,
        plugin: power.plugin.clone(),
        mode: power.mode_for(&snapshot.key),
        source: desired.source.clone(),
        revision: desired.revision.clone(),
        origin: desired.origin.clone(),
        desired_digest: desired.digest,
        live_uid: live.map(|live| live.uid.clone()),
        live_resource_version: live.map(|live| live.resource_version.clone()),
        differences: Vec::new(),
        planned: Vec::new(),
        refusals: Vec::new(),
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
    Outcome::Fault(fault.to_string())
}

/// A rehearsal that did not happen: the drift is not confirmed, so it is never corrected, and
/// the object is never called in sync.
fn not_confirmed(error: ApplyError, seen: &[Difference]) -> Outcome {
    match error {
        ApplyError::Forbidden(message) => Outcome::Unknown(format!(
            "{} differences were seen and cannot be confirmed by a dry run: {message}",
            seen.len()
        )),
        other => not_written(other, seen),
    }
}

fn not_written(error: ApplyError, seen: &[Difference]) -> Outcome {
    match error {
        ApplyError::Conflict(fields) => Outcome::Conflict(conflicting(&fields, seen)),
        ApplyError::Stale(_) => Outcome::Stale,
        ApplyError::NotYet(message) => Outcome::Waiting(message),
        ApplyError::Rejected(message) | ApplyError::Immutable { message, .. } => {
            Outcome::Rejected(message)
        }
        ApplyError::Forbidden(message) => {
            Outcome::Failed { message: format!("forbidden: {message}"), retry_after: None }
        }
        ApplyError::Unavailable { message, retry_after } => {
            Outcome::Failed { message, retry_after }
        }
    }
}

/// The managers that the server names, each once, with what managedFields tells of them.
fn conflicting(
    fields: &[crate::ports::OwnedField],
    seen: &[Difference],
) -> Vec<crate::decision::Manager> {
    let mut managers: Vec<crate::decision::Manager> = Vec::new();
    for field in fields {
        if managers.iter().any(|manager| manager.name == field.manager) {
            continue;
        }
        let known = seen.iter().flat_map(|d| &d.managers).find(|m| m.name == field.manager);
        managers.push(known.cloned().unwrap_or_else(|| crate::decision::Manager {
            name: field.manager.clone(),
            operation: String::new(),
            subresource: String::new(),
            time: String::new(),
        }));
    }
    managers
}

//! What is known of each object: its last outcome, and whether that still answers.

use super::desired::DesiredState;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::{Duration, Instant};
use trimtab_core::fight::{Fights, Rounds, Standoff};
use trimtab_core::identity::{Digest, Gvk, ObjectKey};
use trimtab_core::memo::Memo;
use trimtab_core::reads::{Read, Reads, Seen};
use trimtab_core::record::{Next, Outcome, Record, Trigger};

/// What the engine remembers of one object.
#[derive(Debug, Default)]
pub(super) struct KeyState {
    /// What the last pass answered for.
    memo: Option<Memo>,
    /// What its plugin read beside that.
    reads: Reads,
    /// How the last pass ended.
    last: Option<Last>,
    /// How the pass before ended that only found that the object had moved: what was told.
    before_stale: Option<Last>,
    /// The plugin and grant that served it last; `None`: none did.
    pub(super) stamp: Option<Digest>,
    trigger: Option<Trigger>,
    /// When the first event came that the next pass answers.
    event: Option<Instant>,
    unclaimed: bool,
    /// It waits for a plugin that is not called at present.
    pub(super) held: bool,
    /// The schema changed, or somebody asked, after the pass that is under way began.
    outdated: bool,
    fights: Fights,
    /// How many objects the revision changes that brought the last change of this one.
    among: Option<u32>,
    /// Since when it is suspended, or was until its next whole pass (milliseconds since the epoch).
    suspended_since_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Last {
    outcome: Outcome,
    differences: Vec<(String, Option<Vec<u8>>)>,
    findings: Vec<String>,
    refusals: Vec<String>,
    desired: Digest,
}

impl KeyState {
    /// Something other than the cluster asks for a pass. One that is under way began before and
    /// answers nothing.
    pub(super) fn touched(&mut self, trigger: Trigger) {
        self.trigger = Some(trigger);
        self.memo = None;
        self.outdated = true;
        self.unclaimed = false;
        self.event.get_or_insert_with(Instant::now);
    }

    /// A revision changes this object, and how many others.
    pub(super) fn changed_among(&mut self, many: usize) {
        self.among = u32::try_from(many).ok();
    }

    /// How many objects the revision changes that this object's change came with, until it is done.
    pub(super) fn among_many(&self) -> Option<u32> {
        self.among
    }

    /// The live object changed.
    pub(super) fn event(&mut self, at: Instant) {
        self.trigger.get_or_insert(Trigger::Watch);
        self.event.get_or_insert(at);
    }

    /// Something that the last pass read may have changed.
    pub(super) fn related(&mut self, at: Instant) {
        self.trigger.get_or_insert(Trigger::Related);
        self.event.get_or_insert(at);
    }

    /// Whether the last pass already answers this; `now` is what is known of what it read.
    pub(super) fn answers(&mut self, memo: Option<&Memo>, now: impl Fn(&Read) -> Seen) -> bool {
        let answered = memo.is_some() && self.memo.as_ref() == memo && self.reads_hold(now);
        if answered {
            self.trigger = None;
            self.event = None;
        }
        answered
    }

    /// Whether what the last pass read is as it was.
    pub(super) fn reads_hold(&self, now: impl Fn(&Read) -> Seen) -> bool {
        self.reads.still(now)
    }

    /// What made the host look; taken once.
    pub(super) fn take_trigger(&mut self) -> Trigger {
        self.outdated = false;
        self.trigger.take().unwrap_or(Trigger::Retry)
    }

    /// How long ago the event came that the ended pass answers; taken once.
    pub(super) fn since_event(&mut self) -> Option<Duration> {
        self.event.take().map(|at| at.elapsed())
    }

    /// Takes up a pass that ended; whether it tells anything new.
    pub(super) fn ended(&mut self, record: &Record, stamp: Digest, reads: Reads) -> bool {
        self.reads = reads;
        if record.outcome.converged() {
            self.among = None;
        }
        let settled = record.outcome.next() == Next::Settle;
        // Who asked to be asked again means it, though nothing happens meanwhile.
        let answers = settled && !self.outdated && record.look_again.is_none();
        self.memo = answers.then(|| Memo::after(record, stamp));
        self.fights.ended(record);
        self.note_suspension(record);
        let last = Last {
            outcome: lasting(&record.outcome),
            differences: record
                .differences
                .iter()
                .map(|difference| (difference.path.clone(), difference.live.clone()))
                .collect(),
            findings: record.findings.iter().map(|finding| finding.message.clone()).collect(),
            refusals: record.refusals.iter().map(ToString::to_string).collect(),
            desired: record.desired_digest,
        };
        let wrote = record.after.is_some();
        let before = self.last.take();
        let stale = |last: &Last| last.outcome == Outcome::Stale;
        let told = match before.as_ref().is_some_and(stale) {
            true if !stale(&last) => self.before_stale.take(),
            _ => before,
        };
        let new = wrote || told.as_ref() != Some(&last);
        if stale(&last) && !told.as_ref().is_some_and(stale) {
            self.before_stale = told;
        }
        self.last = Some(last);
        new
    }

    fn note_suspension(&mut self, record: &Record) {
        match record.outcome {
            Outcome::Suspended(_) => {
                self.suspended_since_ms.get_or_insert(record.at_ms);
            }
            // It was not looked at as far as its differences.
            Outcome::Stale
            | Outcome::Unknown(_)
            | Outcome::Waiting(_)
            | Outcome::Failed { .. }
            | Outcome::Fault(_) => {}
            _ => self.suspended_since_ms = None,
        }
    }

    /// It was suspended since then, and is not any more.
    pub(super) fn resumed(&mut self, since_ms: u64) {
        let earlier = self.suspended_since_ms.map_or(since_ms, |known| known.min(since_ms));
        self.suspended_since_ms = Some(earlier);
        self.touched(Trigger::Request);
    }

    /// Since when it is or was suspended, if no whole pass came after that.
    pub(super) fn suspended_since_ms(&self) -> Option<u64> {
        self.suspended_since_ms
    }

    /// No plugin claims it.
    pub(super) fn unclaimed(&mut self) {
        self.last = None;
        self.unclaimed = true;
    }

    /// The last answer was by a schema that is old now.
    pub(super) fn forget_answer(&mut self) {
        self.memo = None;
        self.outdated = true;
    }

    /// The fight over it that is going on, if one is.
    pub(super) fn standoff(&self, now_ms: u64) -> Option<Standoff> {
        self.fights.standoff(now_ms)
    }

    /// How the fight over it went until now.
    pub(super) fn rounds(&self) -> Option<Rounds> {
        self.fights.rounds()
    }

    /// Whether it waits for a person.
    pub(super) fn awaits_approval(&self) -> bool {
        let last = self.last.as_ref().map(|last| &last.outcome);
        matches!(last, Some(Outcome::AwaitingApproval { .. }))
    }

    /// Whether the last pass saw an object that had moved meanwhile.
    pub(super) fn was_stale(&self) -> bool {
        self.last.as_ref().is_some_and(|last| last.outcome == Outcome::Stale)
    }

    /// Whether it had a pass in this run.
    pub(super) fn has_ended(&self) -> bool {
        self.last.is_some()
    }

    /// Whether the last pass of this desired state ended for good without having to be in force: it
    /// was observed or left as it is, or nobody looks at it.
    pub(super) fn is_settled_otherwise(&self, desired: Digest) -> bool {
        let otherwise = |outcome: &Outcome| {
            matches!(outcome, Outcome::Observed | Outcome::Left(_) | Outcome::Suspended(_))
        };
        let last = self.last.as_ref();
        self.unclaimed
            || last.is_some_and(|last| last.desired == desired && otherwise(&last.outcome))
    }

    /// Whether this desired state is in force by the last pass.
    ///
    /// # Errors
    /// Why not, in words.
    pub(super) fn in_force(&self, desired: Digest) -> Result<(), String> {
        match &self.last {
            Some(last) if last.desired != desired => Err("not applied yet".into()),
            Some(last) if last.outcome.converged() => Ok(()),
            Some(last) => {
                let message = last.outcome.message();
                let colon = if message.is_empty() { "" } else { ": " };
                Err(format!("{}{colon}{message}", last.outcome.as_str()))
            }
            None if self.unclaimed => Err("no plugin claims it".into()),
            None => Err("not applied yet".into()),
        }
    }

    /// Whether nothing more is to be done before something changes.
    pub(super) fn is_settled(&self) -> bool {
        self.unclaimed || self.last.as_ref().is_some_and(|last| last.outcome.next() == Next::Settle)
    }
}

/// An outcome without what changes while nothing happens.
fn lasting(outcome: &Outcome) -> Outcome {
    match outcome.clone() {
        Outcome::Contested { reason, .. } => Outcome::Contested { reason, after: Duration::ZERO },
        other => other,
    }
}

/// How a round ended.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    /// Objects that the source declares.
    pub(crate) objects: usize,
    /// Objects that are as declared.
    pub(crate) converged: usize,
    /// Every other object, with the reason.
    pub(crate) unsettled: Vec<Unsettled>,
    /// Why the newest content of sources is not in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source_problem: Option<String>,
    /// Each source.
    pub(crate) sources: Vec<SourceLine>,
}

/// How a source ended.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceLine {
    /// Its name.
    pub(crate) name: String,
    /// What is in force of it, if anything is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<String>,
    /// Why its newest content is not, and since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem_since: Option<String>,
}

/// What waits, and for what.
pub(super) struct Waiting {
    /// Objects for what they need.
    pub(super) waits: HashMap<ObjectKey, String>,
    /// Manifests for the definition of their kind.
    pub(super) kinds: BTreeMap<Gvk, String>,
    /// Objects that nobody declares, and that are still there.
    pub(super) pruned: Vec<Unsettled>,
}

/// An object that is not as declared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Unsettled {
    /// Which.
    pub(crate) object: String,
    /// The source that declares it.
    pub(crate) source: String,
    /// Where in the source.
    pub(crate) origin: String,
    /// The outcome's word.
    pub(crate) outcome: String,
    /// Why.
    pub(crate) reason: String,
}

impl Summary {
    pub(super) fn new(
        desired: &DesiredState,
        keys: &HashMap<ObjectKey, KeyState>,
        sources: Vec<SourceLine>,
        waiting: &Waiting,
    ) -> Self {
        let problems: Vec<String> =
            sources.iter().filter_map(|source| told(source, sources.len() == 1)).collect();
        let mut unsettled: Vec<Unsettled> = desired
            .unplaced
            .iter()
            .map(|unplaced| Unsettled {
                object: format!("{} {}", unplaced.manifest.gvk, unplaced.manifest.name),
                source: unplaced.source.to_string(),
                origin: unplaced.manifest.origin.to_string(),
                outcome: "waiting".into(),
                reason: waiting
                    .kinds
                    .get(&unplaced.manifest.gvk)
                    .unwrap_or(&unplaced.reason)
                    .clone(),
            })
            .collect();
        unsettled.extend(desired.refused.iter().map(|refused| Unsettled {
            object: refused.object.clone(),
            source: refused.source.clone(),
            origin: refused.origin.clone(),
            outcome: "refused".into(),
            reason: refused.reason.clone(),
        }));
        let mut converged = 0;
        for (key, object) in &desired.objects {
            let last = keys.get(key).and_then(|state| state.last.as_ref());
            let waits = waiting.waits.get(key);
            if waits.is_none() && last.is_some_and(|last| last.outcome.converged()) {
                converged += 1;
                continue;
            }
            let (outcome, reason) = match (waits, last) {
                (Some(words), _) => ("waiting".to_owned(), words.clone()),
                (None, Some(last)) => (last.outcome.as_str().to_owned(), last.outcome.message()),
                (None, None) if keys.get(key).is_some_and(|state| state.unclaimed) => {
                    ("unclaimed".into(), format!("no plugin claims {}", key.group_kind))
                }
                (None, None) => ("unknown".into(), "it was not looked at".into()),
            };
            unsettled.push(Unsettled {
                object: key.to_string(),
                source: object.source.to_string(),
                origin: object.origin.to_string(),
                outcome,
                reason,
            });
        }
        unsettled.extend(waiting.pruned.iter().cloned());
        unsettled.sort();
        Self {
            objects: converged + unsettled.len(),
            converged,
            unsettled,
            source_problem: (!problems.is_empty()).then(|| problems.join("\n")),
            sources,
        }
    }

    /// For people: how things stand, and each object that is not as declared.
    pub(crate) fn told(&self) -> String {
        let mut text = format!("{self}\n");
        for unsettled in &self.unsettled {
            let colon = if unsettled.reason.is_empty() { "" } else { ": " };
            text.push_str(&format!(
                "  {} ({} of {}) {}{colon}{}\n",
                unsettled.object,
                unsettled.origin,
                unsettled.source,
                unsettled.outcome,
                unsettled.reason
            ));
        }
        if let Some(problem) = &self.source_problem {
            text.push_str(&format!("  refused, of a source:\n{problem}\n"));
        }
        text
    }

    /// The exit status that tells it: 0 all is as declared, 1 something is not, 2 a source cannot
    /// be used.
    pub(crate) fn status(&self) -> u8 {
        match &self.source_problem {
            Some(_) => 2,
            None => u8::from(!self.is_converged()),
        }
    }

    /// Whether everything is as declared.
    pub(crate) fn is_converged(&self) -> bool {
        self.unsettled.is_empty() && self.source_problem.is_none()
    }
}

/// A source's problem, with its name where there are others.
fn told(source: &SourceLine, alone: bool) -> Option<String> {
    let problem = source.problem.as_ref()?;
    Some(if alone { problem.clone() } else { format!("{}: {problem}", source.name) })
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} objects are as declared", self.converged, self.objects)
    }
}

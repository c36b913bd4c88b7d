//! What is said of pruning: lines in log and journal, the end of a round, what waits for a person and
//! how it is allowed.

use super::Run;
use crate::engine::Engine;
use crate::engine::settled::Unsettled;
use crate::journal::{PruneLine, PruneStep};
use std::collections::BTreeMap;
use std::sync::Arc;
use trimtab_core::grant::Mode;
use trimtab_core::identity::{Digest, ObjectKey};
use trimtab_core::inventory::Entry;
use trimtab_core::prune::{Held, Plan, Step};

impl Engine {
    /// Tells what is other in a plan than it was.
    pub(super) fn tell_plan(&mut self, source: &Arc<str>, plan: &Plan) {
        self.tell_stopped(source, plan);
        let observes = self.config.get(source).is_some_and(|it| it.terms.mode == Mode::Observe);
        let mut told = BTreeMap::new();
        for (key, step) in &plan.steps {
            let (step, text) = match step {
                Step::Delete if observes => {
                    (PruneStep::WouldDelete, "the source is in mode observe".to_owned())
                }
                Step::Delete | Step::Look => continue,
                Step::Wait(why) => (PruneStep::Waiting, why.clone()),
                Step::Going(what) => (PruneStep::Going, what.clone()),
                Step::Held(held) => (PruneStep::Held, held_words(source, held)),
                Step::Keep(_) if plan.stopped.is_some() => continue,
                Step::Keep(why) => (PruneStep::Kept, why.clone()),
                Step::Forget(why) => (PruneStep::Forgotten, why.clone()),
            };
            told.insert(key.clone(), (step, text));
        }
        let before = self
            .pruning
            .runs
            .get_mut(source)
            .map(|run| std::mem::take(&mut run.told))
            .unwrap_or_default();
        let mut now = BTreeMap::new();
        // What was deleted just now is forgotten without a word of its own.
        for (key, (step, text)) in told {
            let gone = step == PruneStep::Forgotten && text == "it is gone";
            if before.get(&key) != Some(&text) && !gone {
                self.tell_prune(source, &key, step, text.clone());
            }
            now.insert(key, text);
        }
        if let Some(run) = self.pruning.runs.get_mut(source) {
            run.told = now;
        }
    }

    /// Tells once why nothing of a source is pruned, where that was so at the look before too: most
    /// reasons are gone in a moment.
    fn tell_stopped(&mut self, source: &Arc<str>, plan: &Plan) {
        let Some(run) = self.pruning.runs.get_mut(source) else { return };
        let lasts = run.stopped == plan.stopped;
        run.stopped.clone_from(&plan.stopped);
        if !lasts || run.told_stopped == plan.stopped {
            return;
        }
        run.told_stopped.clone_from(&plan.stopped);
        if let Some(why) = &plan.stopped {
            let count = plan.steps.iter().filter(|(_, step)| matches!(step, Step::Keep(_))).count();
            let text = format!(
                "source {source} declares {count} objects no more that were made for it: {why}"
            );
            self.tell_host("prune-stopped", &text);
        }
    }

    pub(super) fn prune_line(
        &self,
        source: &Arc<str>,
        key: &ObjectKey,
        step: PruneStep,
        message: String,
    ) -> PruneLine {
        let entry = self.made.entry(source, key);
        let in_force = self.sources.get(source).and_then(|entry| entry.in_force.as_ref());
        PruneLine {
            object: key.into(),
            step,
            message,
            source: source.to_string(),
            revision: in_force.map(|it| it.revision.id.to_string()).unwrap_or_default(),
            uid: entry.and_then(|entry| entry.uid.as_ref()).map(ToString::to_string),
            reviews: Vec::new(),
        }
    }

    pub(super) fn tell_prune(
        &self,
        source: &Arc<str>,
        key: &ObjectKey,
        step: PruneStep,
        message: String,
    ) {
        let colon = if message.is_empty() { "" } else { ": " };
        let text = format!("prune of source {source}: {} {key}{colon}{message}", step.as_str());
        match step {
            PruneStep::Held | PruneStep::Failed => tracing::warn!("{text}"),
            _ => tracing::info!("{text}"),
        }
        if let Err(error) = self.parts.journal.prune(self.prune_line(source, key, step, message)) {
            tracing::error!("{error}");
        }
    }

    /// Allows the deletions that are held under this digest.
    pub(in crate::engine) fn approve(
        &mut self,
        source: &str,
        digest: &str,
    ) -> Result<String, String> {
        let digest = Digest::parse(digest)
            .ok_or_else(|| format!("{digest:?} is no digest: sha256: and 64 hexadecimal digits"))?;
        let source: Arc<str> = source.into();
        let held = self
            .pruning
            .runs
            .get(&source)
            .and_then(|run| run.plan.held.iter().find(|held| held.digest == digest).cloned());
        let Some(held) = held else {
            return Err(format!(
                "nothing of source {source} is held under {digest}: what is held is another set by now; `trimtab source show {source}` names it"
            ));
        };
        for key in &held.keys {
            if let Some(entry) = self.made.entry(&source, key).cloned() {
                self.made.set(&source, key, Entry { approved: held.allows, ..entry });
            }
        }
        self.pruning.moved();
        let text = format!(
            "source {source}: the deletion of {} objects is allowed ({digest})",
            held.keys.len()
        );
        self.tell_host("prune-approved", &text);
        Ok(text)
    }

    /// What nobody declares and is still there, for people: one line each.
    pub(in crate::engine) fn prune_lines(&self) -> Vec<Unsettled> {
        let line = |source: &Arc<str>, run: &Run, (key, step): &(ObjectKey, Step)| {
            let (outcome, reason) = match step {
                Step::Forget(_) => return None,
                // Kept because somebody said so: nothing is open.
                Step::Keep(_) if run.plan.stopped.is_none() => return None,
                Step::Keep(why) => ("not-pruned", why.clone()),
                Step::Delete | Step::Look => {
                    let refused = run.refused.get(key).map(|(why, _)| why.clone());
                    ("not-pruned", refused.unwrap_or_else(|| "it is to be deleted".into()))
                }
                Step::Wait(why) => ("not-pruned", why.clone()),
                Step::Going(what) => ("going", what.clone()),
                Step::Held(held) => ("held", held_words(source, held)),
            };
            Some(Unsettled {
                object: key.to_string(),
                source: source.to_string(),
                origin: format!("made for source {source}, which declares it no more"),
                outcome: outcome.into(),
                reason,
            })
        };
        let of = |(source, run): (&Arc<str>, &Run)| -> Vec<Unsettled> {
            let off = self.config.get(source).is_some_and(|config| !config.terms.prune);
            if off {
                return Vec::new();
            }
            run.plan.steps.iter().filter_map(|step| line(source, run, step)).collect()
        };
        self.pruning.runs.iter().flat_map(of).collect()
    }

    /// What is held of a source, for people.
    pub(in crate::engine) fn held_of(&self, source: &str) -> Vec<String> {
        let run = self.pruning.runs.iter().find(|(name, _)| &***name == source);
        let held = run.map(|(_, run)| run.plan.held.clone()).unwrap_or_default();
        held.iter()
            .map(|held| {
                let names: Vec<String> = held.keys.iter().map(ToString::to_string).collect();
                format!("{}: {}", held_words(source, held), names.join(", "))
            })
            .collect()
    }
}

fn held_words(source: &str, held: &Held) -> String {
    format!("{}; `trimtab source approve {source} {}` allows it", held.reason, held.digest)
}

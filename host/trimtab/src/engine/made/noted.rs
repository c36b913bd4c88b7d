//! What becomes of an object's entry by what is found out: its UID and digest after a pass, that it
//! ended by itself, and which revision of its source is in force.

use crate::engine::Engine;
use std::sync::Arc;
use trimtab_core::grant::Mode;
use trimtab_core::health::{Readiness, readiness};
use trimtab_core::identity::ObjectKey;
use trimtab_core::inventory::{Approval, Entry};
use trimtab_core::object::{Desired, Live, LiveObject};
use trimtab_core::prune;
use trimtab_core::record::{Outcome, Record, Trigger};

impl Engine {
    /// How a pass ends that need not begin: its object ended by itself, and is not made anew.
    pub(in crate::engine) fn done_by_itself(
        &self,
        desired: &Desired,
        live: &Live,
    ) -> Option<Outcome> {
        let entry = self.made.entry(&desired.source, &desired.key)?;
        let gone = matches!(live, Live::Absent) && entry.done && entry.has(desired.digest);
        gone.then(|| {
            Outcome::Left("it ended and its ttlSecondsAfterFinished removed it; another manifest makes it anew".into())
        })
    }

    /// The UID under which we made or took over an object, for whichever source: by the journal, or
    /// else by the inventories.
    pub(in crate::engine) fn made_uid(&self, key: &ObjectKey) -> Option<&Arc<str>> {
        self.applied.get(key).or_else(|| self.made.uid(key))
    }

    /// What a pass says of its object's entry.
    pub(in crate::engine) fn note_made(&mut self, record: &Record) {
        if record.mode != Mode::Enforce || self.made.trouble(&record.source).is_some() {
            return;
        }
        let Some(desired) = self.desired.objects.get(&record.key).cloned() else { return };
        if desired.digest != record.desired_digest {
            return;
        }
        let live = match record.written() {
            Some(written) => written,
            None => match self.parts.store.live(&record.key, &record.gvk) {
                Live::Present(live) => live,
                Live::Absent | Live::Unknown(_) => return,
            },
        };
        let source = desired.source.clone();
        let known = self.made.entry(&source, &record.key);
        let converged = record.outcome.converged();
        let is_known = known.is_some_and(|entry| entry.uid.as_ref() == Some(&live.uid));
        let ours = is_known
            || record.after.is_some()
            || self.applied.get(&record.key) == Some(&live.uid)
            || prune::is_made_by_us(&live.json)
            // We were killed when we had made it, and its manifest states no field to know it by.
            || record.trigger == Trigger::Start
                && known.is_some_and(|entry| entry.uid.is_none())
                && prune::is_nobodys(&live.json);
        if !ours {
            return;
        }
        let in_force = converged && known.is_none_or(|entry| !entry.has(desired.digest));
        let mut entry = known.cloned().unwrap_or_else(|| Entry::intended(&desired.revision));
        entry.uid = Some(live.uid.clone());
        entry.approved = Approval::None;
        if in_force {
            entry.digest = desired.digest.short().into();
            entry.revision = desired.revision.clone();
            entry.keep = prune::keeps(&desired.json);
        }
        if converged {
            entry.done = ends_by_itself(&desired, &live);
        }
        self.made.set(&source, &record.key, entry);
    }

    /// The revision of each source, for whoever asks for a step back after the state was lost.
    pub(in crate::engine) fn note_revisions(&mut self) {
        let revisions: Vec<(Arc<str>, Arc<str>)> = self
            .sources
            .iter()
            .filter_map(|entry| entry.in_force.as_ref())
            .filter(|in_force| !in_force.from_before)
            // Where nothing was ever made nothing is written, and so nothing by who only observes.
            .filter(|it| self.made.of(&it.revision.source).is_some_and(|it| !it.is_empty()))
            .map(|in_force| (in_force.revision.source.clone(), in_force.revision.id.clone()))
            .collect();
        for (source, revision) in revisions {
            self.made.set_revision(&source, &revision);
        }
    }
}

/// Whether it is a Job that has ended and that its TTL takes away.
fn ends_by_itself(desired: &Desired, live: &LiveObject) -> bool {
    if (&*desired.gvk.group, &*desired.gvk.kind) != ("batch", "Job") {
        return false;
    }
    let Ok(tree) = trimtab_json::parse(&live.json) else { return false };
    let has_ttl = tree.at(&["spec", "ttlSecondsAfterFinished"]).is_some_and(|it| !it.is_null());
    let ended = readiness(&desired.gvk, &live.json);
    has_ttl && matches!(ended, Readiness::Ready | Readiness::Failed(_))
}

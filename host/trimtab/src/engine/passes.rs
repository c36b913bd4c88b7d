//! Passes: which object is looked at next, and what becomes of what a pass found.

use super::made::May;
use super::settled::KeyState;
use super::{
    Engine, Monotonic, PASSES_AT_ONCE, Passed, STOP_PATIENCE, brings_kinds, health, lookups, report,
};
use crate::plugins::Served;
use crate::replay::{Inputs, Keeping, Kept};
use crate::secrets;
use crate::timestamp::{now_ms, to_the_second};
use std::sync::Arc;
use std::time::Instant;
use trimtab_core::approval::{self, Approved};
use trimtab_core::budget::Allowance;
use trimtab_core::identity::{Digest, ObjectKey};
use trimtab_core::memo::Memo;
use trimtab_core::pass::{Bounds, World};
use trimtab_core::record::{Next, Outcome, Trigger};
use trimtab_core::redact::Redactor;
use trimtab_core::snapshot::Snapshot;
use trimtab_wasm::{Lookups, Recording};

/// Keeps what a pass's plugin was shown. Where that fails it is told, and nothing else is lost.
async fn keep(kept: Arc<Kept>, inputs: Option<Inputs>) -> Option<Digest> {
    let inputs = inputs?;
    let written = tokio::task::spawn_blocking(move || kept.keep(&inputs)).await;
    match written.unwrap_or_else(|error| Err(error.into())) {
        Ok(digest) => digest,
        Err(error) => {
            tracing::warn!("a pass cannot be replayed: {error:#}");
            None
        }
    }
}

/// What is known of a pass before it begins.
pub(super) struct Before {
    /// Why its plugin is not asked.
    hold: Option<health::Hold>,
    /// How it ends without beginning.
    instead: Option<Outcome>,
}

impl Engine {
    pub(super) fn start_passes(&mut self) {
        while self.passes.len() < PASSES_AT_ONCE {
            let Some(key) = self.queue.next(self.started.elapsed()) else { return };
            self.start_pass(key);
        }
    }

    /// Starts the pass of this key, unless what is known already answers it.
    pub(super) fn start_pass(&mut self, key: ObjectKey) {
        let now = self.started.elapsed();
        let Some(desired) = self.desired.objects.get(&key).cloned() else {
            return self.queue.remove(&key);
        };
        let registry = self.parts.registry.borrow().clone();
        let Some(served) = registry.for_kind(&key.group_kind) else {
            self.no_plugin(&key);
            return self.queue.done(&key, now, None);
        };
        let live = self.parts.store.live(&key, &desired.gvk);
        let memo = Memo::of(&desired, &live, served.stamp);
        let state = self.keys.entry(key.clone()).or_default();
        state.stamp = Some(served.stamp);
        let store = &self.parts.store;
        if state.answers(memo.as_ref(), |read| lookups::seen(store, read)) {
            self.order.passed(&key);
            return self.queue.done(&key, now, None);
        }
        let (now, standoff) = (now_ms(), state.standoff(now_ms()));
        let snapshot = Snapshot {
            facts: Arc::default(),
            applied_uid: self.made_uid(&key).cloned(),
            gvk: desired.gvk.clone(),
            desired,
            live,
            now_ms: now,
            retries: self.queue.failures(&key),
            standoff,
            key,
        };
        let instead = match self.may_make(&snapshot.desired, &snapshot.live) {
            May::Go => self.done_by_itself(&snapshot.desired, &snapshot.live),
            May::No(why) => Some(Outcome::Waiting(why)),
            // It is looked at when its entry is in the cluster.
            May::Wait => {
                let now = self.started.elapsed();
                return self.queue.done(&snapshot.key, now, None);
            }
        };
        let Some(state) = self.keys.get_mut(&snapshot.key) else { return };
        let trigger = state.take_trigger();
        let served = served.clone();
        let hold = self.hold(&served);
        self.spawn(snapshot, served, trigger, Before { hold, instead });
    }

    pub(super) fn spawn(
        &mut self,
        mut snapshot: Snapshot,
        served: Served,
        trigger: Trigger,
        Before { hold, instead }: Before,
    ) {
        let facts = self.facts.clone();
        let writer = self.parts.writer.clone();
        let journal = self.parts.journal.clone();
        let redactor = self.redactor();
        let lookups =
            Arc::new(lookups::FromStore::new(self.parts.store.clone(), served.power.clone()));
        let kept = self.parts.kept.clone();
        let clock = Monotonic(self.started);
        let since_ms = self.keys.get(&snapshot.key).and_then(KeyState::suspended_since_ms);
        let bounds = Bounds {
            accounts: self.desired.accounts(&snapshot.desired.source),
            allowance: self.allowance(&served),
            suspended: self.suspension(&snapshot.desired.source, &served.power.plugin.name),
            resumed_from: since_ms.map(to_the_second),
            policies: self.policies_for(&snapshot.desired),
            instead,
            despite_suspension: false,
            approved: Approved {
                changes: self.options.approvals.changes.clone(),
                only: self.options.approvals.only,
                many: self.keys.get(&snapshot.key).and_then(KeyState::among_many),
            },
        };
        self.passes.spawn(async move {
            snapshot.facts = facts.get(&snapshot.gvk).await;
            let recording = kept.as_ref().map(|_| Arc::new(Recording::new(lookups.clone())));
            let reads: Arc<dyn Lookups> = match &recording {
                Some(recording) => recording.clone(),
                None => lookups.clone(),
            };
            let watched = health::Watched::new(match &hold {
                None => Ok(served.plugin.judgement(reads)),
                Some(hold) => Err(hold.why.clone()),
            });
            let judge = Keeping::new(watched, recording);
            let world = World {
                judge: &judge,
                cluster: &writer,
                journal: &*journal,
                clock: &clock,
                redactor: &redactor,
                bounds: &bounds,
            };
            let record = world.pass(&served.power, &snapshot, trigger).await;
            let (reads, taken) = (lookups.take_reads(), bounds.allowance.taken());
            let inputs = match kept.filter(|_| record.is_notable()) {
                Some(kept) => keep(kept, judge.inputs(&served.power.plugin, &redactor)).await,
                None => None,
            };
            let (key, live) = (snapshot.key, snapshot.live);
            let (stamp, noted) = (served.stamp, judge.inner.into_noted());
            Passed { key, record, live, stamp, reads, taken, hold, inputs, noted }
        });
    }

    fn allowance(&mut self, served: &Served) -> Allowance {
        let grant = served.power.grant.as_ref();
        let budgets = grant.map(|grant| grant.terms.budgets).unwrap_or_default();
        self.budgets.allowance(&served.power.plugin.name, &budgets, Instant::now())
    }

    /// The redactor, aware of what declared Secrets hold now.
    pub(super) fn redactor(&mut self) -> Arc<Redactor> {
        if std::mem::take(&mut self.secrets_moved) {
            self.signals.secrets_moved = true;
            let objects = self.desired.objects.values();
            let aware = secrets::redactor(&self.parts.redactor, objects, &self.parts.store);
            self.parts.redactor = Arc::new(aware);
        }
        self.parts.redactor.clone()
    }

    pub(super) fn no_plugin(&mut self, key: &ObjectKey) {
        self.order.passed(key);
        let state = self.keys.entry(key.clone()).or_default();
        state.stamp = None;
        state.unclaimed();
        if self.unclaimed_told.insert(key.group_kind.clone()) {
            tracing::warn!(
                "no plugin claims {}: objects of this kind are not looked at",
                key.group_kind
            );
        }
    }

    pub(super) fn end_pass(&mut self, passed: Result<Passed, tokio::task::JoinError>) {
        let passed = match passed {
            Ok(passed) => passed,
            // A defect of ours; the process must not go on as if nothing were.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        self.note_health(&passed);
        self.signal_pass(&passed);
        let Passed { key, record, stamp, reads, taken, hold, inputs, .. } = passed;
        self.budgets.spent(&record.plugin.name, taken, Instant::now());
        self.order.passed(&key);
        if let Some(state) = self.keys.get_mut(&key) {
            state.held = hold.is_some();
        }
        if record.after.is_some() && !self.options.approvals.changes.is_empty() {
            // An approval is for once.
            Arc::make_mut(&mut self.options.approvals.changes).remove(&approval::digest(&record));
        }
        if record.after.is_some() && brings_kinds(&record.key.group_kind) {
            self.expect_kinds();
        }
        let now = self.started.elapsed();
        match record.outcome.next() {
            // It is looked at again when its plugin is.
            Next::Retry(_) if hold.is_some() => {
                self.queue.done(&key, now, hold.as_ref().and_then(|hold| hold.again));
            }
            Next::Settle => self.queue.done(&key, now, record.look_again),
            Next::After(after) => self.queue.done(&key, now, Some(after)),
            Next::Again if self.queue.failures(&key) == 0 && !self.is_stale_again(&key) => {
                self.queue.again(&key);
            }
            Next::Again => {
                let pause = self.queue.failed(&key, now, None, spread(&key));
                tracing::warn!(
                    "{key} moves faster than it can be judged; looked at again in {pause:?}"
                );
            }
            Next::Retry(at_least) => {
                self.queue.failed(&key, now, at_least, spread(&key));
            }
        }
        self.rules.looked(&key, &record.ignored, Instant::now());
        if let Some(written) = record.written() {
            self.applied.insert(key.clone(), written.uid);
        }
        self.note_made(&record);
        self.pruning.pass_ended();
        if record.after.is_some() {
            // Our own write causes no event.
            self.wake_readers(&key, Instant::now());
        }
        if self.keys.contains_key(&key) {
            self.readers.set(&key, &reads);
        }
        let Some(state) = self.keys.get_mut(&key) else { return };
        let since_event = state.since_event();
        let told = state.ended(&record, stamp, reads);
        if matches!(record.outcome, Outcome::Created | Outcome::Corrected) {
            self.moved_at = Instant::now();
        }
        if told && record.is_notable() {
            report::log(&record, since_event);
            let ms = since_event.map(|since| (since.as_secs_f64() * 1e6).round() / 1e3);
            if let Err(error) = self.parts.journal.pass(&record, ms, inputs.as_ref()) {
                tracing::error!("{error}; this pass is not recorded");
            }
        }
        // What was read may have changed before this object counted as its reader.
        let store = &self.parts.store;
        if self.keys.get(&key).is_some_and(|state| !state.reads_hold(|it| lookups::seen(store, it)))
        {
            self.wake(&key, Instant::now());
        }
    }

    /// An object changed: whoever read it is judged anew.
    pub(super) fn wake_readers(&mut self, read: &ObjectKey, at: Instant) {
        for reader in self.readers.of(read) {
            self.wake(&reader, at);
        }
    }

    /// Something that this object's last pass read has changed: a new cause.
    pub(super) fn wake(&mut self, reader: &ObjectKey, at: Instant) {
        let Some(state) = self.keys.get_mut(reader) else { return };
        state.related(at);
        if !self.order.holds(reader) {
            self.look_afresh(reader);
        }
    }

    /// Whether the pass before saw something old too: then the object moves faster than we look.
    pub(super) fn is_stale_again(&self, key: &ObjectKey) -> bool {
        self.keys.get(key).is_some_and(KeyState::was_stale)
    }

    pub(super) async fn stop_passes(&mut self) {
        let end = async {
            while let Some(passed) = self.passes.join_next().await {
                self.end_pass(passed);
            }
        };
        if tokio::time::timeout(STOP_PATIENCE, end).await.is_err() {
            tracing::warn!(
                "passes did not end within {STOP_PATIENCE:?}; their intents are in the journal"
            );
        }
    }
}

/// A number from 0 to 1 that differs from key to key, to spread retries.
fn spread(key: &ObjectKey) -> f64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    f64::from(u32::try_from(hasher.finish() % 1000).unwrap_or(0)) / 1000.0
}

//! The engine: one loop that owns all state and starts passes.
//!
//! Takes what the sources, the watches, the plugin directory and ended passes say; decides which
//! object is looked at next; starts passes as tasks of their own. Everything that changes state
//! happens in this loop, one thing after the other, so that nothing here needs a lock. What a
//! pass does is `trimtab_core::pass`.

mod desired;
mod facts;
mod lookups;
mod report;
mod settled;
mod waves;

use self::desired::DesiredState;
use self::settled::KeyState;
use self::waves::Waves;
use crate::journal::{JournalFile, SourceLine};
use crate::plugins::{Registry, Served};
use crate::timestamp::now_ms;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trimtab_core::identity::{GroupKind, Gvk, ObjectKey};
use trimtab_core::memo::Memo;
use trimtab_core::object::Revision;
use trimtab_core::pass::World;
use trimtab_core::ports::Clock;
use trimtab_core::queue::Queue;
use trimtab_core::record::{Next, Outcome, Record, Trigger};
use trimtab_core::redact::Redactor;
use trimtab_core::snapshot::Snapshot;
use trimtab_kube::{Event, Events, Store, Writer};
use trimtab_source::SourceUpdate;

pub(crate) use self::desired::place;
pub(crate) use self::facts::FactsCache;
pub(crate) use self::settled::Summary;

/// Passes under way at once: each needs a connection to the API server and, for a moment, a
/// sandbox; more than this only queues there.
const PASSES_AT_ONCE: usize = 16;
/// How long passes under way may take to end after a stop was asked for.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// How often discovery is asked while objects wait for their kind, just after something was
/// written that may bring it, and later on.
const DISCOVER_SOON: Duration = Duration::from_millis(500);
const DISCOVER_LATER: Duration = Duration::from_secs(30);
/// How long after a written CRD or API service its kinds are expected.
const KIND_EXPECTED_WITHIN: Duration = Duration::from_secs(60);
/// `--once`: how long nothing may move forward before the round counts as over.
const ONCE_PATIENCE: Duration = Duration::from_secs(20);
/// `--once`: how often an object is tried at least before it counts as stuck.
const ONCE_TRIES: u32 = 3;

/// How the engine is to run.
pub(crate) struct Options {
    /// Namespace of namespaced objects that name none.
    pub(crate) namespace: String,
    /// One round, then stop.
    pub(crate) once: bool,
    /// State directory.
    pub(crate) state: PathBuf,
}

/// What the engine is connected to.
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) events: Events,
    pub(crate) writer: Writer,
    pub(crate) source: mpsc::Receiver<SourceUpdate>,
    pub(crate) registry: watch::Receiver<Arc<Registry>>,
    pub(crate) journal: Arc<JournalFile>,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) pulse: Arc<crate::cmd::run::Pulse>,
}

/// The loop's state.
pub(crate) struct Engine {
    options: Options,
    parts: Parts,
    started: Instant,
    revision: Option<Revision>,
    awaiting_kinds: Option<Revision>,
    source_problem: Option<String>,
    desired: DesiredState,
    keys: HashMap<ObjectKey, KeyState>,
    /// The UID under which we last wrote each object.
    applied: HashMap<ObjectKey, Arc<str>>,
    queue: Queue<ObjectKey, GroupKind>,
    waves: Waves,
    /// Kinds whose watch has an answer: synced, or known not to sync.
    answered: HashSet<Gvk>,
    watched: HashSet<Gvk>,
    facts: Arc<FactsCache>,
    passes: JoinSet<Passed>,
    plugins: crate::plugins::Status,
    /// Kinds of which it was said that no plugin claims them.
    unclaimed_told: HashSet<GroupKind>,
    discover_at: Option<Instant>,
    kind_expected_until: Instant,
    moved_at: Instant,
}

/// A pass that ended.
struct Passed {
    key: ObjectKey,
    record: Record,
    stamp: trimtab_core::identity::Digest,
}

struct Monotonic(Instant);

impl Clock for Monotonic {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

impl Engine {
    /// An engine that has done nothing yet.
    pub(crate) fn new(options: Options, parts: Parts) -> Self {
        let now = Instant::now();
        let applied = crate::journal::written_uids(&options.state);
        Self {
            facts: Arc::new(FactsCache::new(parts.store.clone())),
            options,
            parts,
            started: now,
            revision: None,
            awaiting_kinds: None,
            source_problem: None,
            desired: DesiredState::default(),
            keys: HashMap::new(),
            applied,
            queue: Queue::default(),
            waves: Waves::default(),
            answered: HashSet::new(),
            watched: HashSet::new(),
            passes: JoinSet::new(),
            plugins: crate::plugins::Status::default(),
            unclaimed_told: HashSet::new(),
            discover_at: None,
            kind_expected_until: now,
            moved_at: now,
        }
    }

    /// Runs until it is stopped, or until one round is over.
    ///
    /// # Errors
    /// The journal cannot be written at the start.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> anyhow::Result<Summary> {
        self.parts.journal.host("started", env!("CARGO_PKG_VERSION"))?;
        self.take_registry();
        while !stop.is_cancelled() {
            self.parts.pulse.beat(self.is_ready());
            self.release_waves();
            self.start_passes();
            if self.options.once && self.round_is_over() {
                break;
            }
            let wake = self.next_wake();
            tokio::select! {
                () = stop.cancelled() => {}
                Some(passed) = self.passes.join_next() => self.end_pass(passed),
                update = self.parts.source.recv() => match update {
                    Some(update) => self.take_source(update),
                    None => anyhow::bail!("the source's watcher ended; this is a defect of the host"),
                },
                Some(event) = self.parts.events.next() => self.take_events(event),
                Ok(()) = self.parts.registry.changed() => self.take_registry(),
                () = tokio::time::sleep(wake) => self.discover_if_due().await,
            }
        }
        self.stop_passes().await;
        let summary = self.summary();
        self.parts.journal.host("stopped", &summary.to_string())?;
        Ok(summary)
    }

    fn take_source(&mut self, update: SourceUpdate) {
        match update {
            SourceUpdate::Loaded(revision) => {
                tracing::info!(
                    source = %revision.source,
                    revision = %short(&revision.id),
                    objects = revision.manifests.len(),
                    "source read"
                );
                self.source_problem = None;
                self.place(revision);
            }
            SourceUpdate::Failed(error) => {
                let problems: Vec<String> =
                    error.problems().iter().map(ToString::to_string).collect();
                self.refuse_source(problems);
            }
        }
    }

    /// Places a revision; one that cannot be placed leaves the last good one in force. Before
    /// discovery has been read nothing can be placed: the revision waits.
    fn place(&mut self, revision: Revision) {
        let Some(kinds) = self.parts.store.kinds() else {
            self.awaiting_kinds = Some(revision);
            return;
        };
        let next = match place(&revision, &kinds, &self.options.namespace) {
            Ok(next) => next,
            Err(errors) => {
                return self.refuse_source(errors.iter().map(ToString::to_string).collect());
            }
        };
        let is_new = self.revision.as_ref().is_none_or(|old| old.id != revision.id);
        if is_new {
            self.tell(SourceLine {
                source: revision.source.to_string(),
                revision: revision.id.to_string(),
                problems: vec![],
            });
        }
        let first = self.revision.is_none();
        let changes = self.desired.changes(&next);
        self.revision = Some(revision);
        self.desired = next;
        if !changes.changed.is_empty() {
            self.moved_at = Instant::now();
        }
        for key in &changes.gone {
            tracing::info!("{key} left the source; it stays in the cluster (nothing is pruned)");
            self.forget(key);
        }
        let trigger = if first { Trigger::Start } else { Trigger::Source };
        for key in &changes.changed {
            self.keys.entry(key.clone()).or_default().touched(trigger);
        }
        self.waves.add(changes.changed);
        self.watch_kinds();
        if !self.desired.unplaced.is_empty() {
            self.discover_at.get_or_insert_with(|| Instant::now() + DISCOVER_SOON);
        }
    }

    fn refuse_source(&mut self, problems: Vec<String>) {
        let kept =
            if self.revision.is_some() { "; the last good state stays in force" } else { "" };
        tracing::error!("source refused, nothing is pruned{kept}:\n  {}", problems.join("\n  "));
        self.source_problem = Some(problems.join("\n"));
        self.tell(SourceLine { source: "source".into(), revision: String::new(), problems });
        self.moved_at = Instant::now();
    }

    /// Tells the store which kinds to watch, and which of their objects we care about.
    fn watch_kinds(&mut self) {
        let mut wanted: HashMap<Gvk, HashSet<ObjectKey>> = HashMap::new();
        for desired in self.desired.objects.values() {
            wanted.entry(desired.gvk.clone()).or_default().insert(desired.key.clone());
        }
        for gvk in self.watched.extract_if(|gvk| !wanted.contains_key(gvk)) {
            self.answered.remove(&gvk);
            self.parts.store.forget(&gvk);
        }
        for (gvk, keys) in wanted {
            self.parts.store.set_interest(&gvk, &keys);
            self.watched.insert(gvk);
        }
    }

    fn forget(&mut self, key: &ObjectKey) {
        self.keys.remove(key);
        self.queue.remove(key);
        self.waves.passed(key);
    }

    fn release_waves(&mut self) {
        for key in self.waves.release() {
            self.look_afresh(&key);
        }
    }

    /// Its cause is new: earlier failures say nothing.
    fn look_afresh(&mut self, key: &ObjectKey) {
        if self.is_answered(key) {
            self.queue.reset(key, &key.group_kind);
        }
    }

    fn is_answered(&self, key: &ObjectKey) -> bool {
        self.desired.objects.get(key).is_some_and(|desired| self.answered.contains(&desired.gvk))
    }

    fn take_events(&mut self, event: Event) {
        let mut next = Some(event);
        while let Some(event) = next {
            match event {
                Event::Changed(key, received_at) => self.live_changed(&key, received_at),
                Event::Synced(gvk) => self.kind_answered(&gvk),
                Event::Degraded { gvk, reason } => {
                    tracing::warn!("watch of {gvk} is degraded: {reason}");
                    self.kind_answered(&gvk);
                }
                Event::Recovered(gvk) => {
                    tracing::info!("watch of {gvk} recovered");
                    self.kind_answered(&gvk);
                }
                Event::KindsChanged => self.kinds_changed(),
            }
            next = self.parts.events.try_next();
        }
    }

    fn kinds_changed(&mut self) {
        self.facts.forget();
        if let Some(revision) = self.awaiting_kinds.take().or_else(|| self.revision.clone()) {
            self.place(revision);
        }
    }

    fn live_changed(&mut self, key: &ObjectKey, received_at: Instant) {
        if let Some(state) = self.keys.get_mut(key) {
            state.event(received_at);
            if self.is_answered(key) && !self.waves.holds(key) {
                self.queue.add(key, &key.group_kind);
            }
        }
        if brings_kinds(&key.group_kind) {
            self.expect_kinds();
            self.schema_changed(key);
        }
    }

    /// A definition changed: what was answered by the old schema is asked again.
    fn schema_changed(&mut self, definition: &ObjectKey) {
        let Some((_, group)) = definition.name.split_once('.') else { return };
        let of_group = |key: &&ObjectKey| *key.group_kind.group == *group;
        let keys: Vec<ObjectKey> = self.keys.keys().filter(of_group).cloned().collect();
        for key in keys {
            if let Some(state) = self.keys.get_mut(&key) {
                state.forget_answer();
            }
            if self.is_answered(&key) && !self.waves.holds(&key) {
                self.queue.add(&key, &key.group_kind);
            }
        }
    }

    fn kind_answered(&mut self, gvk: &Gvk) {
        self.answered.insert(gvk.clone());
        let of_kind = |(_, desired): &(&ObjectKey, &Arc<_>)| {
            let desired: &trimtab_core::object::Desired = desired;
            desired.gvk == *gvk
        };
        let keys: Vec<ObjectKey> =
            self.desired.objects.iter().filter(of_kind).map(|(key, _)| key.clone()).collect();
        for key in keys {
            if !self.waves.holds(&key) {
                self.queue.reset(&key, &key.group_kind);
            }
        }
    }

    fn take_registry(&mut self) {
        let registry = self.parts.registry.borrow_and_update().clone();
        let status = registry.status();
        if let Err(error) = crate::plugins::write_status(&self.options.state, &status) {
            tracing::warn!("the plugin list cannot be written: {error:#}");
        }
        for line in self.plugins.changes(&status) {
            if let Err(error) = self.parts.journal.plugin(line) {
                tracing::error!("{error}");
            }
        }
        self.plugins = status;
        self.moved_at = Instant::now();
        let mut touched = Vec::new();
        for (key, state) in &mut self.keys {
            let stamp = registry.for_kind(&key.group_kind).map(|served| served.stamp);
            if state.stamp != stamp {
                state.touched(Trigger::Plugin);
                touched.push(key.clone());
            }
        }
        self.unclaimed_told.clear();
        self.waves.add(touched);
    }

    fn start_passes(&mut self) {
        while self.passes.len() < PASSES_AT_ONCE {
            let Some(key) = self.queue.next(self.started.elapsed()) else { return };
            self.start_pass(key);
        }
    }

    /// Starts the pass of this key, unless what is known already answers it.
    fn start_pass(&mut self, key: ObjectKey) {
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
        if state.answers(memo.as_ref()) {
            self.waves.passed(&key);
            return self.queue.done(&key, now, None);
        }
        let snapshot = Snapshot {
            facts: Arc::default(),
            applied_uid: self.applied.get(&key).cloned(),
            gvk: desired.gvk.clone(),
            desired,
            live,
            now_ms: now_ms(),
            retries: self.queue.failures(&key),
            key,
        };
        let trigger = state.take_trigger();
        self.spawn(snapshot, served.clone(), trigger);
    }

    fn spawn(&mut self, mut snapshot: Snapshot, served: Served, trigger: Trigger) {
        let facts = self.facts.clone();
        let writer = self.parts.writer.clone();
        let journal = self.parts.journal.clone();
        let redactor = self.parts.redactor.clone();
        let lookups = lookups::FromStore::new(self.parts.store.clone(), served.power.clone());
        let clock = Monotonic(self.started);
        self.passes.spawn(async move {
            snapshot.facts = facts.get(&snapshot.gvk).await;
            let judge = served.plugin.judgement(Arc::new(lookups));
            let world = World {
                judge: &judge,
                cluster: &writer,
                journal: &*journal,
                clock: &clock,
                redactor: &redactor,
            };
            let record = world.pass(&served.power, &snapshot, trigger).await;
            Passed { key: snapshot.key, record, stamp: served.stamp }
        });
    }

    fn no_plugin(&mut self, key: &ObjectKey) {
        self.waves.passed(key);
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

    fn end_pass(&mut self, passed: Result<Passed, tokio::task::JoinError>) {
        let Passed { key, record, stamp } = match passed {
            Ok(passed) => passed,
            // A defect of ours; the process must not go on as if nothing were.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        self.waves.passed(&key);
        if record.after.is_some() && brings_kinds(&record.key.group_kind) {
            self.expect_kinds();
        }
        let now = self.started.elapsed();
        match record.outcome.next() {
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
        if let Some(written) = record.written() {
            self.applied.insert(key.clone(), written.uid);
        }
        let Some(state) = self.keys.get_mut(&key) else { return };
        let since_event = state.since_event();
        let told = state.ended(&record, stamp);
        if matches!(record.outcome, Outcome::Created | Outcome::Corrected) {
            self.moved_at = Instant::now();
        }
        if told && record.is_notable() {
            report::log(&record, since_event);
            let ms = since_event.map(|since| (since.as_secs_f64() * 1e6).round() / 1e3);
            if let Err(error) = self.parts.journal.pass(&record, ms) {
                tracing::error!("{error}; this pass is not recorded");
            }
        }
    }

    /// Whether the pass before saw something old too: then the object moves faster than we look.
    fn is_stale_again(&self, key: &ObjectKey) -> bool {
        self.keys.get(key).is_some_and(KeyState::was_stale)
    }

    fn expect_kinds(&mut self) {
        self.facts.forget();
        self.kind_expected_until = Instant::now() + KIND_EXPECTED_WITHIN;
        if !self.desired.unplaced.is_empty() {
            let soon = Instant::now() + DISCOVER_SOON;
            self.discover_at = Some(self.discover_at.map_or(soon, |at| at.min(soon)));
        }
    }

    /// Asks for kinds that are missing: the store tells by an event when there are others.
    async fn discover_if_due(&mut self) {
        let now = Instant::now();
        if self.discover_at.is_none_or(|at| at > now) {
            return;
        }
        self.discover_at = None;
        if let Err(error) = self.parts.store.refresh_discovery().await {
            tracing::warn!("discovery failed and is tried again: {error}");
        }
        if !self.desired.unplaced.is_empty() || self.parts.store.kinds().is_none() {
            let expected = now < self.kind_expected_until;
            self.discover_at = Some(now + if expected { DISCOVER_SOON } else { DISCOVER_LATER });
        }
    }

    fn next_wake(&self) -> Duration {
        let queue = self.queue.next_due().map(|due| due.saturating_sub(self.started.elapsed()));
        let discover = self.discover_at.map(|at| at.saturating_duration_since(Instant::now()));
        let beat = Duration::from_secs(if self.options.once { 1 } else { 10 });
        [queue, discover].into_iter().flatten().fold(beat, Duration::min)
    }

    async fn stop_passes(&mut self) {
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

    fn tell(&self, line: SourceLine) {
        if let Err(error) = self.parts.journal.source(line) {
            tracing::error!("{error}");
        }
    }

    /// The source was read and every kind of it has an answer.
    fn is_ready(&self) -> bool {
        self.revision.is_some()
            && self.desired.objects.values().all(|desired| self.answered.contains(&desired.gvk))
    }

    fn round_is_over(&self) -> bool {
        if self.revision.is_none() {
            return self.source_problem.is_some();
        }
        let idle = self.waves.is_empty()
            && self.passes.is_empty()
            && self.queue.depth() == 0
            && self.is_ready();
        let all_well =
            self.desired.unplaced.is_empty() && self.keys.values().all(KeyState::is_settled);
        let tried = |(key, state): (&ObjectKey, &KeyState)| {
            state.is_settled() || self.queue.failures(key) >= ONCE_TRIES
        };
        let stuck = self.moved_at.elapsed() > ONCE_PATIENCE && self.keys.iter().all(tried);
        idle && (all_well || stuck)
    }

    /// How things stand.
    fn summary(&self) -> Summary {
        Summary::new(&self.desired, &self.keys, self.source_problem.clone())
    }
}

/// Whether an object of this kind makes the API server serve more kinds.
fn brings_kinds(kind: &GroupKind) -> bool {
    matches!(&*kind.group, "apiextensions.k8s.io" | "apiregistration.k8s.io")
}

/// A number from 0 to 1 that differs from key to key, to spread retries.
fn spread(key: &ObjectKey) -> f64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    f64::from(u32::try_from(hasher.finish() % 1000).unwrap_or(0)) / 1000.0
}

fn short(revision: &str) -> &str {
    revision.get(..19).unwrap_or(revision)
}

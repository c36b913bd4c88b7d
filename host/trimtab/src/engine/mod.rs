//! The engine: one loop that owns all state and starts passes.
//!
//! Takes what the sources, the watches, the plugin directory and ended passes say; decides which
//! object is looked at next; starts passes as tasks of their own. Everything that changes state
//! happens in this loop, one thing after the other, so that nothing here needs a lock. What a
//! pass does is `trimtab_core::pass`. `inputs.rs` takes in, `passes.rs` sends out.

mod inputs;
mod passes;

mod budgets;
mod desired;
mod entered;
mod entrance;
mod facts;
mod health;
mod lookups;
mod made;
mod order;
mod prune;
mod reads;
mod report;
mod requests;
mod rules;
mod settled;
mod sources;
mod status;

use self::budgets::Windows;
use self::entrance::Entrance;
use self::health::Healths;
use self::made::Made;
use self::order::Waits;
use self::prune::Pruning;
use self::reads::Readers;
use self::rules::RuleWatch;
use self::settled::{KeyState, Waiting};
use self::sources::{Incoming, Sources};
use crate::config::{Config, ConfigUpdate};
use crate::journal::JournalFile;
use crate::plugins::Registry;
use crate::suspension::Suspension;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trimtab_core::identity::{Digest, GroupKind, Gvk, ObjectKey};
use trimtab_core::order::Order;
use trimtab_core::ports::Clock;
use trimtab_core::queue::Queue;
use trimtab_core::record::Record;
use trimtab_core::redact::Redactor;
use trimtab_kube::{Events, Store, Writer};

pub(crate) use self::desired::{DesiredState, Refused, place};
pub(crate) use self::facts::FactsCache;
pub(crate) use self::health::release_file;
pub(crate) use self::lookups::FromStore;
pub(crate) use self::reads::ForReads;
pub(crate) use self::settled::Summary;
pub(crate) use self::status::{SourceStatus, read as read_sources};

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
    /// Where desired state comes from, as it was at the start.
    pub(crate) config: Config,
    /// One round, then stop.
    pub(crate) once: bool,
    /// Changes that a person approved.
    pub(crate) approvals: Approvals,
    /// State directory.
    pub(crate) state: PathBuf,
    /// Namespace of the inventory.
    pub(crate) inventory_namespace: String,
}

/// What a person approved: each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Approvals {
    /// Changes, by `trimtab_core::approval::digest`.
    pub(crate) changes: Arc<HashSet<Digest>>,
    /// Deletions of what left its source, by `trimtab_core::approval::deletion`.
    pub(crate) deletions: HashSet<Digest>,
    /// Nothing else may be written.
    pub(crate) only: bool,
}

/// What the engine is connected to.
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) events: Events,
    pub(crate) writer: Writer,
    pub(crate) configs: mpsc::Receiver<ConfigUpdate>,
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
    /// What is configured now.
    config: Arc<Config>,
    sources: Sources,
    /// The configuration of the start, until it is taken up.
    first: Option<Config>,
    followed_at: Option<Instant>,
    incoming: mpsc::Receiver<Incoming>,
    desired: DesiredState,
    entrance: Entrance,
    /// The policies by which desired state was put together last.
    reviewed_under: Digest,
    /// Something was in force already.
    placed_once: bool,
    requests_looked_at: Instant,
    /// Plugins that are not asked because somebody said so, by name.
    suspended_plugins: HashMap<String, Suspension>,
    /// What Secrets hold, declared or live, may be other than the redactor knows.
    secrets_moved: bool,
    keys: HashMap<ObjectKey, KeyState>,
    /// The UID under which we last wrote each object.
    applied: HashMap<ObjectKey, Arc<str>>,
    queue: Queue<ObjectKey, GroupKind>,
    order: Order,
    waits: Waits,
    made: Made,
    pruning: Pruning,
    rules: RuleWatch,
    /// Kinds whose watch has an answer: synced, or known not to sync.
    answered: HashSet<Gvk>,
    watched: HashSet<Gvk>,
    /// By the kind that is judged: kinds that its plugin reads, and that have to have an answer
    /// before.
    read_before: HashMap<GroupKind, Vec<Gvk>>,
    readers: Readers,
    facts: Arc<FactsCache>,
    /// Kinds whose schema is another now.
    schemas: mpsc::Receiver<Vec<Gvk>>,
    passes: JoinSet<Passed>,
    budgets: Windows,
    plugins: crate::plugins::Status,
    healths: Healths,
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
    reads: trimtab_core::reads::Reads,
    /// Writes that it took of its plugin's budget.
    taken: trimtab_core::budget::Amount,
    /// Why the plugin was not asked.
    hold: Option<health::Hold>,
    /// What came of asking it.
    noted: Option<Result<(), trimtab_core::quarantine::FaultSort>>,
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
        let facts = Arc::new(FactsCache::new(parts.store.clone()));
        let (sources, incoming) = Sources::new();
        let made = Made::new(&options.inventory_namespace);
        let entrance = Entrance::resumed(&options.state);
        let first = Some(options.config.clone());
        Self {
            schemas: facts.follow(),
            facts,
            rules: RuleWatch::new(now),
            options,
            parts,
            started: now,
            config: Arc::default(),
            sources,
            first,
            followed_at: None,
            incoming,
            desired: DesiredState::default(),
            entrance,
            reviewed_under: Digest::of(b""),
            placed_once: false,
            requests_looked_at: now,
            suspended_plugins: HashMap::new(),
            secrets_moved: false,
            keys: HashMap::new(),
            applied,
            queue: Queue::default(),
            order: Order::default(),
            waits: Waits::new(now),
            pruning: Pruning::new(),
            made,
            answered: HashSet::new(),
            watched: HashSet::new(),
            read_before: HashMap::new(),
            readers: Readers::default(),
            passes: JoinSet::new(),
            budgets: Windows::default(),
            plugins: crate::plugins::Status::default(),
            healths: Healths::new(now),
            unclaimed_told: HashSet::new(),
            discover_at: None,
            kind_expected_until: now,
            moved_at: now,
        }
    }

    /// Runs until it is stopped, or until one round is over.
    ///
    /// # Errors
    /// The journal cannot be written at the start, or it is not known which plugins are quarantined.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> anyhow::Result<Summary> {
        self.healths.resume(&self.options.state)?;
        self.parts.journal.host("started", env!("CARGO_PKG_VERSION"))?;
        self.take_registry();
        self.forget_requests();
        while !stop.is_cancelled() {
            self.parts.pulse.beat(self.is_ready());
            self.release_order();
            self.start_passes();
            self.keep_made();
            self.prune();
            self.tell_waits();
            self.tell_idle_rules();
            self.take_releases();
            self.take_requests();
            self.take_first_config();
            self.begin();
            self.accept_again();
            self.review_again();
            self.tell_sources();
            self.tell_counts();
            if let Err(error) = self.parts.journal.vouch() {
                tracing::error!("{error}");
            }
            if self.options.once && self.round_is_over() {
                break;
            }
            let wake = self.next_wake();
            tokio::select! {
                () = stop.cancelled() => {}
                Some(passed) = self.passes.join_next() => self.end_pass(passed),
                Some(done) = self.entrance.tasks.join_next() => self.take_entered(done),
                Some(incoming) = self.incoming.recv() => self.take_incoming(incoming)?,
                Some(done) = self.made.next() => self.take_made(done),
                Some(done) = self.pruning.next() => self.take_pruned(done),
                Some(update) = self.parts.configs.recv() => self.take_config_update(update),
                Some(event) = self.parts.events.next() => self.take_events(event),
                Some(kinds) = self.schemas.recv() => self.schemas_changed(&kinds),
                Ok(()) = self.parts.registry.changed() => self.take_registry(),
                () = tokio::time::sleep(wake) => self.discover_if_due().await,
            }
        }
        self.stop_passes().await;
        self.end_made().await;
        self.tell_plugins();
        self.tell_sources();
        let summary = self.summary();
        self.parts.journal.host("stopped", &summary.to_string())?;
        self.parts.journal.close()?;
        Ok(summary)
    }

    /// Its cause is new: earlier failures say nothing.
    fn look_afresh(&mut self, key: &ObjectKey) {
        if self.is_answered(key) {
            self.queue.reset(key, &key.group_kind);
        }
    }

    /// Whether what the key's pass needs is known: its own kind, and those that its plugin reads.
    fn is_answered(&self, key: &ObjectKey) -> bool {
        self.desired.objects.get(key).is_some_and(|desired| self.answered.contains(&desired.gvk))
            && self
                .read_before
                .get(&key.group_kind)
                .is_none_or(|kinds| kinds.iter().all(|kind| self.answered.contains(kind)))
    }

    fn next_wake(&self) -> Duration {
        let queue = self.queue.next_due().map(|due| due.saturating_sub(self.started.elapsed()));
        let discover = self.discover_at.map(|at| at.saturating_duration_since(Instant::now()));
        let beat = Duration::from_secs(if self.options.once { 1 } else { 10 });
        let release = self.healths.some_held().then_some(health::LOOK_FOR_RELEASE_EVERY);
        let requests = Some(requests::LOOK_EVERY);
        let own =
            [self.made.due(), self.pruning.due(), self.waits.due(&self.order), self.entrance.due()];
        let wakes = [queue, discover, release, requests, self.begin_due()].into_iter().chain(own);
        wakes.flatten().fold(beat, Duration::min)
    }

    /// Something is in force, every source was heard of, and every kind has an answer.
    fn is_ready(&self) -> bool {
        self.placed_once
            && self.sources.all_answered()
            && self.desired.objects.values().all(|desired| self.answered.contains(&desired.gvk))
    }

    fn round_is_over(&self) -> bool {
        if !self.sources.begun || !self.sources.all_answered() {
            return false;
        }
        if !self.sources.some_in_force() {
            return self.sources.iter().all(|entry| entry.problem.is_some());
        }
        let idle = self.order.is_through()
            && self.passes.is_empty()
            && self.queue.depth() == 0
            && self.entrance.is_quiet()
            && self.is_ready();
        let all_well = self.desired.unplaced.is_empty()
            && !self.order.some_blocked()
            && self.made.is_quiet()
            && self.pruning.is_quiet()
            && self.keys.values().all(KeyState::is_settled);
        let tried = |(key, state): (&ObjectKey, &KeyState)| {
            state.is_settled()
                || state.held
                || self.order.is_blocked(key)
                || self.queue.failures(key) >= ONCE_TRIES
        };
        let stuck = self.moved_at.elapsed() > ONCE_PATIENCE && self.keys.iter().all(tried);
        idle && (all_well || stuck)
    }

    /// How things stand.
    fn summary(&self) -> Summary {
        let lines = self.sources.iter().map(status::summary_line).collect();
        let (waits, kinds, pruned) = (self.waiting_words(), self.kind_words(), self.prune_lines());
        Summary::new(&self.desired, &self.keys, lines, &Waiting { waits, kinds, pruned })
    }
}

/// Whether an object of this kind makes the API server serve more kinds.
fn brings_kinds(kind: &GroupKind) -> bool {
    matches!(&*kind.group, "apiextensions.k8s.io" | "apiregistration.k8s.io")
}

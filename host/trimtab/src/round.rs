//! One look at every object of some revisions, writing nothing: what `diff` and `plan` are made of.

use crate::config::SourceConfig;
use crate::engine::{DesiredState, FactsCache, ForReads, FromStore, Refused, place};
use crate::generic::Generic;
use crate::plugins::Registry;
use crate::secrets;
use crate::timestamp::now_ms;
use anyhow::Context as _;
use futures::StreamExt as _;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trimtab_core::decision::{ActionKind, Comparison, Difference, Verdict};
use trimtab_core::denial::Accounts;
use trimtab_core::grant::Power;
use trimtab_core::identity::{Digest, GroupKind, Gvk, ObjectKey};
use trimtab_core::object::{Desired, Manifest, Provenance, Revision};
use trimtab_core::pass::{Bounds, World};
use trimtab_core::placing::PlacingError;
use trimtab_core::plugin::{KindPattern, PluginIdentity, PluginManifest};
use trimtab_core::policy::{self, Policies, Request, Reviewer, Vouched};
use trimtab_core::ports::{Clock, Journal, JournalError, Judge, PluginFault};
use trimtab_core::record::{Intent, Record, Trigger};
use trimtab_core::redact::Redactor;
use trimtab_core::snapshot::Snapshot;
use trimtab_kube::{ApiServer, Event, Events, Kinds, Lookup, Store, Writer};
use trimtab_wasm::Judgement;

/// How long kinds may take to be listed.
const LISTED_WITHIN: Duration = Duration::from_secs(60);
/// Passes at once: each may ask for one dry run.
const PASSES_AT_ONCE: usize = 16;

/// What was found.
pub(crate) struct Round {
    /// One for each object that could be placed.
    pub(crate) looked: Vec<Looked>,
    /// Objects whose kind is not served, with the reason.
    pub(crate) unplaced: Vec<(Manifest, String)>,
    /// Objects that cannot be placed at all.
    pub(crate) errors: Vec<PlacingError>,
    /// Objects that their sources may not have.
    pub(crate) refused: Vec<Refused>,
    /// Objects of kinds that no plugin claims.
    pub(crate) unclaimed: Vec<Arc<Desired>>,
    /// The redactor, aware of the Secrets that were looked at.
    pub(crate) redactor: Redactor,
    /// What the cluster was asked through.
    pub(crate) store: Store,
}

/// Who judges in a round.
#[derive(Clone)]
pub(crate) enum Judges {
    /// The generic comparison, for every kind.
    Generic,
    /// These plugins, each with its grant.
    Plugins(Arc<Registry>),
}

/// One of them, for one pass.
enum JudgeOf {
    Generic(Generic),
    Plugin(Judgement),
}

impl Judge for JudgeOf {
    async fn compare(&self, snapshot: &Snapshot) -> Result<Comparison, PluginFault> {
        match self {
            Self::Generic(judge) => judge.compare(snapshot).await,
            Self::Plugin(judge) => judge.compare(snapshot).await,
        }
    }

    async fn decide(
        &self,
        snapshot: &Snapshot,
        differences: &[Difference],
    ) -> Result<Verdict, PluginFault> {
        match self {
            Self::Generic(judge) => judge.decide(snapshot, differences).await,
            Self::Plugin(judge) => judge.decide(snapshot, differences).await,
        }
    }

    fn secrets_read(&self) -> Vec<Arc<[u8]>> {
        match self {
            Self::Generic(judge) => judge.secrets_read(),
            Self::Plugin(judge) => judge.secrets_read(),
        }
    }
}

impl Judges {
    /// What judges objects of this kind, and what it may do.
    fn of(&self, kind: &GroupKind, store: &Store) -> Option<(JudgeOf, Arc<Power>)> {
        match self {
            Self::Generic => Some((JudgeOf::Generic(Generic), Arc::new(observer()))),
            Self::Plugins(registry) => {
                let served = registry.for_kind(kind)?;
                let reads = FromStore::new(store.clone(), served.power.clone());
                let judge = served.plugin.judgement(Arc::new(reads));
                Some((JudgeOf::Plugin(judge), served.power.clone()))
            }
        }
    }

    /// Policies that review what would be written.
    fn reviewers(&self) -> Arc<[Arc<dyn Reviewer>]> {
        match self {
            Self::Generic => Arc::default(),
            Self::Plugins(registry) => registry.reviewers.clone(),
        }
    }

    /// Kinds that are read beside what is judged, each with its namespaces.
    fn reads(&self, objects: &[Arc<Desired>], kinds: &Kinds) -> HashMap<Gvk, HashSet<Arc<str>>> {
        let Self::Plugins(registry) = self else { return HashMap::new() };
        let keys = objects.iter().map(|desired| &desired.key);
        let power = |kind: &GroupKind| registry.for_kind(kind).map(|served| &*served.power);
        let served = |kind: &GroupKind| match kinds.preferred(kind) {
            Lookup::Found(served) => Some((served.gvk.clone(), served.namespaced)),
            Lookup::NotServed | Lookup::Unknown(_) => None,
        };
        ForReads::of(keys, power, served).whole
    }
}

/// One object that was looked at.
#[derive(Debug)]
pub(crate) struct Looked {
    /// What was found, redacted.
    pub(crate) record: Record,
    /// As it is declared.
    pub(crate) desired: Arc<Desired>,
    /// As the server has it, if it has it.
    pub(crate) live: Option<Arc<[u8]>>,
}

/// Looks at every object of these revisions once, as a host would put them together.
///
/// # Errors
/// The API server cannot be asked what it serves.
pub(crate) async fn observe(
    server: ApiServer,
    revisions: Vec<(Arc<SourceConfig>, Revision)>,
    judges: &Judges,
    redactor: &Redactor,
) -> anyhow::Result<Round> {
    let (store, mut events) = Store::start(server, trimtab_kube::Options::default());
    let kinds =
        store.refresh_discovery().await.context("cannot ask the API server what it serves")?;
    let mut errors = Vec::new();
    let mut placed = Vec::new();
    for (config, revision) in &revisions {
        match place(revision, &kinds, config, None) {
            Ok(one) => placed.push(one),
            Err(more) => errors.extend(more),
        }
    }
    let mut state = DesiredState::of(placed.iter(), |_| None);
    let provenance: HashMap<Arc<str>, &Provenance> =
        revisions.iter().map(|(_, it)| (it.source.clone(), &it.provenance)).collect();
    let vouched = |desired: &Desired| {
        let by = |it: &&Provenance| Arc::new(Vouched::by(it, Some(&desired.origin.file)));
        provenance.get(&desired.source).map(by).unwrap_or_default()
    };
    if let Judges::Plugins(registry) = judges {
        enter(&mut state, registry, redactor, vouched).await;
    }
    let signed = state.objects.values().map(|it| (it.key.clone(), vouched(it))).collect();
    let by_source = state.accounts;
    let unplaced = state.unplaced.into_iter().map(|it| (it.manifest, it.reason)).collect();
    let objects: Vec<Arc<Desired>> = state.objects.into_values().collect();
    list(&store, &mut events, &objects, judges.reads(&objects, &kinds)).await;
    let facts = FactsCache::new(store.clone());
    let writer = Writer::new(store.clone());
    let redactor = secrets::redactor(redactor, objects.iter(), &store);
    let (objects, unclaimed) = match judges {
        Judges::Generic => (objects, Vec::new()),
        Judges::Plugins(registry) => objects
            .into_iter()
            .partition(|desired| registry.for_kind(&desired.key.group_kind).is_some()),
    };
    let known = Known { accounts: by_source, applied: HashMap::new(), vouched: signed };
    let looked = look(&store, &facts, &writer, judges, &redactor, &known, objects).await;
    Ok(Round { looked, unplaced, errors, refused: state.refused, unclaimed, redactor, store })
}

/// What is known of objects beside what the store holds.
#[derive(Default)]
pub(crate) struct Known {
    /// Service accounts that each source declares.
    pub(crate) accounts: HashMap<Arc<str>, Arc<Accounts>>,
    /// The UIDs under which we wrote objects.
    pub(crate) applied: HashMap<ObjectKey, Arc<str>>,
    /// Who vouches for each object.
    pub(crate) vouched: HashMap<ObjectKey, Arc<Vouched>>,
}

/// Takes out what policies do not let in, and says why.
async fn enter(
    state: &mut DesiredState,
    registry: &Registry,
    redactor: &Redactor,
    vouched: impl Fn(&Desired) -> Arc<Vouched>,
) {
    if registry.reviewers.is_empty() {
        return;
    }
    let objects: Vec<Arc<Desired>> = state.objects.values().cloned().collect();
    let reviews = objects.into_iter().map(|desired| {
        let request = Request::enters(&desired, vouched(&desired), now_ms());
        async move {
            let opinions = policy::ask(&registry.reviewers, &request, redactor).await;
            (desired, policy::denied(&opinions))
        }
    });
    let answers: Vec<_> =
        futures::stream::iter(reviews).buffer_unordered(PASSES_AT_ONCE).collect().await;
    for (desired, denied) in answers {
        let Some(denied) = denied else { continue };
        state.withhold(&desired.key, None);
        state.refused.push(Refused {
            source: desired.source.to_string(),
            object: desired.key.to_string(),
            origin: desired.origin.to_string(),
            reason: denied.reason,
        });
    }
    state.refused.sort();
    state.count_accounts();
}

/// One pass of each of these objects that writes nothing, against what the store holds.
pub(crate) async fn look(
    store: &Store,
    facts: &FactsCache,
    writer: &Writer,
    judges: &Judges,
    redactor: &Redactor,
    known: &Known,
    objects: Vec<Arc<Desired>>,
) -> Vec<Looked> {
    let started = Started(Instant::now());
    let passes = objects.into_iter().filter_map(|desired| {
        let started = &started;
        let (judge, power) = judges.of(&desired.key.group_kind, store)?;
        let accounts = known.accounts.get(&desired.source).cloned().unwrap_or_default();
        let policies = Policies {
            reviewers: judges.reviewers(),
            vouched: known.vouched.get(&desired.key).cloned().unwrap_or_default(),
        };
        let bounds = Bounds { despite_suspension: true, accounts, policies, ..Bounds::default() };
        Some(async move {
            let snapshot = Snapshot {
                key: desired.key.clone(),
                gvk: desired.gvk.clone(),
                live: store.live(&desired.key, &desired.gvk),
                applied_uid: known.applied.get(&desired.key).cloned(),
                facts: facts.get(&desired.gvk).await,
                desired,
                now_ms: now_ms(),
                retries: 0,
                standoff: None,
            };
            let world = World {
                judge: &judge,
                cluster: writer,
                journal: &NoJournal,
                clock: started,
                redactor,
                bounds: &bounds,
            };
            let record = world.pass(&power, &snapshot, Trigger::Request).await;
            let live = snapshot.live_object().map(|live| live.json.clone());
            Looked { record, desired: snapshot.desired, live }
        })
    });
    futures::stream::iter(passes).buffer_unordered(PASSES_AT_ONCE).collect().await
}

/// Waits until every kind has an answer; what has none in time is unknown, never absent.
async fn list(
    store: &Store,
    events: &mut Events,
    objects: &[Arc<Desired>],
    reads: HashMap<Gvk, HashSet<Arc<str>>>,
) {
    let mut wanted: HashMap<Gvk, HashSet<ObjectKey>> = HashMap::new();
    for gvk in reads.keys() {
        wanted.entry(gvk.clone()).or_default();
    }
    for desired in objects {
        wanted.entry(desired.gvk.clone()).or_default().insert(desired.key.clone());
    }
    let mut waiting: HashSet<Gvk> = wanted.keys().cloned().collect();
    for (gvk, keys) in &wanted {
        let none = HashSet::new();
        store.set_interest_and_whole(gvk, keys, reads.get(gvk).unwrap_or(&none));
    }
    let all = async {
        while !waiting.is_empty() {
            match events.next().await {
                Some(Event::Synced(gvk) | Event::Degraded { gvk, .. }) => waiting.remove(&gvk),
                Some(_) => false,
                None => break,
            };
        }
    };
    let _ = tokio::time::timeout(LISTED_WITHIN, all).await;
}

/// May look at everything and write nothing: it has no grant.
fn observer() -> Power {
    let name = "diff".to_owned();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Power {
        plugin: PluginIdentity {
            name: name.clone(),
            version: version.clone(),
            digest: Digest::of(b"built in"),
        },
        manifest: PluginManifest {
            name,
            version,
            description: String::new(),
            wit: String::new(),
            claims: vec![KindPattern::Any],
            reads: vec![],
            actions: [ActionKind::ApplyDesired].into(),
        },
        grant: None,
    }
}

struct Started(Instant);

impl Clock for Started {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Nothing is written, so nothing is recorded; an intent would be a defect.
struct NoJournal;

impl Journal for NoJournal {
    async fn intent(&self, _: &Intent<'_>) -> Result<(), JournalError> {
        Err(JournalError("this command writes nothing".into()))
    }
}

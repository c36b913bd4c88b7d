//! One look at every object of some revisions, writing nothing: what `diff` is made of.

use crate::config::SourceConfig;
use crate::engine::{DesiredState, FactsCache, Refused, place};
use crate::generic::Generic;
use crate::secrets;
use crate::timestamp::now_ms;
use anyhow::Context as _;
use futures::StreamExt as _;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trimtab_core::decision::ActionKind;
use trimtab_core::grant::Power;
use trimtab_core::identity::{Digest, Gvk, ObjectKey};
use trimtab_core::object::{Desired, Manifest, Revision};
use trimtab_core::pass::{Bounds, World};
use trimtab_core::placing::PlacingError;
use trimtab_core::plugin::{KindPattern, PluginIdentity, PluginManifest};
use trimtab_core::ports::{Clock, Journal, JournalError};
use trimtab_core::record::{Intent, Record, Trigger};
use trimtab_core::redact::Redactor;
use trimtab_core::snapshot::Snapshot;
use trimtab_kube::{ApiServer, Event, Events, Store, Writer};

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
    /// The redactor, aware of the Secrets that were looked at.
    pub(crate) redactor: Redactor,
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
    let state = DesiredState::of(placed.iter(), |_| None);
    let unplaced = state.unplaced.into_iter().map(|it| (it.manifest, it.reason)).collect();
    let objects: Vec<Arc<Desired>> = state.objects.into_values().collect();
    list(&store, &mut events, &objects).await;
    let facts = FactsCache::new(store.clone());
    let writer = Writer::new(store.clone());
    let redactor = secrets::redactor(redactor, objects.iter(), &store);
    let looked = look(&store, &facts, &writer, &redactor, &HashMap::new(), objects).await;
    Ok(Round { looked, unplaced, errors, refused: state.refused, redactor })
}

/// One pass of each of these objects that writes nothing, against what the store holds. `applied` has
/// the UIDs under which we wrote them, as far as that is known.
pub(crate) async fn look(
    store: &Store,
    facts: &FactsCache,
    writer: &Writer,
    redactor: &Redactor,
    applied: &HashMap<ObjectKey, Arc<str>>,
    objects: Vec<Arc<Desired>>,
) -> Vec<Looked> {
    let power = observer();
    let started = Started(Instant::now());
    let bounds = Bounds { despite_suspension: true, ..Bounds::default() };
    let passes = objects.into_iter().map(|desired| {
        let (power, started, bounds) = (&power, &started, &bounds);
        async move {
            let snapshot = Snapshot {
                key: desired.key.clone(),
                gvk: desired.gvk.clone(),
                live: store.live(&desired.key, &desired.gvk),
                applied_uid: applied.get(&desired.key).cloned(),
                facts: facts.get(&desired.gvk).await,
                desired,
                now_ms: now_ms(),
                retries: 0,
                standoff: None,
            };
            let world = World {
                judge: &Generic,
                cluster: writer,
                journal: &NoJournal,
                clock: started,
                redactor,
                bounds,
            };
            let record = world.pass(power, &snapshot, Trigger::Request).await;
            let live = snapshot.live_object().map(|live| live.json.clone());
            Looked { record, desired: snapshot.desired, live }
        }
    });
    futures::stream::iter(passes).buffer_unordered(PASSES_AT_ONCE).collect().await
}

/// Waits until every kind has an answer; what has none in time is unknown, never absent.
async fn list(store: &Store, events: &mut Events, objects: &[Arc<Desired>]) {
    let mut wanted: HashMap<Gvk, HashSet<ObjectKey>> = HashMap::new();
    for desired in objects {
        wanted.entry(desired.gvk.clone()).or_default().insert(desired.key.clone());
    }
    let mut waiting: HashSet<Gvk> = wanted.keys().cloned().collect();
    for (gvk, keys) in &wanted {
        store.set_interest(gvk, keys);
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

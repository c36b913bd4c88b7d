//! What the host holds of the cluster: the heap that it takes, and what looking at all of it again
//! costs.

use crate::allocator;
use crate::objects::{self, config_map, deployment};
use crate::process::cpu;
use crate::table::{Table, time};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use trimtab_core::decision::Comparison;
use trimtab_core::identity::{Digest, Gvk, ObjectKey};
use trimtab_core::memo::Memo;
use trimtab_core::object::{Desired, Live};
use trimtab_core::ports::Judge as _;
use trimtab_kube::{ApiServer, Events, Options, RequestCounts, Store};
use trimtab_system_tests::{Cluster, PATIENCE, until};
use trimtab_wasm::{Judgement, NoLookups, Plugin, Sandbox, SandboxOptions};

const NAMESPACE: &str = "cached";
/// Of each kind.
const OBJECTS: usize = 1_000;
/// How often each is looked at again, so that it makes 10,000 of the usual mixture, four fifths
/// Deployments.
const DEPLOYMENT_TURNS: usize = 8;
const CONFIG_MAP_TURNS: usize = 2;
/// Heap kept for each cached object of 4 KB.
const HEAP_BYTES: i64 = 6 << 10;
/// 10,000 objects without drift.
const RECHECK: Duration = Duration::from_secs(1);
/// As the engine does it.
const PASSES_AT_ONCE: usize = 16;

/// Measures both against a real server, whose requests are counted.
pub(crate) async fn measure(
    cluster: &Cluster,
    server: &ApiServer,
    wasm: &[u8],
    table: &mut Table,
) -> Result<()> {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let named = |n: usize| format!("object-{n:04}");
    let maps: Vec<_> = (0..OBJECTS).map(|n| config_map(NAMESPACE, &named(n))).collect();
    let deployments: Vec<_> = (0..OBJECTS).map(|n| deployment(NAMESPACE, &named(n))).collect();
    eprintln!("  (storing {} objects)", maps.len() + deployments.len());
    objects::apply_all(cluster, &[namespace]).await?;
    objects::apply_all(cluster, &maps).await?;
    objects::apply_all(cluster, &deployments).await?;
    let desired = |objects: &[serde_json::Value]| -> Result<Vec<Arc<Desired>>> {
        objects.iter().map(|object| objects::desired(object).map(Arc::new)).collect()
    };
    let (maps, deployments) = (desired(&maps)?, desired(&deployments)?);

    let (store, mut events) = Store::start(server.clone(), Options::default());
    store.refresh_discovery().await?;
    heap(&store, &mut events, &maps, "ConfigMap", Some(HEAP_BYTES), table).await?;
    heap(&store, &mut events, &deployments, "Deployment", None, table).await?;

    let mut facts = HashMap::new();
    for desired in [&maps[0], &deployments[0]] {
        facts.insert(desired.gvk.clone(), objects::facts(server, &desired.gvk).await?);
    }
    let sandbox = Sandbox::new(SandboxOptions::default())?;
    let plugin = Plugin::load(wasm, &sandbox)?;
    let turns = |all: &[Arc<Desired>], turns: usize| -> Vec<Arc<Desired>> {
        std::iter::repeat_n(all, turns).flatten().cloned().collect()
    };
    let mut all = turns(&deployments, DEPLOYMENT_TURNS);
    all.extend(turns(&maps, CONFIG_MAP_TURNS));
    let room = Recheck {
        store: store.clone(),
        judge: plugin.judgement(Arc::new(NoLookups)),
        facts,
        stamp: Digest::of(wasm),
    };
    room.measure(&all, table).await
}

/// Takes these objects into the cache, and counts what that keeps.
async fn heap(
    store: &Store,
    events: &mut Events,
    objects: &[Arc<Desired>],
    kind: &str,
    goal: Option<i64>,
    table: &mut Table,
) -> Result<()> {
    let gvk = objects[0].gvk.clone();
    // The watch and its list of objects that nobody cares about come first.
    store.set_interest(&gvk, &HashSet::new());
    let synced = async || {
        let of_kind = |health: trimtab_kube::Health| health.gvk == gvk && health.synced;
        let found = store.health().into_iter().any(of_kind);
        found.then_some(()).context("not yet")
    };
    until("the kind is listed", PATIENCE, synced).await?;
    let known = |key: &ObjectKey| matches!(store.live(key, &gvk), Live::Present(_));
    let (bytes, took) = allocator::kept(async {
        let keys = objects.iter().map(|object| fresh(&object.key)).collect::<HashSet<_>>();
        store.set_interest(&gvk, &keys);
        drop(keys);
        until("every object is cached", PATIENCE, async || {
            let all = objects.iter().all(|object| known(&object.key));
            all.then_some(()).context("not yet")
        })
        .await?;
        // What waits to be told is no part of the cache.
        while events.try_next().is_some() {}
        tokio::time::sleep(Duration::from_millis(300)).await;
        anyhow::Ok(())
    })
    .await;
    took?;
    let each = bytes / i64::try_from(objects.len())?;
    let stored = objects.iter().filter_map(|object| match store.live(&object.key, &gvk) {
        Live::Present(live) => Some(live.json.len()),
        _ => None,
    });
    let stored = stored.sum::<usize>() / objects.len();
    let what = format!("heap for each cached {kind}");
    let measured = format!("{each} bytes for {stored} as cached");
    match goal {
        Some(goal) => table.figure(&what, measured, "≤ 6144 bytes", each <= goal),
        None => table.told(&what, measured),
    }
    Ok(())
}

/// A key that shares nothing with the one that it is made of.
fn fresh(key: &ObjectKey) -> ObjectKey {
    ObjectKey::new(key.group_kind.clone(), key.namespace_str(), &key.name)
}

/// Looks at cached objects again, as the engine does.
#[derive(Clone)]
struct Recheck {
    store: Store,
    judge: Judgement,
    facts: HashMap<Gvk, Arc<[u8]>>,
    stamp: Digest,
}

impl Recheck {
    async fn measure(&self, all: &[Arc<Desired>], table: &mut Table) -> Result<()> {
        let before = asked(self.store.server().requests());
        // Once for warmth; the better of two, since the machine does other things too.
        self.compare_all(&all[..all.len() / 10]).await?;
        let mut best = (Duration::MAX, Duration::MAX);
        for _ in 0..2 {
            let (start, used) = (Instant::now(), cpu(std::process::id())?);
            self.compare_all(all).await?;
            best = best.min((start.elapsed(), cpu(std::process::id())? - used));
        }
        let count = u32::try_from(all.len())?;
        table.figure(
            &format!("re-check of {count} cached objects in the sandbox"),
            format!(
                "{} on {} cores; {} of processor time each",
                time(best.0),
                std::thread::available_parallelism()?,
                time(best.1 / count)
            ),
            "≤ 1 s",
            best.0 <= RECHECK,
        );

        let known: Vec<Option<Memo>> = all.iter().map(|desired| self.memo(desired)).collect();
        let start = Instant::now();
        let hits = all.iter().zip(&known).filter(|(desired, known)| self.memo(desired) == **known);
        ensure!(hits.count() == all.len(), "a memo does not hit");
        let took = start.elapsed();
        let what = format!("re-check of {count} cached objects by memo");
        table.figure(&what, time(took), "≤ 1 s", took <= RECHECK);

        let more = asked(self.store.server().requests()) - before;
        let told = format!("{more}, discovery aside");
        table.figure("requests to the server by both re-checks", told, "0", more == 0);
        Ok(())
    }

    fn memo(&self, desired: &Desired) -> Option<Memo> {
        Memo::of(desired, &self.store.live(&desired.key, &desired.gvk), self.stamp)
    }

    /// A task for each pass, and so many at once.
    async fn compare_all(&self, all: &[Arc<Desired>]) -> Result<()> {
        let mut passes = JoinSet::new();
        let mut all = all.iter();
        loop {
            while passes.len() < PASSES_AT_ONCE
                && let Some(desired) = all.next()
            {
                let live = self.store.live(&desired.key, &desired.gvk);
                let facts = self.facts.get(&desired.gvk).cloned().unwrap_or_default();
                let snapshot = objects::snapshot(desired.clone(), live, facts);
                let judge = self.judge.clone();
                passes.spawn(async move { (judge.compare(&snapshot).await, snapshot.key) });
            }
            match passes.join_next().await.transpose()? {
                None => return Ok(()),
                Some((Ok(Comparison::InSync), _)) => {}
                Some((other, key)) => bail!("{key} should be in sync, and is {other:?}"),
            }
        }
    }
}

/// Requests that a re-check could be the cause of.
fn asked(counts: RequestCounts) -> u64 {
    counts.total() - counts.discovery - counts.watch
}

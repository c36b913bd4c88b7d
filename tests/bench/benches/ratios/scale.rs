//! How cost grows: with the number of objects, with the length of keyed lists, with depth. And the
//! same objects by `kubectl diff --server-side`, where that program is to be had.

use crate::objects::{self, deployment};
use crate::stats::{Pair, interleave};
use crate::table::{Table, time};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trimtab_core::decision::Comparison;
use trimtab_core::identity::{Digest, ObjectKey};
use trimtab_core::memo::Memo;
use trimtab_core::object::{Desired, Live, LiveObject};
use trimtab_core::queue::Queue;
use trimtab_core::snapshot::Snapshot;
use trimtab_kube::ApiServer;
use trimtab_system_tests::Cluster;
use trimtab_wasm::{Lookups, NoLookups, Plugin, Sandbox, SandboxOptions};

/// Cost for each object, element or level, large against small: linear is 1.
const LINEAR: f64 = 1.5;
/// Looking through 100 times as many keys leaves the processor's caches.
const BEYOND_CACHES: f64 = 6.0;
const OBJECTS: (usize, usize) = (1_000, 100_000);
const ELEMENTS: (usize, usize) = (100, 10_000);
const LEVELS: (usize, usize) = (15, 150);
/// Objects that kubectl looks at: it takes some 20 ms each.
const BY_KUBECTL: usize = 200;
/// Our re-check of an object against kubectl's.
const TO_KUBECTL: f64 = 0.01;

/// Measures all of it.
pub(crate) async fn measure(
    cluster: &mut Cluster,
    server: &ApiServer,
    wasm: &[u8],
    table: &mut Table,
) -> Result<()> {
    objects_by_memo(table)?;
    let sandbox = Sandbox::new(SandboxOptions::default())?;
    let plugin = Plugin::load(wasm, &sandbox)?;
    let lookups: Arc<dyn Lookups> = Arc::new(NoLookups);
    let facts = objects::facts(server, &objects::desired(&deployment("a", "b"))?.gvk).await?;
    let in_sync = |desired: &Value, live: &Value, facts: &Arc<[u8]>| -> Result<Snapshot> {
        let desired = Arc::new(objects::desired(desired)?);
        let live = Live::Present(objects::live(live)?);
        let snapshot = objects::snapshot(desired, live, facts.clone());
        let answer = plugin.compare(&snapshot, &lookups)?;
        ensure!(matches!(answer, Comparison::InSync), "it should be in sync, and is {answer:?}");
        Ok(snapshot)
    };
    let compare = |snapshot: &Snapshot| drop(black_box(plugin.compare(snapshot, &lookups)));

    let listed = |count: usize| -> Result<Snapshot> {
        in_sync(&with_variables(count, false), &with_variables(count, true), &facts)
    };
    let (few, many) = (listed(ELEMENTS.0)?, listed(ELEMENTS.1)?);
    let pair = interleave(15, 1, || compare(&many), || compare(&few));
    let what = "a keyed list of 10,000 in another order against one of 100, for each element";
    table.ratio(what, ("long", "short"), &each(pair, ELEMENTS), LINEAR);

    let nested =
        |levels: usize| in_sync(&deep(levels, false), &deep(levels, true), &Arc::default());
    let (shallow, far) = (nested(LEVELS.0)?, nested(LEVELS.1)?);
    let pair = interleave(100, 10, || compare(&far), || compare(&shallow));
    let what = "an object of 150 levels against one of 15, for each level";
    table.ratio(what, ("deep", "flat"), &each(pair, LEVELS), LINEAR);

    against_kubectl(cluster, &plugin, &lookups, facts, table).await
}

/// The ratio of two costs of so many parts each, for each part.
fn each(mut pair: Pair, (small, large): (usize, usize)) -> Pair {
    let part = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let times = large as f64 / small as f64;
    (pair.a, pair.b) = (pair.a / part(large), pair.b / part(small));
    pair.ratio.median /= times;
    pair.ratio.quartiles.0 /= times;
    pair.ratio.quartiles.1 /= times;
    pair
}

/// Every object due once, through the queue, answered by memo: what the engine does in a round
/// without drift.
fn objects_by_memo(table: &mut Table) -> Result<()> {
    let (few, many) = (Round::of(OBJECTS.0)?, Round::of(OBJECTS.1)?);
    let pair = interleave(10, 1, || many.run(), || few.run());
    let what = "a round of 100,000 objects by memo against one of 1,000, for each object";
    table.ratio(what, ("many", "few"), &each(pair, OBJECTS), BEYOND_CACHES);
    Ok(())
}

struct Round {
    objects: HashMap<ObjectKey, (Arc<Desired>, Live, Option<Memo>)>,
    judge: Digest,
}

impl Round {
    fn of(count: usize) -> Result<Self> {
        let judge = Digest::of(b"judge");
        let one = objects::desired(&deployment("default", "web"))?;
        let object = |n: usize| {
            let key = ObjectKey::new(one.gvk.group_kind(), "default", &format!("web-{n}"));
            let desired = Arc::new(Desired { key: key.clone(), ..one.clone() });
            let live = Live::Present(LiveObject {
                json: one.json.clone(),
                uid: format!("{n}").into(),
                resource_version: format!("{n}").into(),
                deleting: false,
            });
            let memo = Memo::of(&desired, &live, judge);
            (key, (desired, live, memo))
        };
        Ok(Self { objects: (0..count).map(object).collect(), judge })
    }

    fn run(&self) {
        let now = Duration::ZERO;
        let mut queue = Queue::default();
        for key in self.objects.keys() {
            queue.add(key, &key.group_kind);
        }
        let mut answered = 0;
        while let Some(key) = queue.next(now) {
            if let Some((desired, live, known)) = self.objects.get(&key) {
                answered += usize::from(Memo::of(desired, live, self.judge) == *known);
            }
            queue.done(&key, now, None);
        }
        assert_eq!(answered, self.objects.len(), "a memo does not hit");
    }
}

/// A Deployment whose container has so many variables; `turned`: in the opposite order.
fn with_variables(count: usize, turned: bool) -> Value {
    let mut object = deployment("default", "web");
    let variable = |n: usize| json!({"name": format!("SETTING_{n:05}"), "value": format!("{n}")});
    let mut env: Vec<Value> = (0..count).map(variable).collect();
    if turned {
        env.reverse();
    }
    object["spec"]["template"]["spec"]["containers"][0]["env"] = env.into();
    object
}

/// An object of a kind without a schema, so many levels deep; `turned`: with its members in the
/// opposite order.
fn deep(levels: usize, turned: bool) -> Value {
    let nest = |inner: Value, n: usize| match turned {
        false => json!({"name": format!("level-{n}"), "next": inner, "on": true}),
        true => json!({"on": true, "next": inner, "name": format!("level-{n}")}),
    };
    let spec = (0..levels - 3).fold(json!({"name": "last"}), nest);
    json!({
        "apiVersion": "bench.trimtab.dev/v1", "kind": "Nest",
        "metadata": {"name": "nest", "namespace": "default"}, "spec": spec,
    })
}

/// The same objects without drift by kubectl, and by us out of the cache.
async fn against_kubectl(
    cluster: &mut Cluster,
    plugin: &Plugin,
    lookups: &Arc<dyn Lookups>,
    facts: Arc<[u8]>,
    table: &mut Table,
) -> Result<()> {
    let what = "re-check of an object without drift, ours against kubectl diff --server-side";
    if Command::new("kubectl").arg("version").arg("--client").output().is_err() {
        table.told(what, "skipped: there is no kubectl in PATH".into());
        return Ok(());
    }
    let named = |n: usize| deployment("default", &format!("beside-{n:03}"));
    let declared: Vec<Value> = (0..BY_KUBECTL).map(named).collect();
    objects::apply_all(cluster, &declared).await?;
    let mut snapshots = Vec::with_capacity(declared.len());
    for object in &declared {
        let id = trimtab_system_tests::Id::of(object).context("no name")?;
        let live = Live::Present(objects::live(&cluster.api().require(&id).await?)?);
        let desired = Arc::new(objects::desired(object)?);
        snapshots.push(objects::snapshot(desired, live, facts.clone()));
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("objects.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": declared});
    std::fs::write(&file, serde_json::to_vec(&list)?)?;
    let kubeconfig = cluster.plane().kubeconfig().to_owned();
    let kubectl = || by_kubectl(&kubeconfig, &file);
    kubectl()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        theirs.push(kubectl()?);
        let start = Instant::now();
        for snapshot in &snapshots {
            let answer = plugin.compare(snapshot, lookups)?;
            ensure!(matches!(answer, Comparison::InSync), "{}: {answer:?}", snapshot.key);
        }
        ours.push(start.elapsed());
    }
    let mut pair = crate::stats::pair(&ours, &theirs);
    let count = u32::try_from(BY_KUBECTL)?;
    (pair.a, pair.b) = (pair.a / count, pair.b / count);
    table.ratio(what, ("ours", "kubectl"), &pair, TO_KUBECTL);
    table.told("  for 1,000 objects by kubectl", time(pair.b * 1000));
    Ok(())
}

fn by_kubectl(kubeconfig: &Path, file: &Path) -> Result<Duration> {
    let start = Instant::now();
    let done = Command::new("kubectl")
        .args(["diff", "--server-side", "--force-conflicts", "--field-manager=trimtab"])
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .arg("-f")
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()?;
    let text = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "kubectl diff ended with {}: {text}", done.status);
    Ok(start.elapsed())
}

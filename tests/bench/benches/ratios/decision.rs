//! A decision in a fresh sandbox instance against the same code native, and against the memo.

use crate::native;
use crate::objects::{self, deployment};
use crate::stats::{Pair, interleave};
use crate::table::Table;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use trimtab_core::decision::{Comparison, Difference, Verdict};
use trimtab_core::identity::Digest;
use trimtab_core::memo::Memo;
use trimtab_core::object::{Desired, Live};
use trimtab_core::snapshot::Snapshot;
use trimtab_kube::ApiServer;
use trimtab_system_tests::{Cluster, Id};
use trimtab_wasm::{Lookups, NoLookups, Plugin, Sandbox, SandboxOptions};

const ROUNDS: usize = 200;
const CALLS: u32 = 10;
/// A decision in the sandbox costs at most this much of the same code native.
const SANDBOX_TO_NATIVE: f64 = 1.4;
/// A memo hit costs at most this much of a call.
const MEMO_TO_CALL: f64 = 0.1;
/// Handing facts over may make a call this much dearer.
const HANDED_TO_NONE: f64 = 1.15;

/// One declared Deployment and its live object, with the plugin that judges it.
#[derive(Clone)]
struct Judged {
    plugin: Plugin,
    lookups: Arc<dyn Lookups>,
    snapshot: Snapshot,
}

impl Judged {
    fn differences(&self) -> Result<Vec<Difference>> {
        match self.plugin.compare(&self.snapshot, &self.lookups)? {
            Comparison::InSync => Ok(vec![]),
            Comparison::Different(differences) => Ok(differences),
            other => anyhow::bail!("the plugin answers {other:?}"),
        }
    }

    /// Compares, and decides in the same instance, as a pass does.
    fn judge(&self) {
        let left = |comparison| match comparison {
            Comparison::Different(found) => found,
            _ => vec![],
        };
        let _ = black_box(self.plugin.judge(&self.snapshot, &self.lookups, left));
    }

    /// The same in two instances, as a pass does where none could be kept.
    fn judge_apart(&self) {
        if let Ok(Comparison::Different(found)) = self.plugin.compare(&self.snapshot, &self.lookups)
        {
            let _ = black_box(self.plugin.decide(&self.snapshot, &found, &self.lookups));
        }
    }

    fn compare(&self) {
        let _ = black_box(self.plugin.compare(&self.snapshot, &self.lookups));
    }

    /// The same in turns with the code native.
    fn against(&self, code: Native) -> Result<Pair> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec());
        let (desired, live) = (self.snapshot.desired.json.clone(), self.snapshot.live_object());
        let live = live.context("no live object")?.json.clone();
        let measured = Rc::new(RefCell::new(None));
        let (judged, result) = (self.clone(), measured.clone());
        let texts = (text(&desired)?, text(&live)?);
        native::with_snapshot(&texts.0, &texts.1, &self.snapshot.facts, move |snapshot| {
            let sandboxed = || match code {
                Native::Compare => judged.compare(),
                Native::Calls => judged.judge_apart(),
                Native::Whole => judged.judge(),
            };
            let native = || match code {
                Native::Compare => drop(native::compare(snapshot, &desired, &live)),
                Native::Calls => {
                    let found = native::compare(snapshot, &desired, &live);
                    native::decide(snapshot, &desired, &live, &found);
                }
                Native::Whole => native::whole(snapshot, &desired, &live),
            };
            result.replace(Some(interleave(ROUNDS, CALLS, sandboxed, native)));
        });
        measured.take().context("the plugin's code was not run")
    }
}

#[derive(Clone, Copy)]
enum Native {
    Compare,
    Calls,
    Whole,
}

/// Measures both, with objects as the server stores them.
pub(crate) async fn measure(
    cluster: &Cluster,
    server: &ApiServer,
    wasm: &[u8],
    table: &mut Table,
) -> Result<()> {
    let declared = deployment("default", "web");
    let desired = Arc::new(objects::desired(&declared)?);
    let facts = objects::facts(server, &desired.gvk).await?;
    let (in_sync, drifted) = live_states(cluster, &declared).await?;
    let sandbox = Sandbox::new(SandboxOptions::default())?;
    let judged = Judged {
        plugin: Plugin::load(wasm, &sandbox)?,
        lookups: Arc::new(NoLookups),
        snapshot: objects::snapshot(desired, Live::Present(objects::live(&drifted)?), facts),
    };
    let mut settled = judged.clone();
    settled.snapshot.live = Live::Present(objects::live(&in_sync)?);
    check(&judged, &settled)?;
    table.told("the Deployment that is judged", sizes(&judged.snapshot));

    let names = ("sandbox", "native");
    let pair = judged.against(Native::Whole)?;
    table.ratio("drift: compare + decide, each object read once", names, &pair, SANDBOX_TO_NATIVE);
    let pair = judged.against(Native::Calls)?;
    table.told_ratio("  in two instances, each object read twice", names, &pair);
    let pair = settled.against(Native::Compare)?;
    table.ratio("in sync: compare, fresh instance", names, &pair, SANDBOX_TO_NATIVE);

    let mut without = settled.clone();
    without.snapshot.facts = Arc::default();
    // Bytes of a version that no plugin reads: they cross, and the comparison is the one without.
    let mut handed = settled.clone();
    handed.snapshot.facts =
        [u8::MAX].iter().chain(settled.snapshot.facts.iter().skip(1)).copied().collect();
    let pair = interleave(ROUNDS, CALLS, || handed.compare(), || without.compare());
    let (what, names) = ("in sync: schema facts handed over against none", ("with", "without"));
    table.ratio(what, names, &pair, HANDED_TO_NONE);
    let pair = interleave(ROUNDS, CALLS, || settled.compare(), || without.compare());
    let what = "  compared by the schema against by common rules";
    table.told_ratio(what, ("schema", "rules"), &pair);

    let small = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}});
    let mut least = settled.clone();
    least.snapshot = objects::snapshot(
        Arc::new(objects::desired(&small)?),
        Live::Present(objects::live(&small)?),
        Arc::default(),
    );
    let pair = interleave(ROUNDS, CALLS, || least.compare(), || settled.compare());
    let (what, names) = ("  a call with next to nothing to do, of that", ("least", "usual"));
    table.told_ratio(what, names, &pair);

    let stamp = Digest::of(wasm);
    let Snapshot { desired, live, .. } = &settled.snapshot;
    let known = Memo::of(desired, live, stamp);
    let hit = || hits(desired, live, stamp, known.as_ref());
    let mut pair = interleave(ROUNDS, CALLS, hit, || settled.compare());
    pair.a /= HITS;
    pair.ratio.median /= f64::from(HITS);
    pair.ratio.quartiles.0 /= f64::from(HITS);
    pair.ratio.quartiles.1 /= f64::from(HITS);
    table.ratio("memo hit against a sandbox call", ("memo", "call"), &pair, MEMO_TO_CALL);
    Ok(())
}

/// A memo hit is below what a clock tells apart: so many make a sample.
const HITS: u32 = 100;

fn hits(desired: &Desired, live: &Live, stamp: Digest, known: Option<&Memo>) {
    for _ in 0..HITS {
        let memo = Memo::of(black_box(desired), black_box(live), stamp);
        assert!(black_box(memo.as_ref() == known), "the memo does not hit");
    }
}

/// The live object as declared, and then with another image.
pub(crate) async fn live_states(cluster: &Cluster, declared: &Value) -> Result<(Value, Value)> {
    let id = Id::of(declared).context("no name")?;
    objects::apply_all(cluster, std::slice::from_ref(declared)).await?;
    objects::run(cluster, declared).await?;
    let in_sync = cluster.api().require(&id).await?;
    let alice = cluster.user("alice")?;
    let drifted = alice
        .edit(&id, |object| {
            object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("elsewhere:2");
        })
        .await?;
    Ok((in_sync, drifted))
}

fn check(drifted: &Judged, settled: &Judged) -> Result<()> {
    let found = drifted.differences()?;
    ensure!(found.len() == 1, "one field drifted, and the plugin finds {found:?}");
    let verdict = drifted.plugin.decide(&drifted.snapshot, &found, &drifted.lookups)?;
    ensure!(matches!(verdict, Verdict::Decided(_)), "the plugin answers {verdict:?}");
    let found = settled.differences()?;
    ensure!(found.is_empty(), "nothing drifted, and the plugin finds {found:?}");
    Ok(())
}

fn sizes(snapshot: &Snapshot) -> String {
    format!(
        "{} bytes declared, {} live, {} of facts",
        snapshot.desired.json.len(),
        snapshot.live_object().map_or(0, |live| live.json.len()),
        snapshot.facts.len()
    )
}

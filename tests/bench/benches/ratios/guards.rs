//! What each guard costs a decision: the same with and without it, in turns.
//!
//! Guards of the sandbox are measured on calls; those of the host on whole passes over a drifted
//! Deployment, whose plugin runs in the sandbox and whose server answers at once, so that nothing but
//! computing is in it.

use crate::decision::live_states;
use crate::isolation;
use crate::objects::{self, deployment};
use crate::stats::interleave;
use crate::table::Table;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trimtab_core::decision::{Action, Comparison, Decision, Difference, Verdict};
use trimtab_core::fields::{FieldPath, Fields};
use trimtab_core::gate::{Change, Circumstances, Probe, gate};
use trimtab_core::grant::{Grant, Mode, Namespaces, Power, Terms};
use trimtab_core::identity::{GroupKind, ObjectKey};
use trimtab_core::object::Live;
use trimtab_core::pass::{Bounds, World};
use trimtab_core::plugin::KindPattern;
use trimtab_core::ports::{
    ApplyError, Clock, Cluster, Journal, JournalError, Judge, PluginFault, Written,
};
use trimtab_core::record::{Intent, Outcome, Record, Trigger};
use trimtab_core::redact::Redactor;
use trimtab_core::snapshot::Snapshot;
use trimtab_kube::ApiServer;
use trimtab_system_tests::Cluster as RealCluster;
use trimtab_wasm::{Guards, Lookups, NoLookups, Plugin, Sandbox, SandboxOptions};

const ROUNDS: usize = 200;
const CALLS: u32 = 10;
/// Comparisons of which one is made twice.
const SAMPLED: u32 = 256;
/// The whole gate against a decision.
const GATE_TO_DECISION: f64 = 0.1;
/// Secrets that the host knows, each with values of its own.
const SECRETS: usize = 100;

/// Measures all of it.
pub(crate) async fn measure(
    cluster: &RealCluster,
    server: &ApiServer,
    wasm: &[u8],
    table: &mut Table,
) -> Result<()> {
    let declared = deployment("default", "guarded");
    let desired = Arc::new(objects::desired(&declared)?);
    let facts = objects::facts(server, &desired.gvk).await?;
    let (in_sync, drifted) = live_states(cluster, &declared).await?;
    let settled = objects::live(&in_sync)?;
    let snapshot = objects::snapshot(desired, Live::Present(objects::live(&drifted)?), facts);
    of_the_sandbox(wasm, &snapshot, table)?;
    isolation::measure(wasm, &snapshot, table)?;
    of_the_host(wasm, snapshot, settled.json, table)
}

fn of_the_sandbox(wasm: &[u8], snapshot: &Snapshot, table: &mut Table) -> Result<()> {
    let lookups: Arc<dyn Lookups> = Arc::new(NoLookups);
    let plugin = |guards: Guards| -> Result<Plugin> {
        let sandbox = Sandbox::new(SandboxOptions { guards, ..SandboxOptions::default() })?;
        Ok(Plugin::load(wasm, &sandbox)?)
    };
    let all = plugin(Guards { purity: false, ..Guards::default() })?;
    let compare = |plugin: &Plugin| drop(black_box(plugin.compare(snapshot, &lookups)));
    let names = ("with", "without");
    for (what, without) in [
        (
            "the deadline's checks in a comparison",
            Guards { deadline: false, purity: false, ..Guards::default() },
        ),
        (
            "the limiter of memory and tables in a comparison",
            Guards { limiter: false, purity: false, ..Guards::default() },
        ),
    ] {
        let without = plugin(without)?;
        let pair = interleave(ROUNDS, CALLS, || compare(&all), || compare(&without));
        table.told_ratio(what, names, &pair);
    }
    let sampled = plugin(Guards::default())?;
    // The first ones are all made twice.
    (0..SAMPLED).for_each(|_| compare(&sampled));
    let pair = interleave(30, SAMPLED, || compare(&sampled), || compare(&all));
    table.told_ratio("the second run of one comparison in 256", names, &pair);
    Ok(())
}

fn of_the_host(
    wasm: &[u8],
    snapshot: Snapshot,
    settled: Arc<[u8]>,
    table: &mut Table,
) -> Result<()> {
    let plugin = Plugin::load(wasm, &Sandbox::new(SandboxOptions::default())?)?;
    let usual = Stage::new(plugin, snapshot, settled);
    let names = ("with", "without");
    usual.check()?;

    let decision = usual.decision()?;
    let probe =
        trimtab_core::gate::probe(&usual.power, &usual.snapshot).map_err(anyhow::Error::msg)?;
    // Read for the stage before, and used again.
    let left = trimtab_json::parse(&usual.settled)?;
    let rehearsal = Some((&probe, &left));
    let known = Circumstances::untainted(rehearsal, usual.bounds.accounts.clone());
    let gated = || drop(black_box(gate(&usual.power, &usual.snapshot, &decision, &known)));
    let pair = interleave(ROUNDS, CALLS, gated, || usual.judge());
    table.ratio(
        "the whole gate against the decision that it judges",
        ("gate", "decision"),
        &pair,
        GATE_TO_DECISION,
    );

    // As before, and a grant that names fields.
    let mut by_field = usual.clone();
    let paths = |texts: &[&str]| -> Result<Vec<FieldPath>> {
        texts.iter().map(|text| FieldPath::parse(text).map_err(anyhow::Error::msg)).collect()
    };
    let fields =
        Fields { allow: paths(&["/spec/**", "/metadata/**"])?, deny: paths(&["/spec/replicas"])? };
    by_field.power = power(&usual.plugin, Terms { fields, ..Terms::default() });
    by_field.check()?;
    let pair = interleave(ROUNDS, CALLS, || by_field.pass(), || usual.pass());
    table.told_ratio("the check of fields in a pass", names, &pair);

    let mut tainted = usual.clone();
    tainted.secrets = vec![secret(0)?];
    tainted.check()?;
    let pair = interleave(ROUNDS, CALLS, || tainted.pass(), || usual.pass());
    table.told_ratio("silencing a plugin that read a Secret, in a pass", names, &pair);

    let content = Decision {
        actions: vec![Action::ApplyContent(usual.snapshot.desired.json.to_vec())],
        ..Decision::default()
    };
    let content_by = |stage: &Stage| Stage { decided: Some(content.clone()), ..stage.clone() };
    let (scanned, free) = (content_by(&tainted), content_by(&usual));
    scanned.check()?;
    free.check()?;
    let pair = interleave(ROUNDS, CALLS, || scanned.pass(), || free.pass());
    table.told_ratio("  and with a search of content that it made", names, &pair);

    let mut aware = usual.clone();
    let secrets: Vec<Arc<[u8]>> = (0..SECRETS).map(secret).collect::<Result<_>>()?;
    let kind = GroupKind::new("", "Secret");
    aware.redactor = aware.redactor.aware_of(secrets.iter().map(|secret| (&kind, &**secret)));
    let pair = interleave(ROUNDS, CALLS, || aware.pass(), || usual.pass());
    table.told_ratio("hiding the values of 100 Secrets in a pass", names, &pair);
    Ok(())
}

/// A Secret with values that nothing else has.
fn secret(number: usize) -> Result<Arc<[u8]>> {
    let value = |name: &str| format!("{name}-{number}-of-the-shop");
    let secret: Value = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("s{number}"), "namespace": "default"},
        "stringData": {"password": value("password"), "token": value("token"), "url": value("url")},
    });
    Ok(serde_json::to_vec(&secret)?.into())
}

/// Everything is granted that takes no second word.
fn power(plugin: &Plugin, terms: Terms) -> Power {
    let manifest = plugin.manifest().clone();
    Power {
        plugin: plugin.identity().clone(),
        grant: Some(Grant {
            plugin: manifest.name.clone(),
            digest: plugin.identity().digest,
            mode: Mode::Enforce,
            kinds: vec![KindPattern::Any],
            namespaces: Namespaces::All,
            cluster_scoped: true,
            actions: trimtab_core::decision::ActionKind::ALL.into_iter().collect(),
            predecessors: Default::default(),
            terms,
            origin: "bench.yaml".into(),
        }),
        manifest: trimtab_core::plugin::PluginManifest {
            actions: trimtab_core::decision::ActionKind::ALL.into_iter().collect(),
            ..manifest
        },
    }
}

/// One pass: the plugin in the sandbox, and a server that answers at once.
#[derive(Clone)]
struct Stage {
    plugin: Plugin,
    lookups: Arc<dyn Lookups>,
    snapshot: Snapshot,
    /// The live object once desired is applied.
    settled: Arc<[u8]>,
    power: Power,
    redactor: Redactor,
    bounds: Bounds,
    secrets: Vec<Arc<[u8]>>,
    /// In place of what the plugin decides, which is asked all the same.
    decided: Option<Decision>,
    start: Instant,
}

impl Stage {
    fn new(plugin: Plugin, snapshot: Snapshot, settled: Arc<[u8]>) -> Self {
        let account = GroupKind::new("", "ServiceAccount");
        let account = ObjectKey::new(account, snapshot.key.namespace_str(), &snapshot.key.name);
        Self {
            power: power(&plugin, Terms::default()),
            plugin,
            lookups: Arc::new(NoLookups),
            snapshot,
            settled,
            redactor: Redactor::new([7; 32]),
            // The account that its pods run as is declared, as usual.
            bounds: Bounds { accounts: Arc::new([account].into()), ..Bounds::default() },
            secrets: Vec::new(),
            decided: None,
            start: Instant::now(),
        }
    }

    fn run(&self) -> Record {
        let world = World {
            judge: self,
            cluster: self,
            journal: self,
            clock: self,
            redactor: &self.redactor,
            bounds: &self.bounds,
        };
        futures::executor::block_on(world.pass(&self.power, &self.snapshot, Trigger::Watch))
    }

    fn pass(&self) {
        drop(black_box(self.run()));
    }

    /// The pass does what it is measured for.
    fn check(&self) -> Result<()> {
        let record = self.run();
        ensure!(
            record.outcome == Outcome::Corrected,
            "{:?}: {:?}",
            record.outcome,
            record.refusals
        );
        Ok(())
    }

    /// The plugin's part alone.
    fn judge(&self) {
        let _ = black_box(self.decision());
    }

    fn decision(&self) -> Result<Decision> {
        let Comparison::Different(found) = self.plugin.compare(&self.snapshot, &self.lookups)?
        else {
            anyhow::bail!("nothing drifted");
        };
        match self.plugin.decide(&self.snapshot, &found, &self.lookups)? {
            Verdict::Decided(decision) => Ok(decision),
            other => anyhow::bail!("the plugin answers {other:?}"),
        }
    }
}

impl Judge for Stage {
    async fn compare(&self, snapshot: &Snapshot) -> Result<Comparison, PluginFault> {
        self.plugin.compare(snapshot, &self.lookups)
    }

    async fn decide(
        &self,
        snapshot: &Snapshot,
        found: &[Difference],
    ) -> Result<Verdict, PluginFault> {
        let verdict = self.plugin.decide(snapshot, found, &self.lookups)?;
        Ok(self.decided.clone().map_or(verdict, Verdict::Decided))
    }

    fn secrets_read(&self) -> Vec<Arc<[u8]>> {
        self.secrets.clone()
    }
}

impl Cluster for Stage {
    async fn rehearse(&self, _: &Probe) -> Result<Arc<[u8]>, ApplyError> {
        Ok(self.settled.clone())
    }

    async fn write(&self, _: &Change) -> Result<Written, ApplyError> {
        Ok(Written::Object(self.settled.clone()))
    }
}

impl Journal for Stage {
    async fn intent(&self, _: &Intent<'_>) -> Result<(), JournalError> {
        Ok(())
    }
}

impl Clock for Stage {
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

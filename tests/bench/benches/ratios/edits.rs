//! From a foreign edit to its correction: the host and the least native controller, each through a
//! proxy that times what they do, in turns.

use crate::controller::Native;
use crate::objects::{self, deployment};
use crate::process::{cpu, running};
use crate::proxy::{Passed, Proxy};
use crate::stats::{median, pair};
use crate::table::{Table, time};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use trimtab_system_tests::{Api, Cluster, Id, PATIENCE, until};

/// Blocks in turns, so that processor time falls on whom it is due to.
const BLOCKS: usize = 10;
const EDITS_A_BLOCK: usize = 20;
/// Events without drift in each block.
const NO_OPS_A_BLOCK: usize = 20;
/// Nothing more comes of an edit when nothing came for so long.
const QUIET: Duration = Duration::from_millis(60);
/// Time of the host's own against the native controller's.
const HOST_TO_NATIVE: f64 = 1.2;
const MARKER: &str = "bench-edit-";
const ANNOTATION: &str = "shop.example/build";

/// One controller under test.
struct Side {
    object: Value,
    proxy: Proxy,
    pid: u32,
    samples: Samples,
}

#[derive(Default)]
struct Samples {
    /// Frame with the client → first request of its own, a dry run for the host.
    first: Vec<Duration>,
    /// Answer of the dry run with the client → the write. Zero where there is none.
    between: Vec<Duration>,
    /// Frame → the write.
    write: Vec<Duration>,
    requests: usize,
    /// Processor time for each edit and each event without drift, a sample a block.
    correcting: Vec<Duration>,
    no_ops: Vec<Duration>,
}

/// Measures both.
pub(crate) async fn measure(cluster: &mut Cluster, table: &mut Table) -> Result<()> {
    let kubeconfig = cluster.plane().kubeconfig().to_owned();
    let people = cluster.user("alice")?;
    let manager = cluster.user("kube-controller-manager")?;
    let mut objects = Vec::new();
    for namespace in ["edited-host", "edited-native"] {
        people
            .create(
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            )
            .await?;
        objects.push(deployment(namespace, "web"));
    }
    let [host_object, native_object]: [Value; 2] =
        objects.try_into().map_err(|_| anyhow::anyhow!("two objects"))?;

    let host_proxy = Proxy::start(&kubeconfig, MARKER).await?;
    let mut room = cluster.room("host")?.with_generic()?;
    let through_proxy = room.path().join("proxied");
    std::fs::write(&through_proxy, host_proxy.kubeconfig())?;
    room.kubeconfig = Some(through_proxy);
    room.declare("web.yaml", &serde_json::to_string(&host_object)?)?;
    let host = room.start()?;
    let native_proxy = Proxy::start(&kubeconfig, MARKER).await?;
    let native = Native::start(&native_proxy.kubeconfig(), &native_object)?;

    let side = |object: Value, proxy: Proxy, pid: u32| Side {
        object,
        proxy,
        pid,
        samples: Samples::default(),
    };
    let pid =
        until("the host runs", PATIENCE, async || running(&room.built().trimtab, &room.state()))
            .await?;
    let mut host_side = side(host_object, host_proxy, pid);
    let mut native_side = side(native_object, native_proxy, native.pid());
    for side in [&host_side, &native_side] {
        let id = Id::of(&side.object).context("no name")?;
        until(format!("{id} is there"), PATIENCE, async || people.require(&id).await).await?;
        objects::run(cluster, &side.object).await?;
        side.quiet().await;
    }
    for block in 0..BLOCKS {
        for side in [&mut host_side, &mut native_side] {
            side.block(block, &people, &manager).await?;
        }
    }
    report(&host_side.samples, &native_side.samples, table);
    drop(native);
    host.stop().await?;
    Ok(())
}

impl Side {
    async fn block(&mut self, block: usize, people: &Api, manager: &Api) -> Result<()> {
        let before = cpu(self.pid)?;
        for n in 0..EDITS_A_BLOCK {
            self.edit(block * EDITS_A_BLOCK + n, people).await?;
        }
        let between = cpu(self.pid)?;
        for n in 0..NO_OPS_A_BLOCK {
            let patch = json!({"status": {"observedGeneration": 10 + block * NO_OPS_A_BLOCK + n}});
            objects::patch_status(manager, &self.object, &patch).await?;
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
        self.quiet().await;
        let after = cpu(self.pid)?;
        self.samples.correcting.push((between - before) / EDITS_A_BLOCK as u32);
        self.samples.no_ops.push((after - between) / NO_OPS_A_BLOCK as u32);
        Ok(())
    }

    /// Edits the object behind the controller's back, and waits until all is quiet again.
    async fn edit(&mut self, number: usize, people: &Api) -> Result<()> {
        let mark = self.proxy.mark();
        let id = Id::of(&self.object).context("no name")?;
        let patch = json!({"metadata": {"annotations": {ANNOTATION: format!("{MARKER}{number}")}}});
        people.merge(&id, &patch).await?;
        let frame = Passed::Frame(number as u64);
        until("the edit is corrected", PATIENCE, async || {
            let since = self.proxy.since(mark);
            let at = since.iter().position(|(_, passed)| *passed == frame).context("no frame")?;
            let writes = since[at..].iter().position(|(_, it)| *it == Passed::Write(false));
            writes.context("no write")
        })
        .await?;
        self.quiet().await;
        let since = self.proxy.since(mark);
        let at = since.iter().position(|(_, passed)| *passed == frame).context("no frame")?;
        self.samples.take(&since[at..]);
        Ok(())
    }

    async fn quiet(&self) {
        let (mut seen, mut since) = (self.proxy.mark(), Instant::now());
        while since.elapsed() < QUIET {
            tokio::time::sleep(QUIET / 10).await;
            if self.proxy.mark() != seen {
                (seen, since) = (self.proxy.mark(), Instant::now());
            }
        }
    }
}

impl Samples {
    /// All that went through from the frame on.
    fn take(&mut self, passed: &[(Instant, Passed)]) {
        let frame = passed[0].0;
        let is_write = |it: &Passed| matches!(it, Passed::Write(_));
        let first = passed.iter().find(|(_, it)| is_write(it));
        let write = passed.iter().position(|(_, it)| *it == Passed::Write(false));
        let (Some(first), Some(write)) = (first, write) else { return };
        let answered = passed[..write].iter().rfind(|(_, it)| *it == Passed::Answer);
        let write = passed[write].0;
        self.first.push(first.0 - frame);
        self.between.push(answered.map_or(Duration::ZERO, |(at, _)| write - *at));
        self.write.push(write - frame);
        self.requests += passed.iter().filter(|(_, it)| is_write(it)).count();
    }
}

fn report(host: &Samples, native: &Samples, table: &mut Table) {
    let names = ("host", "native");
    let what = "watch frame → first request (the host's is its dry run)";
    table.ratio(what, names, &pair(&host.first, &native.first), HOST_TO_NATIVE);
    let sum = |samples: &Samples| -> Vec<Duration> {
        samples
            .first
            .iter()
            .zip(&samples.between)
            .map(|(first, between)| *first + *between)
            .collect()
    };
    let what = "  own time until the write: that, and dry run answered → write";
    table.told_ratio(what, names, &pair(&sum(host), &sum(native)));
    let told = format!("host {}", time(median(host.between.clone())));
    table.told("  of it: dry run answered → write", told);
    let what = "  all time until the write, the server's dry run included";
    table.told_ratio(what, names, &pair(&host.write, &native.write));

    let edits = (BLOCKS * EDITS_A_BLOCK) as u32;
    let requests = |samples: &Samples| samples.requests as f64 / f64::from(edits);
    let told = format!("host {:.1} : native {:.1}", requests(host), requests(native));
    table.told("PATCH requests for each corrected drift", told);
    // The kernel counts in 10 ms, a block takes some of them: sums, whose ratio is told with the
    // blocks' noise.
    let mut cpu = |what: &str, host: &[Duration], native: &[Duration]| {
        let mut pair = pair(host, native);
        let mean = |samples: &[Duration]| samples.iter().sum::<Duration>() / BLOCKS as u32;
        (pair.a, pair.b) = (mean(host), mean(native));
        pair.ratio.median = pair.a.as_secs_f64() / pair.b.as_secs_f64();
        table.told_ratio(what, names, &pair);
    };
    cpu("processor time for each corrected drift", &host.correcting, &native.correcting);
    cpu("processor time for each event without drift", &host.no_ops, &native.no_ops);
}

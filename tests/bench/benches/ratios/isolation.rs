//! What it would cost to run plugins in a process of their own: the same calls here, and in a worker
//! that is handed the snapshot through a pipe and answers through another.
//!
//! Behind the decision in ARCHITECTURE.md. The worker is this program, started again; it has the same
//! sandbox, and nothing else around it: what a real one needed besides (reads, logs, another start
//! after a crash) would come on top.

use crate::objects;
use crate::stats::interleave;
use crate::table::{Table, time};
use anyhow::{Context as _, Result, bail, ensure};
use std::cell::RefCell;
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;
use trimtab_core::decision::Comparison;
use trimtab_core::object::{Desired, Live, LiveObject};
use trimtab_core::snapshot::Snapshot;
use trimtab_wasm::{Lookups, NoLookups, Plugin, Sandbox, SandboxOptions};

/// Set for the process that is to be the worker: the folder of compiled code, so that none compiles.
const ROLE: &str = "TRIMTAB_BENCH_WORKER";
const ROUNDS: usize = 200;
const CALLS: u32 = 10;
const IN_SYNC: u8 = 0;
const DIFFERENT: u8 = 1;
const OTHER: u8 = 2;

/// Whether this process is to be the worker.
pub(crate) fn role() -> Option<PathBuf> {
    std::env::var_os(ROLE).map(PathBuf::from)
}

/// Compares this snapshot in both places.
pub(crate) fn measure(wasm: &[u8], snapshot: &Snapshot, table: &mut Table) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let cache = folder.path().join("compiled");
    let plugin = Plugin::load(wasm, &sandbox(&cache)?)?;
    let lookups: Arc<dyn Lookups> = Arc::new(NoLookups);
    let start = Instant::now();
    let worker = RefCell::new(Worker::start(&cache, wasm, snapshot)?);
    let ready = start.elapsed();
    let here = word(&plugin.compare(snapshot, &lookups)?);
    ensure!(worker.borrow_mut().compare(snapshot)? == here, "the worker answers otherwise");
    let pair = interleave(
        ROUNDS,
        CALLS,
        || drop(black_box(worker.borrow_mut().compare(snapshot))),
        || drop(black_box(plugin.compare(snapshot, &lookups))),
    );
    table.told_ratio("a comparison in a process of its own", ("worker", "here"), &pair);
    let memory = worker.borrow().private_bytes()?;
    table.told(
        "  memory of each such worker",
        format!("{} KiB, ready in {}", memory / 1024, time(ready)),
    );
    Ok(())
}

struct Worker {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
}

impl Worker {
    fn start(cache: &Path, wasm: &[u8], snapshot: &Snapshot) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .env(ROLE, cache)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let to = child.stdin.take().context("no stdin")?;
        let from = child.stdout.take().context("no stdout")?;
        let mut worker = Self { child, to, from };
        worker.give(wasm)?;
        worker.to.flush()?;
        // The first answer comes once the plugin is loaded.
        worker.compare(snapshot)?;
        Ok(worker)
    }

    fn give(&mut self, bytes: &[u8]) -> Result<()> {
        self.to.write_all(&u32::try_from(bytes.len())?.to_le_bytes())?;
        Ok(self.to.write_all(bytes)?)
    }

    /// One message there, one byte back: the least that a call could be.
    fn compare(&mut self, snapshot: &Snapshot) -> Result<u8> {
        let live = snapshot.live_object().context("no live object")?;
        let parts = [&*snapshot.desired.json, &live.json, &snapshot.facts];
        let size = parts.iter().map(|part| part.len() + 4).sum();
        let mut message = Vec::with_capacity(size);
        for part in parts {
            message.extend_from_slice(&u32::try_from(part.len())?.to_le_bytes());
            message.extend_from_slice(part);
        }
        self.to.write_all(&message)?;
        let mut answer = [0];
        self.from.read_exact(&mut answer)?;
        Ok(answer[0])
    }

    /// What it holds that no other process shares.
    fn private_bytes(&self) -> Result<u64> {
        let told = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id()))?;
        let kilobytes = |name: &str| {
            let line = told.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        };
        let sum = kilobytes("Private_Clean:").zip(kilobytes("Private_Dirty:"));
        let (clean, dirty) = sum.context("smaps_rollup says nothing of private memory")?;
        Ok((clean + dirty) * 1024)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The worker's whole life: a plugin, and then snapshots until nobody writes any more.
pub(crate) fn serve(cache: &Path) -> Result<()> {
    let (mut from, mut to) = (std::io::stdin().lock(), std::io::stdout().lock());
    let wasm = taken(&mut from)?.context("no plugin")?;
    let plugin = Plugin::load(&wasm, &sandbox(cache)?)?;
    let lookups: Arc<dyn Lookups> = Arc::new(NoLookups);
    let usual = Arc::new(objects::desired(&objects::deployment("default", "web"))?);
    while let Some(json) = taken(&mut from)? {
        let (Some(live), Some(facts)) = (taken(&mut from)?, taken(&mut from)?) else {
            bail!("the message is cut off");
        };
        let desired = Arc::new(Desired { json: json.into(), ..(*usual).clone() });
        let live = LiveObject {
            json: live.into(),
            uid: "u".into(),
            resource_version: "1".into(),
            deleting: false,
        };
        let snapshot = objects::snapshot(desired, Live::Present(live), facts.into());
        to.write_all(&[word(&plugin.compare(&snapshot, &lookups)?)])?;
        to.flush()?;
    }
    Ok(())
}

fn sandbox(cache: &Path) -> Result<Sandbox> {
    let cache_dir = Some(cache.to_owned());
    Ok(Sandbox::new(SandboxOptions { cache_dir, calls: Some(8), ..SandboxOptions::default() })?)
}

fn taken(from: &mut impl Read) -> Result<Option<Vec<u8>>> {
    let mut size = [0; 4];
    match from.read_exact(&mut size) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let mut bytes = vec![0; u32::from_le_bytes(size) as usize];
    from.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

fn word(answer: &Comparison) -> u8 {
    match answer {
        Comparison::InSync => IN_SYNC,
        Comparison::Different(_) => DIFFERENT,
        _ => OTHER,
    }
}

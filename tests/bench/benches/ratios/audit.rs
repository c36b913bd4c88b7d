//! One object's story out of a million lines of the audit log, beside a search for its name by `grep`.
//!
//! The lines are one pass of a real host, told of a million objects and times; the log's files are as
//! large as a host makes them. Only what `explain` does is measured: it does not verify the chain.

use crate::table::{Table, time};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use trimtab_system_tests::{Cluster, PATIENCE, until};

const LINES: u64 = 1_000_000;
/// Lines of the object that is asked for.
const ITS_LINES: u64 = 100;
/// Bytes of one file: what a host makes by default.
const FILE_BYTES: u64 = 64 << 20;
const AT_MOST: Duration = Duration::from_secs(1);
const TIMES: usize = 5;

/// Measures it, the files being in the kernel's cache.
pub(crate) async fn measure(cluster: &Cluster, table: &mut Table) -> Result<()> {
    let room = cluster.room("audit")?.with_generic()?;
    room.declare(
        "map.yaml",
        &json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "told", "namespace": "default"}, "data": {"color": "blue"}})
        .to_string(),
    )?;
    let line = {
        let host = room.start()?;
        until("a pass is recorded", PATIENCE, async || {
            let lines = host.journal().lines()?;
            let made = lines.iter().find(|line| line.outcome() == "created");
            made.map(|line| line.0.clone()).context("none is")
        })
        .await?
    };
    let state = room.path().join("million");
    std::fs::create_dir(&state)?;
    let bytes = write(&state, &line)?;
    let explain = || -> Result<Duration> {
        let start = Instant::now();
        let output = Command::new(&room.built().trimtab)
            .args(["audit", "explain", "ConfigMap/wanted", "--state"])
            .arg(&state)
            .output()?;
        let took = start.elapsed();
        let found = String::from_utf8_lossy(&output.stdout).matches("created ConfigMap").count();
        ensure!(found as u64 == ITS_LINES, "explain tells {found} passes");
        Ok(took)
    };
    let grep = || -> Result<Duration> {
        let start = Instant::now();
        let status = Command::new("sh")
            .args(["-c", "grep -c -h wanted journal*.jsonl >/dev/null"])
            .current_dir(&state)
            .env("LC_ALL", "C")
            .status()?;
        ensure!(status.success(), "grep finds nothing");
        Ok(start.elapsed())
    };
    explain()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        ours.push(explain()?);
        theirs.push(grep()?);
    }
    let median = |mut all: Vec<Duration>| {
        all.sort();
        all[all.len() / 2]
    };
    let (ours, theirs) = (median(ours), median(theirs));
    table.figure(
        "audit explain over a million lines",
        format!("{} of {} MiB; grep {}", time(ours), bytes >> 20, time(theirs)),
        "≤ 1 s",
        ours <= AT_MOST,
    );
    Ok(())
}

/// Writes the log; how large it is.
fn write(state: &Path, line: &serde_json::Value) -> Result<u64> {
    let mut line = line.clone();
    let (mut all, mut size) = (0, 0);
    let mut first = 0;
    let newest = state.join("journal.jsonl");
    let mut file = BufWriter::new(std::fs::File::create(&newest)?);
    for seq in 0..LINES {
        let name = match seq % (LINES / ITS_LINES) {
            0 => "wanted".to_owned(),
            _ => format!("other-{seq}"),
        };
        line["seq"] = seq.into();
        line["object"]["name"] = name.into();
        let text = serde_json::to_string(&line)?;
        if size + text.len() as u64 > FILE_BYTES {
            file.flush()?;
            std::fs::rename(&newest, state.join(format!("journal-{first:012}.jsonl")))?;
            file = BufWriter::new(std::fs::File::create(&newest)?);
            (first, size) = (seq, 0);
        }
        writeln!(file, "{text}")?;
        size += text.len() as u64 + 1;
        all += text.len() as u64 + 1;
    }
    file.flush()?;
    Ok(all)
}

//! The process that compiles plugins: what it may not do, and what it says.

use anyhow::{Context as _, Result, ensure};
use std::io::Write as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use trimtab_system_tests::Built;

/// A worker that has been given nothing yet, in an environment that it could talk about.
fn worker() -> Result<Child> {
    let child = Command::new(Built::find()?.trimtab)
        .arg("compile-worker")
        .env("A_SECRET", "hunter2")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    Ok(child)
}

/// What becomes of this file.
fn compiled(bytes: &[u8]) -> Result<Output> {
    let mut worker = worker()?;
    let mut stdin = worker.stdin.take().context("no stdin")?;
    let bytes = bytes.to_vec();
    // It may end before it has read all.
    let feeder = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
    let output = worker.wait_with_output()?;
    ensure!(feeder.join().is_ok(), "the feeder panicked");
    Ok(output)
}

#[test]
fn while_it_waits_for_a_file_it_can_open_nothing_and_its_limits_are_set() -> Result<()> {
    let mut worker = worker()?;
    let proc = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", worker.id()));
    let start = Instant::now();
    let limits = loop {
        let limits = proc("limits")?;
        // Set after those that are looked at below.
        let size = limits.lines().find(|line| line.starts_with("Max file size"));
        if size.is_some_and(|line| line.split_whitespace().nth(3) == Some("0")) {
            break limits;
        }
        ensure!(start.elapsed() < Duration::from_secs(10), "no limits within 10 s:\n{limits}");
        std::thread::sleep(Duration::from_millis(5));
    };
    // The limit on core files is the last one that it sets.
    for (name, most) in
        [("Max data size", "1073741824"), ("Max cpu time", "20"), ("Max file size", "0")]
    {
        let line = limits.lines().find(|line| line.starts_with(name)).context("no such limit")?;
        let words: Vec<&str> = line.split_whitespace().collect();
        ensure!(words.iter().filter(|word| **word == most).count() == 2, "soft and hard: {line}");
    }
    // Landlock takes the right to gain privileges with it.
    ensure!(proc("status")?.contains("NoNewPrivs:\t1"), "{}", proc("status")?);
    drop(worker.stdin.take());
    ensure!(!worker.wait()?.success(), "an empty file is no component");
    Ok(())
}

#[test]
fn what_is_no_component_or_too_large_is_refused_with_its_reason_and_no_code() -> Result<()> {
    for (bytes, reason) in [
        (b"no component".to_vec(), "magic header"),
        (vec![0; (4 << 20) + 1], "more than is expected"),
    ] {
        let output = compiled(&bytes)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success() && output.stdout.is_empty(), "{}", output.status);
        ensure!(said.contains(reason), "{reason} is not in {said}");
    }
    Ok(())
}

#[test]
fn a_plugin_of_ours_becomes_code() -> Result<()> {
    let output = compiled(&Built::find()?.plugin_bytes("generic")?)?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    ensure!(output.stdout.starts_with(b"\x7fELF"), "it is no code that wasmtime loads");
    Ok(())
}

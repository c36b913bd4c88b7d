//! The process that compiles plugins: what it may not do, and what it says.

use crate::world::{APP_OBJECTS, Test, converged, prove_alive, room_with_app, run, shared};
use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use trimtab_system_tests::{Built, compile_bomb, slow_compile_bomb};

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
    // The filter of system calls is the last fence.
    let status = loop {
        let status = proc("status")?;
        if status.contains("Seccomp:\t2") {
            break status;
        }
        ensure!(start.elapsed() < Duration::from_secs(10), "no filter within 10 s:\n{status}");
        std::thread::sleep(Duration::from_millis(5));
    };
    ensure!(status.contains("NoNewPrivs:\t1") && status.contains("Threads:\t1"), "{status}");
    let limits = proc("limits")?;
    for (name, soft, hard) in [
        ("Max data size", "1073741824", "1073741824"),
        ("Max cpu time", "20", "21"),
        ("Max file size", "0", "0"),
        ("Max open files", "3", "3"),
        ("Max core file size", "0", "0"),
    ] {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).context("no limit")?;
        let words: Vec<&str> = line.split_whitespace().collect();
        ensure!(words.starts_with(&[soft, hard]), "{name}: {line}");
    }
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

#[test]
fn a_file_that_would_take_too_long_is_ended_by_its_processor_time() -> Result<()> {
    let output = compiled(&slow_compile_bomb())?;
    let signal = output.status.signal();
    ensure!(signal == Some(Signal::XCPU.as_raw()), "{}", output.status);
    ensure!(output.stdout.is_empty(), "and gave code");
    Ok(())
}

#[test]
fn a_compile_bomb_is_refused_by_the_limit_that_it_ran_into_and_nothing_else_stops() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "compile-bomb";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        room.drop_plugin("bomb.wasm", &compile_bomb())?;
        let status = host
            .until("the bomb is refused", async |_| {
                let status = room.plugin_status("bomb.wasm")?;
                ensure!(status["state"] == "refused", "{status}");
                Ok(status)
            })
            .await?;
        let reason = status["reason"].as_str().unwrap_or_default();
        ensure!(reason.contains("more than 1024 MiB of memory"), "{reason}");
        ensure!(room.plugin_status("generic.wasm")?["state"] == "enforcing");
        prove_alive(cluster, &mut host, name).await
    })
}

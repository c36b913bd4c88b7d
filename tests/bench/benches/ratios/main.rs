//! `make bench`: what Trimtab costs, as ratios within one run.
//!
//! Takes the binary and the plugins that `make build` leaves in `target/`, and a real control
//! plane. Prints a row for each thing measured, and at the end the table. Never fails for a time:
//! the machine is not ours alone; a goal that is missed is said. Ends with another status than 0
//! only if something cannot be run.
//!
//! Words on the command line choose parts: `decision`, `policies`, `guards`, `idle`, `scale`, `cached`, `edits`;
//! none: all.
//! Start reading at `decision.rs`; `edits.rs` is the one that measures the whole host.

mod allocator;

mod decision;
mod guards;
mod isolation;
mod native;
mod policies;

mod cached;
mod idle;
mod scale;

mod controller;
mod edits;
mod proxy;

mod objects;
mod process;
mod stats;
mod table;

use anyhow::{Context as _, Result};
use table::Table;
use trimtab_kube::Credentials;
use trimtab_system_tests::{Built, Cluster};

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if let Some(folder) = controller::role() {
        return runtime.block_on(controller::run(&folder));
    }
    if isolation::is_role() {
        return isolation::serve();
    }
    // `cargo test --all-targets` runs benches too, without this word.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("benches run by `make bench`");
        return Ok(());
    }
    runtime.block_on(measure())
}

async fn measure() -> Result<()> {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let wants = |part: &str| chosen.is_empty() || chosen.iter().any(|it| it == part);
    let wasm = Built::find()?.plugin_bytes("generic")?;
    let mut table = Table::default();
    // First, while the process is small.
    if wants("idle") {
        eprintln!("==> memory of idle plugins");
        idle::measure(&wasm, &mut table)?;
    }
    eprintln!("==> a control plane");
    let mut cluster = Cluster::start(&trimtab_dev::to_stderr).await?;
    let kubeconfig = cluster.plane().kubeconfig().to_owned();
    let credentials = Credentials::Kubeconfig { file: Some(kubeconfig), context: None };
    let server = trimtab_kube::connect(&credentials).await.context("cannot connect")?;
    if wants("decision") {
        eprintln!("==> decisions: sandbox, native, memo");
        decision::measure(&cluster, &server, &wasm, &mut table).await?;
    }
    if wants("policies") {
        eprintln!("==> policies beside a pass");
        policies::measure(&cluster, &server, &wasm, &mut table).await?;
    }
    if wants("guards") {
        eprintln!("==> what each guard costs");
        guards::measure(&cluster, &server, &wasm, &mut table).await?;
    }
    if wants("scale") {
        eprintln!("==> growth, and kubectl beside it");
        scale::measure(&mut cluster, &server, &wasm, &mut table).await?;
    }
    if wants("edits") {
        eprintln!("==> edits: the host against a native controller (some minutes)");
        edits::measure(&mut cluster, &mut table).await?;
    }
    if wants("cached") {
        eprintln!("==> the cache: heap and re-checks (storing its objects takes a minute)");
        cached::measure(&cluster, &server, &wasm, &mut table).await?;
    }
    cluster.shutdown().await;
    table.print();
    Ok(())
}

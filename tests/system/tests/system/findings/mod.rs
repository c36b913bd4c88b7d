//! Signals on a real API server: each fires once, with who did it, and correction masks none; and a
//! busy healthy host finds nothing.

mod edits;
mod quiet;
mod returns;
mod secrets;
mod standing;

use crate::world::room_with_app;
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use trimtab_system_tests::{Cluster, Host, Id, Room};

/// A room whose host reads the API server's own audit log.
fn with_witness(cluster: &Cluster, name: &str) -> Result<Room> {
    let mut room = room_with_app(cluster, name)?;
    let log = cluster.audit().path().to_owned();
    room.arguments.extend(["--api-audit-log".into(), log.into_os_string()]);
    Ok(room)
}

/// Whether a finding is about this object.
fn is_about(finding: &Value, id: &Id) -> bool {
    let object = &finding["object"];
    let is = |key: &str, value: &str| object[key].as_str().unwrap_or_default() == value;
    is("kind", &id.kind) && is("namespace", &id.namespace) && is("name", &id.name)
}

/// Waits for a finding of this name that is as asked.
async fn found(
    host: &mut Host,
    room: &Room,
    name: &str,
    is: impl Fn(&Value) -> bool,
) -> Result<Value> {
    host.until(format!("{name} is found"), async |_| {
        let all = room.findings(&["--name", name])?;
        match all.iter().find(|finding| is(finding)) {
            Some(finding) => Ok(finding.clone()),
            None => bail!("found is {:?}", words(&room.findings(&[])?)),
        }
    })
    .await
}

/// Findings in short.
fn words(all: &[Value]) -> Vec<String> {
    let told = |finding: &Value| {
        format!("{} x{}: {}", finding["name"], finding["count"], finding["message"])
    };
    all.iter().map(told).collect()
}

fn evidence<'f>(finding: &'f Value, name: &str) -> &'f str {
    finding["evidence"][name].as_str().unwrap_or_default()
}

/// The Events about this object by Trimtab.
async fn events(cluster: &Cluster, id: &Id) -> Result<Vec<Value>> {
    let mut all = cluster.api().list("events.k8s.io/v1", "Event").await?;
    all.retain(|event| {
        let is =
            |key: &str, value: &str| event["regarding"][key].as_str().unwrap_or_default() == value;
        event["reportingController"] == "trimtab.dev/host"
            && is("kind", &id.kind)
            && is("namespace", &id.namespace)
            && is("name", &id.name)
    });
    Ok(all)
}

/// A grant for the generic plugin that lifts no hard denial.
fn grant_without_second_word(room: &Room) -> Result<()> {
    let file = room.plugins().join("generic.wasm");
    let arguments = [
        "plugin".as_ref(),
        "grant".as_ref(),
        file.as_os_str(),
        "--mode".as_ref(),
        "enforce".as_ref(),
    ];
    let grant = room.built().output(&arguments)?;
    room.grant("generic.wasm", &grant)
}

/// Fails if a finding is there.
fn nothing_found(room: &Room) -> Result<()> {
    let all = room.findings(&[]).context("the host wrote no findings")?;
    ensure!(all.is_empty(), "found: {:#?}", words(&all));
    Ok(())
}

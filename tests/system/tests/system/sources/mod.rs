//! Sources: what a host does with what they say, and when they say nothing.
//!
//! `directory.rs` is one directory as flags name it. The others have a configuration file: several
//! sources, reloaded live, held to a namespace, an account or a mode, and over a restart.

mod acting;
mod confined;
mod directory;
mod git;
mod modes;
mod reload;
mod restart;
mod several;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::ffi::OsString;
use std::process::Command;
use std::sync::Arc;
use trimtab_system_tests::{Host, Id, Line, Room};

/// Writes the room's configuration file with these sources, and has the host follow it.
fn configure(room: &mut Room, sources: &str) -> Result<()> {
    let file = room.path().join("config.yaml");
    let text = format!("apiVersion: trimtab.dev/v1alpha1\nkind: Config\nsources:\n{sources}");
    std::fs::write(&file, text)?;
    room.config = Some(file);
    Ok(())
}

/// A ConfigMap with one value.
fn map(namespace: &str, name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata: {{value: {value}}}\n---\n"
    )
}

fn map_id(namespace: &str, name: &str) -> Id {
    Id::new("v1", "ConfigMap", namespace, name)
}

fn namespace(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n---\n")
}

/// How a command ended: status, stdout, stderr.
struct Ended {
    status: i32,
    out: String,
    err: String,
}

/// Runs `trimtab` with these arguments and the room's state directory.
fn trimtab(room: &Room, arguments: &[&str]) -> Result<Ended> {
    let mut all: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    all.extend(["--state".into(), room.state().into_os_string()]);
    let output = Command::new(std::path::absolute(&room.built().trimtab)?)
        .args(all)
        .stdin(std::process::Stdio::null())
        .output()?;
    Ok(Ended {
        status: output.status.code().context("ended by a signal")?,
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// The same; only success will do.
fn done(room: &Room, arguments: &[&str]) -> Result<String> {
    let ended = trimtab(room, arguments)?;
    ensure!(ended.status == 0, "{arguments:?}: {} {}{}", ended.status, ended.out, ended.err);
    Ok(ended.out)
}

/// What `trimtab source list` says, as JSON.
fn list(room: &Room) -> Result<Value> {
    Ok(serde_json::from_str(&trimtab(room, &["source", "list", "-o", "json"])?.out)?)
}

/// The list's entry of one source.
fn listed(room: &Room, name: &str) -> Result<Value> {
    let list = list(room)?;
    let mut sources = list["sources"].as_array().into_iter().flatten();
    sources.find(|source| source["name"] == name).cloned().context("it is not listed")
}

/// Waits until the list's entry of this source is as asked.
async fn until_listed(
    host: &mut Host,
    room: &Room,
    name: &str,
    is: impl Fn(&Value) -> bool,
) -> Result<Value> {
    host.until(format!("source {name} is listed as expected"), async |_| {
        let entry = listed(room, name)?;
        if is(&entry) { Ok(entry) } else { bail!("{entry}") }
    })
    .await
}

/// Waits for a line about this source that tells a problem or a refused object with these words.
async fn told(host: &mut Host, mark: usize, source: &str, words: &[&str]) -> Result<Arc<Line>> {
    host.line(format!("source {source}: {words:?} is told"), mark, |line| {
        let all = format!("{} {}", line.0["problems"], line.0["refused"]);
        line.kind() == "source"
            && line.0["source"] == source
            && words.iter().all(|word| all.contains(word))
    })
    .await
}

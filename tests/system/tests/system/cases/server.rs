//! The cases on a real API server: what is declared first converges under a running host, others
//! change the world, `trimtab diff --source` gives the verdict, a host lets everything converge
//! again, and afterwards nothing is written: the API server's audit log counts.
//!
//! All cases share one host, each in a namespace of its own: a round is then a question of
//! seconds, and a case that writes for ever is found all the same, by its object.

use super::form::{Case, Found, OnServer, Step, Way, id, manifests};
use super::refused::whole_refusal;
use super::steps::take;
use super::{Tally, all};
use crate::world::{Test, run, shared};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trimtab_core::object::Manifest;
use trimtab_system_tests::{Cluster, Host, Id, Journal, Line, PATIENCE, Room, until};

/// Outcomes after which nothing happens by itself.
const SETTLED: [&str; 9] = [
    "created",
    "corrected",
    "in-sync",
    "in-sync-by-server",
    "left",
    "rejected",
    "conflict",
    "refused",
    "unknown",
];

#[test]
fn each_case_gets_its_verdict_on_a_real_api_server_converges_and_is_written_no_more() -> Test {
    run(async {
        let cluster = shared().await?;
        let cases = all()?;
        let mut played: Vec<Played<'_>> = Vec::new();
        for case in &cases {
            if let OnServer::Yes(way) = &case.server
                && whole_refusal(case).is_none()
            {
                played.push(Played::new(case, way)?);
            }
        }
        let room = cluster.room("cases")?.with_generic()?;
        room.drop_our_plugin("workloads")?;
        room.enforce("workloads.wasm")?;
        play(cluster, &room, &mut played).await?;
        let mut tally = Tally::default();
        for it in played {
            let known = it.way.known.as_deref();
            let result = if it.wrong.is_empty() { Ok(()) } else { Err(it.wrong.join("; ")) };
            tally.take(it.case, known, result.map_err(anyhow::Error::msg));
        }
        tally.end("on the API server")
    })
}

/// A case on its way over the server.
struct Played<'c> {
    case: &'c Case,
    way: &'c Way,
    /// What is declared in the end.
    ids: Vec<Id>,
    /// What is declared first; empty: nothing.
    first: String,
    /// What is made of `first`.
    first_ids: Vec<Id>,
    wrong: Vec<String>,
}

impl<'c> Played<'c> {
    fn new(case: &'c Case, way: &'c Way) -> Result<Self> {
        let context = || format!("{}: {}", case.namespace, case.name);
        let mut definitions = manifests(&case.schemas)?;
        let desired = manifests(&case.desired).with_context(context)?;
        definitions.extend(desired.iter().cloned());
        let verdict = &case.expect.verdict;
        let first = match &way.first {
            Some(first) => first.clone(),
            None if verdict == "missing" => String::new(),
            None if verdict == "refused" => case.live.clone(),
            None => case.desired.clone(),
        };
        let name = |manifest: &Manifest| id(manifest, &definitions);
        let first_ids = manifests(&first).with_context(context)?.iter().map(name).collect();
        let ids = desired.iter().map(name).collect();
        Ok(Self { case, way, ids, first, first_ids, wrong: Vec::new() })
    }

    fn file(&self) -> String {
        format!("{}.yaml", self.case.namespace)
    }

    fn expect(&self) -> &super::form::Expect {
        self.way.expect.as_ref().unwrap_or(&self.case.expect)
    }

    fn fail(&mut self, error: &anyhow::Error) {
        self.wrong.push(format!("{error:#}"));
    }

    /// What others do once it has converged.
    fn steps(&self) -> Result<Vec<Step>> {
        if let Some(steps) = &self.way.steps {
            return Ok(steps.clone());
        }
        let drifts = self.case.expect.verdict.contains("drift") && self.way.first.is_none();
        if !drifts {
            return Ok(Vec::new());
        }
        let put = |manifest: &Manifest| {
            let put: Value = serde_json::from_slice(&manifest.json)?;
            Ok(serde_json::from_value(json!({"by": "somebody", "put": put}))?)
        };
        manifests(&self.case.live)?.iter().map(put).collect()
    }
}

async fn play(cluster: &Cluster, room: &Room, played: &mut [Played<'_>]) -> Result<()> {
    for it in &mut *played {
        if let Err(error) = prepare(cluster, it).await {
            it.fail(&error);
        }
    }

    // What is declared first.
    let mut made = BTreeSet::new();
    for it in &*played {
        for id in &it.first_ids {
            if cluster.api().get(id).await.ok().flatten().is_none() {
                made.insert(id.clone());
            }
        }
        if !it.first.is_empty() {
            room.declare(&it.file(), &it.first)?;
        }
    }
    let mut host = room.start()?;
    let late = settled(&mut host, 0, &made).await?;
    for it in &mut *played {
        for id in it.first_ids.iter().filter(|id| late.contains_key(*id)) {
            it.wrong.push(format!("{id} does not converge at first: {}", late[id]));
        }
    }
    ensure!(host.stop().await?.success(), "the host does not end well");

    // What others do, and what is declared in the end.
    for it in &mut *played {
        let steps = it.steps()?;
        for step in &steps {
            if let Err(error) = take(cluster, it.ids.first(), step).await {
                it.fail(&error);
            }
        }
        room.declare(&it.file(), &it.case.desired)?;
    }
    let answer = diff(room)?;
    ensure!(answer["errors"] == json!([]), "{}", answer["errors"]);
    let mut different: BTreeSet<Id> = BTreeSet::new();
    for it in &mut *played {
        if it.way.by_host {
            // What is in sync has no line in the journal to wait for.
            different.extend(it.ids.iter().filter(|_| it.expect().verdict != "in-sync").cloned());
            continue;
        }
        let found = Found::in_answer(&answer, Some(&it.ids));
        if let Err(error) = it.expect().check(&found) {
            it.fail(&error);
        }
        for id in &it.ids {
            let of = std::slice::from_ref(id);
            if Found::in_answer(&answer, Some(of)).verdict != "in-sync" {
                different.insert(id.clone());
            }
        }
    }

    // It converges again.
    let before = cluster.audit().writes_by(room.user()).await?.len();
    let mark = room.journal().mark()?;
    let mut host = room.start()?;
    let late = settled(&mut host, mark, &different).await?;
    let lines = host.journal().lines()?;
    ensure!(host.stop().await?.success(), "the host does not end well");
    let all_writes = cluster.audit().writes_by(room.user()).await?;
    let writes_of = |it: &Played<'_>| {
        let in_it = |write: &&trimtab_system_tests::Request| {
            it.ids.iter().any(|id| id.name == write.name && id.namespace == write.namespace)
        };
        all_writes[before..].iter().filter(in_it).filter(|write| write.succeeded()).count()
    };
    for it in &mut *played {
        for id in it.ids.iter().filter(|id| late.contains_key(*id)) {
            it.wrong.push(format!("{id} does not converge: {}", late[id]));
        }
        if it.way.by_host
            && let Some(paths) = &it.expect().paths
        {
            let of_it = |line: &&Arc<Line>| it.ids.iter().any(|id| line.is_about(id));
            let passes = lines.iter().skip(mark).filter(|line| line.kind() == "pass");
            let seen: BTreeSet<String> =
                passes.filter(of_it).flat_map(|line| line.paths()).map(str::to_owned).collect();
            if seen != *paths {
                it.wrong.push(format!("the host's passes differ at {seen:?}"));
            }
        }
        let still = matches!(&*it.expect().verdict, "in-sync" | "refused");
        let count = writes_of(it);
        if still && count > 0 {
            it.wrong.push(format!("it was written {count} times, and there is nothing to write"));
        }
    }

    // And is written no more, though everything is judged anew.
    let before = all_writes.len();
    let round = room.once().await?;
    let again = cluster.audit().writes_by(room.user()).await?;
    let answer = diff(room)?;
    let told = format!("{}{}{}", round.log, round.summary, room.journal().text()?);
    for it in &mut *played {
        for write in &again[before..] {
            let of_it = |id: &Id| id.name == write.name && id.namespace == write.namespace;
            if write.succeeded() && it.ids.iter().any(of_it) {
                it.wrong.push(format!("written again: {} {}", write.verb, write.uri));
            }
        }
        let refused = it.expect().verdict == "refused";
        for (object, outcome, reason) in round.unsettled() {
            let named = |id: &Id| object.ends_with(&format!(" {}/{}", id.namespace, id.name));
            if !refused && it.ids.iter().any(named) {
                it.wrong.push(format!("in the end {object} is {outcome}: {reason}"));
            }
        }
        let found = Found::in_answer(&answer, Some(&it.ids));
        let right = if refused { "refused" } else { "in-sync" };
        if found.verdict != right && !it.way.by_host {
            it.wrong.push(format!(
                "in the end it is {} at {:?}: {}",
                found.verdict, found.paths, found.reason
            ));
        }
        if let Err(error) = it.expect().check_hidden(&[&told, &answer.to_string()]) {
            it.fail(&error);
        }
        let object = match it.ids.first() {
            Some(id) => cluster.api().get(id).await?.unwrap_or_default(),
            None => Value::Null,
        };
        for (pointer, value) in &it.way.then {
            let now = object.pointer(pointer).unwrap_or(&Value::Null);
            if now != value {
                it.wrong.push(format!("{pointer} is {now} in the end, not {value}"));
            }
        }
    }
    Ok(())
}

/// The namespace, the definitions, and what others did before there was a host.
async fn prepare(cluster: &Cluster, it: &Played<'_>) -> Result<()> {
    let setup = cluster.user("setup")?;
    let name = &it.case.namespace;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    setup.apply(&namespace).await?;
    // There is no controller here that makes it, and Pods ask for it.
    setup
        .apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": name}}))
        .await?;
    for definition in manifests(&it.case.schemas)? {
        let definition: Value = serde_json::from_slice(&definition.json)?;
        setup.apply(&definition).await?;
        let spec = &definition["spec"];
        let (Some(group), Some(kind)) = (spec["group"].as_str(), spec["names"]["kind"].as_str())
        else {
            bail!("a definition without a group or a kind");
        };
        for version in spec["versions"].as_array().into_iter().flatten() {
            let served = format!("{group}/{}", version["name"].as_str().unwrap_or_default());
            until(format!("{served} is served"), PATIENCE, async || {
                setup.list(&served, kind).await.map(drop)
            })
            .await?;
        }
    }
    for step in &it.way.before {
        take(cluster, it.ids.first(), step).await?;
    }
    Ok(())
}

/// Waits until each object has a settled pass since the mark; gives those that have none in time.
async fn settled(host: &mut Host, mark: usize, ids: &BTreeSet<Id>) -> Result<BTreeMap<Id, String>> {
    let start = Instant::now();
    loop {
        if let Some(status) = host.ended() {
            bail!("the host ended with {status}\n{}", host.log()?);
        }
        let late = unsettled(host.journal(), mark, ids)?;
        if late.is_empty() || start.elapsed() > PATIENCE {
            return Ok(late);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn unsettled(journal: &Journal, mark: usize, ids: &BTreeSet<Id>) -> Result<BTreeMap<Id, String>> {
    let lines = journal.lines()?;
    let mut late = BTreeMap::new();
    for id in ids {
        let mut passes = lines.iter().skip(mark).filter(|line| line.kind() == "pass");
        let last = passes.rfind(|line| line.is_about(id));
        match last {
            Some(line) if SETTLED.contains(&line.outcome()) => {}
            Some(line) => {
                late.insert(id.clone(), format!("{} {}", line.outcome(), line.message()));
            }
            None => {
                late.insert(id.clone(), "it was not looked at".into());
            }
        }
    }
    Ok(late)
}

/// `trimtab diff --source` of the whole room.
pub(super) fn diff(room: &Room) -> Result<Value> {
    let kubeconfig = room.kubeconfig.as_ref().context("the room has no kubeconfig")?;
    let output = std::process::Command::new(&room.built().trimtab)
        .arg("diff")
        .arg("--source")
        .arg(room.source())
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(["-o", "json"])
        .output()?;
    serde_json::from_slice(&output.stdout).with_context(|| {
        format!("stdout is no JSON; stderr: {}", String::from_utf8_lossy(&output.stderr))
    })
}

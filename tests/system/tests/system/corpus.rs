//! Real manifests, as their projects publish them: each from an empty control plane to converged,
//! then a round that writes nothing, then drift in twenty objects of different kinds.
//!
//! They are read from `../shared/corpus` beside the checkout and never copied into the project;
//! where that folder is not there, each test says so and is skipped.

use crate::oracle::every_change_is_found;
use crate::world::{Test, free_port, get, run, say};
use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trimtab_system_tests::{
    Cluster, Drift, Host, Id, Request, Room, copy_tree, drift, objects_in, workspace,
};

/// Objects to change behind the host's back, of as many kinds as there are.
const DRIFTS: usize = 20;

/// One project's manifests.
struct Source {
    folder: &'static str,
    /// `--namespace`, which is made first, as the project's instructions say.
    namespace: Option<&'static str>,
    /// What cannot be as declared here: a part of the object's name, the outcome, a part of the
    /// reason. Every other object converges.
    unsettled: &'static [(&'static str, &'static str, &'static str)],
}

const PLAIN: Source = Source { folder: "", namespace: None, unsettled: &[] };

#[test]
fn online_boutique_converges_stays_and_is_held() -> Test {
    held(&Source { folder: "online-boutique", ..PLAIN })
}

#[test]
fn bookinfo_converges_stays_and_is_held() -> Test {
    held(&Source { folder: "bookinfo", ..PLAIN })
}

#[test]
fn kube_prometheus_converges_stays_and_is_held() -> Test {
    held(&Source { folder: "kube-prometheus", ..PLAIN })
}

#[test]
fn ingress_nginx_converges_stays_and_is_held() -> Test {
    held(&Source { folder: "ingress-nginx", ..PLAIN })
}

#[test]
fn metallb_converges_stays_and_is_held() -> Test {
    held(&Source { folder: "metallb", ..PLAIN })
}

#[test]
fn gateway_api_converges_stays_and_is_held() -> Test {
    held(&Source { folder: "gateway-api", ..PLAIN })
}

#[test]
fn argo_cd_converges_stays_and_is_held() -> Test {
    held(&Source { folder: "argo-cd", namespace: Some("argocd"), ..PLAIN })
}

fn held(source: &Source) -> Test {
    let folder = corpus().join(source.folder);
    if !folder.is_dir() {
        say(&format!(
            "skipped: {} is not there (real manifests, beside the checkout)",
            folder.display()
        ));
        return Ok(());
    }
    run(async {
        let cluster = Cluster::start(&say).await?;
        let mut room = cluster.room(source.folder)?.with_generic()?;
        copy_tree(&folder, &room.source())?;
        if let Some(namespace) = source.namespace {
            let object =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            cluster.user("setup")?.create(&object).await?;
            room.arguments.extend(["--namespace".into(), namespace.into()]);
        }
        let mut told = converge(&cluster, &room, source).await?;
        told.push_str(&stay(&cluster, &room, source).await?);
        told.push_str(&differ(&cluster, &folder, source).await?);
        told.push_str(&hold(&cluster, &mut room).await?);
        say(&format!("corpus {}: {told}", source.folder));
        cluster.shutdown().await;
        Ok(())
    })
}

/// The first round.
async fn converge(cluster: &Cluster, room: &Room, source: &Source) -> Result<String> {
    let round = room.once().await?;
    expected(source, &round.unsettled()).with_context(|| round.log.clone())?;
    let status = i32::from(!source.unsettled.is_empty());
    ensure!(round.status == status, "status {}: {}", round.status, round.summary);
    let requests = cluster.audit().by(room.user()).await?;
    let made = requests.iter().filter(|request| request.created()).count();
    Ok(format!(
        "{} objects, {made} made in {:.1} s ({} requests)",
        round.summary["objects"],
        round.took.as_secs_f64(),
        requests.len()
    ))
}

/// What is not as declared is what was expected, and nothing else.
fn expected(source: &Source, unsettled: &[(String, String, String)]) -> Result<()> {
    let is = |(object, outcome, reason): &&(String, String, String)| {
        source.unsettled.iter().any(|(name, word, part)| {
            object.contains(name) && outcome == word && reason.contains(part)
        })
    };
    let others: Vec<_> = unsettled.iter().filter(|it| !is(it)).collect();
    ensure!(others.is_empty(), "{} objects did not converge: {others:#?}", others.len());
    for (name, outcome, _) in source.unsettled {
        let there =
            unsettled.iter().any(|(object, word, _)| object.contains(name) && word == outcome);
        ensure!(there, "{name} is expected to be {outcome}, and is not: {unsettled:?}");
    }
    Ok(())
}

/// The second round: nothing is written.
async fn stay(cluster: &Cluster, room: &Room, source: &Source) -> Result<String> {
    let before = cluster.audit().by(room.user()).await?.len();
    let round = room.once().await?;
    expected(source, &round.unsettled()).with_context(|| round.log.clone())?;
    let requests = cluster.audit().by(room.user()).await?;
    let requests = &requests[before..];
    let writes: Vec<Request> = requests.iter().filter(|it| it.writes()).cloned().collect();
    let written: Vec<String> =
        writes.iter().map(|it| format!("{} {}", it.verb, it.object())).collect();
    // What is refused each time is tried each time; it changes nothing.
    let refused = writes.iter().all(|it| it.code >= 400) && !source.unsettled.is_empty();
    ensure!(writes.is_empty() || refused, "the second round wrote: {written:#?}\n{}", round.log);
    let rehearsed = requests.iter().filter(|it| it.rehearses()).count();
    Ok(format!(
        "; second round {:.1} s, 0 writes, {rehearsed} dry runs ({} requests)",
        round.took.as_secs_f64(),
        requests.len()
    ))
}

/// The comparison of each object that stayed: one change is found, where it is, and one respelling is
/// none.
async fn differ(cluster: &Cluster, folder: &Path, source: &Source) -> Result<String> {
    let objects = objects_in(folder)?;
    let namespace = source.namespace.unwrap_or("default");
    let count = every_change_is_found(cluster, objects, namespace).await?;
    ensure!(count > 0, "no object states a value");
    Ok(format!("; of {count} objects one change each was found, and no respelling"))
}

/// Drift, found through the watch of a running host.
async fn hold(cluster: &Cluster, room: &mut Room) -> Result<String> {
    let objects = made_by(cluster, room.user()).await?;
    let probes = format!("127.0.0.1:{}", free_port()?);
    room.arguments.extend(["--health-probe-bind-address".into(), probes.clone().into()]);
    if let Some(filter) = std::env::var_os("TRIMTAB_TEST_LOG") {
        room.environment.push(("RUST_LOG".into(), filter));
    }
    let mut host = room.start()?;
    host.until("the host is ready", async |_| {
        let answer = get(&probes, "/readyz").await?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        Ok(())
    })
    .await?;
    let mallory = cluster.user("mallory")?;
    let (mut kinds, mut slowest, mut stubborn) =
        (BTreeMap::<String, usize>::new(), Duration::ZERO, Vec::new());
    let mut done = 0;
    for id in objects {
        if done == DRIFTS {
            break;
        }
        let mark = host.journal().mark()?;
        match drift(&mallory, &id, "trimtab").await? {
            Ok(drift) => {
                slowest = slowest.max(corrected(cluster, &mut host, mark, &drift).await?);
                *kinds.entry(id.kind).or_default() += 1;
                done += 1;
            }
            Err(reason) => stubborn.push(format!("{id}: {reason}")),
        }
    }
    ensure!(host.stop().await?.success(), "the host did not end well");
    // Fewer only where a project has no more objects that can be changed at all.
    ensure!(done > 0, "nothing could be changed: {stubborn:#?}");
    if let (true, Some(first)) = (done < DRIFTS, stubborn.first()) {
        let (name, count) = (room.user(), stubborn.len());
        say(&format!("corpus {name}: {count} objects cannot be made to drift, the first: {first}"));
    }
    Ok(format!(
        "; {done} drifts of {} kinds corrected, the slowest seen after {} ms",
        kinds.len(),
        slowest.as_millis(),
    ))
}

async fn corrected(
    cluster: &Cluster,
    host: &mut Host,
    mark: usize,
    drift: &Drift,
) -> Result<Duration> {
    let (id, start) = (&drift.id, Instant::now());
    let what = format!(
        "{} of {id} is put right (it was {} and is {})",
        drift.pointer, drift.before, drift.after
    );
    let found =
        host.line(&what, mark, |line| line.is_about(id) && line.outcome() == "corrected").await;
    let line = match found {
        Ok(line) => line,
        Err(error) => {
            let told =
                host.journal().lines()?.into_iter().skip(mark).filter(|line| line.is_about(id));
            let told: Vec<String> = told.map(|line| line.0.to_string()).collect();
            return Err(error.context(format!("the journal tells of it: {told:#?}")));
        }
    };
    let took = start.elapsed();
    ensure!(line.managers().contains(&"mallory"), "{what}: attributed to {:?}", line.managers());
    let live = cluster.api().require(id).await?;
    ensure!(live.pointer(&drift.pointer) == Some(&drift.before), "{what}: {live}");
    Ok(took)
}

/// The objects that this user made, those of different kinds first.
async fn made_by(cluster: &Cluster, user: &str) -> Result<Vec<Id>> {
    let mut by_kind: BTreeMap<String, Vec<Id>> = BTreeMap::new();
    for request in cluster.audit().by(user).await? {
        if request.created() {
            let path = request.uri.split('?').next().unwrap_or_default();
            let object = cluster.api().send(Method::GET, path, None, None).await?;
            let id = Id::of(&object).with_context(|| format!("no object at {path}"))?;
            by_kind.entry(id.kind.clone()).or_default().push(id);
        }
    }
    let mut rows: Vec<std::vec::IntoIter<Id>> = by_kind.into_values().map(Vec::into_iter).collect();
    let mut all = Vec::new();
    while !rows.is_empty() {
        rows.retain_mut(|row| row.next().map(|id| all.push(id)).is_some());
    }
    Ok(all)
}

fn corpus() -> PathBuf {
    workspace().join("../shared/corpus")
}

//! A busy healthy host finds nothing: other revisions, rollouts, objects that come and go, statuses,
//! labels and annotations of others, an autoscaler under an ignore rule, restarts.
//!
//! `TRIMTAB_QUIET_SECONDS` says for how long; without it, for a few seconds. Over real manifests
//! where `../shared/corpus` is beside the checkout, or in the folder that `TRIMTAB_CORPUS` names.

use super::nothing_found;
use crate::world::{Test, app, deployment, pass, run, say, settings, shared};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use trimtab_system_tests::{Api, Cluster, Host, Id, Room, objects_in, workspace};

fn for_how_long() -> Result<Duration> {
    let seconds = match std::env::var("TRIMTAB_QUIET_SECONDS") {
        Ok(text) => text.parse().context("TRIMTAB_QUIET_SECONDS is no number")?,
        Err(_) => 5,
    };
    Ok(Duration::from_secs(seconds))
}

/// The application as this round declares it: another image, other data, a ConfigMap that is there
/// in every second round.
fn declared(name: &str, round: usize) -> String {
    let mut text = app(name)
        .replace("web:1", &format!("web:{round}"))
        .replace("color: blue", &format!("color: blue-{round}"))
        .replace("  replicas: 2\n", "");
    text.push_str(&format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: db, namespace: {name}}}\nstringData: {{password: \"quiet-{round}-9f2E81mmZ4\"}}\n"
    ));
    if round.is_multiple_of(2) {
        text.push_str(&format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: now-and-then, namespace: {name}}}\ndata: {{round: \"{round}\"}}\n"
        ));
    }
    text
}

/// What others do to objects without touching what is declared.
async fn others(api: &Api, name: &str, round: usize) -> Result<()> {
    let web = deployment(name);
    let merge = "application/merge-patch+json";
    let scaled = json!({"spec": {"replicas": 1 + round % 5}});
    api.patch(&web, "scale", merge, &scaled).await?;
    let status = json!({"status": {"replicas": round % 5, "updatedReplicas": round % 5}});
    api.patch(&web, "status", merge, &status).await?;
    let noted = json!({"metadata": {
        "annotations": {"example.com/seen": round.to_string()},
        "labels": {"example.com/round": round.to_string()},
    }});
    api.merge(&settings(name), &noted).await?;
    api.merge(&web, &noted).await?;
    Ok(())
}

#[test]
fn a_busy_healthy_host_finds_nothing() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "quiet";
        let mut room = cluster.room(name)?.with_generic()?;
        let log = cluster.audit().path().to_owned();
        room.arguments.extend(["--api-audit-log".into(), log.into_os_string()]);
        room.declare("app.yaml", &declared(name, 0))?;
        let mut host = room.start()?;
        pass(&mut host, 0, &deployment(name), "created").await?;
        let controller = cluster.user("deployment-controller")?;
        let (start, limit, mut round) = (Instant::now(), for_how_long()?, 0);
        while start.elapsed() < limit || round < 4 {
            round += 1;
            let mark = host.journal().mark()?;
            room.declare("app.yaml", &declared(name, round))?;
            pass(&mut host, mark, &settings(name), "corrected").await?;
            pass(&mut host, mark, &deployment(name), "corrected").await?;
            others(&controller, name, round).await?;
            if round % 3 == 0 {
                host.stop().await?;
                host = room.start()?;
            }
        }
        settled(cluster, &mut host, name).await?;
        nothing_found(&room)?;
        host.stop().await?;
        nothing_found(&room)?;
        say(&format!("quiet: {round} rounds in {} s, no finding", start.elapsed().as_secs()));
        Ok(())
    })
}

/// What the host was told until now has been through its loop: a change of the source is.
async fn settled(cluster: &Cluster, host: &mut Host, name: &str) -> Result<()> {
    let id = settings(name);
    host.until("the last round is in force", async |_| {
        let live = cluster.api().require(&id).await?;
        ensure!(live["data"]["color"].as_str().is_some_and(|it| it.starts_with("blue-")), "{live}");
        Ok(())
    })
    .await
}

#[test]
fn real_manifests_that_are_changed_by_revisions_alone_are_quiet() -> Test {
    let named = std::env::var_os("TRIMTAB_CORPUS").map(std::path::PathBuf::from);
    let corpus = named.unwrap_or_else(|| workspace().join("../shared/corpus"));
    let projects = ["online-boutique", "bookinfo", "metallb", "kube-prometheus"];
    if !corpus.is_dir() {
        say(&format!(
            "skipped: {} is not there (real manifests, beside the checkout)",
            corpus.display()
        ));
        return Ok(());
    }
    run(async {
        let limit = for_how_long()?;
        for project in projects {
            let cluster = Cluster::start(&say).await?;
            let room = cluster.room(project)?.with_generic()?;
            let objects = objects_in(&corpus.join(project))?;
            revise(&room, &objects, 0)?;
            let round = room.once().await?;
            ensure!(round.status == 0, "{project}: {}\n{}", round.summary, round.log);
            let (rounds, seconds) = busy(&cluster, &room, &objects, limit / 4).await?;
            nothing_found(&room).with_context(|| project.to_owned())?;
            say(&format!("quiet {project}: {rounds} revisions in {seconds} s, no finding"));
            cluster.shutdown().await;
        }
        Ok(())
    })
}

/// Declares these objects, a third of them other than in the round before: each has an annotation of
/// the last round that was its turn.
fn revise(room: &Room, objects: &[Value], round: usize) -> Result<()> {
    let mut text = String::new();
    for (index, object) in objects.iter().enumerate() {
        let mut object = object.clone();
        let turn = round.saturating_sub((round + 3 - index % 3) % 3);
        object["metadata"]["annotations"]["example.com/round"] = turn.to_string().into();
        text.push_str(&format!("---\n{object}\n"));
    }
    room.declare("all.yaml", &text)
}

/// Revisions one after the other, while somebody else writes beside them.
async fn busy(
    cluster: &Cluster,
    room: &Room,
    objects: &[Value],
    limit: Duration,
) -> Result<(usize, u64)> {
    let mut host = room.start()?;
    let beside = cluster.user("beside")?;
    let ids: Vec<Id> = objects.iter().filter_map(Id::of).collect();
    let (start, mut rounds) = (Instant::now(), 0);
    while start.elapsed() < limit || rounds < 3 {
        rounds += 1;
        let mark = host.journal().mark()?;
        revise(room, objects, rounds)?;
        let turn = |index: usize| index % 3 == rounds % 3;
        let changed = ids.iter().enumerate().filter(|(index, _)| turn(*index)).count();
        host.until(format!("round {rounds}: {changed} objects are written"), async |journal| {
            let lines = journal.lines()?;
            let written = lines.iter().skip(mark).filter(|it| it.outcome() == "corrected").count();
            ensure!(written >= changed, "{written} are");
            Ok(())
        })
        .await?;
        let other = &ids[rounds % ids.len()];
        let noted =
            json!({"metadata": {"annotations": {"example.com/beside": rounds.to_string()}}});
        // An object of no namespace in its manifest is in one that the host chose.
        if !other.namespace.is_empty() {
            beside.merge(other, &noted).await?;
        }
    }
    ensure!(host.stop().await?.success(), "the host did not end well");
    Ok((rounds, start.elapsed().as_secs()))
}

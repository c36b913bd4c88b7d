//! Pruning: what left the source goes, what must not go stays, and what few mean waits for a person.

use crate::world::{Test, run, shared};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use trimtab_system_tests::{Cluster, Host, Id, Journal, Request, Room};

/// ConfigMaps that stay, so that what goes is no large share.
const STAYING: usize = 20;

pub(super) fn map(namespace: &str, name: &str) -> Id {
    Id::new("v1", "ConfigMap", namespace, name)
}

fn config_map(namespace: &str, name: &str, metadata: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}{metadata}}}\ndata: {{a: \"1\"}}\n"
    )
}

fn maps(namespace: &str, prefix: &str, count: usize) -> String {
    (0..count).fold(String::new(), |mut text, index| {
        let _ =
            writeln!(text, "---\n{}", config_map(namespace, &format!("{prefix}{index:02}"), ""));
        text
    })
}

/// A room whose source prunes, with a namespace of its name and ConfigMaps that stay in it.
fn room(cluster: &Cluster, name: &str) -> Result<Room> {
    let mut room = cluster.room(name)?.with_generic()?;
    room.arguments.push("--prune".into());
    let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n");
    room.declare("base.yaml", &(namespace + &maps(name, "stays-", STAYING)))?;
    Ok(room)
}

/// One round that ends well.
async fn settled(room: &Room) -> Result<()> {
    let round = room.once().await?;
    ensure!(round.status == 0, "status {}: {}\n{}", round.status, round.summary, round.log);
    Ok(())
}

async fn deletes(cluster: &Cluster, user: &str) -> Result<Vec<Request>> {
    let mut writes = cluster.audit().writes_by(user).await?;
    writes.retain(|request| request.verb.starts_with("delete"));
    Ok(writes)
}

/// What the inventory of this room's source names, each with its UID.
pub(super) async fn inventory(cluster: &Cluster, room: &Room) -> Result<BTreeMap<String, String>> {
    entries(cluster, room, 4).await
}

/// The same with its marks.
async fn marks(cluster: &Cluster, room: &Room) -> Result<BTreeMap<String, String>> {
    entries(cluster, room, 7).await
}

async fn entries(
    cluster: &Cluster,
    room: &Room,
    member: usize,
) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for object in cluster.api().list("v1", "ConfigMap").await? {
        let home = object["metadata"]["namespace"].as_str() == Some(&*room.inventory());
        let Some(text) = object["data"]["inventory"].as_str().filter(|_| home) else { continue };
        let shard: Value = serde_json::from_str(text)?;
        for entry in shard["entries"].as_array().context("entries")? {
            let text = |index: usize| entry[index].as_str().unwrap_or_default().to_owned();
            found.insert(format!("{} {}/{}", text(1), text(2), text(3)), text(member));
        }
    }
    Ok(found)
}

/// Everything that is in the inventory is in the cluster under that UID, and everything that is
/// declared is in both.
async fn inventory_is_the_cluster(cluster: &Cluster, room: &Room) -> Result<()> {
    let known = inventory(cluster, room).await?;
    for (object, uid) in &known {
        let (kind, rest) = object.split_once(' ').context("a kind")?;
        let (namespace, name) = rest.split_once('/').context("a name")?;
        let version = if kind == "Deployment" { "apps/v1" } else { "v1" };
        let live = cluster.api().require(&Id::new(version, kind, namespace, name)).await?;
        ensure!(live["metadata"]["uid"] == **uid, "{object}: {uid:?} and {live}");
    }
    for id in trimtab_system_tests::objects(&room.source())? {
        let name = format!("{} {}/{}", id.kind, id.namespace, id.name);
        ensure!(known.contains_key(&name), "{name} is not in the inventory: {known:?}");
    }
    Ok(())
}

/// The text of the journal's line of this step about this object.
async fn told(host: &mut Host, step: &str, id: &Id, words: &str) -> Result<String> {
    let line = host
        .line(format!("{id}: {step} {words:?}"), 0, |line| {
            line.kind() == "prune"
                && line.0["step"] == step
                && line.is_about(id)
                && line.message().contains(words)
        })
        .await?;
    Ok(line.message().to_owned())
}

async fn is_gone(host: &mut Host, cluster: &Cluster, id: &Id) -> Result<()> {
    host.until(format!("{id} is gone"), async |_| {
        ensure!(cluster.api().get(id).await?.is_none(), "it is there");
        Ok(())
    })
    .await
}

fn command(room: &Room, arguments: &[&str]) -> Result<(i32, String)> {
    let output = std::process::Command::new(std::path::absolute(&room.built().trimtab)?)
        .args(arguments)
        .env("KUBECONFIG", room.kubeconfig.clone().context("the room's kubeconfig")?)
        .output()?;
    let text = [output.stdout, output.stderr].concat();
    let status = output.status.code().context("ended by a signal")?;
    Ok((status, String::from_utf8_lossy(&text).into_owned()))
}

#[test]
fn what_left_the_source_is_deleted_dependents_first_with_an_intent_before_each() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "prune-order";
        let room = room(cluster, name)?;
        let web = format!(
            "apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: {name}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: \"registry.example.com/web:1\"}}]}}
"
        );
        let needing = ", annotations: {trimtab.dev/depends-on: ConfigMap/aa-base}";
        let documents =
            [web, config_map(name, "aa-base", ""), config_map(name, "bb-needs-it", needing)];
        // Nothing here makes a Deployment ready: what it is needed by is not what is shown.
        room.declare("goes.yaml", &documents.join("---\n"))?;
        settled(&room).await?;
        inventory_is_the_cluster(cluster, &room).await?;
        ensure!(inventory(cluster, &room).await?.len() == STAYING + 4);
        room.withdraw("goes.yaml")?;
        settled(&room).await?;
        inventory_is_the_cluster(cluster, &room).await?;
        ensure!(inventory(cluster, &room).await?.len() == STAYING + 1);
        let order: Vec<String> =
            deletes(cluster, name).await?.into_iter().map(|request| request.name).collect();
        ensure!(order == ["web", "bb-needs-it", "aa-base"], "{order:?}");
        let lines = room.journal().lines()?;
        let steps: Vec<String> = lines
            .iter()
            .filter(|line| line.kind() == "prune")
            .filter(|line| matches!(line.0["step"].as_str(), Some("deleting" | "deleted")))
            .map(|line| {
                format!("{} {}", line.0["step"].as_str().unwrap_or_default(), line.object())
            })
            .collect();
        ensure!(steps.len() == 6, "{steps:?}");
        for pair in steps.chunks(2) {
            let object = pair[0].trim_start_matches("deleting ");
            ensure!(pair[1] == format!("deleted {object}"), "{steps:?}");
        }
        // Nothing more to do.
        settled(&room).await?;
        ensure!(deletes(cluster, name).await?.len() == 3);
        Ok(())
    })
}

#[test]
fn a_mass_deletion_waits_for_exactly_its_digest_and_an_emptied_source_deletes_nothing() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "prune-mass";
        let room = room(cluster, name)?;
        room.declare("many.yaml", &maps(name, "many-", 15))?;
        settled(&room).await?;
        room.withdraw("many.yaml")?;
        let mut host = room.start()?;
        let first = map(name, "many-00");
        let text = told(&mut host, "held", &first, "mass_prune: 15 of 36 objects").await?;
        let digest = text.split_whitespace().find(|it| it.starts_with("sha256:"));
        let digest = digest.context("the digest is told")?.trim_end_matches('`').to_owned();
        let state = room.state().display().to_string();
        let approve = |digest: &str| {
            command(&room, &["source", "approve", "source", digest, "--state", &state])
        };
        let wrong = format!("sha256:{}", "0".repeat(64));
        let (status, text) = approve(&wrong)?;
        ensure!(status == 2 && text.contains("nothing of source source is held"), "{text}");
        let (_, shown) = command(&room, &["source", "show", "source", "--state", &state])?;
        ensure!(shown.contains(&digest), "{shown}");
        ensure!(deletes(cluster, name).await?.is_empty());
        let (status, text) = approve(&digest)?;
        ensure!(status == 0 && text.contains("15 objects is allowed"), "{text}");
        for index in 0..15 {
            is_gone(&mut host, cluster, &map(name, &format!("many-{index:02}"))).await?;
        }
        ensure!(deletes(cluster, name).await?.len() == 15);
        // All at once, by an empty directory.
        room.withdraw("base.yaml")?;
        tokio::time::sleep(Duration::from_secs(4)).await;
        cluster.api().require(&map(name, "stays-00")).await?;
        ensure!(deletes(cluster, name).await?.len() == 15);
        host.kill()?;
        Ok(())
    })
}

#[test]
fn what_says_so_is_held_or_is_not_ours_stays_and_blocks_nobody() -> Test {
    run(async {
        let cluster = shared().await?;
        let api = cluster.api();
        let name = "prune-stays";
        let room = room(cluster, name)?;
        let keep = ", annotations: {trimtab.dev/prune: disabled}";
        let stuck = ", finalizers: [example.com/held]";
        let documents = [
            config_map(name, "kept", keep),
            config_map(name, "stuck", stuck),
            config_map(name, "replaced", ""),
            config_map(name, "goes", ""),
        ];
        room.declare("goes.yaml", &documents.join("---\n"))?;
        settled(&room).await?;
        // Somebody copies all that is ours onto an object of its own.
        let ours = api.require(&map(name, "goes")).await?;
        let foreign = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "foreign", "namespace": name,
                "labels": {"trimtab.dev/inventory": "source"},
                "annotations": ours["metadata"]["annotations"],
            },
        });
        api.create(&foreign).await?;
        // The annotation goes from the live object; the manifest said so.
        let unkept = json!({"metadata": {"annotations": {"trimtab.dev/prune": null}}});
        room.withdraw("goes.yaml")?;
        api.merge(&map(name, "kept"), &unkept).await?;
        api.delete(&map(name, "replaced")).await?;
        api.create(&json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "replaced", "namespace": name},
        }))
        .await?;
        let mut host = room.start()?;
        is_gone(&mut host, cluster, &map(name, "goes")).await?;
        told(&mut host, "kept", &map(name, "kept"), "its last manifest has").await?;
        told(&mut host, "forgotten", &map(name, "replaced"), "another object has its name").await?;
        told(&mut host, "going", &map(name, "stuck"), "its finalizers example.com/held").await?;
        room.declare("new.yaml", &config_map(name, "new", ""))?;
        host.until("a new object is made meanwhile", async |_| {
            api.require(&map(name, "new")).await
        })
        .await?;
        for left in ["kept", "replaced", "foreign", "stuck"] {
            api.require(&map(name, left)).await?;
        }
        let marked = api.require(&map(name, "stuck")).await?;
        ensure!(marked["metadata"]["finalizers"] == json!(["example.com/held"]), "{marked}");
        api.merge(&map(name, "stuck"), &json!({"metadata": {"finalizers": null}})).await?;
        host.until("the inventory forgets it", async |_| {
            let known = inventory(cluster, &room).await?;
            ensure!(!known.keys().any(|it| it.ends_with("/stuck")), "{known:?}");
            Ok(())
        })
        .await?;
        let names: Vec<String> =
            deletes(cluster, name).await?.into_iter().map(|request| request.name).collect();
        ensure!(names.len() == 2 && names.contains(&"goes".into()), "{names:?}");
        host.kill()?;
        Ok(())
    })
}

#[test]
fn an_object_that_another_source_declares_now_is_handed_over_and_never_deleted() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "prune-moved";
        let mut room = room(cluster, name)?;
        room.arguments.clear();
        let config = "apiVersion: trimtab.dev/v1alpha1
kind: Config
sources:
  - {name: first, path: source, prune: true}
  - {name: second, path: other, prune: true}
";
        let file = room.path().join("config.yaml");
        std::fs::write(&file, config)?;
        room.config = Some(file);
        let other = room.path().join("other");
        std::fs::create_dir(&other)?;
        std::fs::write(other.join("maps.yaml"), maps(name, "other-", 5))?;
        room.declare("moves.yaml", &config_map(name, "moves", ""))?;
        settled(&room).await?;
        let before = cluster.api().require(&map(name, "moves")).await?;
        std::fs::rename(room.source().join("moves.yaml"), other.join("moves.yaml"))?;
        settled(&room).await?;
        let after = cluster.api().require(&map(name, "moves")).await?;
        ensure!(before["metadata"]["uid"] == after["metadata"]["uid"], "{before} {after}");
        ensure!(deletes(cluster, name).await?.is_empty());
        // It is the second's to prune.
        std::fs::remove_file(other.join("moves.yaml"))?;
        settled(&room).await?;
        ensure!(cluster.api().get(&map(name, "moves")).await?.is_none());
        ensure!(deletes(cluster, name).await?.len() == 1);
        Ok(())
    })
}

#[test]
fn an_object_that_moves_to_another_namespace_is_made_there_before_it_is_deleted_here() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "prune-elsewhere";
        let room = room(cluster, name)?;
        let there = format!("{name}-there");
        room.declare(
            "there.yaml",
            &format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {there}}}\n"),
        )?;
        room.declare("moves.yaml", &config_map(name, "moves", ""))?;
        settled(&room).await?;
        room.declare("moves.yaml", &config_map(&there, "moves", ""))?;
        settled(&room).await?;
        cluster.api().require(&map(&there, "moves")).await?;
        ensure!(cluster.api().get(&map(name, "moves")).await?.is_none());
        inventory_is_the_cluster(cluster, &room).await?;
        let mut writes = cluster.audit().writes_by(name).await?;
        writes.retain(|request| request.name == "moves");
        let verbs: Vec<_> = writes
            .iter()
            .map(|it| (it.namespace.as_str(), it.verb.starts_with("delete")))
            .collect();
        ensure!(verbs == [(name, false), (&there, false), (name, true)], "{writes:?}");
        Ok(())
    })
}

#[test]
fn a_deletion_that_is_refused_stays_in_the_inventory_and_stops_no_other() -> Test {
    run(async {
        let cluster = shared().await?;
        let api = cluster.api();
        let name = "prune-refused";
        let room = room(cluster, name)?;
        room.declare("goes.yaml", &maps(name, "goes-", 2))?;
        settled(&room).await?;
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
                    "resourceRules": [{
                        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                        "operations": ["DELETE"],
                    }],
                },
                "validations": [{
                    "expression": "oldObject.metadata.name != 'goes-00'",
                    "message": "this one stays",
                }],
            },
        });
        api.create(&policy).await?;
        api.create(&json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        }))
        .await?;
        // A policy takes a moment to be in force.
        let denied = map(name, "goes-00");
        let probe = trimtab_system_tests::until(
            "the policy is in force",
            trimtab_system_tests::PATIENCE,
            async || {
                let path = format!("/api/v1/namespaces/{name}/configmaps/goes-00?dryRun=All");
                let answer = api.send(http::Method::DELETE, &path, None, None).await;
                ensure!(answer.is_err(), "not yet");
                Ok(())
            },
        );
        probe.await?;
        room.withdraw("goes.yaml")?;
        let mut host = room.start()?;
        told(&mut host, "failed", &denied, "this one stays").await?;
        is_gone(&mut host, cluster, &map(name, "goes-01")).await?;
        host.stop().await?;
        let known = inventory(cluster, &room).await?;
        ensure!(known.contains_key(&format!("ConfigMap {name}/goes-00")), "{known:?}");
        let round = room.once().await?;
        ensure!(round.status == 1, "{}", round.log);
        api.delete(&Id::new(
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicyBinding",
            "",
            name,
        ))
        .await?;
        let mut host = room.start()?;
        is_gone(&mut host, cluster, &denied).await?;
        host.kill()?;
        Ok(())
    })
}

#[test]
fn a_job_that_its_ttl_removed_is_not_made_anew_until_its_manifest_is_another() -> Test {
    run(async {
        let cluster = shared().await?;
        let api = cluster.api();
        let name = "prune-job";
        let room = room(cluster, name)?;
        let job = |image: &str| {
            format!(
                "apiVersion: batch/v1
kind: Job
metadata: {{name: once, namespace: {name}, annotations: {{trimtab.dev/on-immutable: recreate}}}}
spec:
  ttlSecondsAfterFinished: 100
  template:
    spec: {{restartPolicy: Never, containers: [{{name: once, image: \"{image}\"}}]}}
"
            )
        };
        room.declare("job.yaml", &job("registry.example.com/once:1"))?;
        let mut host = room.start()?;
        let id = Id::new("batch/v1", "Job", name, "once");
        host.until("the Job is made", async |_| api.require(&id).await).await?;
        let status = json!({"status": {
            "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z",
            "succeeded": 1, "uncountedTerminatedPods": {}, "conditions": [
                {"type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z", "lastProbeTime": "2026-01-01T00:01:00Z"},
                {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z", "lastProbeTime": "2026-01-01T00:01:00Z"},
            ],
        }});
        let path = format!("/apis/batch/v1/namespaces/{name}/jobs/once/status");
        let merge = Some("application/merge-patch+json");
        api.send(http::Method::PATCH, &path, merge, Some(&status)).await?;
        host.until("the inventory knows that it ended", async |_| {
            let known = marks(cluster, &room).await?;
            ensure!(
                known.get(&format!("Job {name}/once")).is_some_and(|it| it == "d"),
                "{known:?}"
            );
            Ok(())
        })
        .await?;
        // As its controller does after the TTL.
        let path =
            format!("/apis/batch/v1/namespaces/{name}/jobs/once?propagationPolicy=Background");
        api.send(http::Method::DELETE, &path, None, None).await?;
        let left = |line: &trimtab_system_tests::Line| {
            line.is_about(&id) && line.outcome() == "left" && line.message().contains("ttlSeconds")
        };
        host.line("it is left as it is", 0, left).await?;
        host.stop().await?;
        settled_or_left(&room).await?;
        ensure!(api.get(&id).await?.is_none(), "it was made anew");
        room.declare("job.yaml", &job("registry.example.com/once:2"))?;
        let mut host = room.start()?;
        host.until("another manifest makes it anew", async |_| api.require(&id).await).await?;
        host.kill()?;
        Ok(())
    })
}

/// One round in which nothing but what is left alone is not as declared.
async fn settled_or_left(room: &Room) -> Result<()> {
    let round = room.once().await?;
    let others: Vec<_> =
        round.unsettled().into_iter().filter(|(_, outcome, _)| outcome != "left").collect();
    ensure!(others.is_empty(), "{others:?}\n{}", round.log);
    Ok(())
}

/// When to kill.
#[derive(Clone, Copy, Debug)]
enum Moment {
    Started,
    /// Just after this many intents.
    Deleting(usize),
    /// Just after this many deletions.
    Deleted(usize),
}

#[test]
fn killed_between_any_two_deletions_it_ends_in_the_same_state_with_each_object_deleted_once() -> Test
{
    use Moment::{Deleted, Deleting, Started};
    const GOING: usize = 6;
    let each = (1..=GOING).flat_map(|count| [Deleting(count), Deleted(count)]);
    let moments = [Started].into_iter().chain(each);
    run(async {
        let cluster = shared().await?;
        for (index, moment) in moments.enumerate() {
            let name = format!("prune-killed-{index}");
            let room = room(cluster, &name)?;
            room.declare("goes.yaml", &maps(&name, "goes-", GOING))?;
            settled(&room).await?;
            room.withdraw("goes.yaml")?;
            let mark = room.journal().mark()?;
            let host = room.start()?;
            reach(&room.journal(), mark, moment).await?;
            host.kill()?;
            let wrong = format!("killed at {moment:?}");
            settled(&room).await.context(wrong.clone())?;
            inventory_is_the_cluster(cluster, &room).await.context(wrong.clone())?;
            let known = inventory(cluster, &room).await?;
            ensure!(known.len() == STAYING + 1, "{wrong}: {known:?}");
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            // Killed while the server answered: it was done, and the log has another code.
            let mut cut_off = 0;
            for request in deletes(cluster, &name).await? {
                ensure!(request.name.starts_with("goes-"), "{wrong}: {request:?}");
                match request.succeeded() {
                    true => *counts.entry(request.name).or_default() += 1,
                    false => cut_off += 1,
                }
            }
            ensure!(
                counts.len() + cut_off.min(1) >= GOING && counts.values().all(|count| *count == 1),
                "{wrong}: {counts:?}, {cut_off} cut off"
            );
        }
        Ok(())
    })
}

/// Looks as often as it can: these moments are short.
async fn reach(journal: &Journal, mark: usize, moment: Moment) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < trimtab_system_tests::PATIENCE {
        let lines = journal.lines()?;
        let count = |step: &str| lines.iter().filter(|line| line.0["step"] == step).count();
        let reached = match moment {
            Moment::Started => lines.len() > mark,
            Moment::Deleting(n) => count("deleting") >= n,
            Moment::Deleted(n) => count("deleted") >= n,
        };
        if reached {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
    anyhow::bail!("{moment:?} was not reached")
}

#[test]
fn a_source_is_removed_with_or_without_its_objects_by_a_command_that_needs_no_host() -> Test {
    run(async {
        let cluster = shared().await?;
        for (name, how) in [("prune-removed", "--prune"), ("prune-orphaned", "--orphan")] {
            let room = room(cluster, name)?;
            settled(&room).await?;
            // The plugin is gone, and so is the source.
            std::fs::remove_file(room.plugins().join("generic.wasm"))?;
            room.withdraw("base.yaml")?;
            let (state, home) = (room.state().display().to_string(), room.inventory());
            let remove = |more: &[&str]| {
                let mut all = vec!["source", "remove", "source", how, "--state", &state];
                all.extend(["--inventory-namespace", &home]);
                all.extend(more);
                command(&room, &all)
            };
            let (status, text) = remove(&[])?;
            ensure!(status == 2 && text.contains("nothing was done: give --yes"), "{text}");
            let first = map(name, "stays-00");
            cluster.api().require(&first).await?;
            let (status, text) = remove(&["--yes", "--timeout", "5"])?;
            let namespace = Id::new("v1", "Namespace", "", name);
            if how == "--orphan" {
                ensure!(status == 0, "{text}");
                cluster.api().require(&first).await?;
                ensure!(deletes(cluster, name).await?.is_empty());
            } else {
                ensure!(cluster.api().get(&first).await?.is_none(), "{text}");
                // Nobody finalises namespaces on a control plane without their controller.
                let live = cluster.api().require(&namespace).await?;
                ensure!(live["metadata"]["deletionTimestamp"].is_string(), "{live}\n{text}");
                ensure!(
                    status == 1 && text.contains("waits for its finalizers kubernetes"),
                    "{text}"
                );
                ensure!(deletes(cluster, name).await?.len() == STAYING + 1, "{text}");
            }
        }
        Ok(())
    })
}

#[test]
fn without_the_right_to_keep_an_inventory_a_source_that_prunes_makes_nothing_and_another_goes_on()
-> Test {
    run(async {
        let cluster = shared().await?;
        for (name, prunes) in [("prune-forbidden", true), ("prune-unkept", false)] {
            let mut room = room(cluster, name)?;
            if !prunes {
                room.arguments.clear();
            }
            // A namespace that nobody may make.
            room.arguments.extend(["--inventory-namespace", "Not_A_Name"].map(Into::into));
            let round = room.once_within(60).await?;
            let made = cluster.api().get(&map(name, "stays-00")).await?.is_some();
            ensure!(made != prunes, "{}\n{}", round.summary, round.log);
            let words = "and of the others nothing can be pruned later";
            ensure!(round.log.contains(words), "{}", round.log);
            if prunes {
                let reasons = round.unsettled();
                let waits = |(_, outcome, reason): &(String, String, String)| {
                    outcome == "waiting" && reason.contains("inventory")
                };
                ensure!(reasons.iter().any(waits), "{reasons:?}");
            }
        }
        Ok(())
    })
}

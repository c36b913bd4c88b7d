//! Policies on a real API server: what enters, what is written, what a failing policy costs, and that
//! a grant takes effect while the host runs. The policy is `tests/guests/policy`, which answers as an
//! object tells it to.

use crate::world::{Test, run, shared};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trimtab_system_tests::{Cluster, Host, Id, Line, Room, workspace};

/// A room with the generic plugin and the obedient policy.
async fn with_policy(cluster: &Cluster, name: &str) -> Result<Room> {
    let room = cluster.room(name)?.with_generic()?;
    let (crate_dir, plugins) = (workspace().join("tests/guests/policy"), room.plugins());
    room.built().output(&[
        "plugin".as_ref(),
        "build".as_ref(),
        crate_dir.as_os_str(),
        "--out".as_ref(),
        plugins.as_os_str(),
    ])?;
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    cluster.api().create(&object).await?;
    Ok(room)
}

/// The policy's grant, as the command prints it, with its first words replaced.
fn grant(room: &Room, mode: &str, replaced: &[(&str, &str)]) -> Result<()> {
    let mut grant = room.grant_of("obedient.wasm", mode)?;
    for (from, to) in replaced {
        ensure!(grant.contains(from), "the printed grant has no {from}: {grant}");
        grant = grant.replace(from, to);
    }
    room.grant("obedient", &grant)
}

/// A ConfigMap that tells the policy what to answer.
fn config_map(namespace: &str, name: &str, answer: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": value}, "metadata": {
        "name": name, "namespace": namespace, "annotations": {"policy.example/answer": answer}}})
}

fn declare(room: &Room, objects: &[Value]) -> Result<()> {
    let text: Vec<String> = objects.iter().map(Value::to_string).collect();
    room.declare("all.yaml", &text.join("\n---\n"))
}

fn id(namespace: &str, name: &str) -> Id {
    Id::new("v1", "ConfigMap", namespace, name)
}

fn is_review(line: &Line, id: &Id, outcome: &str) -> bool {
    line.kind() == "review" && line.is_about(id) && line.outcome() == outcome
}

/// Waits until the live object has this value.
async fn has(host: &mut Host, cluster: &Cluster, id: &Id, value: &str) -> Result<()> {
    host.until(format!("{id} has {value}"), async |_| {
        let live = cluster.api().require(id).await?;
        ensure!(live["data"]["a"] == value, "it has {}", live["data"]);
        Ok(())
    })
    .await
}

#[test]
fn what_a_policy_denies_keeps_its_last_good_state_and_the_others_flow_and_nothing_is_pruned() -> Test
{
    run(async {
        let (cluster, name) = (shared().await?, "policy-enters");
        let mut room = with_policy(cluster, name).await?;
        room.arguments.push("--prune".into());
        grant(&room, "enforce", &[])?;
        declare(
            &room,
            &[config_map(name, "kept", "allow", "1"), config_map(name, "other", "allow", "1")],
        )?;
        let mut host = room.start()?;
        let [kept, other, new] = ["kept", "other", "new"].map(|it| id(name, it));
        has(&mut host, cluster, &kept, "1").await?;
        has(&mut host, cluster, &other, "1").await?;
        let uid = cluster.api().require(&kept).await?["metadata"]["uid"].clone();

        declare(
            &room,
            &[
                config_map(name, "kept", "deny", "2"),
                config_map(name, "new", "deny", "1"),
                config_map(name, "other", "allow", "2"),
            ],
        )?;
        has(&mut host, cluster, &other, "2").await?;
        let line = host.line("the denial", 0, |line| is_review(line, &kept, "denied")).await?;
        let review = &line.0["reviews"][0];
        ensure!(review["policy"]["name"] == "obedient", "{review}");
        ensure!(review["reasons"][0]["control"] == "told-to-deny", "{review}");
        ensure!(
            line.0["origin"].as_str().is_some_and(|it| it.starts_with("all.yaml:")),
            "{:?}",
            line.0
        );
        host.line("the other denial", 0, |line| is_review(line, &new, "denied")).await?;
        ensure!(cluster.api().get(&new).await?.is_none(), "a denied object was made");

        // What is in force of it is held, as ever.
        let alice = cluster.user("alice")?;
        alice.merge(&kept, &json!({"data": {"a": "by hand"}})).await?;
        has(&mut host, cluster, &kept, "1").await?;
        ensure!(cluster.api().require(&kept).await?["metadata"]["uid"] == uid, "it was made anew");

        // Allowed again, it flows.
        declare(
            &room,
            &[config_map(name, "kept", "allow", "3"), config_map(name, "other", "allow", "2")],
        )?;
        has(&mut host, cluster, &kept, "3").await?;
        host.line("that it is allowed", 0, |line| is_review(line, &kept, "allowed")).await?;

        // Again and again: a signal, and loudest, since it is our own desired state.
        for value in ["4", "6"] {
            let mark = host.journal().mark()?;
            for (answer, outcome) in [("deny", "denied"), ("allow", "allowed")] {
                let other = config_map(name, "other", "allow", "2");
                declare(&room, &[config_map(name, "kept", answer, value), other])?;
                host.line(outcome, mark, |line| is_review(line, &kept, outcome)).await?;
            }
        }
        host.until("both signals are found", async |_| {
            let by_policy = |found: &Value| {
                let policy = found["evidence"]["policy"].as_str().unwrap_or_default();
                policy.contains("obedient")
            };
            let denied = room.findings(&["--name", "trust"])?;
            ensure!(denied.iter().any(by_policy), "trust: {denied:?}");
            let returns = room.findings(&["--name", "unsafe-rollback"])?;
            let is_loud = |found: &Value| by_policy(found) && found["severity"] == "critical";
            ensure!(returns.iter().any(is_loud), "unsafe-rollback: {returns:?}");
            Ok(())
        })
        .await?;
        host.stop().await?;
        room.verify_audit()?;
        let deletes = cluster.audit().writes_by(room.user()).await?;
        ensure!(deletes.iter().all(|write| write.verb != "delete"), "{deletes:#?}");
        Ok(())
    })
}

#[test]
fn what_a_policy_denies_before_a_write_is_not_written_and_waits_for_no_one() -> Test {
    run(async {
        let (cluster, name) = (shared().await?, "policy-writes");
        let room = with_policy(cluster, name).await?;
        grant(&room, "enforce", &[])?;
        declare(
            &room,
            &[config_map(name, "held", "deny-writes", "1"), config_map(name, "free", "allow", "1")],
        )?;
        let mut host = room.start()?;
        let (held, free) = (id(name, "held"), id(name, "free"));
        has(&mut host, cluster, &free, "1").await?;
        let line = host
            .line("the denial", 0, |line| line.is_about(&held) && line.outcome() == "denied")
            .await?;
        ensure!(
            line.message().contains("policy obedient 0.1.0: told-to-deny"),
            "{}",
            line.message()
        );
        ensure!(line.0["reviews"][0]["point"] == "before-write", "{:?}", line.0);
        ensure!(cluster.api().get(&held).await?.is_none(), "it was made");
        let writes = cluster.audit().writes_by(room.user()).await?;
        ensure!(writes.iter().all(|write| write.name != "held"), "{writes:#?}");
        host.stop().await?;
        Ok(())
    })
}

#[test]
fn a_policy_that_traps_or_runs_on_closes_and_its_grant_may_have_that_warn() -> Test {
    run(async {
        let (cluster, name) = (shared().await?, "policy-fails");
        let room = with_policy(cluster, name).await?;
        grant(&room, "enforce", &[])?;
        let answers = ["trap", "loop", "nothing"];
        let mut objects: Vec<Value> =
            answers.iter().map(|it| config_map(name, it, it, "1")).collect();
        objects.push(config_map(name, "free", "allow", "1"));
        declare(&room, &objects)?;
        let mut host = room.start()?;
        has(&mut host, cluster, &id(name, "free"), "1").await?;
        for answer in answers {
            let id = id(name, answer);
            let line = host.line("the denial", 0, |line| is_review(line, &id, "denied")).await?;
            ensure!(line.0["reviews"][0]["verdict"] == "failed", "{:?}", line.0);
            ensure!(line.0["reviews"][0]["fault"] != "", "{:?}", line.0);
            ensure!(cluster.api().get(&id).await?.is_none(), "{answer}: it was made");
        }
        // The grant is read while the host runs.
        grant(&room, "enforce", &[("onError: deny", "onError: warn")])?;
        for answer in answers {
            has(&mut host, cluster, &id(name, answer), "1").await?;
        }
        host.stop().await?;
        Ok(())
    })
}

#[test]
fn a_policy_without_a_grant_or_that_observes_stops_nothing_and_is_told() -> Test {
    run(async {
        let (cluster, name) = (shared().await?, "policy-observes");
        let room = with_policy(cluster, name).await?;
        let (first, second) = (id(name, "first"), id(name, "second"));
        declare(&room, &[config_map(name, "first", "deny", "1")])?;
        let mut host = room.start()?;
        has(&mut host, cluster, &first, "1").await?;
        host.line("what it would deny", 0, |line| is_review(line, &first, "warned")).await?;
        let status = room.plugin_status("obedient.wasm")?;
        ensure!(status["policy"] == "observing" && status["grant"] == "", "{status}");

        grant(&room, "observe", &[])?;
        declare(
            &room,
            &[config_map(name, "first", "deny", "1"), config_map(name, "second", "tell", "1")],
        )?;
        has(&mut host, cluster, &second, "1").await?;
        let line = host
            .line("what it is shown", 0, |line| {
                line.is_about(&second) && line.outcome() == "created"
            })
            .await?;
        let told = line.0["reviews"][0]["reasons"][0]["message"].clone();
        ensure!(told.as_str().is_some_and(|it| it.contains("|all.yaml|")), "{told}");
        host.stop().await?;
        Ok(())
    })
}

#[test]
fn a_grant_that_changes_is_in_force_at_once_and_to_take_the_file_away_is_no_way_round_it() -> Test {
    run(async {
        let (cluster, name) = (shared().await?, "policy-reload");
        let room = with_policy(cluster, name).await?;
        grant(&room, "enforce", &[("config: {}", "config: {denyNames: [named]}")])?;
        declare(&room, &[config_map(name, "named", "allow", "1")])?;
        let mut host = room.start()?;
        let named = id(name, "named");
        // On a busy machine the first look may come before the policy is in service, which denies too.
        let by_name = |line: &Line| {
            is_review(line, &named, "denied") && line.message().contains("denied-name")
        };
        host.line("the denial by name", 0, by_name).await?;
        grant(&room, "enforce", &[])?;
        has(&mut host, cluster, &named, "1").await?;

        std::fs::remove_file(room.plugins().join("obedient.wasm"))?;
        host.says("plugin removed").await?;
        declare(&room, &[config_map(name, "named", "allow", "2")])?;
        let line = host
            .line("what is missing", 0, |line| {
                is_review(line, &named, "denied") && line.message().contains("is in service")
            })
            .await?;
        ensure!(line.0["reviews"][0]["verdict"] == "failed", "{:?}", line.0);
        let live = cluster.api().require(&named).await?;
        ensure!(live["data"]["a"] == "1", "{}", live["data"]);
        std::fs::remove_file(room.grants().join("obedient.yaml"))?;
        has(&mut host, cluster, &named, "2").await?;
        host.stop().await?;
        Ok(())
    })
}

#[test]
fn a_policy_is_tested_on_files_without_a_cluster() -> Test {
    run(async {
        let (cluster, name) = (shared().await?, "policy-files");
        let room = with_policy(cluster, name).await?;
        let policy = room.plugins().join("obedient.wasm");
        let test = |file: &str, more: &[&str]| -> Result<(i32, String)> {
            let output = std::process::Command::new(std::path::absolute(&room.built().trimtab)?)
                .args(["policy", "test", "--policy"])
                .arg(&policy)
                .args(more)
                .arg(room.source().join(file))
                .output()?;
            let text = [output.stdout, output.stderr].concat();
            Ok((output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned()))
        };
        room.declare("good.yaml", &config_map(name, "a", "warn", "1").to_string())?;
        room.declare("bad.yaml", &config_map(name, "b", "deny", "1").to_string())?;
        room.declare("trap.yaml", &config_map(name, "c", "trap", "1").to_string())?;
        let (status, text) = test("good.yaml", &[])?;
        ensure!(status == 0 && text.contains("told-to-warn"), "{status}: {text}");
        let (status, text) = test("bad.yaml", &["-o", "json"])?;
        ensure!(status == 1, "{status}: {text}");
        let answer: Value = serde_json::from_str(&text)?;
        ensure!(answer["denied"] == 1, "{answer}");
        ensure!(answer["objects"][0]["reasons"][0]["path"] == "/metadata/annotations", "{answer}");
        let (status, text) = test("trap.yaml", &[])?;
        ensure!(status == 2 && text.contains("told to trap"), "{status}: {text}");
        room.declare("config.json", r#"{"denyNames": ["a"]}"#)?;
        let config = room.source().join("config.json");
        let (status, text) = test("good.yaml", &["--config", config.to_str().unwrap_or_default()])?;
        ensure!(status == 1 && text.contains("denied-name"), "{status}: {text}");
        Ok(())
    })
}

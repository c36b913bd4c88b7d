//! Plans: what would be done is what is done then, nothing is written for them, and an approval is
//! for exactly what was shown.

use crate::world::{Test, app, deployment, none, room_with_app, run, settings, shared};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trimtab_system_tests::{Id, Room};

/// A plan as JSON, with its exit status.
fn plan(room: &Room) -> Result<(i32, Value)> {
    let (status, text, log) = room.plan(&["-o", "json"])?;
    let plan = serde_json::from_str(&text).with_context(|| format!("{status}: {text}{log}"))?;
    Ok((status, plan))
}

fn digest(plan: &Value) -> Result<&str> {
    plan["digest"].as_str().context("a plan has a digest")
}

/// `action object` of every line.
fn lines(plan: &Value) -> Vec<String> {
    let changes = plan["changes"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    changes.map(|it| format!("{} {}", text(&it["action"]), text(&it["object"]))).collect()
}

fn role(namespace: &str) -> Id {
    Id::new("rbac.authorization.k8s.io/v1", "Role", namespace, "reader")
}

#[test]
fn a_plan_is_what_a_run_then_does_and_writes_nothing() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "plan-all";
        let room = room_with_app(cluster, name)?;
        let (status, first) = plan(&room)?;
        ensure!(status == 1, "status {status}: {first}");
        let planned = lines(&first);
        ensure!(planned.len() == 5 && planned[0] == format!("create Namespace {name}"), "{first}");
        ensure!(planned.iter().all(|line| line.starts_with("create ")), "{first}");
        none("a plan wrote", &cluster.audit().writes_by(name).await?)?;
        ensure!(digest(&plan(&room)?.1)? == digest(&first)?, "the same plan has another digest");

        let round = room.once().await?;
        ensure!(round.status == 0, "status {}: {}", round.status, round.summary);
        let made: Vec<String> = room
            .journal()
            .lines()?
            .iter()
            .filter(|line| line.outcome() == "created")
            .map(|line| format!("create {}", line.object()))
            .collect();
        ensure!(made.len() == planned.len(), "{made:?} and {planned:?}");
        let (status, after) = plan(&room)?;
        ensure!(status == 0 && lines(&after).is_empty(), "status {status}: {after}");

        let patch = json!({"data": {"color": "red"}});
        cluster.user("bystander")?.merge(&settings(name), &patch).await?;
        let (status, drift) = plan(&room)?;
        ensure!(status == 1, "status {status}: {drift}");
        let change = &drift["changes"][0];
        ensure!(change["action"] == "change", "{drift}");
        let difference = &change["differences"][0];
        ensure!(difference["path"] == "/data/color" && difference["desired"] == "blue", "{drift}");
        ensure!(difference["managers"][0]["name"] == "bystander", "{drift}");
        let (_, text, _) = room.plan(&["-o", "markdown"])?;
        ensure!(text.contains("+ \"blue\"") && text.contains(digest(&drift)?), "{text}");
        Ok(())
    })
}

#[test]
fn an_approved_plan_is_done_exactly_and_one_that_moved_is_refused_with_what_moved() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "plan-approve";
        let room = room_with_app(cluster, name)?;
        let round = room.once().await?;
        ensure!(round.status == 0, "status {}: {}", round.status, round.summary);
        room.declare("app.yaml", &app(name).replace("color: blue", "color: green"))?;
        let (_, shown) = plan(&room)?;
        let bystander = cluster.user("bystander")?;
        bystander.merge(&settings(name), &json!({"data": {"size": "small"}})).await?;
        let before = cluster.audit().writes_by(name).await?.len();
        let (status, _, log) = room.plan(&["--approve", digest(&shown)?])?;
        ensure!(status == 2, "status {status}: {log}");
        ensure!(log.contains("another one by now") && log.contains("settings"), "{log}");
        let writes = cluster.audit().writes_by(name).await?;
        none("a plan that moved wrote", &writes[before..])?;

        let (_, again) = plan(&room)?;
        let (status, text, log) = room.plan(&["--approve", digest(&again)?])?;
        ensure!(status == 0, "status {status}: {text}{log}");
        let live = cluster.api().require(&settings(name)).await?;
        ensure!(live["data"] == json!({"color": "green", "size": "large"}), "{live}");
        let (status, _, log) = room.plan(&["--approve", digest(&again)?])?;
        ensure!(status == 2 && log.contains("nothing now"), "status {status}: {log}");
        Ok(())
    })
}

#[test]
fn what_a_host_finds_changed_at_its_start_is_counted_as_one_revision() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "plan-many";
        let mut room = room_with_app(cluster, name)?;
        let config = room.path().join("config.yaml");
        let sources = format!(
            "  - name: shop\n    path: {}\n    approval: [{{moreThan: 3}}]\n",
            room.source().display()
        );
        std::fs::write(
            &config,
            format!("apiVersion: trimtab.dev/v1alpha1\nkind: Config\nsources:\n{sources}"),
        )?;
        room.config = Some(config);
        let round = room.once().await?;
        ensure!(round.status == 0, "the first waits for nobody: {}", round.summary);
        let map = |number: usize| {
            format!(
                "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: more-{number}, namespace: {name}}}\n"
            )
        };
        room.declare("more.yaml", &(0..5).map(map).collect::<String>())?;
        for _ in 0..2 {
            let round = room.once().await?;
            let unsettled = round.unsettled();
            let waits = unsettled.iter().filter(|it| it.1 == "awaiting-approval").count();
            ensure!(waits == 5 && unsettled.len() == 5, "{unsettled:?}");
            ensure!(unsettled[0].2.contains("changes 5 objects"), "{unsettled:?}");
        }
        room.declare("more.yaml", &(0..3).map(map).collect::<String>())?;
        let round = room.once().await?;
        ensure!(round.status == 0, "{}\n{}", round.summary, round.log);
        Ok(())
    })
}

#[test]
fn what_a_source_names_waits_for_a_person_while_the_rest_flows() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "plan-rules";
        let mut room = room_with_app(cluster, name)?;
        let config = room.path().join("config.yaml");
        std::fs::write(
            &config,
            format!(
                "apiVersion: trimtab.dev/v1alpha1\nkind: Config\nsources:\n  - name: shop\n    path: {}\n    approval: [rbac, deletes]\n",
                room.source().display()
            ),
        )?;
        room.config = Some(config);
        let round = room.once().await?;
        ensure!(round.status == 1, "status {}: {}", round.status, round.summary);
        let unsettled = round.unsettled();
        ensure!(unsettled.len() == 1 && unsettled[0].1 == "awaiting-approval", "{unsettled:?}");
        ensure!(cluster.api().get(&role(name)).await?.is_none(), "the Role is there");
        ensure!(cluster.api().get(&deployment(name)).await?.is_some(), "the rest did not flow");

        let mut host = room.start()?;
        host.line("the Role waits".to_owned(), 0, |line| {
            line.is_about(&role(name)) && line.outcome() == "awaiting-approval"
        })
        .await?;
        let (_, waiting) = plan(&room)?;
        ensure!(lines(&waiting).len() == 1, "{waiting}");
        ensure!(!waiting["changes"][0]["approval"].is_null(), "{waiting}");
        let (status, text, log) = room.plan(&["--approve", digest(&waiting)?])?;
        ensure!(status == 0, "status {status}: {text}{log}");
        host.until("the Role is made", async |_| {
            cluster.api().require(&role(name)).await.map(drop)
        })
        .await?;
        Ok(())
    })
}

//! What a grant says beyond kinds and actions, on a real API server: fields, and writes a minute.

use crate::world::{Test, run, shared};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trimtab_system_tests::{Cluster, Id, Room, workspace};

/// A room with the plugin that asks for what an object says.
fn with_overreach(cluster: &Cluster, name: &str) -> Result<Room> {
    let room = cluster.room(name)?;
    let crate_dir = workspace().join("tests/guests/overreach");
    let plugins = room.plugins();
    room.built().output(&[
        "plugin".as_ref(),
        "build".as_ref(),
        crate_dir.as_os_str(),
        "--out".as_ref(),
        plugins.as_os_str(),
    ])?;
    Ok(room)
}

/// Grants it ConfigMaps of the room's namespace under further terms.
fn grant(room: &Room, terms: &str) -> Result<()> {
    let file = room.plugins().join("overreach.wasm");
    let grant = room.built().output(&[
        "plugin".as_ref(),
        "grant".as_ref(),
        file.as_os_str(),
        "--mode".as_ref(),
        "enforce".as_ref(),
        "--kind".as_ref(),
        "ConfigMap".as_ref(),
        "--namespace".as_ref(),
        room.user().as_ref(),
        "--action".as_ref(),
        "apply-desired,apply-content,remove-fields,adopt".as_ref(),
    ])?;
    room.grant("overreach", &format!("{grant}\n{terms}\n"))
}

fn config_map(namespace: &str, name: &str, ask: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": {
        "name": name, "namespace": namespace, "annotations": {"overreach.example/ask": ask}}})
}

fn declare(room: &Room, objects: &[Value]) -> Result<()> {
    let text: Vec<String> = objects.iter().map(Value::to_string).collect();
    room.declare("all.yaml", &text.join("\n---\n"))
}

async fn namespace(cluster: &Cluster, name: &str) -> Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    cluster.api().create(&object).await.map(drop)
}

#[test]
fn fields_that_a_grant_does_not_allow_are_changed_neither_by_setting_nor_by_leaving_out() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "grant-fields";
        let room = with_overreach(cluster, name)?;
        namespace(cluster, name).await?;
        // (object, what it asks for, data as it is declared then, whether that may be written)
        let full = || json!({"a": "1", "kept": "1"});
        let cases = [
            ("sets-allowed", "apply", json!({"a": "2", "kept": "1"}), true),
            ("sets-denied", "apply", json!({"a": "1", "kept": "2"}), false),
            ("sets-both", "apply", json!({"a": "2", "kept": "2"}), false),
            ("adds-other", "apply", json!({"a": "1", "kept": "1", "other": "1"}), false),
            ("leaves-out-allowed", "apply", json!({"kept": "1"}), true),
            ("leaves-out-denied", "apply", json!({"a": "1"}), false),
            // Content of the plugin's own making, without anything of `data`.
            ("omits", "omit", json!({"a": "2", "kept": "1"}), false),
        ];
        // Made first, under a grant without fields, so that the host owns what it leaves out later.
        grant(&room, "")?;
        let first: Vec<Value> =
            cases.iter().map(|(case, ..)| config_map(name, case, "apply", full())).collect();
        declare(&room, &first)?;
        let round = room.once().await?;
        ensure!(round.status == 0, "status {}: {:?}", round.status, round.unsettled());
        let mark = cluster.audit().mark().await?;

        let fields = r#"fields: {allow: ["/data/a", "/data/kept", "/metadata/annotations"], deny: ["/data/kept"]}"#;
        grant(&room, fields)?;
        let then: Vec<Value> = cases
            .iter()
            .map(|(case, ask, data, _)| config_map(name, case, ask, data.clone()))
            .collect();
        declare(&room, &then)?;
        let round = room.once().await?;
        ensure!(round.status == 1, "something is refused: {:?}", round.unsettled());
        let writes = cluster.audit().writes_since(mark, room.user()).await?;
        for ((case, _, data, may), declared) in cases.iter().zip(&then) {
            let id = Id::new("v1", "ConfigMap", name, case);
            let live = cluster.api().require(&id).await?["data"].take();
            let wrote = writes.iter().any(|write| write.name == *case);
            ensure!(wrote == *may, "{case}: written is {wrote}");
            let expected = if *may { data.clone() } else { full() };
            ensure!(live == expected, "{case}: the data are {live}");
            let refused = room.journal().lines()?.iter().any(|line| {
                line.is_about(&id) && line.0["refusals"].to_string().contains("FieldNotGranted")
            });
            ensure!(refused != *may, "{case}: refused for its fields is {refused}: {declared}");
        }
        Ok(())
    })
}

#[test]
fn a_plugin_writes_no_more_in_a_minute_than_its_grant_says() -> Test {
    run(async {
        const BUDGET: usize = 5;
        let cluster = shared().await?;
        let name = "grant-minute";
        let room = with_overreach(cluster, name)?;
        namespace(cluster, name).await?;
        grant(&room, &format!("budgets: {{writesPerMinute: {BUDGET}}}"))?;
        let objects: Vec<Value> = (0..20)
            .map(|index| config_map(name, &format!("c{index:02}"), "apply", json!({"a": "1"})))
            .collect();
        declare(&room, &objects)?;
        let mut host = room.start()?;
        for object in &objects {
            let id = Id::of(object).expect("a name");
            host.line(format!("{id} is made or waits"), 0, |line| {
                line.is_about(&id) && ["created", "over-budget"].contains(&line.outcome())
            })
            .await?;
        }
        // Each that waits is looked at once more after five seconds.
        tokio::time::sleep(std::time::Duration::from_secs(6)).await;
        let writes = cluster.audit().writes_by(room.user()).await?;
        ensure!(writes.len() == BUDGET, "{} writes in a minute: {writes:#?}", writes.len());
        // A grant that has more is enough.
        grant(&room, "")?;
        for object in &objects {
            let id = Id::of(object).expect("a name");
            host.line(format!("{id} is made"), 0, |line| {
                line.is_about(&id) && line.outcome() == "created"
            })
            .await?;
        }
        host.stop().await?;
        Ok(())
    })
}

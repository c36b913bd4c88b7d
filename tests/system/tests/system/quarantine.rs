//! A plugin that misbehaves is not called for a while, and comes back by a person's word or by
//! another build.

use crate::world::{
    APP_OBJECTS, Test, converged, pass, prove_alive, room_with_app, run, settings, shared,
};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trimtab_system_tests::{Host, Id, Room, trapping, with_manifest, with_version};

/// What is looked at first: everything else waits for it.
fn space(name: &str) -> Id {
    Id::new("v1", "Namespace", "", name)
}

async fn listed(host: &mut Host, room: &Room, state: &str) -> Result<Value> {
    host.until(format!("the plugin is {state}"), async |_| {
        let status = room.plugin_status("generic.wasm")?;
        ensure!(status["state"] == state, "the plugin list says {status}");
        Ok(status)
    })
    .await
}

#[test]
fn a_plugin_that_traps_is_quarantined_and_comes_back_by_release_or_by_another_build() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "quarantine";
        let room = room_with_app(cluster, name)?;
        let good = room.built().plugin_bytes("generic")?;
        let bad = trapping(&good)?;
        room.drop_plugin("generic.wasm", &bad)?;
        room.enforce("generic.wasm")?;
        let mut host = room.start()?;
        let status = listed(&mut host, &room, "quarantined").await?;
        let traps = status["faults"]["traps"].as_u64().unwrap_or_default();
        let reason = status["reason"].as_str().unwrap_or_default();
        // Passes under way when it was quarantined end as they began.
        ensure!((3..=3 + APP_OBJECTS as u64).contains(&traps), "{status}");
        ensure!(reason.contains("quarantined for 1 min") && reason.contains("trapped"), "{reason}");
        let waiting = pass(&mut host, 0, &space(name), "waiting").await?;
        ensure!(waiting.message().contains("quarantined"), "{waiting:?}");
        ensure!(
            host.log()?.matches("ERROR plugin generic is quarantined").count() == 1,
            "it is to be said once"
        );

        // A person's word: it is called again, and faults again.
        let state = room.state();
        let said = room.built().output(&[
            "plugin".as_ref(),
            "release".as_ref(),
            "generic".as_ref(),
            "--state".as_ref(),
            state.as_os_str(),
        ])?;
        ensure!(said.contains("is called again"), "{said}");
        host.until("it is quarantined once more", async |_| {
            let status = room.plugin_status("generic.wasm")?;
            let more = status["faults"]["traps"].as_u64().unwrap_or_default() >= traps + 3;
            ensure!(more && status["state"] == "quarantined", "{status}");
            Ok(())
        })
        .await?;

        // A build that is right: its objects are looked at without anybody's word.
        room.drop_plugin("generic.wasm", &with_version(&good, "9.0.0")?)?;
        room.enforce("generic.wasm")?;
        pass(&mut host, 0, &settings(name), "created").await?;
        listed(&mut host, &room, "enforcing").await?;
        prove_alive(cluster, &mut host, name).await?;
        host.stop().await?;
        Ok(())
    })
}

/// Changes what the host keeps of its quarantined plugins, while it does not run.
fn change_kept(room: &Room, change: impl FnOnce(&mut Value)) -> Result<()> {
    let file = room.state().join("quarantine.json");
    let mut kept: Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    change(&mut kept[0]);
    Ok(std::fs::write(&file, serde_json::to_vec(&kept)?)?)
}

#[test]
fn a_quarantine_survives_a_restart_and_its_pauses_go_on_growing() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "quarantine-kept";
        let room = room_with_app(cluster, name)?;
        let good = room.built().plugin_bytes("generic")?;
        room.drop_plugin("generic.wasm", &trapping(&good)?)?;
        room.enforce("generic.wasm")?;
        let mut host = room.start()?;
        let before = listed(&mut host, &room, "quarantined").await?;
        // Not given a moment to put its things in order.
        host.kill()?;

        // Another host does not ask it: not one pass, and the pause ends when it was to end.
        let mark = room.journal().mark()?;
        let mut host = room.start()?;
        let waiting = pass(&mut host, mark, &space(name), "waiting").await?;
        ensure!(waiting.message().contains("quarantined"), "{waiting:?}");
        let status = room.plugin_status("generic.wasm")?;
        ensure!(status["state"] == "quarantined" && status["passes"] == 0, "{status}");
        ensure!(status["reason"] == before["reason"], "{before}\n{status}");
        host.stop().await?;

        // Its pause is over while no host runs: one pass looks, and the next pause is twice as long.
        change_kept(&room, |kept| kept["untilMs"] = json!(1))?;
        let mut host = room.start()?;
        host.says("quarantined for 2 min").await?;
        host.until("the list tells of one probe", async |_| {
            let status = room.plugin_status("generic.wasm")?;
            ensure!(status["faults"]["traps"] == 1, "one probe: {status}");
            Ok(())
        })
        .await?;
        host.stop().await?;

        // A person's word while no host runs: the next one calls it, and finds it as bad as it was.
        let state = room.state();
        let release = ["plugin", "release", "generic", "--state"].map(AsRef::as_ref);
        let said = room.built().output(&[&release[..], &[state.as_os_str()]].concat())?;
        ensure!(said.contains("by the next host"), "{said}");
        let mut host = room.start()?;
        host.says("is called again").await?;
        // Until it is written anew, the list says what the host before this one left.
        host.until("the list tells of a first pause", async |_| {
            let status = room.plugin_status("generic.wasm")?;
            ensure!(status["state"] == "quarantined", "{status}");
            ensure!(status["faults"]["traps"].as_u64() >= Some(3), "{status}");
            let reason = status["reason"].as_str().unwrap_or_default();
            ensure!(reason.contains("for 1 min"), "{status}");
            Ok(())
        })
        .await?;

        // A build that is right needs nobody's word.
        room.drop_plugin("generic.wasm", &with_version(&good, "9.0.0")?)?;
        room.enforce("generic.wasm")?;
        listed(&mut host, &room, "enforcing").await?;
        pass(&mut host, 0, &settings(name), "created").await?;
        prove_alive(cluster, &mut host, name).await?;
        host.stop().await?;
        let kept = std::fs::read_to_string(room.state().join("quarantine.json"))?;
        ensure!(kept.trim() == "[]", "nothing is held any more: {kept}");
        Ok(())
    })
}

#[test]
fn a_plugin_is_loaded_until_it_is_asked_about_an_object() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "loaded";
        let room = room_with_app(cluster, name)?;
        // It claims a kind that nobody declares here.
        let idle = with_manifest(&room.built().plugin_bytes("generic")?, |manifest| {
            manifest["name"] = "idle".into();
            manifest["claims"] = json!(["Lease.coordination.k8s.io"]);
        })?;
        room.drop_plugin("idle.wasm", &idle)?;
        room.enforce("idle.wasm")?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        listed(&mut host, &room, "enforcing").await?;
        let status = room.plugin_status("idle.wasm")?;
        ensure!(status["state"] == "loaded" && status["passes"] == 0, "{status}");
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "turn", "namespace": name}, "spec": {"leaseDurationSeconds": 9},
        });
        room.declare("lease.yaml", &lease.to_string())?;
        host.until("it is asked", async |_| {
            let status = room.plugin_status("idle.wasm")?;
            ensure!(status["state"] == "enforcing", "{status}");
            Ok(())
        })
        .await?;
        Ok(())
    })
}

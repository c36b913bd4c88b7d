//! A plugin that misbehaves is not called for a while, and comes back by a person's word or by
//! another build.

use crate::world::{APP_OBJECTS, Test, pass, prove_alive, room_with_app, run, settings, shared};
use anyhow::{Result, ensure};
use serde_json::Value;
use trimtab_system_tests::{Host, Room, trapping, with_version};

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
        let waiting = pass(&mut host, 0, &settings(name), "waiting").await?;
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

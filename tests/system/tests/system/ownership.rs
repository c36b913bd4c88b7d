//! Whose object it is: never overridden by force unless it is ours.

use crate::world::{
    APP_OBJECTS, Test, converged, none, pass, prove_alive, room_with_app, run, settings, shared,
};
use anyhow::ensure;
use serde_json::json;
use trimtab_system_tests::Id;

#[test]
fn an_object_that_somebody_else_applied_is_reported_and_left_as_it_is() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "theirs";
        let id = Id::new("v1", "ConfigMap", name, "shared");
        let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "shared", "namespace": name}, "data": {"color": "red"}});
        cluster
            .user("setup")?
            .apply(&json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name}}))
            .await?;
        let other = cluster.user("other")?;
        other.apply(&theirs).await?;
        let room = room_with_app(cluster, name)?;
        room.declare(
            "shared.yaml",
            &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: shared, namespace: {name}}}\ndata: {{color: blue}}\n"),
        )?;

        let round = room.once().await?;
        ensure!(round.status == 1, "status {}: {}", round.status, round.summary);
        let unsettled = round.unsettled();
        let conflicts: Vec<_> =
            unsettled.iter().filter(|(_, outcome, _)| outcome == "conflict").collect();
        ensure!(
            conflicts.len() == 1
                && conflicts[0].0.contains("shared")
                && conflicts[0].2.contains("other"),
            "{unsettled:?}\n{}",
            round.log
        );
        let live = cluster.api().require(&id).await?;
        ensure!(live["data"]["color"] == "red", "it was overridden: {live}");
        let writers = live["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        ensure!(writers.iter().all(|entry| entry["manager"] == "other"), "{writers:?}");
        let mut writes = cluster.audit().writes_by(name).await?;
        writes.retain(|request| request.name == "shared" && (200..300).contains(&request.code));
        none("it was written", &writes)?;

        // Once they give it up, it is declared by nobody but us.
        let mut host = room.start()?;
        prove_alive(cluster, &mut host, name).await?;
        other.delete(&id).await?;
        pass(&mut host, 0, &id, "created").await?;
        Ok(())
    })
}

#[test]
fn a_field_of_ours_that_another_manager_forces_is_taken_back() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "forced";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let mark = host.journal().mark()?;
        let other = cluster.user("forcer")?;
        other
            .apply_by_force(&json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": name}, "data": {"color": "red"}}))
            .await?;
        let line = pass(&mut host, mark, &settings(name), "corrected").await?;
        ensure!(line.managers().contains(&"forcer"), "{line:?}");
        let live = cluster.api().require(&settings(name)).await?;
        ensure!(live["data"]["color"] == "blue", "{live}");
        Ok(())
    })
}

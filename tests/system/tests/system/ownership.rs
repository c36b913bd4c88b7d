//! Whose object it is: never overridden by force unless it is ours.

use crate::world::{
    APP_OBJECTS, Test, converged, diff, none, pass, prove_alive, room_with_app, run, settings,
    shared,
};
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
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
fn an_object_of_somebody_else_is_adopted_only_where_the_grant_says_so() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "adopted";
        let theirs = settings(name);
        let setup = cluster.user("setup")?;
        setup
            .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            .await?;
        cluster
            .user("other")?
            .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "settings", "namespace": name}, "data": {"color": "red"}}))
            .await?;
        let room = room_with_app(cluster, name)?;
        let mut host = room.start()?;
        pass(&mut host, 0, &theirs, "conflict").await?;
        let live = cluster.api().require(&theirs).await?;
        ensure!(live["data"]["color"] == "red", "adopted without a grant for it: {live}");

        let grant = room.grant_of("generic.wasm", "enforce")?;
        ensure!(!actions(&grant).contains("adopt"), "adopting is granted unasked:\n{grant}");
        let wider = grant.replace("\"apply-desired\"", "\"apply-desired\", \"adopt\"");
        let mark = host.journal().mark()?;
        room.grant("generic.wasm", &wider)?;
        pass(&mut host, mark, &theirs, "corrected").await?;
        let live = cluster.api().require(&theirs).await?;
        ensure!(live["data"]["color"] == "blue", "{live}");
        Ok(())
    })
}

/// The line of a grant that lists actions.
fn actions(grant: &str) -> &str {
    grant.lines().find(|line| line.starts_with("actions:")).unwrap_or_default()
}

/// managedFields forget a manager whose every field was taken: an object can be ours without
/// saying so.
#[test]
fn an_object_of_ours_is_put_right_also_when_every_field_that_we_stated_was_changed() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "taken";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let everything = json!({"metadata": {"labels": {"app": "other"}},
            "data": {"color": "red", "size": "small"}});
        let mark = host.journal().mark()?;
        cluster.user("alice")?.merge(&settings(name), &everything).await?;
        let line = pass(&mut host, mark, &settings(name), "corrected").await?;
        ensure!(line.managers().contains(&"alice"), "{line:?}");

        // And when it happened while nobody looked.
        host.stop().await?;
        cluster.user("alice")?.merge(&settings(name), &everything).await?;
        let round = room.once().await?;
        ensure!(round.status == 0, "{}\n{}", round.summary, round.log);
        let live = cluster.api().require(&settings(name)).await?;
        ensure!(live["data"] == json!({"color": "blue", "size": "large"}), "{live}");
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

#[test]
fn our_own_earlier_writes_are_told_apart_from_others_according_to_managed_fields() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "ours-told";
        let room = room_with_app(cluster, name)?;
        converged(&room, APP_OBJECTS).await?.stop().await?;
        let size = json!({"data": {"size": "small"}});
        cluster.user("alice")?.merge(&settings(name), &size).await?;
        let text = crate::world::app(name).replace("color: blue", "color: green");
        room.declare("app.yaml", &text)?;

        let (status, answer) = diff(&room, &["-o", "json"])?;
        let answer: Value = serde_json::from_str(&answer)?;
        let objects = answer["objects"].as_array().into_iter().flatten();
        let differences: Vec<&Value> = objects
            .flat_map(|object| object["differences"].as_array().into_iter().flatten())
            .collect();
        ensure!(status == 1 && differences.len() == 2, "{status} {differences:?}");
        for (path, name, operation, ours) in [
            ("/data/color", "trimtab", "Apply", json!(true)),
            ("/data/size", "alice", "Update", Value::Null),
        ] {
            let found = differences.iter().find(|difference| difference["path"] == path);
            let managers = &found.with_context(|| format!("{differences:?}"))?["managers"];
            let manager = &managers[0];
            ensure!(
                managers.as_array().is_some_and(|all| all.len() == 1)
                    && manager["name"] == name
                    && manager["operation"] == operation
                    && manager["ours"] == ours
                    && manager["time"].is_string(),
                "{path}: {managers}"
            );
        }
        let (_, table) = diff(&room, &[])?;
        for told in ["written by us, as trimtab (Apply) at ", "written by alice (Update) at "] {
            let line = table.lines().find(|line| line.contains(told));
            let line = line.with_context(|| format!("{told} is not in\n{table}"))?;
            ensure!(line.ends_with("according to managedFields"), "{line}");
        }
        Ok(())
    })
}

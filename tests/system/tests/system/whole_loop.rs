//! The loop: observe, converge, correct, follow.

use crate::world::{
    APP_OBJECTS, Test, app, converged, deployment, none, pass, prove_alive, room_with_app, run,
    service, settings, shared,
};
use anyhow::{Context as _, ensure};
use serde_json::json;
use trimtab_system_tests::{Request, objects};

#[test]
fn a_plugin_without_a_grant_says_what_it_would_do_and_writes_nothing() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "observed";
        let room = cluster.room(name)?;
        room.drop_our_plugin("generic")?;
        room.declare("app.yaml", &app(name))?;
        let mut host = room.start()?;
        for id in objects(&room.source())? {
            let line = pass(&mut host, 0, &id, "observed").await?;
            ensure!(line.0["mode"] == "observe", "{line:?}");
        }
        // Also where there is something to correct, and not only to make.
        let api = cluster.user("setup")?;
        api.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            .await?;
        api.create(&json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": name}, "data": {"color": "red"}}))
            .await?;
        let id = settings(name);
        host.line("the ConfigMap that is there is looked at", 0, |line| {
            line.is_about(&id) && line.paths().contains(&"/data/color")
        })
        .await?;
        none("an observing host wrote", &cluster.audit().writes_by(name).await?)?;
        let intents = host.journal().lines()?.iter().filter(|line| line.kind() == "intent").count();
        ensure!(intents == 0, "an observing host announced {intents} writes");
        Ok(())
    })
}

#[test]
fn drift_is_found_by_the_watch_attributed_to_who_wrote_it_and_corrected() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "drift";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;

        let mark = host.journal().mark()?;
        let alice = cluster.user("alice")?;
        alice
            .edit(&deployment(name), |object| {
                object["spec"]["template"]["spec"]["containers"][0]["image"] = "evil:1".into();
            })
            .await?;
        let line = pass(&mut host, mark, &deployment(name), "corrected").await?;
        ensure!(line.trigger() == "watch" && line.managers().contains(&"alice"), "{line:?}");
        ensure!(line.since_event_ms().is_some(), "no time since the event: {line:?}");
        let live = cluster.api().require(&deployment(name)).await?;
        let image = &live["spec"]["template"]["spec"]["containers"][0]["image"];
        ensure!(image == "registry.example.com/web:1", "the image is {image}");

        let mark = host.journal().mark()?;
        cluster.user("bob")?.merge(&settings(name), &json!({"data": {"stray": "x"}})).await?;
        let line = pass(&mut host, mark, &settings(name), "corrected").await?;
        ensure!(line.managers().contains(&"bob"), "{line:?}");
        let live = cluster.api().require(&settings(name)).await?;
        ensure!(live["data"] == json!({"color": "blue", "size": "large"}), "{live}");

        let before = cluster.api().require(&service(name)).await?["metadata"]["uid"].clone();
        let mark = host.journal().mark()?;
        cluster.user("carol")?.delete(&service(name)).await?;
        pass(&mut host, mark, &service(name), "created").await?;
        let after = cluster.api().require(&service(name)).await?["metadata"]["uid"].clone();
        ensure!(before != after, "the Service was not made anew");
        Ok(())
    })
}

/// The API server compares the values in a JSON Patch's `test` byte by byte with its own spelling.
#[test]
fn a_stray_value_is_removed_whatever_characters_are_in_it() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "spelling";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        for value in ["a < b && b > c", "\u{2028}", "\u{1f600}", "\u{7f}\u{1}", "\"\\\"/"] {
            let mark = host.journal().mark()?;
            let patch = json!({"data": {"stray": value}});
            cluster.user("bob")?.merge(&settings(name), &patch).await?;
            pass(&mut host, mark, &settings(name), "corrected").await?;
            let live = cluster.api().require(&settings(name)).await?;
            ensure!(live["data"].get("stray").is_none(), "{value:?} is still there: {live}");
        }
        Ok(())
    })
}

#[test]
fn a_container_under_another_name_is_one_that_is_missing_and_one_that_is_too_many() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "renamed";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let containers = |object: &serde_json::Value| {
            object.pointer("/spec/template/spec/containers").cloned().unwrap_or_default()
        };
        let before = containers(&cluster.api().require(&deployment(name)).await?);
        let alice = cluster.user("alice")?;
        alice
            .edit(&deployment(name), |object| {
                object["spec"]["template"]["spec"]["containers"][0]["name"] = "other".into();
            })
            .await?;
        host.until("the containers are as before", async |_| {
            let now = containers(&cluster.api().require(&deployment(name)).await?);
            ensure!(now == before, "they are {now}");
            Ok(())
        })
        .await
    })
}

#[test]
fn each_correction_is_one_write_and_its_own_echo_causes_none() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "echo";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        prove_alive(cluster, &mut host, name).await?;
        prove_alive(cluster, &mut host, name).await?;
        let writes = cluster.audit().writes_by(name).await?;
        ensure!(writes.len() == APP_OBJECTS + 2, "{} writes: {writes:#?}", writes.len());
        host.stop().await?;
        let lines = room.journal().lines()?;
        let intents = lines.iter().filter(|line| line.kind() == "intent").count();
        ensure!(intents == writes.len(), "{intents} intents for {} writes", writes.len());
        Ok(())
    })
}

#[test]
fn live_follows_what_is_declared_and_nothing_is_pruned() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "follow";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;

        let mark = host.journal().mark()?;
        let changed =
            app(name).replace("replicas: 2", "replicas: 5").replace("  size: large\n", "");
        room.declare("app.yaml", &changed)?;
        let line = pass(&mut host, mark, &deployment(name), "corrected").await?;
        ensure!(line.trigger() == "source", "{line:?}");
        pass(&mut host, mark, &settings(name), "corrected").await?;
        let live = cluster.api().require(&deployment(name)).await?;
        ensure!(live["spec"]["replicas"] == 5, "{live}");
        let live = cluster.api().require(&settings(name)).await?;
        ensure!(live["data"] == json!({"color": "blue"}), "a key that is declared no more: {live}");

        let without = changed.split("---\n").filter(|it| !it.contains("kind: Service\n"));
        room.declare("app.yaml", &without.collect::<Vec<_>>().join("---\n"))?;
        host.says("left the source").await?;
        prove_alive(cluster, &mut host, name).await?;
        cluster.api().require(&service(name)).await.context("it left the source, and must stay")?;
        let mut deletes = cluster.audit().writes_by(name).await?;
        deletes.retain(|request: &Request| request.verb.starts_with("delete"));
        none("the host deleted", &deletes)
    })
}

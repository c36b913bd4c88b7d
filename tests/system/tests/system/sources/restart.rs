//! A host that starts while a source cannot be read goes on with what was in force.

use super::{configure, map, map_id, namespace, until_listed};
use crate::world::{Test, pass, run, shared};
use anyhow::ensure;
use serde_json::json;

#[test]
fn a_source_that_is_away_at_the_start_is_served_as_it_was_and_its_drift_is_corrected() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "src-restart";
        let mut room = cluster.room(name)?.with_generic()?;
        room.declare("a/maps.yaml", &(namespace(name) + &map(name, "one", "one")))?;
        configure(&mut room, "  - {name: a, path: source/a}\n")?;
        let one = map_id(name, "one");
        let mut host = room.start()?;
        pass(&mut host, 0, &one, "created").await?;
        host.stop().await?;

        let (there, away) = (room.source().join("a"), room.path().join("away"));
        std::fs::rename(&there, &away)?;
        cluster.user("bob")?.merge(&one, &json!({"data": {"value": "bobs"}})).await?;
        let mark = room.journal().mark()?;
        let mut host = room.start()?;
        pass(&mut host, mark, &one, "corrected").await?;
        ensure!(cluster.api().require(&one).await?["data"]["value"] == "one");
        let a = until_listed(&mut host, &room, "a", |it| it["fromBefore"] == true).await?;
        let problem = a["problem"]["message"].as_str().unwrap_or_default();
        ensure!(problem.contains("does not exist"), "{a}");
        let mut deletes = cluster.audit().writes_by(name).await?;
        deletes.retain(|request| request.verb.starts_with("delete"));
        crate::world::none("the host deleted", &deletes)?;

        std::fs::rename(&away, &there)?;
        until_listed(&mut host, &room, "a", |it| {
            it["problem"].is_null() && it["fromBefore"].is_null()
        })
        .await?;
        Ok(())
    })
}

/// What can be read but not be placed is no better than what cannot be read.
#[test]
fn a_revision_that_cannot_be_placed_does_not_take_the_place_of_the_last_good_one_over_a_restart()
-> Test {
    run(async {
        let cluster = shared().await?;
        let name = "src-unplaced";
        let mut room = cluster.room(name)?.with_generic()?;
        room.declare("a/maps.yaml", &(namespace(name) + &map(name, "one", "one")))?;
        configure(&mut room, "  - {name: a, path: source/a}\n")?;
        let one = map_id(name, "one");
        let mut host = room.start()?;
        pass(&mut host, 0, &one, "created").await?;
        let masked = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: src-unplaced}\nstringData: {a: \"***\"}\n";
        room.declare("a/masked.yaml", masked)?;
        until_listed(&mut host, &room, "a", |it| it["problem"].is_object()).await?;
        host.stop().await?;

        cluster.user("bob")?.merge(&one, &json!({"data": {"value": "bobs"}})).await?;
        let mark = room.journal().mark()?;
        let mut host = room.start()?;
        pass(&mut host, mark, &one, "corrected").await?;
        until_listed(&mut host, &room, "a", |it| {
            it["fromBefore"] == true
                && it["problem"]["message"].as_str().is_some_and(|it| it.contains("masked.yaml"))
        })
        .await?;
        Ok(())
    })
}

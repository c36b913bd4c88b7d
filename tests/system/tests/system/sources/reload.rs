//! The configuration is read again while the host runs.

use super::{configure, list, map, map_id, namespace, until_listed};
use crate::world::{Test, pass, run, shared};
use anyhow::{Result, ensure};
use serde_json::json;
use trimtab_system_tests::Host;

async fn host_says(host: &mut Host, mark: usize, event: &str, words: &str) -> Result<()> {
    host.line(format!("the host tells {event} with {words:?}"), mark, |line| {
        line.kind() == "host"
            && line.0["event"] == event
            && line.0["message"].as_str().is_some_and(|it| it.contains(words))
    })
    .await?;
    Ok(())
}

#[test]
fn a_configuration_that_changes_is_in_force_without_a_restart_and_a_broken_one_is_told() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "src-reload";
        let mut room = cluster.room(name)?.with_generic()?;
        room.declare("a/maps.yaml", &(namespace(name) + &map(name, "of-a", "one")))?;
        room.declare("b/maps.yaml", &map(name, "of-b", "one"))?;
        let (of_a, of_b) = (map_id(name, "of-a"), map_id(name, "of-b"));
        let ignoring = "  - name: a\n    path: source/a\n    ignore: [{paths: [/data/value]}]\n";
        configure(&mut room, ignoring)?;
        let mut host = room.start()?;
        pass(&mut host, 0, &of_a, "created").await?;
        let bob = cluster.user("bob")?;
        bob.merge(&of_a, &json!({"data": {"value": "bobs"}})).await?;

        // A source is added, and the rule that hid Bob's edit is taken out.
        let mark = host.journal().mark()?;
        let both = "  - {name: a, path: source/a}\n  - {name: b, path: source/b}\n";
        configure(&mut room, both)?;
        pass(&mut host, mark, &of_b, "created").await?;
        pass(&mut host, mark, &of_a, "corrected").await?;

        // Broken: told with its line, and what is in force stays so.
        let mark = host.journal().mark()?;
        configure(&mut room, &both.replace("path: source/b", "pfad: source/b"))?;
        host_says(&mut host, mark, "config-refused", "line 5").await?;
        bob.merge(&of_b, &json!({"data": {"value": "bobs"}})).await?;
        pass(&mut host, mark, &of_b, "corrected").await?;
        let problem = list(&room)?["configProblem"].clone();
        ensure!(problem["message"].as_str().is_some_and(|it| it.contains("pfad")), "{problem}");

        // Mended by going back; then a source is removed, and nothing of it is deleted or looked at.
        let mark = host.journal().mark()?;
        configure(&mut room, both)?;
        host_says(&mut host, mark, "config-changed", "again").await?;
        configure(&mut room, "  - {name: a, path: source/a}\n")?;
        host_says(&mut host, mark, "source-removed", "source b").await?;
        ensure!(list(&room)?["configProblem"].is_null());
        let mark = host.journal().mark()?;
        bob.merge(&of_b, &json!({"data": {"value": "bobs"}})).await?;
        bob.merge(&of_a, &json!({"data": {"value": "bobs"}})).await?;
        pass(&mut host, mark, &of_a, "corrected").await?;
        ensure!(cluster.api().require(&of_b).await?["data"]["value"] == "bobs");
        Ok(())
    })
}

#[test]
fn another_mode_in_the_configuration_is_in_force_at_once() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "src-mode";
        let mut room = cluster.room(name)?.with_generic()?;
        room.declare("maps.yaml", &(namespace(name) + &map(name, "one", "one")))?;
        let one = map_id(name, "one");
        let with = |mode: &str| format!("  - {{name: a, path: source, mode: {mode}}}\n");
        configure(&mut room, &with("observe"))?;
        let mut host = room.start()?;
        let line = pass(&mut host, 0, &one, "observed").await?;
        ensure!(line.0["mode"] == "observe", "{line:?}");
        ensure!(cluster.audit().writes_by(name).await?.is_empty(), "an observing source wrote");

        let mark = host.journal().mark()?;
        configure(&mut room, &with("enforce"))?;
        pass(&mut host, mark, &one, "created").await?;
        let mark = host.journal().mark()?;
        configure(&mut room, &with("suspend"))?;
        pass(&mut host, mark, &one, "suspended").await?;
        until_listed(&mut host, &room, "a", |it| it["mode"] == "suspended").await?;
        cluster.user("bob")?.merge(&one, &json!({"data": {"value": "bobs"}})).await?;
        let mark = host.journal().mark()?;
        configure(&mut room, &with("enforce"))?;
        pass(&mut host, mark, &one, "corrected").await?;
        Ok(())
    })
}

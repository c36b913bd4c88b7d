//! Suspension: of a source, an object, a plugin; and what is told when it ends.

use super::{configure, done, listed, map, map_id, namespace, trimtab};
use crate::world::{Test, pass, run, shared};
use anyhow::{Result, ensure};
use serde_json::json;
use trimtab_system_tests::{Cluster, Host, Id, Room};

/// A host on two sources with one map each.
async fn start(cluster: &Cluster, name: &str) -> Result<(Room, Host)> {
    let mut room = cluster.room(name)?.with_generic()?;
    room.declare("a/maps.yaml", &(namespace(name) + &map(name, "of-a", "one")))?;
    room.declare("b/maps.yaml", &map(name, "of-b", "one"))?;
    configure(&mut room, "  - {name: a, path: source/a}\n  - {name: b, path: source/b}\n")?;
    let mut host = room.start()?;
    pass(&mut host, 0, &map_id(name, "of-a"), "created").await?;
    pass(&mut host, 0, &map_id(name, "of-b"), "created").await?;
    Ok((room, host))
}

async fn edit(cluster: &Cluster, id: &Id, value: &str) -> Result<()> {
    cluster.user("bob")?.merge(id, &json!({"data": {"value": value}})).await?;
    Ok(())
}

/// What was changed is told in a line of its own, with who, before the line that corrects it.
async fn told_then_corrected(host: &mut Host, mark: usize, id: &Id) -> Result<()> {
    let corrected = pass(host, mark, id, "corrected").await?;
    let lines = host.journal().lines()?;
    let about = lines.iter().skip(mark).filter(|line| line.is_about(id) && line.kind() == "pass");
    let told = about.take_while(|line| line.outcome() != "corrected").find(|line| {
        let finding = line.0["findings"].to_string();
        finding.contains("changed-while-suspended")
            && finding.contains("/data/value by")
            && finding.contains(" at 20")
    });
    ensure!(told.is_some(), "nothing was told before {corrected:?}");
    Ok(())
}

#[test]
fn a_suspended_source_is_left_alone_and_what_changed_is_shown_before_it_is_touched() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "src-suspend";
        let (room, mut host) = start(cluster, name).await?;
        let (of_a, of_b) = (map_id(name, "of-a"), map_id(name, "of-b"));
        let mark = host.journal().mark()?;
        ensure!(done(&room, &["source", "suspend", "a"])?.contains("is suspended since"));
        let line = pass(&mut host, mark, &of_a, "suspended").await?;
        ensure!(line.message().contains("trimtab source resume a"), "{line:?}");
        ensure!(listed(&room, "a")?["mode"] == "suspended");
        edit(cluster, &of_a, "bobs").await?;
        edit(cluster, &of_b, "bobs").await?;
        pass(&mut host, mark, &of_b, "corrected").await?;
        ensure!(cluster.api().require(&of_a).await?["data"]["value"] == "bobs");

        // It is so after a restart too.
        host.stop().await?;
        let mut host = room.start()?;
        let mark = host.journal().mark()?;
        edit(cluster, &of_b, "again").await?;
        pass(&mut host, mark, &of_b, "corrected").await?;
        ensure!(cluster.api().require(&of_a).await?["data"]["value"] == "bobs");

        let shown = trimtab(&room, &["source", "resume", "a"])?;
        ensure!(shown.status == 2 && shown.err.contains("--yes"), "{}", shown.err);
        ensure!(shown.out.contains("/data/value") && shown.out.contains("bobs"), "{}", shown.out);
        ensure!(cluster.api().require(&of_a).await?["data"]["value"] == "bobs");
        let mark = host.journal().mark()?;
        done(&room, &["source", "resume", "a", "--yes"])?;
        told_then_corrected(&mut host, mark, &of_a).await?;
        ensure!(cluster.api().require(&of_a).await?["data"]["value"] == "one");
        ensure!(listed(&room, "a")?["mode"] == "enforce");
        let again = trimtab(&room, &["source", "resume", "a", "--yes"])?;
        ensure!(again.status == 2 && again.err.contains("not suspended"), "{}", again.err);
        Ok(())
    })
}

#[test]
fn an_object_is_suspended_by_its_annotation_and_what_changed_is_told_when_that_goes() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "src-annotated";
        let (_room, mut host) = start(cluster, name).await?;
        let of_a = map_id(name, "of-a");
        let annotate = |value: serde_json::Value| json!({"metadata": {"annotations": {"trimtab.dev/reconcile": value}}});
        let bob = cluster.user("bob")?;
        let mark = host.journal().mark()?;
        bob.merge(&of_a, &annotate("suspended".into())).await?;
        pass(&mut host, mark, &of_a, "suspended").await?;
        edit(cluster, &of_a, "bobs").await?;
        let of_b = map_id(name, "of-b");
        edit(cluster, &of_b, "bobs").await?;
        pass(&mut host, mark, &of_b, "corrected").await?;
        ensure!(cluster.api().require(&of_a).await?["data"]["value"] == "bobs");
        let mark = host.journal().mark()?;
        bob.merge(&of_a, &annotate(serde_json::Value::Null)).await?;
        told_then_corrected(&mut host, mark, &of_a).await
    })
}

#[test]
fn a_suspended_plugin_is_not_asked_and_its_objects_are_told_of_when_it_is_again() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "src-plugin";
        let (room, mut host) = start(cluster, name).await?;
        let of_a = map_id(name, "of-a");
        let mark = host.journal().mark()?;
        done(&room, &["plugin", "suspend", "generic"])?;
        pass(&mut host, mark, &of_a, "suspended").await?;
        ensure!(room.plugin_status("generic.wasm")?["state"] == "suspended");
        edit(cluster, &of_a, "bobs").await?;
        let mark = host.journal().mark()?;
        let shown = done(&room, &["plugin", "resume", "generic", "--yes"])?;
        ensure!(shown.contains("/data/value"), "{shown}");
        told_then_corrected(&mut host, mark, &of_a).await?;
        ensure!(room.plugin_status("generic.wasm")?["state"] == "enforcing");
        Ok(())
    })
}

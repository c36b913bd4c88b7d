//! Schemas that change while the host runs, by whoever changes them.

use crate::world::{Test, pass, run, shared};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trimtab_system_tests::{Api, Cluster, Id, PATIENCE, until};

/// A definition whose `spec` has these properties.
fn definition(group: &str, properties: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("boats.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Boat", "plural": "boats", "singular": "boat", "listKind": "BoatList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": properties}}}}}],
        },
    })
}

async fn publish(admin: &Api, definition: &Value, boat: &Id) -> Result<()> {
    admin.apply(definition).await?;
    until("the kind is served", PATIENCE, async || admin.get(boat).await.map(drop)).await
}

/// Documents that the host has read, each by its path and hash.
async fn documents(cluster: &Cluster, user: &str) -> Result<Vec<String>> {
    let all = cluster.audit().by(user).await?;
    Ok(all.into_iter().map(|it| it.uri).filter(|uri| uri.starts_with("/openapi/v3/")).collect())
}

#[test]
fn a_definition_that_somebody_else_changes_is_in_force_for_objects_that_were_judged_by_the_old_one()
-> Test {
    run(async {
        let cluster = shared().await?;
        let (name, group) = ("boats", "boats.example.com");
        let admin = cluster.user("admin")?;
        let boat = Id::new(&format!("{group}/v1"), "Boat", name, "ferry");
        let list = |kind: &str| {
            json!({"stops": {"type": "array", "items": {"type": "string"},
                "x-kubernetes-list-type": kind}})
        };
        publish(&admin, &definition(group, &list("atomic")), &boat).await?;
        let room = cluster.room(name)?.with_generic()?;
        let manifest = |spec: &str| {
            format!(
                "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n---\n\
                 apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c, namespace: {name}}}\ndata: {{a: b}}\n---\n\
                 apiVersion: {group}/v1\nkind: Boat\nmetadata: {{name: ferry, namespace: {name}}}\nspec: {spec}\n"
            )
        };
        room.declare("boat.yaml", &manifest("{stops: [a, b]}"))?;
        let mut host = room.start()?;
        pass(&mut host, 0, &boat, "created").await?;

        // In an atomic list the order counts; in a set it does not.
        let alice = cluster.user("alice")?;
        let turned = json!({"spec": {"stops": ["b", "a"]}});
        let mark = host.journal().mark()?;
        alice.merge(&boat, &turned).await?;
        pass(&mut host, mark, &boat, "corrected").await?;
        let described = |all: &[String]| all.iter().any(|uri| uri.contains(group));
        until("the host has read what describes it", PATIENCE, async || {
            ensure!(described(&documents(cluster, name).await?), "not yet");
            Ok(())
        })
        .await?;
        let before = documents(cluster, name).await?;
        let changes = |log: String| log.matches(&format!("{group}/v1 Boat changed")).count();
        let seen = changes(host.log()?);
        admin.apply_by_force(&definition(group, &list("set"))).await?;
        until("the host has taken up the change", PATIENCE, async || {
            ensure!(changes(host.log()?) > seen, "not yet");
            Ok(())
        })
        .await?;
        let mark = host.journal().mark()?;
        alice.merge(&boat, &turned).await?;
        alice.merge(&boat, &json!({"spec": {"stops": ["b"]}})).await?;
        let line = pass(&mut host, mark, &boat, "corrected").await?;
        let lines = host.journal().lines()?;
        let told =
            lines.iter().skip(mark).filter(|line| line.is_about(&boat) && line.kind() == "pass");
        ensure!(told.count() == 1, "an order that says nothing was corrected");
        ensure!(line.paths() == ["/spec/stops/[=a]"], "{line:?}");

        // What the schema refuses is tried again at once when the schema knows it.
        let mark = host.journal().mark()?;
        room.declare("boat.yaml", &manifest("{stops: [a, b], captain: ann}"))?;
        pass(&mut host, mark, &boat, "rejected").await?;
        let mut wider = list("set");
        wider["captain"] = json!({"type": "string"});
        admin.apply_by_force(&definition(group, &wider)).await?;
        pass(&mut host, mark, &boat, "corrected").await?;
        let live = cluster.api().require(&boat).await?;
        ensure!(live["spec"]["captain"] == "ann", "{live}");

        // Each change had its document read again, once, and no other.
        let again = until("each change was taken up", PATIENCE, async || {
            let after = documents(cluster, name).await?;
            let again = after.get(before.len()..).context("fewer than before")?.to_vec();
            ensure!(again.len() >= 2, "not yet: {again:?}");
            Ok(again)
        })
        .await?;
        let once: std::collections::BTreeSet<_> = again.iter().collect();
        let all_of_group = again.iter().all(|uri| uri.contains(group));
        ensure!(all_of_group && once.len() == again.len(), "{again:?}");
        Ok(())
    })
}

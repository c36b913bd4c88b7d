//! Fields that cannot change: left and reported, and made anew only where grant and manifest both
//! allow it.

use crate::world::{Test, pass, run, shared};
use anyhow::{Context as _, Result, ensure};
use trimtab_system_tests::{Id, Room};

const POLICY: &str = "trimtab.dev/on-immutable";

fn manifest(namespace: &str, owner: &str, value: &str, annotation: &str) -> String {
    let owners = match owner {
        "" => String::new(),
        uid => format!(
            ", ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: frozen, uid: {uid}}}]"
        ),
    };
    format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nimmutable: true\n\
         metadata: {{name: frozen, namespace: {namespace}{annotation}}}\ndata: {{a: {value:?}}}\n---\n\
         apiVersion: v1\nkind: ConfigMap\n\
         metadata: {{name: owned, namespace: {namespace}{owners}}}\ndata: {{a: b}}\n"
    )
}

fn recreating(room: &Room) -> Result<()> {
    let grant = room.grant_of("generic.wasm", "enforce")?;
    ensure!(
        !grant.lines().any(|line| line.starts_with("actions:") && line.contains("recreate")),
        "making anew is granted unasked:\n{grant}"
    );
    room.grant("generic.wasm", &grant.replace("actions: [", "actions: [\"recreate\", "))
}

#[test]
fn an_immutable_field_is_left_refused_or_made_anew_as_manifest_and_grant_say() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "frozen";
        let id = Id::new("v1", "ConfigMap", name, "frozen");
        let room = cluster.room(name)?.with_generic()?;
        room.declare("frozen.yaml", &manifest(name, "", "1", ""))?;
        let mut host = room.start()?;
        pass(&mut host, 0, &id, "created").await?;
        let uid = async || {
            let live = cluster.api().require(&id).await?;
            live["metadata"]["uid"].as_str().map(str::to_owned).context("a uid")
        };
        let first = uid().await?;

        let mark = host.journal().mark()?;
        room.declare("frozen.yaml", &manifest(name, &first, "2", ""))?;
        let line = pass(&mut host, mark, &id, "left").await?;
        for part in ["cannot change", POLICY] {
            ensure!(line.message().contains(part), "{line:?}");
        }

        // The manifest allows it and the grant does not.
        let mark = host.journal().mark()?;
        let allowed = format!(", annotations: {{{POLICY}: recreate}}");
        room.declare("frozen.yaml", &manifest(name, &first, "2", &allowed))?;
        let line = pass(&mut host, mark, &id, "refused").await?;
        ensure!(line.0["refusals"][0]["reason"] == "ActionNotGranted", "{line:?}");
        ensure!(uid().await? == first);

        // Both do: the plan says what goes with it, and it is a new object.
        let mark = host.journal().mark()?;
        recreating(&room)?;
        let line = pass(&mut host, mark, &id, "created").await?;
        let takes = line.0["actions"][0]["takes"].to_string();
        ensure!(takes.contains("declared objects that it owns (1): ConfigMap owned"), "{line:?}");
        ensure!(uid().await? != first);
        let live = cluster.api().require(&id).await?;
        ensure!(live["data"]["a"] == "2", "{live}");
        Ok(())
    })
}

#[test]
fn what_holds_data_is_made_anew_by_a_word_of_its_own_and_the_refusal_says_what_would_go() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "claims-data";
        let id = Id::new("v1", "PersistentVolumeClaim", name, "data");
        let room = cluster.room(name)?.with_generic()?;
        recreating(&room)?;
        let claim = |class: &str| {
            format!(
                "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n---\n\
                 apiVersion: v1\nkind: PersistentVolumeClaim\n\
                 metadata: {{name: data, namespace: {name}, annotations: {{{POLICY}: recreate}}}}\n\
                 spec: {{storageClassName: {class}, accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}\n"
            )
        };
        room.declare("claim.yaml", &claim("slow"))?;
        let mut host = room.start()?;
        pass(&mut host, 0, &id, "created").await?;
        let mark = host.journal().mark()?;
        room.declare("claim.yaml", &claim("fast"))?;
        let line = pass(&mut host, mark, &id, "left").await?;
        let text = line.0.to_string();
        for part in ["immutable_field_stateful", "recreate-stateful", "the data on it"] {
            ensure!(text.contains(part), "{part} is not in {text}");
        }
        let live = cluster.api().require(&id).await?;
        ensure!(live["spec"]["storageClassName"] == "slow", "{live}");
        Ok(())
    })
}

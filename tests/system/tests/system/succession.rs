//! Objects that another tool made: taken over with all that it stated, and freed of versions that
//! are gone.

use crate::world::{Test, app, deployment, pass, run, settings, shared};
use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use trimtab_system_tests::{Api, Cluster, Id, PATIENCE, Room, until};

/// The field manager of client-side `kubectl apply`.
const CLIENT_SIDE: &str = "kubectl-client-side-apply";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Grants the generic plugin to adopt, with more lines.
fn adopting(room: &Room, more: &str) -> Result<()> {
    let grant = room.grant_of("generic.wasm", "enforce")?;
    let wider = grant.replace("actions: [", "actions: [\"adopt\", ");
    ensure!(wider != grant, "the grant reads otherwise than this test expects:\n{grant}");
    room.grant("generic.wasm", &format!("{wider}{more}"))
}

/// Makes this object as a client-side tool does: by an ordinary create, under its own name and
/// with its annotation.
async fn made_by(cluster: &Cluster, tool: &str, mut object: Value) -> Result<()> {
    let text = object.to_string();
    object["metadata"]["annotations"][LAST_APPLIED] = text.into();
    cluster.user(tool)?.create(&object).await?;
    Ok(())
}

fn managers(object: &Value) -> Vec<&str> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().filter_map(|entry| entry["manager"].as_str()).collect()
}

#[test]
fn what_kubectl_apply_stated_and_we_do_not_is_removed_once_we_may_adopt_and_not_before() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "client-side";
        let setup = cluster.user("setup")?;
        setup
            .create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            .await?;
        let labels = json!({"app": "web"});
        let container = json!({"name": "web", "image": "registry.example.com/web:0",
            "env": [{"name": "OLD", "value": "1"}], "args": ["--old"]});
        let theirs = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": name, "labels": {"team": "old"}},
            "spec": {"replicas": 2, "minReadySeconds": 7, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels},
                    "spec": {"containers": [container], "terminationGracePeriodSeconds": 3}}}});
        made_by(cluster, CLIENT_SIDE, theirs).await?;
        // What others wrote meanwhile is theirs.
        let scheduler = cluster.user("somebody")?;
        let pause = json!({"metadata": {"annotations": {"example.com/note": "x"}}});
        scheduler.merge(&deployment(name), &pause).await?;

        let room = cluster.room(name)?.with_generic()?;
        room.declare("app.yaml", &app(name))?;
        let mut host = room.start()?;
        let line = pass(&mut host, 0, &deployment(name), "conflict").await?;
        ensure!(line.message().contains(CLIENT_SIDE), "{line:?}");
        let live = cluster.api().require(&deployment(name)).await?;
        ensure!(live["spec"]["minReadySeconds"] == 7 && !managers(&live).contains(&"trimtab"));

        let mark = host.journal().mark()?;
        adopting(&room, "")?;
        let line = pass(&mut host, mark, &deployment(name), "corrected").await?;
        ensure!(line.paths().contains(&"/spec/minReadySeconds"), "{line:?}");
        let live = cluster.api().require(&deployment(name)).await?;
        let spec = &live["spec"];
        let pod = &spec["template"]["spec"];
        let container = &pod["containers"][0];
        ensure!(container["image"] == "registry.example.com/web:1" && spec["replicas"] == 2);
        ensure!(spec["minReadySeconds"].is_null(), "{spec}");
        ensure!(container["env"].is_null() && container["args"].is_null(), "{container}");
        ensure!(pod["terminationGracePeriodSeconds"] == 30, "{pod}");
        let metadata = &live["metadata"];
        ensure!(metadata["labels"].is_null(), "{metadata}");
        ensure!(metadata["annotations"] == json!({"example.com/note": "x"}), "{metadata}");
        ensure!(!managers(&live).contains(&CLIENT_SIDE), "{metadata}");

        // From here on it is an object of ours as any other.
        let mark = host.journal().mark()?;
        cluster.user("alice")?.merge(&deployment(name), &json!({"spec": {"replicas": 5}})).await?;
        let line = pass(&mut host, mark, &deployment(name), "corrected").await?;
        ensure!(line.paths() == ["/spec/replicas"], "{line:?}");
        Ok(())
    })
}

#[test]
fn what_is_as_declared_is_taken_over_by_one_write_once_we_may_adopt_and_released_later() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "as-declared";
        let id = Id::new("v1", "ConfigMap", name, "shared");
        let setup = cluster.user("setup")?;
        setup
            .create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            .await?;
        cluster
            .user("other")?
            .create(&json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "shared", "namespace": name}, "data": {"a": "1", "b": "2"}}))
            .await?;
        let declared = |data: &str| {
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: shared, namespace: {name}}}\ndata: {data}\n"
            )
        };
        let writes = async || -> Result<usize> {
            let mut all = cluster.audit().writes_by(name).await?;
            all.retain(|request| request.name == "shared" && request.succeeded());
            Ok(all.len())
        };
        let room = cluster.room(name)?.with_generic()?;
        room.declare("shared.yaml", &declared("{a: \"1\", b: \"2\"}"))?;
        let round = room.once().await?;
        ensure!(round.status == 0 && writes().await? == 0, "{}", round.summary);

        adopting(&room, "")?;
        for _ in 0..3 {
            let round = room.once().await?;
            ensure!(round.status == 0, "{}\n{}", round.summary, round.log);
            ensure!(writes().await? == 1, "it was written {} times", writes().await?);
        }
        let live = cluster.api().require(&id).await?;
        ensure!(managers(&live).contains(&"trimtab"), "{live}");
        ensure!(live["data"] == json!({"a": "1", "b": "2"}), "{live}");

        // First we let go of it; then it is there only because of somebody who may not put it there.
        room.declare("shared.yaml", &declared("{a: \"1\"}"))?;
        room.once().await?;
        room.once().await?;
        let live = cluster.api().require(&id).await?;
        ensure!(live["data"] == json!({"a": "1"}), "{live}");
        let before = writes().await?;
        room.once().await?;
        ensure!(writes().await? == before, "it is written again");
        Ok(())
    })
}

#[test]
fn another_client_side_tool_is_succeeded_where_the_grant_names_it() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "other-tool";
        let setup = cluster.user("setup")?;
        setup
            .create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            .await?;
        let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": name, "labels": {"made": "by-a-tool"}},
            "data": {"color": "red"}});
        made_by(cluster, "old-tool", theirs).await?;
        let room = cluster.room(name)?.with_generic()?;
        room.declare("app.yaml", &app(name))?;
        adopting(&room, "predecessors: [\"old-tool\"]\n")?;
        let round = room.once().await?;
        ensure!(round.status == 0, "{}\n{}", round.summary, round.log);
        let live = cluster.api().require(&settings(name)).await?;
        ensure!(live["metadata"]["labels"] == json!({"app": "web"}), "{live}");
        ensure!(!managers(&live).contains(&"old-tool"), "{live}");
        Ok(())
    })
}

/// A custom resource whose managedFields name a version that its definition no longer has.
async fn outdated(cluster: &Cluster, namespace: &str, group: &str) -> Result<Id> {
    let admin = cluster.user("admin")?;
    admin
        .create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
        .await?;
    let version = |name: &str, served: bool, storage: bool| {
        json!({"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema":
            {"type": "object", "properties": {"spec": {"type": "object", "properties":
                {"port": {"type": "string"}, "old": {"type": "string"}}}}}}})
    };
    let definition = |versions: &[Value]| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("servers.{group}")},
            "spec": {"group": group, "scope": "Namespaced",
                "names": {"kind": "Server", "plural": "servers", "singular": "server",
                    "listKind": "ServerList"},
                "versions": versions}})
    };
    let object = |version: &str| {
        json!({"apiVersion": format!("{group}/{version}"), "kind": "Server",
            "metadata": {"name": "s", "namespace": namespace}, "spec": {"port": "http"}})
    };
    let both = [version("v1alpha1", true, true), version("v1beta1", true, false)];
    admin.apply(&definition(&both)).await?;
    let other = cluster.user("other")?;
    until("the kind is served", PATIENCE, async || other.apply(&object("v1alpha1")).await).await?;
    let both = [version("v1alpha1", false, false), version("v1beta1", true, true)];
    admin.apply(&definition(&both)).await?;
    let old = format!("/apis/{group}/v1alpha1/namespaces/{namespace}/servers/s");
    until("the old version is not served", PATIENCE, async || {
        admin.send(Method::GET, &old, None, None).await.err().context("it still is")
    })
    .await?;
    // The server takes up what is stored in which version a moment later.
    let id = Id::new(&format!("{group}/v1beta1"), "Server", namespace, "s");
    for n in 0..20 {
        let touched = json!({"metadata": {"annotations": {"touched": n.to_string()}}});
        admin.merge(&id, &touched).await?;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/servers.{group}");
    let stored = json!({"status": {"storedVersions": ["v1beta1"]}});
    let merge = Some("application/merge-patch+json");
    admin.send(Method::PATCH, &format!("{path}/status"), merge, Some(&stored)).await?;
    admin.apply(&definition(&[version("v1beta1", true, true)])).await?;
    let prober = cluster.user("prober")?;
    until("the old version is refused", PATIENCE, async || {
        let refused = probe(&prober, &id).await.err();
        refused.filter(|error| error.contains("v1alpha1")).context("not yet")
    })
    .await?;
    Ok(id)
}

/// Whether somebody else could apply it: a dry run.
async fn probe(api: &Api, id: &Id) -> Result<(), String> {
    let path = format!(
        "/apis/{}/namespaces/{}/servers/{}?fieldManager=prober&dryRun=All",
        id.api_version, id.namespace, id.name
    );
    let object = json!({"apiVersion": id.api_version, "kind": id.kind,
        "metadata": {"name": id.name, "namespace": id.namespace}, "spec": {"old": "x"}});
    let apply = Some("application/apply-patch+yaml");
    let answer = api.send(Method::PATCH, &path, apply, Some(&object)).await;
    answer.map(drop).map_err(|error| format!("{error:#}"))
}

#[test]
fn managed_fields_of_a_version_that_is_gone_are_named_and_mended_where_we_may_adopt() -> Test {
    run(async {
        let cluster = shared().await?;
        let (name, group) = ("unserved", "unserved.example.com");
        let id = outdated(cluster, name, group).await?;
        let room = cluster.room(name)?.with_generic()?;
        room.declare(
            "server.yaml",
            &format!("apiVersion: {group}/v1beta1\nkind: Server\nmetadata: {{name: s, namespace: {name}}}\nspec: {{port: https}}\n---\n{}", app(name)),
        )?;
        let mut host = room.start()?;
        let line = pass(&mut host, 0, &id, "rejected").await?;
        for part in ["stale_managed_fields_version", "other", &format!("{group}/v1alpha1"), "adopt"]
        {
            ensure!(line.message().contains(part), "{part} is not in {}", line.message());
        }
        // Others go on.
        pass(&mut host, 0, &settings(name), "created").await?;

        let mark = host.journal().mark()?;
        adopting(&room, "")?;
        pass(&mut host, mark, &id, "corrected").await?;
        let live = cluster.api().require(&id).await?;
        ensure!(live["spec"]["port"] == "https", "{live}");
        // And nobody else is refused any more.
        probe(&cluster.user("prober")?, &id).await.map_err(anyhow::Error::msg)?;
        let text = live["metadata"]["managedFields"].to_string();
        ensure!(!text.contains("v1alpha1"), "{text}");
        Ok(())
    })
}

//! Who waits for whom: definitions, annotations, failures, circles; and what is said of it.

use crate::world::{Test, creations, deployment, run, shared};
use anyhow::{Result, ensure};
use serde_json::json;
use std::time::Duration;
use trimtab_system_tests::{Cluster, Host, Id, Room};

fn config_map(namespace: &str, name: &str, depends_on: &str) -> String {
    let annotations = match depends_on {
        "" => String::new(),
        names => format!(", annotations: {{trimtab.dev/depends-on: \"{names}\"}}"),
    };
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}{annotations}}}\ndata: {{a: \"1\"}}\n"
    )
}

fn namespace(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n")
}

fn web(namespace: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: {namespace}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: \"registry.example.com/web:1\"}}]}}
"
    )
}

fn map(namespace: &str, name: &str) -> Id {
    Id::new("v1", "ConfigMap", namespace, name)
}

fn room(cluster: &Cluster, name: &str, documents: &[String]) -> Result<Room> {
    let room = cluster.room(name)?.with_generic()?;
    room.declare("all.yaml", &documents.join("---\n"))?;
    Ok(room)
}

/// The host's line that this object waits, and for what.
async fn told(host: &mut Host, words: &[&str]) -> Result<()> {
    host.line(format!("it is told that something waits, with {words:?}"), 0, |line| {
        let event = line.0["event"].as_str().unwrap_or_default();
        let text = line.message();
        event == "waits" && words.iter().all(|word| text.contains(word))
    })
    .await
    .map(drop)
}

#[test]
fn a_definition_and_its_first_object_in_one_commit_converge_whatever_their_order() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "order-crd";
        let object = format!(
            "apiVersion: {name}.example.com/v1\nkind: Foo\nmetadata: {{name: f, namespace: {name}}}\nspec: {{a: 1}}\n"
        );
        let definition = format!(
            "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: foos.{name}.example.com}}
spec:
  group: {name}.example.com
  scope: Namespaced
  names: {{kind: Foo, singular: foo, plural: foos}}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, properties: {{a: {{type: integer}}}}}}}}}}}}
"
        );
        let room = room(cluster, name, &[object, definition, namespace(name)])?;
        let round = room.once().await?;
        ensure!(round.status == 0, "status {}: {}\n{}", round.status, round.summary, round.log);
        let made = creations(cluster, name).await?;
        ensure!(made.len() == 3 && made.values().all(|count| *count == 1), "{made:?}");
        let writes = cluster.audit().writes_by(name).await?;
        let refused: Vec<_> = writes.iter().filter(|it| !it.succeeded()).collect();
        ensure!(refused.is_empty(), "a write came too early: {refused:?}");
        Ok(())
    })
}

#[test]
fn an_object_waits_until_what_its_annotation_names_is_ready_and_its_drift_does_not_wait() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "order-ready";
        let documents = [
            namespace(name),
            web(name),
            config_map(name, "after", &format!("apps/Deployment/{name}/web")),
            config_map(name, "last", "ConfigMap/after"),
            config_map(name, "free", ""),
        ];
        let room = room(cluster, name, &documents)?;
        let mut host = room.start()?;
        let (api, after, last) = (cluster.api(), map(name, "after"), map(name, "last"));
        told(&mut host, &["order-ready/after waits for", "0 of 1 replicas"]).await?;
        told(
            &mut host,
            &[
                "order-ready/last waits for ConfigMap order-ready/after",
                "which waits for Deployment.apps order-ready/web (named by its annotation)",
            ],
        )
        .await?;
        api.require(&map(name, "free")).await?;
        for id in [&after, &last] {
            ensure!(api.get(id).await?.is_none(), "{id} did not wait");
        }
        let path = format!("/apis/apps/v1/namespaces/{name}/deployments/web/status");
        let ready = |count: u64| {
            json!({"status": {
                "observedGeneration": 1, "replicas": count, "updatedReplicas": count,
                "readyReplicas": count, "availableReplicas": count,
                "conditions": [
                    {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
                    {"type": "Available", "status": if count > 0 { "True" } else { "False" }},
                ],
            }})
        };
        let patch = async |body: serde_json::Value| {
            let merge = "application/merge-patch+json";
            api.send(http::Method::PATCH, &path, Some(merge), Some(&body)).await.map(drop)
        };
        patch(ready(1)).await?;
        host.until("what waited is made", async |_| {
            api.require(&after).await?;
            api.require(&last).await
        })
        .await?;
        // What is in force waits for nothing, not even after a restart.
        patch(ready(0)).await?;
        host.stop().await?;
        let mut host = room.start()?;
        host.until("its drift is corrected", async |_| {
            api.merge(&after, &json!({"data": {"a": "2"}})).await?;
            tokio::time::sleep(Duration::from_millis(300)).await;
            let live = api.require(&after).await?;
            ensure!(live["data"]["a"] == "1", "{live}");
            Ok(())
        })
        .await?;
        ensure!(api.require(&deployment(name)).await?["status"]["replicas"] != 1);
        host.kill()?;
        Ok(())
    })
}

#[test]
fn a_failing_object_stops_what_depends_on_it_and_nothing_else() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "order-fails";
        let broken = format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: broken, namespace: {name}}}\nspec: {{ports: [{{port: 99999}}]}}\n"
        );
        let documents = [
            namespace(name),
            broken,
            config_map(name, "needs-it", "Service/broken"),
            config_map(name, "absent", &format!("/Secret/{name}/nowhere")),
            config_map(name, "a", "ConfigMap/b"),
            config_map(name, "b", "ConfigMap/a"),
            config_map(name, "free", ""),
            web(name),
        ];
        let room = room(cluster, name, &documents)?;
        let round = room.once().await?;
        ensure!(round.status == 1, "status {}: {}", round.status, round.log);
        let api = cluster.api();
        api.require(&map(name, "free")).await?;
        api.require(&deployment(name)).await?;
        let unsettled = round.unsettled();
        let reason = |object: &str| {
            let found = unsettled.iter().find(|(it, _, _)| it.ends_with(object));
            found.map(|(_, outcome, reason)| format!("{outcome}: {reason}")).unwrap_or_default()
        };
        for (object, words) in [
            (
                "/needs-it",
                "waiting: waits for Service order-fails/broken (named by its annotation): rejected",
            ),
            (
                "/absent",
                "waiting: waits for Secret order-fails/nowhere (named by its annotation): not in the cluster",
            ),
            ("/a", "waiting: needs itself, and is never applied so: ConfigMap order-fails/a needs"),
            ("/b", "waiting: needs itself"),
        ] {
            ensure!(reason(object).starts_with(words), "{object}: {:?}", reason(object));
            let id = map(name, object.trim_start_matches('/'));
            ensure!(api.get(&id).await?.is_none(), "{id} did not wait");
        }
        ensure!(unsettled.len() == 5, "{unsettled:?}");
        Ok(())
    })
}

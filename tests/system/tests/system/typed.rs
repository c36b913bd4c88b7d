//! What our plugins know of single types, on a real API server. There is no controller manager
//! here: who plays one writes under its name.

use crate::world::{
    APP_OBJECTS, Test, converged, deployment, pass, room_with_app, run, say, shared,
};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use trimtab_system_tests::{
    Built, Cluster, Host, Id, Line, Room, copy_tree, drift, objects, workspace,
};

/// A room with the small application, and this plugin enforced beside the generic one.
fn room_with(cluster: &Cluster, name: &str, plugin: &str) -> Result<Room> {
    let room = room_with_app(cluster, name)?;
    room.drop_our_plugin(plugin)?;
    room.enforce(&format!("{plugin}.wasm"))?;
    Ok(room)
}

/// Waits for a pass of this object with this outcome that something it read has caused.
async fn related(
    host: &mut Host,
    mark: usize,
    id: &Id,
    outcome: &str,
) -> Result<std::sync::Arc<Line>> {
    host.line(format!("{id} is {outcome} for what was read"), mark, |line| {
        line.is_about(id) && line.outcome() == outcome && line.trigger() == "related"
    })
    .await
}

fn findings(line: &Line) -> Vec<&str> {
    let findings = line.0["findings"].as_array().into_iter().flatten();
    findings.filter_map(|finding| finding["name"].as_str()).collect()
}

fn autoscaler(namespace: &str, min: u32) -> Value {
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": min, "maxReplicas": 9}})
}

fn autoscaler_id(namespace: &str) -> Id {
    Id::new("autoscaling/v2", "HorizontalPodAutoscaler", namespace, "web")
}

#[test]
fn replicas_belong_to_an_autoscaler_that_no_source_declares_until_it_is_gone() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "autoscaled";
        let web = deployment(name);
        let setup = cluster.user("setup")?;
        setup
            .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            .await?;
        setup.apply(&autoscaler(name, 2)).await?;
        let room = room_with(cluster, name, "workloads")?;
        let mut host = converged(&room, APP_OBJECTS - 1).await?;

        // The autoscaler scales, and a person does something else.
        let mark = host.journal().mark()?;
        cluster.user("scaler")?.merge(&web, &json!({"spec": {"replicas": 7}})).await?;
        cluster
            .user("alice")?
            .merge(
                &web,
                &json!({"spec": {"minReadySeconds": 5,
            "template": {"spec": {"containers": [{"name": "web", "image": "elsewhere:1"}]}}}}),
            )
            .await?;
        let line = pass(&mut host, mark, &web, "corrected").await?;
        ensure!(line.paths().iter().all(|path| *path != "/spec/replicas"), "{line:?}");
        ensure!(findings(&line).contains(&"field-owned-by-autoscaler"), "{line:?}");
        let live = cluster.api().require(&web).await?;
        ensure!(live["spec"]["replicas"] == 7, "the autoscaler was overruled: {live}");

        // No event of the Deployment's own tells that it is gone.
        let mark = host.journal().mark()?;
        setup.delete(&autoscaler_id(name)).await?;
        let line = related(&mut host, mark, &web, "corrected").await?;
        ensure!(line.paths() == ["/spec/replicas"], "{line:?}");
        let live = cluster.api().require(&web).await?;
        ensure!(live["spec"]["replicas"] == 2, "{live}");
        eprintln!("corrected {:?} ms after the autoscaler went", line.since_event_ms());
        Ok(())
    })
}

#[test]
fn an_autoscaler_that_comes_later_is_heard_of_by_whoever_asked_for_one() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "scaledlater";
        let web = deployment(name);
        let room = room_with(cluster, name, "workloads")?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let alice = cluster.user("alice")?;
        let mark = host.journal().mark()?;
        alice.merge(&web, &json!({"spec": {"replicas": 5}})).await?;
        pass(&mut host, mark, &web, "corrected").await?;

        // A plugin that only observes says what it sees, so that each look can be told.
        let mark = host.journal().mark()?;
        room.grant("workloads.wasm", &room.grant_of("workloads.wasm", "observe")?)?;
        host.until("the plugin observes", async |_| {
            ensure!(room.plugin_status("workloads.wasm")?["state"] == "observing");
            Ok(())
        })
        .await?;
        alice.merge(&web, &json!({"spec": {"replicas": 5}})).await?;
        pass(&mut host, mark, &web, "observed").await?;

        // The autoscaler allows no less than four, and two are declared.
        let mark = host.journal().mark()?;
        alice.apply(&autoscaler(name, 4)).await?;
        let line = related(&mut host, mark, &web, "left").await?;
        ensure!(findings(&line) == ["replicas-outside-autoscaler"], "{line:?}");
        eprintln!("left {:?} ms after the autoscaler came", line.since_event_ms());

        // It changes, and the answer with it; and so it goes on without a word of the Deployment.
        let mark = host.journal().mark()?;
        alice.merge(&autoscaler_id(name), &json!({"spec": {"minReplicas": 3}})).await?;
        let line = related(&mut host, mark, &web, "left").await?;
        ensure!(line.message().contains("from 3 to 9"), "{line:?}");
        Ok(())
    })
}

#[test]
fn a_certificate_that_somebody_injects_stays_while_the_webhook_is_held() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "injected";
        let room = room_with(cluster, name, "extension")?;
        let hook = |bundle: &str| {
            format!(
                "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: {name}}}
webhooks:
  - name: {name}.example.com
    admissionReviewVersions: [v1]
    sideEffects: None
    rules: [{{apiGroups: [{name}.example.com], apiVersions: [v1], operations: [CREATE], resources: [things]}}]
    clientConfig: {{url: \"https://{name}.example.com/\"{bundle}}}
"
            )
        };
        room.declare("hook.yaml", &hook(""))?;
        let mut host = converged(&room, APP_OBJECTS + 1).await?;
        let id =
            Id::new("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", name);
        let injector = cluster.user("injector")?;
        injector
            .edit(&id, |object| {
                object["webhooks"][0]["clientConfig"]["caBundle"] = "TFMwdA==".into()
            })
            .await?;
        let held = async |host: &mut Host, mark| -> Result<()> {
            let line = pass(host, mark, &id, "corrected").await?;
            ensure!(
                line.paths().len() == 1 && line.paths()[0].ends_with("/failurePolicy"),
                "{line:?}"
            );
            let live = cluster.api().require(&id).await?;
            let hook = &live["webhooks"][0];
            ensure!(hook["failurePolicy"] == "Fail", "{live}");
            ensure!(hook["clientConfig"]["caBundle"] == "TFMwdA==", "it was taken away: {live}");
            Ok(())
        };
        let weaken = |object: &mut Value| object["webhooks"][0]["failurePolicy"] = "Ignore".into();
        let mark = host.journal().mark()?;
        room.declare(
            "hook.yaml",
            &hook("").replace("    sideEffects", "    failurePolicy: Fail\n    sideEffects"),
        )?;
        cluster.user("alice")?.edit(&id, weaken).await?;
        held(&mut host, mark).await?;

        // A placeholder in the manifest asks for nothing either.
        let mark = host.journal().mark()?;
        let placeholder = hook(", caBundle: Cg==");
        room.declare(
            "hook.yaml",
            &placeholder.replace("    sideEffects", "    failurePolicy: Fail\n    sideEffects"),
        )?;
        host.line("the source is read", mark, |line| line.kind() == "source").await?;
        cluster.user("alice")?.edit(&id, weaken).await?;
        held(&mut host, mark).await
    })
}

#[test]
fn a_selector_that_cannot_change_is_reported_and_recreated_where_object_and_grant_say_so() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "reselected";
        let id = Id::new("apps/v1", "Deployment", name, "cart");
        let room = room_with(cluster, name, "workloads")?;
        let cart = |app: &str, policy: &str| {
            format!(
                "apiVersion: apps/v1
kind: Deployment
metadata: {{name: cart, namespace: {name}{policy}}}
spec:
  selector: {{matchLabels: {{app: {app}}}}}
  template:
    metadata: {{labels: {{app: {app}}}}}
    spec: {{containers: [{{name: cart, image: \"registry.example.com/cart:1\"}}]}}
"
            )
        };
        room.declare("cart.yaml", &cart("cart", ""))?;
        let mut host = converged(&room, APP_OBJECTS + 1).await?;
        let uid = async || -> Result<Value> {
            Ok(cluster.api().require(&id).await?["metadata"]["uid"].clone())
        };
        let before = uid().await?;

        let mark = host.journal().mark()?;
        room.declare("cart.yaml", &cart("basket", ""))?;
        let line = pass(&mut host, mark, &id, "left").await?;
        ensure!(line.message().starts_with("immutable_field: /spec/selector"), "{line:?}");
        ensure!(uid().await? == before, "it was recreated unasked");

        // The object allows it, and the grant does not.
        let mark = host.journal().mark()?;
        let policy = ", annotations: {trimtab.dev/on-immutable: recreate}";
        room.declare("cart.yaml", &cart("basket", policy))?;
        let line = pass(&mut host, mark, &id, "refused").await?;
        ensure!(line.0["refusals"][0]["reason"] == "ActionNotGranted", "{line:?}");
        ensure!(uid().await? == before, "it was recreated without a grant");

        let mark = host.journal().mark()?;
        let grant = room.grant_of("workloads.wasm", "enforce")?;
        let wider = grant.replace("\"apply-desired\"", "\"apply-desired\", \"recreate\"");
        room.grant("workloads.wasm", &wider)?;
        pass(&mut host, mark, &id, "created").await?;
        let live = cluster.api().require(&id).await?;
        ensure!(uid().await? != before, "{live}");
        ensure!(live["spec"]["selector"]["matchLabels"]["app"] == "basket", "{live}");
        Ok(())
    })
}

#[test]
fn the_rules_of_an_aggregated_role_are_left_to_its_controller() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "aggregated";
        let id = Id::new("rbac.authorization.k8s.io/v1", "ClusterRole", "", name);
        let room = room_with(cluster, name, "access")?;
        room.declare(
            "role.yaml",
            &format!(
                "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {name}, labels: {{team: a}}}}
aggregationRule: {{clusterRoleSelectors: [{{matchLabels: {{\"{name}.example.com/to\": \"true\"}}}}]}}
rules: []
"
            ),
        )?;
        let mut host = converged(&room, APP_OBJECTS + 1).await?;
        let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
        let controller = cluster.user("clusterrole-aggregation-controller")?;
        controller.merge(&id, &json!({"rules": rules})).await?;
        let mark = host.journal().mark()?;
        cluster.user("alice")?.merge(&id, &json!({"metadata": {"labels": {"team": "b"}}})).await?;
        let line = pass(&mut host, mark, &id, "corrected").await?;
        ensure!(line.paths() == ["/metadata/labels/team"], "{line:?}");
        let live = cluster.api().require(&id).await?;
        ensure!(live["rules"] == rules && live["metadata"]["labels"]["team"] == "a", "{live}");
        Ok(())
    })
}

#[test]
fn what_the_api_server_worked_out_or_allocated_follows_what_is_declared() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "workedout";
        let room = room_with(cluster, name, "networking")?;
        let policy = |egress: &str| {
            format!(
                "apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: web, namespace: {name}}}
spec: {{podSelector: {{}}{egress}}}
"
            )
        };
        let edge = |kind: &str| {
            format!(
                "apiVersion: v1
kind: Service
metadata: {{name: edge, namespace: {name}}}
spec: {{type: {kind}, selector: {{app: web}}, ports: [{{name: http, port: 80}}]}}
"
            )
        };
        room.declare("policy.yaml", &policy(", egress: [{ports: [{port: 53}]}]"))?;
        room.declare("edge.yaml", &edge("NodePort"))?;
        let mut host = converged(&room, APP_OBJECTS + 2).await?;
        let (policy_id, edge_id) = (
            Id::new("networking.k8s.io/v1", "NetworkPolicy", name, "web"),
            Id::new("v1", "Service", name, "edge"),
        );
        let types = async || -> Result<Value> {
            Ok(cluster.api().require(&policy_id).await?["spec"]["policyTypes"].clone())
        };
        ensure!(types().await? == json!(["Ingress", "Egress"]), "{}", types().await?);
        let address = cluster.api().require(&edge_id).await?["spec"]["clusterIP"].clone();

        // Without its egress rules it would forbid all of it.
        let mark = host.journal().mark()?;
        room.declare("policy.yaml", &policy(""))?;
        pass(&mut host, mark, &policy_id, "corrected").await?;
        ensure!(types().await? == json!(["Ingress"]), "{}", types().await?);
        // And with new ones it would not enforce them.
        let mark = host.journal().mark()?;
        room.declare("policy.yaml", &policy(", egress: [{ports: [{port: 54}]}]"))?;
        pass(&mut host, mark, &policy_id, "corrected").await?;
        ensure!(types().await? == json!(["Ingress", "Egress"]), "{}", types().await?);

        let mark = host.journal().mark()?;
        room.declare("edge.yaml", &edge("ClusterIP"))?;
        pass(&mut host, mark, &edge_id, "corrected").await?;
        let live = cluster.api().require(&edge_id).await?;
        ensure!(live["spec"]["clusterIP"] == address, "another address: {live}");
        ensure!(
            live["spec"]["ports"][0]["nodePort"].is_null(),
            "the port is still allocated: {live}"
        );
        Ok(())
    })
}

#[test]
fn the_example_is_held_by_all_our_plugins_together() -> Test {
    run(async {
        // Of its own: the namespace and the kind of the example are there once in a cluster.
        let cluster = Cluster::start(&say).await?;
        let room = cluster.room("together")?;
        copy_tree(&workspace().join("examples/shop"), &room.source())?;
        let ours = Built::ours()?;
        for plugin in &ours {
            room.drop_our_plugin(plugin)?;
            room.enforce(&format!("{plugin}.wasm"))?;
        }
        let round = room.once().await?;
        ensure!(round.status == 0, "{}\n{}", round.summary, round.log);
        let lines = room.journal().lines()?;
        let serving: BTreeSet<&str> = lines
            .iter()
            .filter(|line| line.outcome() == "created")
            .filter_map(|line| line.0["plugin"]["name"].as_str())
            .collect();
        let expected: BTreeSet<&str> =
            ours.iter().map(String::as_str).filter(|name| *name != "storage").collect();
        ensure!(serving == expected, "the example has objects for all but storage: {serving:?}");

        let alice = cluster.user("alice")?;
        let mut drifted = Vec::new();
        for id in objects(&room.source())? {
            match drift(&alice, &id, "trimtab").await? {
                Ok(drift) => drifted.push(drift),
                Err(reason) => say(&format!("no drift for {id}: {reason}")),
            }
        }
        ensure!(drifted.len() >= 20, "only {} objects drifted", drifted.len());
        let round = room.once().await?;
        ensure!(round.status == 0, "{}\n{}", round.summary, round.log);
        for drift in drifted {
            let live = cluster.api().require(&drift.id).await?;
            let found = live.pointer(&drift.pointer);
            ensure!(found == Some(&drift.before), "{drift:?} is not corrected: {found:?}");
        }
        Ok(())
    })
}

//! Values that the cluster does not keep: webhooks that overwrite, controllers that put theirs
//! back, dry runs that are refused. Never an endless fight, and never in sync.

use crate::world::{
    APP_OBJECTS, Test, converged, diff, pass, room_with_app, run, settings, shared,
};
use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use trimtab_system_tests::{Cluster, Id, Line, PATIENCE, Request, Webhook, until};

/// A webhook that sets `data.color` of this namespace's ConfigMaps, and is in force.
async fn coloured(cluster: &Cluster, namespace: &str, in_dry_runs: bool) -> Result<(Webhook, Id)> {
    let webhook = Webhook::start(move |request| {
        let color = &request["object"]["data"]["color"];
        if color.is_null() || (request["dryRun"] == true && !in_dry_runs) {
            return vec![];
        }
        vec![json!({"op": "replace", "path": "/data/color", "value": "red"})]
    })
    .await?;
    let configuration = webhook.configuration(namespace, namespace, &["configmaps"]);
    let id = Id::of(&configuration).context("no name")?;
    let admin = cluster.user("admin")?;
    admin.create(&configuration).await?;
    // Another object of the namespace tells when the API server calls it.
    let probe = Id::new("v1", "ConfigMap", namespace, "probe");
    admin
        .create(&json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "probe", "namespace": namespace}, "data": {"color": "green"}}))
        .await?;
    until("the webhook is called", PATIENCE, async || {
        let patch = json!({"metadata": {"labels": {"touched": "yes"}}, "data": {"color": "green"}});
        let object = admin.merge(&probe, &patch).await?;
        ensure!(object["data"]["color"] == "red", "not yet");
        Ok(())
    })
    .await?;
    Ok((webhook, id))
}

/// The host's successful writes of this object.
async fn writes(cluster: &Cluster, user: &str, id: &Id) -> Result<Vec<Request>> {
    let mut all = cluster.audit().writes_by(user).await?;
    all.retain(|request| request.name == id.name && request.succeeded());
    Ok(all)
}

fn finding<'l>(line: &'l Line, name: &str) -> Result<&'l Value> {
    let findings = line.0["findings"].as_array();
    let found = findings.into_iter().flatten().find(|finding| finding["name"] == name);
    found.with_context(|| format!("no finding {name} in {line:?}"))
}

#[test]
fn a_value_that_a_webhook_overwrites_is_told_once_with_its_name_and_not_written_for() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "overwritten";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let (_webhook, configuration) = coloured(cluster, name, true).await?;
        let before = writes(cluster, name, &settings(name)).await?.len();
        let mark = host.journal().mark()?;
        let alice = cluster.user("alice")?;
        alice.merge(&settings(name), &json!({"data": {"color": "red"}})).await?;
        let line = pass(&mut host, mark, &settings(name), "not-kept").await?;
        let told = finding(&line, "desired-value-not-kept")?;
        ensure!(told["path"] == "/data/color", "{told}");
        let message = told["message"].as_str().unwrap_or_default();
        ensure!(message.contains(&format!("MutatingWebhookConfiguration {name}")), "{message}");
        ensure!(line.paths() == ["/data/color"], "{line:?}");

        // It looks again by itself, and neither writes nor tells the same twice.
        until("it was rehearsed again", PATIENCE, async || {
            let all = cluster.audit().by(name).await?;
            let dry = all.iter().filter(|it| it.rehearses() && it.name == "settings").count();
            ensure!(dry >= 4, "{dry} dry runs");
            Ok(())
        })
        .await?;
        let lines = host.journal().lines()?;
        let told = lines.iter().filter(|line| line.outcome() == "not-kept").count();
        ensure!(told == 1, "told {told} times");
        let after = writes(cluster, name, &settings(name)).await?.len();
        ensure!(after == before, "it was written {} times", after - before);

        // What can be corrected beside it is, and the rest is told with that.
        let mark = host.journal().mark()?;
        alice.merge(&settings(name), &json!({"data": {"size": "small"}})).await?;
        let line = pass(&mut host, mark, &settings(name), "corrected").await?;
        finding(&line, "desired-value-not-kept")?;
        let live = cluster.api().require(&settings(name)).await?;
        ensure!(live["data"] == json!({"color": "red", "size": "large"}), "{live}");

        // A command that may not write says so too, and does not call it in sync.
        let (status, text) = diff(&room, &["-o", "json"])?;
        let answer: Value = serde_json::from_str(&text)?;
        let objects = answer["objects"].as_array().into_iter().flatten();
        let drifted: Vec<_> = objects.filter(|object| object["verdict"] != "in-sync").collect();
        ensure!(status == 1 && drifted.len() == 1, "{status} {drifted:?}");
        ensure!(
            drifted[0]["verdict"] == "drift"
                && drifted[0]["differences"][0]["path"] == "/data/color",
            "{drifted:?}"
        );

        cluster.user("admin")?.delete(&configuration).await?;
        pass(&mut host, mark, &settings(name), "corrected").await?;
        until("it is as declared", PATIENCE, async || {
            alice.merge(&settings(name), &json!({"metadata": {"labels": {"x": "y"}}})).await?;
            let live = cluster.api().require(&settings(name)).await?;
            ensure!(live["data"]["color"] == "blue", "{live}");
            Ok(())
        })
        .await
    })
}

/// A policy that sets `data.color` of ConfigMaps, and its bindings: in force in one namespace.
async fn policies(cluster: &Cluster, namespace: &str) -> Result<Vec<Id>> {
    let admin = cluster.user("admin")?;
    let api = "admissionregistration.k8s.io/v1";
    let expression = "Object{data: {\"color\": \"red\"}}";
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        "operations": ["UPDATE"]}]);
    let policy = |name: &str, condition: &str| {
        json!({"apiVersion": api, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name},
            "spec": {"reinvocationPolicy": "IfNeeded", "matchConstraints": {"resourceRules": rules},
                "matchConditions": [{"name": "c", "expression": condition}],
                "mutations": [{"patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": expression}}]}})
    };
    let binding = |name: &str, policy: &str, label: &str, value: &str| {
        json!({"apiVersion": api, "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": name}, "spec": {"policyName": policy,
                "matchResources": {"namespaceSelector": {"matchLabels": {label: value}}}}})
    };
    let own = "kubernetes.io/metadata.name";
    let painter = format!("{namespace}-painter");
    let spared = format!("{namespace}-spared");
    let mut all = Vec::new();
    for object in [
        policy(&painter, "has(object.data) && \"color\" in object.data"),
        binding(&format!("{namespace}-here"), &painter, own, namespace),
        binding(&format!("{namespace}-elsewhere"), &painter, own, "elsewhere"),
        binding(&format!("{namespace}-labelled"), &painter, "paint", "yes"),
        policy(&spared, "request.name != \"settings\" && request.namespace == \"none\""),
        binding(&format!("{namespace}-spares"), &spared, own, namespace),
    ] {
        admin.create(&object).await?;
        all.push(Id::of(&object).context("no name")?);
    }
    Ok(all)
}

#[test]
fn a_value_that_a_policy_overwrites_is_told_with_the_policy_and_the_binding_in_force() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "painted";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let all = policies(cluster, name).await?;
        let alice = cluster.user("alice")?;
        until("the policy is in force", PATIENCE, async || {
            let probe = json!({"metadata": {"labels": {"touched": "yes"}}});
            let live = alice.merge(&settings(name), &probe).await?;
            alice
                .merge(&settings(name), &json!({"metadata": {"labels": {"touched": null}}}))
                .await?;
            ensure!(live["data"]["color"] == "red", "not yet");
            Ok(())
        })
        .await?;
        let line = pass(&mut host, 0, &settings(name), "not-kept").await?;
        let told = finding(&line, "desired-value-not-kept")?;
        let message = told["message"].as_str().unwrap_or_default();
        let named = format!(
            "MutatingAdmissionPolicy {name}-painter (MutatingAdmissionPolicyBinding {name}-here) (perhaps: its match conditions are not evaluated here)"
        );
        ensure!(message.contains(&named), "{message}");
        for innocent in ["elsewhere", "labelled", "spare"] {
            ensure!(!message.contains(&format!("{name}-{innocent}")), "{innocent}: {message}");
        }
        let admin = cluster.user("admin")?;
        for id in all {
            admin.delete(&id).await?;
        }
        Ok(())
    })
}

#[test]
fn a_webhook_that_acts_otherwise_in_dry_runs_is_found_after_the_write_and_not_fought() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "two-faced";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let (_webhook, configuration) = coloured(cluster, name, false).await?;
        let before = writes(cluster, name, &settings(name)).await?.len();
        let mark = host.journal().mark()?;
        cluster.user("alice")?.merge(&settings(name), &json!({"data": {"color": "red"}})).await?;
        let line = pass(&mut host, mark, &settings(name), "corrected").await?;
        finding(&line, "desired-value-not-kept")?;
        // Something later ends, so that whatever it would have done is done.
        let mark = host.journal().mark()?;
        let service = crate::world::service(name);
        cluster
            .user("alice")?
            .merge(&service, &json!({"spec": {"selector": {"app": "other"}}}))
            .await?;
        pass(&mut host, mark, &service, "corrected").await?;
        let wrote = writes(cluster, name, &settings(name)).await?.len() - before;
        ensure!(wrote == 1, "it was written {wrote} times");
        cluster.user("admin")?.delete(&configuration).await
    })
}

#[test]
fn a_controller_that_puts_its_value_back_each_time_is_named_and_not_fought_for_ever() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "fought";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let enforcer = cluster.user("enforcer")?;
        let id = settings(name);
        let mark = host.journal().mark()?;
        let line: Arc<Line> = {
            let put_back = async {
                loop {
                    let live = enforcer.require(&id).await?;
                    if live["data"]["color"] != "red" {
                        enforcer.merge(&id, &json!({"data": {"color": "red"}})).await?;
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
                #[expect(unreachable_code, reason = "it ends by being dropped")]
                Ok::<(), anyhow::Error>(())
            };
            tokio::select! {
                ended = put_back => anyhow::bail!("the enforcer ended: {ended:?}"),
                line = pass(&mut host, mark, &id, "contested") => line?,
            }
        };
        let told = finding(&line, "fight-detected")?;
        let message = told["message"].as_str().unwrap_or_default();
        ensure!(message.contains("enforcer") && message.contains("/data/color"), "{message}");

        // Its value stands, other events of the object change nothing and are not told.
        let wrote = writes(cluster, name, &id).await?.len();
        let mark = host.journal().mark()?;
        for n in 0..3 {
            let label = json!({"metadata": {"annotations": {"n": n.to_string()}}});
            enforcer.merge(&id, &label).await?;
        }
        // Another difference is another matter.
        enforcer.merge(&id, &json!({"data": {"size": "small"}})).await?;
        pass(&mut host, mark, &id, "corrected").await?;
        let lines = host.journal().lines()?;
        let told = lines.iter().filter(|line| line.outcome() == "contested").count();
        ensure!(told == 1, "told {told} times");
        let after = writes(cluster, name, &id).await?.len();
        ensure!(after == wrote + 1, "it was written {} times", after - wrote);
        Ok(())
    })
}

#[test]
fn where_the_dry_run_is_forbidden_the_verdict_is_unknown_with_the_missing_rule() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "no-patch";
        let setup = cluster.user("setup")?;
        let namespaced = |kind: &str, spec: Value| {
            let mut object = json!({"apiVersion": "v1", "kind": kind});
            object
                .as_object_mut()
                .expect("an object")
                .extend(spec.as_object().cloned().unwrap_or_default());
            object
        };
        setup.create(&namespaced("Namespace", json!({"metadata": {"name": name}}))).await?;
        let theirs = json!({"metadata": {"name": "settings", "namespace": name},
            "data": {"color": "red"}});
        setup.create(&namespaced("ConfigMap", theirs)).await?;
        let rbac = "rbac.authorization.k8s.io";
        setup
            .create(&json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole",
                "metadata": {"name": name},
                "rules": [{"apiGroups": [""], "resources": ["configmaps"],
                    "verbs": ["get", "list", "watch"]}]}))
            .await?;
        setup
            .create(&json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding",
                "metadata": {"name": name},
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "User", "apiGroup": rbac, "name": name}]}))
            .await?;

        let room = cluster.room(name)?.with_generic()?;
        let kubeconfig = room.kubeconfig.clone().context("a kubeconfig")?;
        let text = std::fs::read_to_string(&kubeconfig)?;
        std::fs::write(&kubeconfig, text.replace("system:masters", "system:authenticated"))?;
        room.declare(
            "settings.yaml",
            &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, namespace: {name}}}\ndata: {{color: blue}}\n"),
        )?;
        let round = room.once().await?;
        ensure!(round.status == 1, "status {}: {}", round.status, round.summary);
        let unsettled = round.unsettled();
        let [(_, outcome, reason)] = &unsettled[..] else { anyhow::bail!("{unsettled:?}") };
        ensure!(outcome == "unknown", "{unsettled:?}");
        for part in ["dry run", "verbs: [create, patch]", "configmaps"] {
            ensure!(reason.contains(part), "{part} is not in {reason}");
        }
        let live = cluster.api().require(&settings(name)).await?;
        ensure!(live["data"]["color"] == "red", "{live}");
        let lines = room.journal().lines()?;
        let told = lines.iter().filter(|line| line.outcome() == "unknown").count();
        ensure!(told == 1, "the same was told {told} times");
        let path = format!("/apis/{rbac}/v1/clusterrolebindings/{name}");
        setup.send(Method::DELETE, &path, None, None).await?;
        Ok(())
    })
}

//! Ignore rules: what is somebody else's to set is no drift and is never written.

use crate::world::{
    APP_OBJECTS, Test, app, converged, deployment, pass, prove_alive, room_with_app, run, settings,
    shared,
};
use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use std::process::{Command, Output};
use trimtab_system_tests::{Api, Id, Room};

/// Scales the Deployment as an autoscaler does: through its subresource.
async fn scale(api: &Api, namespace: &str, replicas: u32) -> Result<()> {
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": "web", "namespace": namespace}, "spec": {"replicas": replicas}});
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/web/scale");
    let path = format!("{path}?fieldManager=autoscaler");
    api.send(Method::PUT, &path, Some("application/json"), Some(&scale)).await?;
    Ok(())
}

/// The application with this annotation on its Deployment.
fn app_ignoring(namespace: &str, rules: &str) -> String {
    app(namespace).replace(
        "kind: Deployment\nmetadata: {",
        &format!(
            "kind: Deployment\nmetadata: {{annotations: {{trimtab.dev/ignore: \"{rules}\"}}, "
        ),
    )
}

fn image(object: &Value) -> &Value {
    &object["spec"]["template"]["spec"]["containers"][0]["image"]
}

/// Whether we own the field by our applies.
fn is_ours(object: &Value, field: &str) -> bool {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries
        .filter(|entry| entry["manager"] == "trimtab")
        .any(|entry| entry["fieldsV1"].pointer(field).is_some())
}

#[test]
fn an_ignored_field_is_made_with_the_object_and_then_never_written_though_others_drift() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "ignore-annotation";
        let room = cluster.room(name)?.with_generic()?;
        room.declare("app.yaml", &app_ignoring(name, "/spec/replicas"))?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let live = cluster.api().require(&deployment(name)).await?;
        ensure!(live["spec"]["replicas"] == 2, "made as it is declared: {live}");

        scale(&cluster.user("autoscaler")?, name, 7).await?;
        let mark = host.journal().mark()?;
        let alice = cluster.user("alice")?;
        alice
            .edit(&deployment(name), |object| {
                object["spec"]["template"]["spec"]["containers"][0]["image"] = "evil:1".into();
            })
            .await?;
        let line = pass(&mut host, mark, &deployment(name), "corrected").await?;
        ensure!(line.paths().iter().all(|path| path.ends_with("/image")), "{line:?}");
        let live = cluster.api().require(&deployment(name)).await?;
        ensure!(image(&live) == "registry.example.com/web:1", "{live}");
        ensure!(live["spec"]["replicas"] == 7, "it was scaled back: {live}");
        ensure!(!is_ours(&live, "/f:spec/f:replicas"), "we took it over: {live}");
        Ok(())
    })
}

/// Left out of an apply, a field of ours would be gone: replicas would drop to their default.
#[test]
fn a_field_that_we_applied_stays_as_it_is_once_a_rule_ignores_it() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "ignore-ours";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;

        let mark = host.journal().mark()?;
        let changed = app_ignoring(name, "/spec/replicas")
            .replace("replicas: 2", "replicas: 5")
            .replace("web:1", "web:2")
            .replace(
                "name: settings,",
                "name: settings, annotations: {trimtab.dev/ignore: /data/size},",
            )
            .replace("  size: large\n", "");
        room.declare("app.yaml", &changed)?;
        pass(&mut host, mark, &deployment(name), "corrected").await?;
        let live = cluster.api().require(&deployment(name)).await?;
        ensure!(image(&live) == "registry.example.com/web:2", "{live}");
        ensure!(live["spec"]["replicas"] == 2, "{live}");
        ensure!(is_ours(&live, "/f:spec/f:replicas"), "we let go of it: {live}");

        // Nor is one taken away that is declared no more.
        pass(&mut host, mark, &settings(name), "corrected").await?;
        let live = cluster.api().require(&settings(name)).await?;
        ensure!(live["data"] == json!({"color": "blue", "size": "large"}), "{live}");

        // Whoever sets it then has it: we do not write an old value back.
        scale(&cluster.user("autoscaler")?, name, 7).await?;
        let mark = host.journal().mark()?;
        room.declare("app.yaml", &changed.replace("web:2", "web:3"))?;
        pass(&mut host, mark, &deployment(name), "corrected").await?;
        let live = cluster.api().require(&deployment(name)).await?;
        ensure!(live["spec"]["replicas"] == 7, "{live}");
        ensure!(image(&live) == "registry.example.com/web:3", "{live}");
        Ok(())
    })
}

#[test]
fn rules_of_a_configuration_ignore_by_manager_and_by_wildcard_in_the_objects_they_name() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "ignore-config";
        let mut room = cluster.room(name)?.with_generic()?;
        room.declare("app.yaml", &app(name))?;
        let config = room.path().join("config.yaml");
        std::fs::write(
            &config,
            "apiVersion: trimtab.dev/v1alpha1
kind: Config
sources:
  - name: app
    path: source
    ignore:
      - managers: [injector]
        kinds: [ConfigMap]
      - paths: ['/spec/template/spec/containers/[name=*]/image']
        kinds: [Deployment.apps]
        names: [web]
",
        )?;
        room.config = Some(config);
        let mut host = converged(&room, APP_OBJECTS).await?;

        let injector = cluster.user("injector")?;
        injector.merge(&settings(name), &json!({"data": {"injected": "1", "size": "s"}})).await?;
        prove_alive(cluster, &mut host, name).await?;
        let live = cluster.api().require(&settings(name)).await?;
        let expected = json!({"color": "blue", "size": "s", "injected": "1"});
        ensure!(live["data"] == expected, "{live}");
        let mark = host.journal().mark()?;
        cluster.user("bob")?.merge(&settings(name), &json!({"data": {"stray": "1"}})).await?;
        pass(&mut host, mark, &settings(name), "corrected").await?;
        let live = cluster.api().require(&settings(name)).await?;
        ensure!(live["data"] == expected, "only the injector's is ignored: {live}");

        let mark = host.journal().mark()?;
        let alice = cluster.user("alice")?;
        alice
            .edit(&deployment(name), |object| {
                object["spec"]["template"]["spec"]["containers"][0]["image"] = "other:1".into();
                object["spec"]["replicas"] = 9.into();
            })
            .await?;
        let line = pass(&mut host, mark, &deployment(name), "corrected").await?;
        ensure!(line.paths() == ["/spec/replicas"], "{line:?}");
        let live = cluster.api().require(&deployment(name)).await?;
        ensure!(image(&live) == "other:1" && live["spec"]["replicas"] == 2, "{live}");
        let sources = host.journal().lines()?;
        let source = sources.iter().find(|line| line.kind() == "source").context("no source")?;
        ensure!(source.0["source"] == "app", "{source:?}");
        Ok(())
    })
}

#[test]
fn in_a_list_that_is_replaced_as_a_whole_an_ignored_part_of_an_element_stays() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "ignore-atomic";
        let role = Id::new("rbac.authorization.k8s.io/v1", "Role", name, "reader");
        let mut room = room_with_app(cluster, name)?;
        room.arguments = vec!["--ignore".into(), "/rules/*/verbs".into()];
        let mut host = converged(&room, APP_OBJECTS).await?;
        let mark = host.journal().mark()?;
        let alice = cluster.user("alice")?;
        alice
            .edit(&role, |object| {
                object["rules"][0]["verbs"] = json!(["get", "list"]);
                object["rules"][0]["resources"] = json!(["secrets"]);
            })
            .await?;
        pass(&mut host, mark, &role, "corrected").await?;
        let live = cluster.api().require(&role).await?;
        ensure!(live["rules"][0]["resources"] == json!(["configmaps"]), "{live}");
        ensure!(live["rules"][0]["verbs"] == json!(["get", "list"]), "{live}");
        Ok(())
    })
}

/// Applying a field that the autoscaler owns would be a conflict, and by force scale it back.
#[test]
fn what_an_autoscaler_owns_is_no_conflict_and_no_drift_under_a_rule_by_its_name() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "ignore-hpa";
        let setup = cluster.user("setup")?;
        let web = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": name},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers":
                    [{"name": "web", "image": "registry.example.com/web:1"}]}}}});
        setup
            .create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            .await?;
        setup.create(&web).await?;
        scale(&cluster.user("autoscaler")?, name, 7).await?;
        let labelled = app(name).replace(
            "kind: Deployment\nmetadata: {",
            "kind: Deployment\nmetadata: {labels: {tier: front}, ",
        );
        let mut room = cluster.room(name)?.with_generic()?;
        room.declare("app.yaml", &labelled)?;
        let round = room.once().await?;
        let conflict = round
            .unsettled()
            .iter()
            .any(|(object, outcome, _)| object.contains("Deployment") && outcome == "conflict");
        ensure!(conflict, "without a rule: {:?}", round.unsettled());

        room.arguments = vec!["--ignore".into(), "by autoscaler".into()];
        let round = room.once().await?;
        ensure!(round.status == 0, "{}\n{}", round.summary, round.log);
        let live = cluster.api().require(&deployment(name)).await?;
        ensure!(live["metadata"]["labels"]["tier"] == "front", "{live}");
        ensure!(live["spec"]["replicas"] == 7, "{live}");
        ensure!(!is_ours(&live, "/f:spec/f:replicas"), "{live}");
        Ok(())
    })
}

#[test]
fn a_rule_that_cannot_be_read_refuses_its_object_alone_or_the_start() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "ignore-wrong";
        let mut room = cluster.room(name)?.with_generic()?;
        room.declare("app.yaml", &app_ignoring(name, "spec/replicas"))?;
        let round = room.once().await?;
        ensure!(round.status == 1, "status {}: {}", round.status, round.summary);
        let unsettled = round.unsettled();
        let [(object, outcome, reason)] = &unsettled[..] else {
            anyhow::bail!("one object is wrong, and these are named: {unsettled:?}\n{}", round.log)
        };
        ensure!(object.contains("Deployment") && outcome == "rejected", "{unsettled:?}");
        let place = format!("annotation trimtab.dev/ignore of Deployment.apps {name}/web");
        ensure!(reason.contains(&place) && reason.contains("begins with '/'"), "{reason}");
        ensure!(cluster.api().get(&deployment(name)).await?.is_none(), "it was made");

        let config = room.path().join("config.yaml");
        let text = "apiVersion: trimtab.dev/v1alpha1\nkind: Config\nsources:\n  - name: a\n    \
                    path: source\n    ignore:\n      - paths: [spec]\n";
        std::fs::write(&config, text)?;
        room.config = Some(config);
        let round = room.once().await?;
        ensure!(round.status == 2 && round.log.contains("config.yaml:7"), "{}", round.log);
        Ok(())
    })
}

#[test]
fn diff_leaves_out_what_is_ignored_counts_it_and_names_rules_that_lead_nowhere() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "ignore-diff";
        let room = room_with_app(cluster, name)?;
        let round = room.once().await?;
        ensure!(round.status == 0, "{}", round.log);
        scale(&cluster.user("autoscaler")?, name, 7).await?;

        let plain = diff(&room, &["-o", "unified"])?;
        let text = String::from_utf8_lossy(&plain.stdout);
        ensure!(plain.status.code() == Some(1), "{plain:?}");
        ensure!(
            text.starts_with(&format!("--- live/apps/v1/Deployment/{name}/web\n"))
                && text.contains("\n-  replicas: 7\n+  replicas: 2\n")
                && text.lines().filter(|line| line.starts_with(['-', '+'])).count() == 4,
            "{text}"
        );
        cluster.user("bob")?.merge(&settings(name), &json!({"data": {"size": "s"}})).await?;
        let table = diff(&room, &[])?;
        let text = String::from_utf8_lossy(&table.stdout);
        ensure!(text.contains("written by autoscaler (Update, subresource scale)"), "{text}");
        ensure!(text.contains("written by bob (Update) at 20"), "{text}");
        ensure!(!text.contains('\x1b'), "stdout is no terminal: {text}");

        let rules = ["/spec/replicas", "/spec/replcas", "by bob"];
        let rules: Vec<&str> = rules.into_iter().flat_map(|rule| ["--ignore", rule]).collect();
        let ignoring = diff(&room, &[&rules[..], &["-o", "json"]].concat())?;
        ensure!(ignoring.status.code() == Some(0), "{ignoring:?}");
        let answer: Value = serde_json::from_slice(&ignoring.stdout)?;
        ensure!(
            answer["ignored"]
                == json!({"/spec/replcas (--ignore)": 0, "/spec/replicas (--ignore)": 1,
                    "by bob (--ignore)": 1}),
            "{answer}"
        );
        let told = String::from_utf8_lossy(&ignoring.stderr);
        ensure!(
            told.contains("ignore rule /spec/replcas (--ignore) leads to no field")
                && !told.contains("rule /spec/replicas"),
            "{told}"
        );
        let live = cluster.api().require(&deployment(name)).await?;
        ensure!(live["spec"]["replicas"] == 7, "diff wrote: {live}");
        Ok(())
    })
}

/// `trimtab diff` of a room's source against its cluster.
fn diff(room: &Room, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(&room.built().trimtab);
    command.arg("diff").arg("--source").arg(room.source());
    command.arg("--kubeconfig").arg(room.kubeconfig.as_ref().context("no kubeconfig")?);
    Ok(command.args(arguments).output()?)
}

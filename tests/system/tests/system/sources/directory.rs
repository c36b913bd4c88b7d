//! The directory as a source: what is broken in it, and kinds that come later.

use crate::world::{
    APP_OBJECTS, Test, app, converged, deployment, none, pass, prove_alive, room_with_app, run,
    shared,
};
use anyhow::{Result, ensure};
use trimtab_system_tests::{Cluster, Host, Id, documents};

/// A CRD of this group and a resource of it.
fn widget(group: &str, namespace: &str) -> (String, String) {
    let definition = format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{kind: Widget, singular: widget, plural: widgets}}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                size: {{type: integer}}
"
    );
    let resource = format!(
        "apiVersion: {group}/v1
kind: Widget
metadata: {{name: first, namespace: {namespace}, labels: {{app: web}}}}
spec: {{size: 3}}
"
    );
    (definition, resource)
}

async fn refused(host: &mut Host, mark: usize, names: &[&str]) -> Result<String> {
    let line = host
        .line(format!("the source is refused, naming {names:?}"), mark, |line| {
            let problems = line.problems().join("\n");
            line.kind() == "source" && names.iter().all(|name| problems.contains(name))
        })
        .await?;
    Ok(line.problems().join("\n"))
}

async fn nothing_deleted(cluster: &Cluster, user: &str) -> Result<()> {
    let mut deletes = cluster.audit().writes_by(user).await?;
    deletes.retain(|request| request.verb.starts_with("delete"));
    none("the host deleted", &deletes)
}

#[test]
fn a_broken_file_keeps_the_last_good_state_prunes_nothing_and_is_named_with_its_line() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "broken";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;

        let mark = host.journal().mark()?;
        room.declare(
            "deep/er/extra.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: [x\n",
        )?;
        // Good content beside the broken file is not taken either: the source is one whole.
        room.declare("app.yaml", &app(name).replace("replicas: 2", "replicas: 7"))?;
        let problems = refused(&mut host, mark, &["deep/er/extra.yaml"]).await?;
        let line =
            problems.split("extra.yaml:").nth(1).and_then(|rest| rest.split([':', ' ']).next());
        let line: usize = line.unwrap_or_default().parse().unwrap_or_default();
        ensure!((4..=5).contains(&line), "no line of the file is named: {problems}");
        ensure!(host.log()?.contains("extra.yaml"), "{}", host.log()?);
        prove_alive(cluster, &mut host, name).await?;
        let live = cluster.api().require(&deployment(name)).await?;
        ensure!(live["spec"]["replicas"] == 2, "half of a broken source was taken: {live}");

        room.withdraw("deep/er/extra.yaml")?;
        pass(&mut host, mark, &deployment(name), "corrected").await?;
        let live = cluster.api().require(&deployment(name)).await?;
        ensure!(live["spec"]["replicas"] == 7, "{live}");
        nothing_deleted(cluster, name).await
    })
}

#[test]
fn a_source_that_becomes_empty_or_goes_away_prunes_nothing() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "emptied";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let mark = host.journal().mark()?;
        room.withdraw("app.yaml")?;
        host.line("the host takes notice", mark, |line| line.kind() == "source").await?;
        std::fs::remove_dir_all(room.source())?;
        std::fs::create_dir(room.source())?;
        room.declare("app.yaml", &app(name).replace("replicas: 2", "replicas: 6"))?;
        pass(&mut host, mark, &deployment(name), "corrected").await?;
        nothing_deleted(cluster, name).await
    })
}

#[test]
fn two_files_that_declare_one_object_are_refused_and_both_are_named() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "twice";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let mark = host.journal().mark()?;
        room.declare(
            "again.yaml",
            &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, namespace: {name}}}\ndata: {{color: green}}\n"),
        )?;
        refused(&mut host, mark, &["app.yaml", "again.yaml"]).await?;
        prove_alive(cluster, &mut host, name).await
    })
}

#[test]
fn a_definition_and_its_resource_converge_although_the_resource_is_read_first() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "together";
        let room = room_with_app(cluster, name)?;
        let (definition, resource) = widget("together.example.com", name);
        room.declare("a-resource.yaml", &resource)?;
        room.declare("b-definition.yaml", &definition)?;
        let round = room.once().await?;
        ensure!(round.status == 0, "{}\n{}", round.summary, round.log);
        let id = Id::new("together.example.com/v1", "Widget", name, "first");
        ensure!(cluster.api().require(&id).await?["spec"]["size"] == 3);
        Ok(())
    })
}

#[test]
fn a_kind_that_appears_later_is_picked_up_without_a_restart() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "later";
        let room = room_with_app(cluster, name)?;
        let (definition, resource) = widget("later.example.com", name);
        room.declare("resource.yaml", &resource)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        prove_alive(cluster, &mut host, name).await?;
        for object in documents(&definition)? {
            cluster.user("platform")?.apply(&object).await?;
        }
        let id = Id::new("later.example.com/v1", "Widget", name, "first");
        pass(&mut host, 0, &id, "created").await?;
        let mark = host.journal().mark()?;
        cluster.user("alice")?.merge(&id, &serde_json::json!({"spec": {"size": 4}})).await?;
        pass(&mut host, mark, &id, "corrected").await?;
        ensure!(cluster.api().require(&id).await?["spec"]["size"] == 3);
        Ok(())
    })
}

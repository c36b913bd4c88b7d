//! The plugin directory while the host runs.

use crate::world::{
    APP_OBJECTS, Test, converged, deployment, pass, prove_alive, room_with_app, run, settings,
    shared,
};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trimtab_system_tests::{
    Host, Room, bare_component, core_module, with_manifest, with_version, with_wasi,
};

/// Waits until the plugin list has this file so.
async fn listed(
    host: &mut Host,
    room: &Room,
    file: &str,
    is: impl Fn(&Value) -> bool,
) -> Result<Value> {
    host.until(format!("{file} is listed as asked"), async |_| {
        let status = room.plugin_status(file)?;
        ensure!(is(&status), "the plugin list says {status}");
        Ok(status)
    })
    .await
}

fn reason(status: &Value) -> &str {
    status["reason"].as_str().unwrap_or_default()
}

#[test]
fn of_two_plugins_that_claim_one_kind_the_second_is_refused_and_both_are_named() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "claims";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let generic = room.built().plugin_bytes("generic")?;
        let second = with_manifest(&generic, |manifest| manifest["name"] = "rival".into())?;
        room.drop_plugin("rival.wasm", &second)?;
        let status = listed(&mut host, &room, "rival.wasm", |it| it["state"] == "refused").await?;
        let both = reason(&status).contains("rival") && reason(&status).contains("generic.wasm");
        ensure!(both, "both are to be named: {status}");
        prove_alive(cluster, &mut host, name).await
    })
}

#[test]
fn a_file_that_is_no_plugin_is_refused_and_the_old_version_keeps_serving() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "damaged";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let generic = room.built().plugin_bytes("generic")?;
        let cases: [(&str, &[u8]); 5] = [
            ("truncated", &generic[..generic.len() / 2]),
            ("module", &core_module()),
            ("bare", &bare_component()),
            ("text", b"not a plugin at all"),
            ("empty", b""),
        ];
        for (case, bytes) in cases {
            let file = format!("{case}.wasm");
            room.drop_plugin(&file, bytes)?;
            let status = listed(&mut host, &room, &file, |it| it["state"] == "refused").await?;
            ensure!(!reason(&status).is_empty(), "{case}: {status}");
            std::fs::remove_file(room.plugins().join(&file))?;

            room.drop_plugin("generic.wasm", bytes)?;
            let status =
                listed(&mut host, &room, "generic.wasm", |it| !reason(it).is_empty()).await?;
            ensure!(status["state"] == "enforcing", "{case}: the old one is to serve on: {status}");
            prove_alive(cluster, &mut host, name).await?;
            room.drop_plugin("generic.wasm", &generic)?;
            listed(&mut host, &room, "generic.wasm", |it| reason(it).is_empty()).await?;
        }
        Ok(())
    })
}

#[test]
fn a_newer_build_takes_over_without_a_restart_and_observes_until_it_is_granted() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "newer";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let newer = with_version(&room.built().plugin_bytes("generic")?, "9.0.0")?;
        room.drop_plugin("generic.wasm", &newer)?;
        let observing = |it: &Value| it["version"] == "9.0.0" && it["state"] == "observing";
        listed(&mut host, &room, "generic.wasm", observing).await?;
        let mark = host.journal().mark()?;
        let bystander = cluster.user("bystander")?;
        bystander.merge(&settings(name), &json!({"data": {"color": "red"}})).await?;
        let line = pass(&mut host, mark, &settings(name), "observed").await?;
        ensure!(line.0["plugin"]["version"] == "9.0.0", "{line:?}");
        ensure!(cluster.api().require(&settings(name)).await?["data"]["color"] == "red");
        room.enforce("generic.wasm")?;
        let line = pass(&mut host, mark, &settings(name), "corrected").await?;
        ensure!(line.trigger() == "plugin", "{line:?}");
        ensure!(cluster.api().require(&settings(name)).await?["data"]["color"] == "blue");
        Ok(())
    })
}

#[test]
fn a_file_that_imports_wasi_is_served_only_while_its_grant_says_so() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "wasi";
        let room = room_with_app(cluster, name)?;
        let file = "generic.wasm";
        room.drop_plugin(file, &with_wasi(&room.built().plugin_bytes("generic")?)?)?;
        let plain = room.grant_of(file, "enforce")?;
        room.grant("with-wasi", &plain)?;
        let mut host = room.start()?;
        let refused = |it: &Value| {
            it["state"] == "refused" && reason(it).contains("wasi:random/random@0.2.3")
        };
        listed(&mut host, &room, file, refused).await?;

        // Said in the grant, which is taken up while the host runs.
        let path = room.plugins().join(file);
        let inspect: [&std::ffi::OsStr; 3] = ["plugin".as_ref(), "inspect".as_ref(), path.as_ref()];
        let shown = room.built().output(&inspect)?;
        ensure!(shown.contains("LOOK AT") && shown.contains("imports WASI"), "{shown}");
        room.grant("with-wasi", &format!("{plain}wasi: closed\n"))?;
        pass(&mut host, 0, &settings(name), "created").await?;
        listed(&mut host, &room, file, |it| it["state"] == "enforcing").await?;
        prove_alive(cluster, &mut host, name).await?;

        room.grant("with-wasi", &plain)?;
        listed(&mut host, &room, file, refused).await?;
        Ok(())
    })
}

#[test]
fn a_removed_plugin_claims_nothing_any_more_until_it_is_back() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "removed";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        std::fs::remove_file(room.plugins().join("generic.wasm"))?;
        host.until("generic.wasm is in the plugin list no more", async |_| {
            ensure!(room.plugin_status("generic.wasm").is_err(), "it still is");
            Ok(())
        })
        .await?;
        let mark = host.journal().mark()?;
        let bystander = cluster.user("bystander")?;
        bystander.merge(&settings(name), &json!({"data": {"color": "red"}})).await?;
        host.says("no plugin claims").await?;
        room.drop_our_plugin("generic")?;
        // Corrected because the plugin is back, and not before.
        let line = pass(&mut host, mark, &settings(name), "corrected").await?;
        ensure!(line.trigger() == "plugin", "{line:?}");
        Ok(())
    })
}

#[test]
fn a_plugin_that_claims_a_kind_by_name_serves_it_and_the_generic_one_the_rest() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "byname";
        let room = room_with_app(cluster, name)?;
        room.drop_our_plugin("workloads")?;
        room.enforce("workloads.wasm")?;
        let host = converged(&room, APP_OBJECTS).await?;
        let lines = host.journal().lines()?;
        let served_by = |id: &trimtab_system_tests::Id| {
            let pass = lines.iter().find(|line| line.is_about(id) && line.outcome() == "created");
            pass.and_then(|line| line.0["plugin"]["name"].as_str()).map(str::to_owned)
        };
        ensure!(served_by(&deployment(name)).as_deref() == Some("workloads"));
        ensure!(served_by(&settings(name)).as_deref() == Some("generic"));
        Ok(())
    })
}

#[test]
fn a_grant_for_one_namespace_reaches_no_other() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "narrow";
        let room = cluster.room(name)?;
        room.drop_our_plugin("generic")?;
        room.declare("app.yaml", &crate::world::app(name))?;
        room.declare("other.yaml", &crate::world::app("narrow-other"))?;
        for namespace in [name, "narrow-other"] {
            cluster
                .user("setup")?
                .apply(&json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": namespace}}))
                .await?;
        }
        let grant = room.grant_of("generic.wasm", "enforce")?;
        // Denials of cluster-scoped kinds cannot be lifted where none is granted.
        let allow = grant.lines().find(|line| line.starts_with("allow: ")).unwrap_or_default();
        let narrow = grant
            .replace(allow, "allow: [\"rbac\"]")
            .replace("namespaces: [\"*\"]", &format!("namespaces: [{name:?}]"))
            .replace("clusterScoped: true", "clusterScoped: false");
        ensure!(narrow != grant, "the grant reads otherwise than this test expects:\n{grant}");
        room.grant("narrow", &narrow)?;
        let round = room.once().await?;
        ensure!(round.status == 1, "status {}: {}", round.status, round.summary);
        let writes = cluster.audit().writes_by(name).await?;
        ensure!(writes.len() == APP_OBJECTS - 1, "{writes:#?}");
        ensure!(writes.iter().all(|request| request.namespace == name), "{writes:#?}");
        Ok(())
    })
}

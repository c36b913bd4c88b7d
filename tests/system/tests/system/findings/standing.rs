//! Sources that stop answering, plugins that are turned away, and Events that RBAC forbids.

use super::{evidence, found, nothing_found, words};
use crate::world::{APP_OBJECTS, Test, converged, room_with_app, run, settings, shared};
use anyhow::ensure;
use serde_json::json;
use trimtab_system_tests::{Id, with_version};

#[test]
fn a_source_that_is_gone_is_found_stale_once_and_over_when_it_is_back() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "found-stale";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let away = room.path().join("away");
        std::fs::rename(room.source(), &away)?;
        let stale = found(&mut host, &room, "stale", |it| it["source"].is_string()).await?;
        ensure!(stale["count"] == 1 && stale["ended"].is_null(), "{stale}");
        ensure!(evidence(&stale, "why").contains("does not exist"), "{stale}");
        std::fs::rename(&away, room.source())?;
        found(&mut host, &room, "stale", |it| it["ended"].is_string()).await?;
        let all = room.findings(&[])?;
        ensure!(all.len() == 1, "{:#?}", words(&all));
        host.stop().await?;
        Ok(())
    })
}

#[test]
fn an_unsigned_plugin_that_is_turned_away_is_found_and_the_one_in_service_is_not() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "found-unsigned";
        let mut room = room_with_app(cluster, name)?;
        let key = room.path().join("alice");
        let output = |arguments: &[&std::ffi::OsStr]| room.built().output(arguments);
        output(&["plugin".as_ref(), "keygen".as_ref(), key.as_os_str()])?;
        let (public, secret) = (key.with_extension("pub"), key.with_extension("key"));
        let file = room.plugins().join("generic.wasm");
        output(&[
            "plugin".as_ref(),
            "sign".as_ref(),
            "--key".as_ref(),
            secret.as_os_str(),
            file.as_os_str(),
        ])?;
        room.arguments = vec!["--require-signature".into(), public.into_os_string()];
        let mut host = converged(&room, APP_OBJECTS).await?;
        nothing_found(&room)?;
        let newer = with_version(&room.built().plugin_bytes("generic")?, "9.0.0")?;
        room.drop_plugin("generic.wasm", &newer)?;
        let altered = found(&mut host, &room, "trust", |it| it["plugin"] == "generic").await?;
        ensure!(evidence(&altered, "sort") == "altered", "{altered}");
        ensure!(altered["severity"] == "critical", "{altered}");
        room.drop_plugin("other.wasm", &newer)?;
        let unsigned = found(&mut host, &room, "trust", |it| it["plugin"] == "other.wasm").await?;
        ensure!(evidence(&unsigned, "sort") == "unsigned", "{unsigned}");
        host.stop().await?;
        Ok(())
    })
}

#[test]
fn where_rbac_forbids_events_that_is_said_once_and_findings_are_found_all_the_same() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "found-forbidden";
        let installer = cluster.user("installer")?;
        // As the administrator of everything but Events.
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "host", "namespace": "default"}});
        installer.apply(&account).await?;
        let rules = json!([
            {"apiGroups": ["", "apps", "rbac.authorization.k8s.io", "admissionregistration.k8s.io"],
                "resources": ["*"], "verbs": ["*"]},
        ]);
        for object in [
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": name}, "rules": rules}),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": "host", "namespace": "default"}]}),
        ] {
            installer.apply(&object).await?;
        }
        let mut room = room_with_app(cluster, name)?;
        room.as_service_account(cluster, "default", "host").await?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let other = Id::new("v1", "Service", name, "web");
        cluster.user("mallory")?.merge(&settings(name), &json!({"data": {"color": "red"}})).await?;
        cluster.user("mallory")?.delete(&other).await?;
        found(&mut host, &room, "manual-edit", |_| true).await?;
        found(&mut host, &room, "unexpected-recreation", |_| true).await?;
        host.says("RBAC has to allow: apiGroups: [\"events.k8s.io\"]").await?;
        cluster.user("trent")?.merge(&settings(name), &json!({"data": {"color": "red"}})).await?;
        found(&mut host, &room, "manual-edit", |it| evidence(it, "manager") == "trent").await?;
        let said = host.log()?.matches("Events about findings are not written").count();
        ensure!(said == 1, "it is said {said} times");
        host.stop().await?;
        Ok(())
    })
}

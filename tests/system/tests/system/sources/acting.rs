//! A source that acts as a ServiceAccount: what that may not do is not done, and the API server's
//! own log says whose requests they were.

use super::{configure, map, map_id, namespace};
use crate::world::{Test, none, pass, run, say, shared};
use anyhow::ensure;
use serde_json::{Value, json};
use trimtab_system_tests::{Cluster, Id, documents};

const OWN: &str = "trimtab-acting";
const HOST: &str = "system:serviceaccount:trimtab-acting:trimtab";
const TENANT: &str = "system:serviceaccount:src-acting:deployer";

#[test]
fn writes_and_dry_runs_are_the_accounts_and_end_where_its_rules_end() -> Test {
    run(async {
        let cluster = Cluster::start(&say).await?;
        let name = "src-acting";
        let installer = cluster.user("installer")?;
        let account = |namespace: &str, name: &str| {
            json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": namespace}})
        };
        for object in documents(&(namespace(name) + &namespace(OWN)))? {
            installer.apply(&object).await?;
        }
        for object in [account(name, "deployer"), account(OWN, "trimtab")] {
            installer.apply(&object).await?;
        }
        let role = |kind: &str, more: Value| {
            let mut object = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
                "metadata": {"name": "deployer", "namespace": name}});
            if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
                object.extend(more);
            }
            object
        };
        let verbs = json!(["get", "create", "patch"]);
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]);
        installer.apply(&role("Role", json!({"rules": rules}))).await?;
        let binding = json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deployer"},
            "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": name}],
        });
        installer.apply(&role("RoleBinding", binding)).await?;

        let mut room = cluster.room("acting")?.with_generic()?;
        room.as_service_account(&cluster, OWN, "trimtab").await?;
        room.declare("maps.yaml", &map(name, "allowed", "one"))?;
        room.declare(
            "service.yaml",
            &format!("apiVersion: v1\nkind: Service\nmetadata: {{name: forbidden, namespace: {name}}}\nspec: {{ports: [{{port: 80}}]}}\n"),
        )?;
        configure(
            &mut room,
            &format!(
                "  - {{name: tenant, path: source, targetNamespace: {name}, serviceAccount: {name}/deployer}}\n"
            ),
        )?;
        let (plugins, grants) = (room.plugins(), room.grants());
        let config = room.config.clone().unwrap_or_default();
        let printed = room.built().output(&[
            "rbac".as_ref(),
            "--plugins".as_ref(),
            plugins.as_os_str(),
            "--grants".as_ref(),
            grants.as_os_str(),
            "--config".as_ref(),
            config.as_os_str(),
            "-n".as_ref(),
            OWN.as_ref(),
            "--inventory-namespace".as_ref(),
            room.inventory().as_ref(),
        ])?;
        let printed = documents(&printed)?;
        // What the host may do itself, its inventory and Events about findings aside, is to read and
        // to act as the account.
        let own = printed.iter().filter(|it| it["metadata"]["namespace"] != room.inventory());
        let own = own.cloned().map(|mut role| {
            if let Some(rules) = role["rules"].as_array_mut() {
                rules.retain(|rule| rule["apiGroups"][0] != "events.k8s.io");
            }
            role.to_string()
        });
        let own = own.collect::<String>();
        ensure!(!own.contains("create") && own.contains("impersonate"), "{own}");
        installer
            .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": room.inventory()}}))
            .await?;
        for object in &printed {
            installer.apply(object).await?;
        }

        let (allowed, forbidden) =
            (map_id(name, "allowed"), Id::new("v1", "Service", name, "forbidden"));
        let mut host = room.start()?;
        pass(&mut host, 0, &allowed, "created").await?;
        let line = pass(&mut host, 0, &forbidden, "failed").await?;
        ensure!(line.message().contains(TENANT), "{line:?}");
        let mark = host.journal().mark()?;
        cluster.user("bob")?.merge(&allowed, &json!({"data": {"value": "bobs"}})).await?;
        pass(&mut host, mark, &allowed, "corrected").await?;

        let own = cluster.audit().by(HOST).await?;
        let asked: Vec<_> = own.into_iter().filter(|it| it.writes() || it.rehearses()).collect();
        none("with its own rights the host asked for", &asked)?;
        let tenants = cluster.audit().by(TENANT).await?;
        ensure!(tenants.iter().any(|it| it.rehearses() && it.succeeded()), "{tenants:?}");
        ensure!(tenants.iter().any(|it| it.created()), "{tenants:?}");
        ensure!(tenants.iter().any(|it| it.resource == "services" && it.code == 403));
        ensure!(cluster.api().get(&forbidden).await?.is_none());

        // Without the right to act as it, nothing is done in its place.
        for role in ["Role", "ClusterRole"] {
            let namespace = if role == "Role" { name } else { "" };
            let id = Id::new("rbac.authorization.k8s.io/v1", role, namespace, "trimtab");
            if role == "Role" {
                installer.delete(&id).await?;
            }
        }
        let mark = host.journal().mark()?;
        cluster.user("bob")?.merge(&allowed, &json!({"data": {"value": "again"}})).await?;
        host.line("the missing rule is named", mark, |line| {
            line.is_about(&allowed) && format!("{}", line.0).contains("cannot impersonate")
        })
        .await?;
        ensure!(cluster.api().require(&allowed).await?["data"]["value"] == "again");
        Ok(())
    })
}

/// The room's kubeconfig acts as a user of its own: another identity has no place in its requests.
#[test]
fn credentials_that_act_as_somebody_send_no_request_for_an_account() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "src-acting-twice";
        for object in documents(&namespace(name))? {
            cluster.user("setup")?.apply(&object).await?;
        }
        let mut room = cluster.room(name)?.with_generic()?;
        room.declare("maps.yaml", &map(name, "one", "one"))?;
        configure(
            &mut room,
            &format!("  - {{name: tenant, path: source, serviceAccount: {name}/deployer}}\n"),
        )?;
        let mut host = room.start()?;
        let line = pass(&mut host, 0, &map_id(name, "one"), "failed").await?;
        ensure!(line.message().contains("credentials without `as`"), "{line:?}");
        let mut asked = cluster.audit().by(name).await?;
        asked.retain(|request| request.writes() || request.rehearses());
        none("it asked for", &asked)
    })
}

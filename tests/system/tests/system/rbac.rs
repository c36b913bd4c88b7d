//! What `trimtab rbac` prints is enough, and each of its rules is needed.

use crate::world::{Test, none, pass, run, say};
use anyhow::{Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use trimtab_system_tests::{Cluster, Id, Request, Room, copy_tree, objects, workspace};

const NAMESPACE: &str = "trimtab-least";
const ACCOUNT: &str = "system:serviceaccount:trimtab-least:trimtab";

/// The roles and bindings for this room, in their order.
fn printed(room: &Room) -> Result<Vec<Value>> {
    let (plugins, grants, source) = (room.plugins(), room.grants(), room.source());
    let text = room.built().output(&[
        "rbac".as_ref(),
        "--plugins".as_ref(),
        plugins.as_os_str(),
        "--grants".as_ref(),
        grants.as_os_str(),
        "--source".as_ref(),
        source.as_os_str(),
        "-n".as_ref(),
        NAMESPACE.as_ref(),
        "--inventory-namespace".as_ref(),
        NAMESPACE.as_ref(),
    ])?;
    trimtab_system_tests::documents(&text)
}

/// A room whose host has the ServiceAccount's real token and nothing else.
async fn room(cluster: &Cluster, name: &str) -> Result<Room> {
    let mut room = cluster.room(name)?.with_generic()?;
    copy_tree(&workspace().join("examples/shop"), &room.source())?;
    room.as_service_account(cluster, NAMESPACE, "trimtab").await?;
    room.arguments.extend(["--inventory-namespace", NAMESPACE].map(Into::into));
    Ok(room)
}

#[test]
fn with_the_printed_rules_alone_the_example_converges_and_without_one_it_says_which() -> Test {
    run(async {
        let cluster = Cluster::start(&say).await?;
        let installer = cluster.user("installer")?;
        for object in [
            serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
            serde_json::json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": "trimtab", "namespace": NAMESPACE}}),
        ] {
            installer.apply(&object).await?;
        }
        let room = room(&cluster, "least").await?;
        let rules = printed(&room)?;
        ensure!(printed(&room)? == rules, "the same input has to give the same rules");
        for object in &rules {
            installer.apply(object).await?;
        }

        let declared = objects(&room.source())?;
        let mut host = room.start()?;
        for id in &declared {
            pass(&mut host, 0, id, "created").await?;
        }
        let web = Id::new("apps/v1", "Deployment", "shop", "web");
        let mark = host.journal().mark()?;
        let patch = serde_json::json!({"spec": {"replicas": 7}});
        cluster.user("alice")?.merge(&web, &patch).await?;
        pass(&mut host, mark, &web, "corrected").await?;
        host.stop().await?;
        let mut refused = cluster.audit().by(ACCOUNT).await?;
        refused.retain(|request| request.code == 403);
        none("the printed rules do not allow", &refused)?;

        // Without the rule for apps: one line that names it, the rest goes on, nothing storms.
        let without = |rules: &[Value]| {
            let mut rules = rules.to_vec();
            for role in &mut rules {
                if let Some(all) = role.get_mut("rules").and_then(Value::as_array_mut) {
                    all.retain(|rule| rule["apiGroups"][0] != "apps");
                }
            }
            rules
        };
        for object in without(&rules) {
            installer.apply_by_force(&object).await?;
        }
        cluster.user("alice")?.merge(&web, &patch).await?;
        let mark = cluster.audit().by(ACCOUNT).await?.len();
        let (once, unsettled) = {
            let once = room.once().await?;
            let unsettled = once.unsettled();
            (once, unsettled)
        };
        ensure!(once.status == 1, "{:?}", once.summary);
        let named: BTreeSet<&str> =
            unsettled.iter().map(|(object, _, _)| object.split(' ').next().unwrap_or("")).collect();
        ensure!(
            named == BTreeSet::from(["Deployment.apps", "StatefulSet.apps"]),
            "the kinds of the missing rule wait, and no others: {unsettled:?}"
        );
        for (object, outcome, reason) in &unsettled {
            ensure!(
                outcome == "unknown" && !reason.contains('\n') && reason.contains("list"),
                "{object} is to wait with the missing verb in one line: {outcome}: {reason}"
            );
        }
        let live = cluster.api().require(&web).await?;
        ensure!(live["spec"]["replicas"] == 7, "nothing is written on a guess: {live}");
        let asked = cluster.audit().by(ACCOUNT).await?.split_off(mark);
        let refused: Vec<&Request> = asked.iter().filter(|request| request.code == 403).collect();
        let most = 4 * (2 + usize::try_from(once.took.as_secs())? / 15);
        ensure!(
            !refused.is_empty() && refused.len() <= most,
            "{} refused requests in {:?}, and at most {most} were expected",
            refused.len(),
            once.took
        );
        Ok(())
    })
}

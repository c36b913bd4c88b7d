//! In a cluster: the install file's ServiceAccount, its real token and its RBAC alone.

use crate::world::{Test, free_port, get, none, pass, run, shared};
use anyhow::ensure;
use std::collections::BTreeSet;
use trimtab_system_tests::{Id, copy_tree, documents, objects, workspace};

/// What the audit log calls the install file's ServiceAccount.
const ACCOUNT: &str = "system:serviceaccount:trimtab-system:trimtab";

#[test]
fn with_the_install_files_service_account_and_nothing_else_the_example_converges() -> Test {
    run(async {
        let cluster = shared().await?;
        let text = std::fs::read_to_string(workspace().join("deploy/install.yaml"))?;
        let installer = cluster.user("installer")?;
        for object in documents(&text)? {
            installer.apply(&object).await?;
        }

        let mut room = cluster.room("in-cluster")?.with_generic()?;
        copy_tree(&workspace().join("examples/shop"), &room.source())?;
        room.as_service_account(cluster, "trimtab-system", "trimtab").await?;
        let probes = format!("127.0.0.1:{}", free_port()?);
        room.arguments = vec!["--health-probe-bind-address".into(), probes.clone().into()];

        let declared = objects(&room.source())?;
        let mut host = room.start()?;
        for id in &declared {
            pass(&mut host, 0, id, "created").await?;
            cluster.api().require(id).await?;
        }
        for path in ["/healthz", "/readyz"] {
            host.until(format!("{path} answers 200"), async |_| {
                let answer = get(&probes, path).await?;
                ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                Ok(())
            })
            .await?;
        }
        let web = Id::new("apps/v1", "Deployment", "shop", "web");
        let mark = host.journal().mark()?;
        let patch =
            serde_json::json!({"spec": {"template": {"spec": {"serviceAccountName": "default"}}}});
        cluster.user("alice")?.merge(&web, &patch).await?;
        pass(&mut host, mark, &web, "corrected").await?;
        host.stop().await?;

        let mut asked = cluster.audit().by(ACCOUNT).await?;
        ensure!(
            asked.iter().any(|request| request.created()),
            "the audit log has no write of {ACCOUNT}"
        );
        asked.retain(|request| request.code == 403);
        let refused: BTreeSet<String> =
            asked.iter().map(|it| format!("{} {}", it.verb, it.object())).collect();
        none(&format!("the RBAC of the install file refused {refused:?}"), &asked)
    })
}

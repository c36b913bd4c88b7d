//! Edits past the source, borrowed names, deletions and fights: who did it.

use super::{events, evidence, found, is_about, with_witness, words};
use crate::world::{
    APP_OBJECTS, Test, converged, pass, room_with_app, run, service, settings, shared,
};
use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::json;
use trimtab_system_tests::{Cluster, Host, Id};

/// Changes the ConfigMap's color, and waits until it is put right.
async fn corrected(
    cluster: &Cluster,
    host: &mut Host,
    id: &Id,
    by: &str,
    color: &str,
) -> Result<()> {
    let mark = host.journal().mark()?;
    cluster.user(by)?.merge(id, &json!({"data": {"color": color}})).await?;
    pass(host, mark, id, "corrected").await?;
    Ok(())
}

#[test]
fn an_edit_past_the_source_is_found_once_with_user_and_audit_id_and_correction_does_not_mask_it()
-> Test {
    run(async {
        let cluster = shared().await?;
        let name = "found-edit";
        let room = with_witness(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        host.says("reading the API server's audit log").await?;
        let id = settings(name);
        corrected(cluster, &mut host, &id, "mallory", "red").await?;
        let finding = found(&mut host, &room, "manual-edit", |it| is_about(it, &id)).await?;
        ensure!(finding["count"] == 1 && finding["severity"] == "warning", "{finding}");
        ensure!(evidence(&finding, "user") == "mallory", "{finding}");
        ensure!(evidence(&finding, "manager") == "mallory", "{finding}");
        ensure!(evidence(&finding, "auditId").len() > 10, "{finding}");
        ensure!(evidence(&finding, "paths") == "/data/color", "{finding}");
        ensure!(evidence(&finding, "outcome") == "corrected", "{finding}");

        // Again by the same hand: the same finding. By another: another one.
        corrected(cluster, &mut host, &id, "mallory", "green").await?;
        found(&mut host, &room, "manual-edit", |it| it["count"] == 2).await?;
        corrected(cluster, &mut host, &id, "trent", "green").await?;
        found(&mut host, &room, "manual-edit", |it| evidence(it, "user") == "trent").await?;
        let all = room.findings(&[])?;
        ensure!(all.len() == 2, "{:#?}", words(&all));

        // In the log, the audit log and the cluster too.
        host.says("finding manual-edit").await?;
        let line =
            host.line("the audit log tells of it", 0, |line| line.kind() == "finding").await?;
        ensure!(line.is_about(&id) && line.0["name"] == "manual-edit", "{line:?}");
        host.until("there are two Events", async |_| {
            let events = events(cluster, &id).await?;
            ensure!(events.len() == 2, "{events:?}");
            let told = events.iter().any(|it| it["series"]["count"] == 2);
            ensure!(told, "the second time is counted: {events:?}");
            ensure!(events.iter().all(|it| it["reason"] == "ManualEdit"), "{events:?}");
            Ok(())
        })
        .await?;
        let explained = room.explain(&["ConfigMap/settings", "-n", name])?;
        ensure!(explained.contains("finding manual-edit"), "{explained}");
        host.stop().await?;

        // A restart forgets nothing, and the filters say which.
        let kept = room.findings(&["ConfigMap/settings", "-n", name, "--since", "1h"])?;
        ensure!(kept.len() == 2, "{:#?}", words(&kept));
        for none in [
            ["--severity", "critical"],
            ["--name", "fight"],
            ["-n", "elsewhere"],
            ["--since", "2099-01-01T00:00:00Z"],
        ] {
            ensure!(room.findings(&none)?.is_empty(), "{none:?}");
        }
        let mark = room.journal().mark()?;
        let mut host = room.start()?;
        host.line("it started", mark, |line| line.0["event"] == "started").await?;
        ensure!(room.findings(&[])?.len() == 2, "a restart keeps what was found");
        host.stop().await?;
        Ok(())
    })
}

#[test]
fn an_edit_under_a_borrowed_name_is_a_mismatch_that_names_the_user_of_the_audit_log() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "found-mismatch";
        let room = with_witness(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        host.says("reading the API server's audit log").await?;
        let id = settings(name);
        let mark = host.journal().mark()?;
        let path = format!(
            "/api/v1/namespaces/{name}/configmaps/settings?fieldManager=kube-controller-manager"
        );
        let patch = json!({"data": {"size": "small"}});
        let form = Some("application/merge-patch+json");
        cluster.user("mallory")?.send(Method::PATCH, &path, form, Some(&patch)).await?;
        pass(&mut host, mark, &id, "corrected").await?;
        let finding =
            found(&mut host, &room, "manual-edit-mismatch", |it| is_about(it, &id)).await?;
        ensure!(finding["severity"] == "critical" && finding["count"] == 1, "{finding}");
        ensure!(evidence(&finding, "manager") == "kube-controller-manager", "{finding}");
        ensure!(evidence(&finding, "user") == "mallory", "{finding}");
        let edit = found(&mut host, &room, "manual-edit", |it| is_about(it, &id)).await?;
        ensure!(evidence(&edit, "user") == "mallory", "{edit}");
        let all = room.findings(&[])?;
        ensure!(all.len() == 2, "{:#?}", words(&all));
        host.stop().await?;
        Ok(())
    })
}

#[test]
fn an_object_that_somebody_deletes_is_found_as_another_one_with_who_deleted_it() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "found-recreation";
        let room = with_witness(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        host.says("reading the API server's audit log").await?;
        let (id, other) = (settings(name), service(name));
        let mark = host.journal().mark()?;
        cluster.user("mallory")?.delete(&id).await?;
        pass(&mut host, mark, &id, "created").await?;
        let finding =
            found(&mut host, &room, "unexpected-recreation", |it| is_about(it, &id)).await?;
        ensure!(finding["count"] == 1, "{finding}");
        ensure!(evidence(&finding, "deletedBy") == "mallory", "{finding}");
        ensure!(evidence(&finding, "madeBy").contains("this host"), "{finding}");
        ensure!(evidence(&finding, "uidBefore") != evidence(&finding, "uidNow"), "{finding}");

        // Deleted while no host runs: the next one knows what was written under that name.
        host.stop().await?;
        cluster.user("mallory")?.delete(&other).await?;
        let mut host = room.start()?;
        let finding =
            found(&mut host, &room, "unexpected-recreation", |it| is_about(it, &other)).await?;
        ensure!(finding["count"] == 1, "{finding}");
        let all = room.findings(&[])?;
        ensure!(all.len() == 2, "{:#?}", words(&all));
        host.stop().await?;
        Ok(())
    })
}

#[test]
fn a_fight_is_found_with_who_and_how_often_and_without_the_audit_log_by_managed_fields() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "found-fight";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let id = settings(name);
        let mallory = cluster.user("mallory")?;
        for _ in 0..10 {
            corrected(cluster, &mut host, &id, "mallory", "red").await?;
        }
        let mark = host.journal().mark()?;
        mallory.merge(&id, &json!({"data": {"color": "red"}})).await?;
        pass(&mut host, mark, &id, "contested").await?;
        let finding = found(&mut host, &room, "fight", |it| is_about(it, &id)).await?;
        ensure!(finding["count"] == 1, "{finding}");
        ensure!(evidence(&finding, "with") == "mallory", "{finding}");
        ensure!(evidence(&finding, "paths") == "/data/color", "{finding}");
        ensure!(evidence(&finding, "rounds").starts_with("10 corrections within"), "{finding}");
        let edit = found(&mut host, &room, "manual-edit", |it| is_about(it, &id)).await?;
        ensure!(evidence(&edit, "manager") == "mallory", "{edit}");
        let all = room.findings(&[])?;
        ensure!(all.len() == 2, "{:#?}", words(&all));
        host.stop().await.context("the host ends")?;
        Ok(())
    })
}

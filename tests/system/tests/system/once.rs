//! `--once`: what its exit status tells.

use crate::world::{APP_OBJECTS, Test, app, none, room_with_app, run, shared};
use anyhow::ensure;

#[test]
fn a_round_ends_with_0_once_everything_is_as_declared_and_a_second_one_writes_nothing() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "once-well";
        let room = room_with_app(cluster, name)?;
        let first = room.once().await?;
        ensure!(first.status == 0, "status {}: {}\n{}", first.status, first.summary, first.log);
        ensure!(first.summary["converged"] == APP_OBJECTS, "{}", first.summary);
        let writes = cluster.audit().writes_by(name).await?.len();
        ensure!(writes == APP_OBJECTS, "{writes} writes for {APP_OBJECTS} objects");
        let second = room.once().await?;
        ensure!(second.status == 0, "status {}: {}", second.status, second.summary);
        let after = cluster.audit().writes_by(name).await?;
        none("the second round wrote", &after[writes..])
    })
}

#[test]
fn a_round_ends_with_1_and_names_each_object_that_is_not_as_declared() -> Test {
    run(async {
        let cluster = shared().await?;
        let observing = cluster.room("once-observing")?;
        observing.drop_our_plugin("generic")?;
        observing.declare("app.yaml", &app("once-observing"))?;
        let round = observing.once().await?;
        ensure!(round.status == 1, "status {}: {}", round.status, round.summary);
        let unsettled = round.unsettled();
        let observed = unsettled.iter().filter(|(_, outcome, _)| outcome == "observed").count();
        ensure!(observed == APP_OBJECTS, "{unsettled:?}");

        let rejected = room_with_app(cluster, "once-rejected")?;
        let bad = "apiVersion: v1\nkind: Service\nmetadata: {name: bad, namespace: once-rejected}\n\
                   spec: {ports: [{port: 700000}]}\n";
        rejected.declare("bad.yaml", bad)?;
        let round = rejected.once().await?;
        ensure!(round.status == 1, "status {}: {}", round.status, round.summary);
        let unsettled = round.unsettled();
        let [(object, outcome, reason)] = &unsettled[..] else {
            anyhow::bail!("one object is bad, and these are named: {unsettled:?}\n{}", round.log)
        };
        ensure!(object.contains("once-rejected/bad") && outcome == "rejected", "{unsettled:?}");
        ensure!(reason.contains("700000") || reason.contains("port"), "{reason}");
        Ok(())
    })
}

#[test]
fn a_round_ends_with_2_when_it_cannot_be_run() -> Test {
    run(async {
        let cluster = shared().await?;
        let mut room = room_with_app(cluster, "once-error")?;
        room.kubeconfig = Some("/nonexistent/kubeconfig".into());
        let round = room.once().await?;
        ensure!(round.status == 2, "status {}", round.status);
        ensure!(round.log.contains("/nonexistent/kubeconfig"), "{}", round.log);

        let room = room_with_app(cluster, "once-source")?;
        std::fs::remove_dir_all(room.source())?;
        let round = room.once().await?;
        ensure!(
            round.status == 2,
            "status {} for a source that is not there: {}",
            round.status,
            round.log
        );
        ensure!(round.log.contains("source"), "{}", round.log);
        Ok(())
    })
}

//! The API server goes away and comes back: a control plane of its own.

use crate::world::{
    APP_OBJECTS, Test, app, converged, deployment, none, pass, prove_alive, room_with_app, run,
    say, service,
};
use anyhow::ensure;
use std::time::Duration;
use trimtab_system_tests::Cluster;

/// How long the API server is away.
const AWAY: Duration = Duration::from_secs(5);

#[test]
fn an_outage_of_the_api_server_costs_no_object_and_needs_no_restart() -> Test {
    run(async {
        let mut cluster = Cluster::start(&say).await?;
        let name = "outage";
        let room = room_with_app(&cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;

        let mark = host.journal().mark()?;
        cluster.plane().stop_apiserver().await;
        room.declare("app.yaml", &app(name).replace("replicas: 2", "replicas: 4"))?;
        tokio::time::sleep(AWAY).await;
        ensure!(host.ended().is_none(), "the host ended: {}", host.log()?);
        cluster.plane().start_apiserver().await?;
        pass(&mut host, mark, &deployment(name), "corrected").await?;
        let live = cluster.api().require(&deployment(name)).await?;
        ensure!(live["spec"]["replicas"] == 4, "{live}");
        prove_alive(&cluster, &mut host, name).await?;

        // A crash, and a deletion that nobody could see happen: found when the watch is back.
        cluster.plane().kill_apiserver();
        tokio::time::sleep(AWAY).await;
        let mark = host.journal().mark()?;
        cluster.plane().start_apiserver().await?;
        cluster.user("carol")?.delete(&service(name)).await?;
        pass(&mut host, mark, &service(name), "created").await?;

        let mut deletes = cluster.audit().writes_by(name).await?;
        deletes.retain(|request| request.verb.starts_with("delete"));
        none("the host deleted", &deletes)?;
        ensure!(host.stop().await?.success(), "the host did not end well");
        cluster.shutdown().await;
        Ok(())
    })
}

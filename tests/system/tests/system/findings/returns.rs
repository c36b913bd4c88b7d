//! Values that are denied and come back.

use super::{evidence, found, grant_without_second_word, is_about};
use crate::world::{Test, deployment, pass, run, shared};
use anyhow::{Result, ensure};
use serde_json::json;
use trimtab_system_tests::Room;

fn declare(room: &Room, name: &str, privileged: bool, round: usize) -> Result<()> {
    let text = format!(
        "apiVersion: v1
kind: Namespace
metadata: {{name: {name}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: {name}, labels: {{round: \"{round}\"}}}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
        - name: web
          image: registry.example.com/web:1
          securityContext: {{privileged: {privileged}}}
"
    );
    room.declare("web.yaml", &text)
}

#[test]
fn a_denied_value_that_comes_back_three_times_is_found_and_loudest_where_desired_state_does_it()
-> Test {
    run(async {
        let cluster = shared().await?;
        let name = "found-returns";
        let room = cluster.room(name)?.with_generic()?;
        grant_without_second_word(&room)?;
        declare(&room, name, false, 0)?;
        let mut host = room.start()?;
        let id = deployment(name);
        pass(&mut host, 0, &id, "created").await?;
        let mallory = cluster.user("mallory")?;
        for round in 1..=3 {
            let mark = host.journal().mark()?;
            mallory
                .edit(&id, |object| {
                    object["spec"]["template"]["spec"]["containers"][0]["securityContext"] =
                        json!({"privileged": true});
                })
                .await?;
            pass(&mut host, mark, &id, "corrected").await?;
            if round < 3 {
                let early = room.findings(&["--name", "unsafe-rollback"])?;
                ensure!(early.is_empty(), "after {round}: {early:?}");
            }
        }
        let finding = found(&mut host, &room, "unsafe-rollback", |it| is_about(it, &id)).await?;
        ensure!(finding["severity"] == "warning" && finding["count"] == 1, "{finding}");
        ensure!(evidence(&finding, "by").contains("mallory"), "{finding}");
        ensure!(evidence(&finding, "policy") == "privileged-pods", "{finding}");

        // The source itself goes back and forth: what it asks for is refused each time, and told.
        for round in 1..=3 {
            for privileged in [true, false] {
                let mark = host.journal().mark()?;
                declare(&room, name, privileged, round)?;
                let ends = if privileged { "refused" } else { "corrected" };
                pass(&mut host, mark, &id, ends).await?;
            }
        }
        let ours = |it: &serde_json::Value| it["severity"] == "critical";
        let finding = found(&mut host, &room, "unsafe-rollback", ours).await?;
        let message = finding["message"].as_str().unwrap_or_default();
        ensure!(message.contains("OUR OWN DESIRED STATE"), "{finding}");
        // That each was turned away is a finding of its own.
        let denied = found(&mut host, &room, "trust", |it| is_about(it, &id)).await?;
        ensure!(evidence(&denied, "sort") == "denied-change", "{denied}");
        host.stop().await?;
        Ok(())
    })
}

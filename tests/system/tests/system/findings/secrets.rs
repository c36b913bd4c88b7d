//! Values of Secrets where they do not belong: found, and shown nowhere.

use super::{events, evidence, found, is_about, words};
use crate::world::{
    APP_OBJECTS, Test, converged, room_with_app, run, settings, shared, state_file,
};
use anyhow::ensure;
use serde_json::json;

const VALUE: &str = "Qk7-canary/9f2E81+mmZ4";
/// The same in base64, behind other text, and in part.
const WITHIN: &str = "dXJsPXBvc3RncmVzOi8vdTpRazctY2FuYXJ5LzlmMkU4MSttbVo0QGRi";
const PART: &str = "canary/9f2E81+mm";

#[test]
fn a_value_of_a_secret_in_a_config_map_an_annotation_or_desired_state_is_found_and_never_shown()
-> Test {
    run(async {
        let cluster = shared().await?;
        let name = "found-secret";
        let room = room_with_app(cluster, name)?;
        room.declare(
            "secret.yaml",
            &format!(
                "apiVersion: v1\nkind: Secret\nmetadata: {{name: db, namespace: {name}}}\nstringData: {{password: {VALUE}}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: plain, namespace: {name}}}\ndata: {{color: blue}}\n"
            ),
        )?;
        let mut host = converged(&room, APP_OBJECTS + 2).await?;
        super::nothing_found(&room)?;

        // Live, by somebody: in an annotation in base64 behind other text.
        let id = settings(name);
        let annotation = json!({"metadata": {"annotations": {"example.com/note": WITHIN}}});
        cluster.user("mallory")?.merge(&id, &annotation).await?;
        let live = found(&mut host, &room, "misplaced-secret", |it| is_about(it, &id)).await?;
        ensure!(live["severity"] == "critical" && live["count"] == 1, "{live}");
        ensure!(evidence(&live, "paths") == "/metadata/annotations/example.com~1note", "{live}");
        let whose = format!("Secret {name}/db, key password");
        ensure!(evidence(&live, "what").contains(&whose), "{live}");

        // Declared: a part of it.
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: url, namespace: {name}}}\ndata: {{url: \"x{PART}y\"}}\n"
        );
        room.declare("url.yaml", &text)?;
        let url = trimtab_system_tests::Id::new("v1", "ConfigMap", name, "url");
        let declared = found(&mut host, &room, "misplaced-secret", |it| {
            is_about(it, &url) && evidence(it, "side") == "desired"
        })
        .await?;
        ensure!(evidence(&declared, "origin").starts_with("url.yaml:1"), "{declared}");

        // A private key is known by its shape.
        let body = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA".repeat(3);
        let key = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: key, namespace: {name}}}\ndata:\n  tls.key: |\n    -----BEGIN PRIVATE KEY-----\n    {body}\n    -----END PRIVATE KEY-----\n"
        );
        room.declare("key.yaml", &key)?;
        found(&mut host, &room, "misplaced-secret", |it| {
            evidence(it, "what") == "a private key" && evidence(it, "side") == "desired"
        })
        .await?;
        let others = room.findings(&[])?;
        ensure!(others.iter().all(|it| it["name"] == "misplaced-secret"), "{:#?}", words(&others));
        host.until("there is an Event", async |_| {
            let events = events(cluster, &id).await?;
            ensure!(!events.is_empty(), "no Event");
            for form in [VALUE, WITHIN, PART] {
                ensure!(!format!("{events:?}").contains(form), "an Event shows it: {events:?}");
            }
            Ok(())
        })
        .await?;
        let log = host.log()?;
        host.stop().await?;
        let state = state_file(&room, "findings.json")? + &state_file(&room, "signals.json")?;
        for form in [VALUE, WITHIN, PART] {
            for (place, text) in [("the log", &log), ("the state", &state)] {
                ensure!(!text.contains(form), "{place} shows {form}");
            }
        }
        let journal = state_file(&room, "journal.jsonl")?;
        ensure!(!journal.contains(VALUE) && !journal.contains(WITHIN), "the audit log shows it");
        Ok(())
    })
}

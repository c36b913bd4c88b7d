//! Secret values appear nowhere: neither in what the host keeps nor in what it prints.

use crate::world::{Test, room_with_app, run, shared, state_file};
use anyhow::{Result, ensure};
use serde_json::json;
use std::ffi::OsStr;
use trimtab_system_tests::{Id, Room};

/// Each plain and as base64, because either would give it away.
const CANARIES: [(&str, &str); 6] = [
    ("canary-plain-5b1f27", "Y2FuYXJ5LXBsYWluLTViMWYyNw=="),
    ("canary-encoded-8c44e1", "Y2FuYXJ5LWVuY29kZWQtOGM0NGUx"),
    ("canary-drifted-19d0aa", "Y2FuYXJ5LWRyaWZ0ZWQtMTlkMGFh"),
    ("canary-refused-77ab03", "Y2FuYXJ5LXJlZnVzZWQtNzdhYjAz"),
    ("canary-not-base64-c3!!", "Y2FuYXJ5LW5vdC1iYXNlNjQtYzMhIQ=="),
    ("canary-quoted-41e9d2", "Y2FuYXJ5LXF1b3RlZC00MWU5ZDI="),
];

/// Two good Secrets, and three that the API server refuses, each for another reason.
fn secrets(namespace: &str) -> String {
    let [plain, encoded, _, refused, not_base64, quoted] = CANARIES;
    format!(
        "apiVersion: v1
kind: Secret
metadata: {{name: plain, namespace: {namespace}}}
stringData: {{password: {}}}
---
apiVersion: v1
kind: Secret
metadata: {{name: encoded, namespace: {namespace}, labels: {{app: web}}}}
data: {{password: {}}}
---
# A TLS secret without its certificate.
apiVersion: v1
kind: Secret
metadata: {{name: refused, namespace: {namespace}}}
type: kubernetes.io/tls
data: {{tls.key: {}}}
---
# Not base64: the API server cannot even read it, and its message may quote it.
apiVersion: v1
kind: Secret
metadata: {{name: not-base64, namespace: {namespace}}}
data: {{password: {}}}
---
# A key that is none, beside a value; and a number where text belongs.
apiVersion: v1
kind: Secret
metadata: {{name: quoted, namespace: {namespace}}}
stringData: {{\"not a key\": {}}}
",
        plain.0, encoded.1, refused.1, not_base64.0, quoted.0
    )
}

fn told(room: &Room, arguments: &[&str]) -> Result<String> {
    let state = room.state();
    let mut all: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    all.extend([OsStr::new("--state"), state.as_os_str()]);
    room.built().output(&all)
}

fn check(where_: &str, text: &str) -> Result<()> {
    for (plain, encoded) in CANARIES {
        let shown = [plain, encoded].into_iter().find(|form| text.contains(form));
        if let Some(form) = shown {
            let line = text.lines().find(|line| line.contains(form)).unwrap_or_default();
            anyhow::bail!("{where_} shows {form}: {line}");
        }
    }
    Ok(())
}

#[test]
fn secret_values_appear_in_no_file_and_no_output_even_when_the_api_server_refuses_them() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "secrets";
        let room = room_with_app(cluster, name)?;
        room.declare("secrets.yaml", &secrets(name))?;
        let round = room.once().await?;
        ensure!(round.status == 1, "three Secrets are bad: {}\n{}", round.summary, round.log);
        check("the summary of a round", &round.summary.to_string())?;
        for good in ["plain", "encoded"] {
            cluster.api().require(&Id::new("v1", "Secret", name, good)).await?;
        }

        let mut host = room.start()?;
        crate::world::prove_alive(cluster, &mut host, name).await?;
        let mallory = cluster.user("mallory")?;
        for good in ["plain", "encoded"] {
            let id = Id::new("v1", "Secret", name, good);
            let mark = host.journal().mark()?;
            let drifted = json!({"data": {"password": CANARIES[2].1, "extra": CANARIES[2].1}});
            mallory.merge(&id, &drifted).await?;
            let line = host
                .line(format!("{id} is put right"), mark, |line| {
                    line.is_about(&id) && line.outcome() == "corrected"
                })
                .await?;
            ensure!(line.paths().contains(&"/data/password"), "{line:?}");
            ensure!(line.managers().contains(&"mallory"), "{line:?}");
        }
        check("stderr", &host.log()?)?;
        host.stop().await?;
        check("stderr at the end", &std::fs::read_to_string(room.log_file())?)?;
        for file in ["journal.jsonl", "plugins.json"] {
            check(file, &state_file(&room, file)?)?;
        }
        for output in ["table", "json", "yaml"] {
            check("audit show", &told(&room, &["audit", "show", "-o", output])?)?;
            for secret in ["plain", "encoded", "refused", "not-base64", "quoted"] {
                let object = format!("Secret/{secret}");
                let text = told(&room, &["audit", "explain", &object, "-n", name, "-o", output])?;
                check("audit explain", &text)?;
            }
        }
        Ok(())
    })
}

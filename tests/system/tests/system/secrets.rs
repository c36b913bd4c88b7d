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

/// Every form that would give a canary away: plain and in base64, each in hexadecimal, encoded for
/// URLs, and as its beginning and end alone.
fn forms((plain, encoded): (&str, &str)) -> Vec<String> {
    let mut all = Vec::new();
    for text in [plain, encoded] {
        let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        all.push(hex.to_uppercase());
        all.push(hex);
        all.push(text.replace('!', "%21").replace('=', "%3D"));
        let (begin, end) = (text.len() * 2 / 3, text.len() / 3);
        all.push(text[..begin].to_owned());
        all.push(text[end..].to_owned());
        all.push(text.to_owned());
    }
    all
}

fn check(where_: &str, text: &str) -> Result<()> {
    for form in CANARIES.into_iter().flat_map(forms) {
        if text.contains(&form) {
            let line = text.lines().find(|line| line.contains(&form)).unwrap_or_default();
            anyhow::bail!("{where_} shows {form}: {line}");
        }
    }
    Ok(())
}

/// What `trimtab` prints on both streams, however it ends.
fn printed(room: &Room, arguments: &[&str]) -> Result<String> {
    let output = std::process::Command::new(std::path::absolute(&room.built().trimtab)?)
        .args(arguments)
        .output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(text(&output.stdout) + &text(&output.stderr))
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
        // A value in another object, by its own word, and by a person's.
        let copied = json!({"metadata": {"annotations": {"copied": CANARIES[0].0}}});
        mallory.merge(&crate::world::settings(name), &copied).await?;
        host.says("finding misplaced-secret").await?;
        let source = room.source().display().to_string();
        let kubeconfig = room.path().join("kubeconfig").display().to_string();
        for format in ["table", "json", "yaml", "unified"] {
            let diff = ["diff", "--source", &source, "--kubeconfig", &kubeconfig, "-o", format];
            check("diff", &printed(&room, &diff)?)?;
        }
        for output in [&[][..], &["-o", "json"]] {
            let (_, out, err) = room.plan(output)?;
            check("plan", &(out + &err))?;
        }
        let events = cluster.api().list("events.k8s.io/v1", "Event").await?;
        let ours = |it: &&serde_json::Value| it["metadata"]["namespace"] == name;
        let events: Vec<String> = events.iter().filter(ours).map(ToString::to_string).collect();
        ensure!(!events.is_empty(), "there are Events about what was found");
        check("Events", &events.join("\n"))?;
        check("stderr", &host.log()?)?;
        host.stop().await?;
        check("stderr at the end", &std::fs::read_to_string(room.log_file())?)?;
        for file in
            ["journal.jsonl", "plugins.json", "sources.json", "findings.json", "signals.json"]
        {
            check(file, &state_file(&room, file)?)?;
        }
        for output in ["table", "json", "yaml"] {
            check("audit show", &told(&room, &["audit", "show", "-o", output])?)?;
            let state = room.state().display().to_string();
            let findings = printed(&room, &["findings", "-o", output, "--state", &state])?;
            ensure!(findings.contains("misplaced-secret"), "{findings}");
            check("findings", &findings)?;
            for secret in ["plain", "encoded", "refused", "not-base64", "quoted"] {
                let object = format!("Secret/{secret}");
                let text = told(&room, &["audit", "explain", &object, "-n", name, "-o", output])?;
                check("audit explain", &text)?;
            }
        }
        Ok(())
    })
}

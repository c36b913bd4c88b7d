//! Plugins that misuse what they may say: values of Secrets, floods, forged lines.

use super::arena::{TRIAL, Trial, Wants, trial};
use crate::world::Test;
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use trimtab_system_tests::{Id, Line};

const CANARY: &str = "canary-Zq7w1Kp9xT";
const BASE64: &str = "Y2FuYXJ5LVpxN3cxS3A5eFQ=";

/// The canary as it could be spelled, each long enough to be no accident.
fn spellings() -> Vec<String> {
    let hex: String = CANARY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let split: String = CANARY.chars().flat_map(|letter| [letter, '.']).collect();
    vec![
        CANARY.to_owned(),
        BASE64.trim_end_matches('=').to_owned(),
        hex.to_uppercase(),
        hex,
        CANARY.chars().rev().collect(),
        split.trim_end_matches('.').to_owned(),
        // What a name keeps of it.
        split.replace("-.", "-"),
    ]
}

fn clean(place: &str, text: &str) -> Result<()> {
    let found = spellings().into_iter().find(|spelling| text.contains(spelling));
    let line = found.as_ref().and_then(|it| text.lines().find(|line| line.contains(it)));
    ensure!(found.is_none(), "{place} has the Secret's value as {found:?}: {line:?}");
    Ok(())
}

#[test]
pub(super) fn a_secret_that_a_plugin_read_stands_in_nothing_that_it_says_or_writes() -> Test {
    trial(async || {
        let mut trial = Trial::begin(31).await?;
        // Declared, so that the host holds it: no Secret is watched for a plugin's sake.
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "canary", "namespace": trial.name}, "data": {"value": BASE64}});
        trial.cluster.api().create(&secret).await?;
        let wants = Wants { reads: &["Secret"], terms: "reads: [\"Secret\"]", ..Wants::default() };
        trial.serve(&wants).await?;
        let said = ["log", "leave", "unknown", "defer", "finding", "condition"];
        let mut shapes: Vec<(String, bool)> = Vec::new();
        for (index, spelling) in ["plain", "base64", "hex", "reversed", "split"].iter().enumerate()
        {
            shapes.extend(said.map(|sink| (format!("{sink}:{spelling}"), false)));
            let written = ["annotation", "label", "data", "name"];
            shapes.extend(written.map(|sink| (format!("{sink}:{spelling}"), true)));
            // Few of them: three in a row would be its quarantine.
            if index < 2 {
                shapes.push((format!("error:{spelling}"), false));
            }
        }
        let objects: Vec<_> = shapes
            .iter()
            .map(|(shape, _)| trial.object(TRIAL, &shape.replace(':', "-"), "secret-canary", shape))
            .collect();
        let mut all = objects.clone();
        all.push(secret.clone());
        trial.declare(&all).await?;
        let mut allowed = Vec::new();
        for (object, (shape, written)) in objects.iter().zip(&shapes) {
            let read =
                |line: &Line| line.outcome() != "waiting" && !line.message().contains("no secret");
            let line = trial.pass(object, "judged with the Secret read", read).await?;
            let Id { namespace, name, .. } = Id::of(object).context("a name")?;
            if *written {
                ensure!(line.outcome() == "created", "{shape}: {line:?}");
                allowed.push(format!("trials.hostile.example {namespace}/{name}"));
            }
        }
        for (place, text) in trial.told()? {
            clean(place, &text)?;
        }
        for live in trial.cluster.api().list("hostile.example/v1", "Trial").await? {
            clean("an object in the cluster", &live.to_string())?;
        }
        trial.end(&allowed).await
    })
}

#[test]
pub(super) fn a_flood_is_bounded_and_no_line_of_it_is_taken_for_the_hosts() -> Test {
    trial(async || {
        let mut trial = Trial::begin(32).await?;
        trial.serve(&Wants::default()).await?;
        let before = trial.log()?.len();
        let objects: Vec<_> = (0..4)
            .map(|index| trial.object(TRIAL, &format!("o{index}"), "log-flood", ""))
            .collect();
        trial.declare(&objects).await?;
        for object in &objects {
            trial.pass(object, "left", |line| line.outcome() == "left").await?;
        }
        let log = trial.log()?;
        let passes = trial.lines()?.iter().filter(|line| line.outcome() == "left").count();
        // By the limits of a call: 50 lines and 16 KiB, twice where it is asked twice, and escapes.
        let most = passes.max(objects.len()) * (128 << 10);
        ensure!(log.len() - before < most, "{} bytes of log", log.len() - before);
        ensure!(log.contains("further lines are dropped"), "nobody says that lines are missing");
        for (place, text) in trial.told()? {
            let raw = text
                .chars()
                .find(|c| matches!(c, '\u{1b}' | '\r' | '\u{7}' | '\u{202e}' | '\u{2028}'));
            ensure!(raw.is_none(), "{place} has {raw:?} as it is");
            let forged = text.lines().find(|line| line.starts_with("2026-01-01T00:00:00Z"));
            ensure!(forged.is_none(), "{place} has a line of the plugin's making: {forged:?}");
        }
        trial.end(&[]).await
    })
}

//! `trimtab diff` on files: the answer that scripts rely on, and the verdict on public bug reports
//! about drift, where they lie beside the checkout.

use crate::world::say;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::process::{Command, Output};
use trimtab_system_tests::{Built, workspace};

/// Cases that are about comparing two objects, and are not answered by this command yet.
const NOT_YET: [(&str, &str); 4] = [
    (
        "w-hpa-owned-replicas",
        "who scales a Deployment is the plugin workloads' knowledge: typed.rs",
    ),
    ("w-ignore-respected-on-other-change", "its rules are a map of the case's own: ignore.rs"),
    ("w-managedfields-removed-version", "which versions a server knows is not told by files"),
    ("h-unknown-field-in-cr", "the case gives no schema"),
];

/// Kinds of case that two files can show.
const COMPARISONS: [&str; 19] = [
    "api-version",
    "crd",
    "defaulting",
    "identity",
    "immutable",
    "int-or-string",
    "list-order",
    "merge-key",
    "null-empty",
    "ownership",
    "quantity",
    "redaction",
    "schema-skew",
    "secret",
    "server-field",
    "webhook",
    "yaml",
    "ignore-rule",
    "fight",
];

const DESIRED: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: diff}
data: {a: '1', b: '2'}
";

#[test]
fn equal_objects_differ_in_nothing_and_the_status_is_0() -> Result<()> {
    let (status, answer) = diff(DESIRED, DESIRED)?;
    ensure!(status == 0 && verdicts(&answer) == ["in-sync"], "{status} {answer}");
    Ok(())
}

#[test]
fn a_difference_has_its_path_and_both_values_and_the_status_is_1() -> Result<()> {
    let (status, answer) = diff(DESIRED, &DESIRED.replace("'2'", "'3'"))?;
    ensure!(status == 1 && verdicts(&answer) == ["drift"], "{status} {answer}");
    let difference = &answer["objects"][0]["differences"][0];
    ensure!(
        difference["path"] == "/data/b"
            && difference["desired"] == "2"
            && difference["live"] == "3",
        "{answer}"
    );
    Ok(())
}

#[test]
fn objects_on_one_side_alone_are_missing_or_extra() -> Result<()> {
    let (status, answer) = diff(DESIRED, &DESIRED.replace("settings", "other"))?;
    ensure!(status == 1 && verdicts(&answer) == ["extra", "missing"], "{status} {answer}");
    Ok(())
}

#[test]
fn a_unified_diff_says_on_stdout_what_differs_and_on_stderr_what_it_cannot_show() -> Result<()> {
    let live =
        format!("{}---\n{}", DESIRED.replace("'2'", "'3'"), DESIRED.replace("settings", "x"));
    let output = run(DESIRED, &live, &["-o", "unified", "--color", "always"])?;
    let text = String::from_utf8(output.stdout)?;
    let expected = "\
\x1b[1m--- live/v1/ConfigMap/diff/settings\x1b[0m
\x1b[1m+++ desired/v1/ConfigMap/diff/settings\x1b[0m
\x1b[36m@@ -1,7 +1,7 @@\x1b[0m
 apiVersion: v1
 data:
   a: \"1\"
\x1b[31m-  b: \"3\"\x1b[0m
\x1b[32m+  b: \"2\"\x1b[0m
 kind: ConfigMap
 metadata:
   name: settings
";
    ensure!(text == expected, "{text}");
    let told = String::from_utf8(output.stderr)?;
    ensure!(told.contains("extra ConfigMap diff/x: it is not declared"), "{told}");
    ensure!(output.status.code() == Some(1), "{}", output.status);
    Ok(())
}

#[test]
fn ignore_rules_on_the_command_line_and_in_the_object_leave_fields_out() -> Result<()> {
    let live = DESIRED.replace("'1'", "'3'").replace("'2'", "'3'");
    let annotated = DESIRED.replace("name:", "annotations: {trimtab.dev/ignore: /data/a}, name:");
    let live = live.replace("name:", "annotations: {trimtab.dev/ignore: /data/a}, name:");
    let output = run(&annotated, &live, &["-o", "json", "--ignore", "/data/b"])?;
    ensure!(output.status.code() == Some(0), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(
        answer["ignored"]
            == serde_json::json!({
                "/data/a (annotation trimtab.dev/ignore of ConfigMap diff/settings)": 1,
                "/data/b (--ignore)": 1,
            }),
        "{answer}"
    );
    let (status, answer) = diff(&annotated.replace("/data/a", "data"), &live)?;
    ensure!(status == 1 && verdicts(&answer) == ["refused"], "{status} {answer}");
    let wrong = run(DESIRED, &live, &["--ignore", "data"])?;
    let told = String::from_utf8(wrong.stderr)?;
    ensure!(wrong.status.code() == Some(2) && told.contains("--ignore"), "{told}");
    Ok(())
}

#[test]
fn what_cannot_be_read_is_an_error_with_its_place_and_the_status_is_2() -> Result<()> {
    let (status, answer) = diff("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a\n", DESIRED)?;
    let place = answer["errors"][0]["where"].as_str().unwrap_or_default();
    ensure!(status == 2 && place.ends_with("desired.yaml:3"), "{status} {answer}");
    Ok(())
}

#[test]
fn a_secret_value_is_never_shown() -> Result<()> {
    let secret = |value: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: diff}}\nstringData: {{pw: {value}}}\n"
        )
    };
    let (_, answer) = diff(&secret("hunter2"), &secret("swordfish"))?;
    let text = answer.to_string();
    ensure!(verdicts(&answer) == ["drift"], "{answer}");
    for hidden in ["hunter2", "swordfish", "aHVudGVyMg==", "c3dvcmRmaXNo"] {
        ensure!(!text.contains(hidden), "{hidden} is in {text}");
    }
    Ok(())
}

#[test]
fn public_bug_reports_about_drift_get_the_right_verdict() -> Result<()> {
    let file = workspace().join("../shared/cases/drift.yaml");
    let Ok(text) = std::fs::read_to_string(&file) else {
        say(&format!("skipped: there are no cases at {}", file.display()));
        return Ok(());
    };
    let cases: Vec<Value> = serde_saphyr::from_str(&text).context("the cases cannot be read")?;
    let mut wrong = Vec::new();
    let mut judged = 0;
    for case in &cases {
        let word = |name: &str| case[name].as_str().unwrap_or_default();
        let (id, right) = (word("id"), &case["right"]);
        // Scenarios of sources and inventories are told as maps without a kind.
        if !COMPARISONS.contains(&word("kind"))
            || !word("desired").contains("kind:")
            || NOT_YET.iter().any(|(not, _)| *not == id)
        {
            continue;
        }
        let (status, answer) = diff(word("desired"), word("live"))?;
        judged += 1;
        if let Err(how) = agrees(right, status, &answer) {
            wrong.push(format!("{id}: {how}: {answer}"));
        }
    }
    ensure!(judged > 50, "only {judged} cases were judged");
    ensure!(wrong.is_empty(), "{} of {judged} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    say(&format!("drift cases: {judged} of {} are comparisons, all right", cases.len()));
    Ok(())
}

/// Whether the answer is what the case calls right.
fn agrees(right: &Value, status: i32, answer: &Value) -> Result<(), &'static str> {
    let found = verdicts(answer);
    let refused = status == 2 || found.contains(&"refused".to_owned());
    let paths: Vec<&str> = answer["objects"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|object| object["differences"].as_array().into_iter().flatten())
        .filter_map(|difference| difference["path"].as_str())
        .collect();
    let asked = right["paths"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let good = match right["verdict"].as_str().unwrap_or_default() {
        "no_drift" => status == 0,
        "drift" => found.contains(&"drift".to_owned()) && asked.clone().all(|p| paths.contains(&p)),
        "error" | "refuse" => refused,
        "converge" => status != 2,
        _ => return Err("the case's verdict is not known"),
    };
    if good { Ok(()) } else { Err("another verdict") }
}

fn verdicts(answer: &Value) -> Vec<String> {
    let objects = answer["objects"].as_array().into_iter().flatten();
    objects.filter_map(|object| object["verdict"].as_str().map(str::to_owned)).collect()
}

/// Runs the command; its exit status and its answer.
fn diff(desired: &str, live: &str) -> Result<(i32, Value)> {
    let output = run(desired, live, &["-o", "json"])?;
    let answer = serde_json::from_slice(&output.stdout).with_context(|| {
        format!("stdout is no JSON; stderr: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    Ok((output.status.code().unwrap_or(-1), answer))
}

fn run(desired: &str, live: &str, arguments: &[&str]) -> Result<Output> {
    let dir = tempfile::tempdir()?;
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).map(|()| path)
    };
    let output = Command::new(Built::find()?.trimtab)
        .arg("diff")
        .arg("--desired")
        .arg(file("desired.yaml", desired)?)
        .arg("--live")
        .arg(file("live.yaml", live)?)
        .args(arguments)
        .output()?;
    Ok(output)
}

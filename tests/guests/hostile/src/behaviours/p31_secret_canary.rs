//! Reads a Secret and carries its value out, in each place that has room for words and each spelling
//! that could be thought of: plain, base64, hex, reversed, split.

use crate::content::{and_apply, with};
use crate::shape;
use std::fmt::Write as _;
use trimtab_sdk::{
    Condition, ConditionStatus, Decision, Finding, Path, Snapshot, Verdict, comparison, log, lookup,
};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    let encoded = match read(snapshot) {
        Ok(encoded) => encoded,
        Err(why) => return Verdict::unknown(format!("no secret: {why}")),
    };
    let plain = comparison::decode_base64(&encoded).unwrap_or_default();
    let plain = String::from_utf8_lossy(&plain).into_owned();
    let (sink, spelling) = shape(snapshot).split_once(':').unwrap_or_default();
    let said = spelled(spelling, &plain, &encoded);
    match sink {
        "log" => {
            log::info(&said);
            log::error(&said);
            Decision::new().leave("logged").into()
        }
        "leave" => Decision::new().leave(said).into(),
        "unknown" => Verdict::unknown(said),
        "defer" => Verdict::defer(said, std::time::Duration::from_secs(600)),
        "finding" => {
            let path = Path::parse(&format!("/data/{}", said.replace('/', "~1"))).ok();
            let finding = Finding { path, ..Finding::warning(word(&said), said) };
            Decision::new().leave("found").finding(finding).into()
        }
        "condition" => {
            let condition = Condition {
                type_: word(&said),
                status: ConditionStatus::True,
                reason: word(&said),
                message: said,
            };
            Decision::new().leave("told").condition(condition).into()
        }
        "error" => panic!("{said}"),
        "annotation" => and_apply([with(
            snapshot,
            "metadata annotations",
            &format!(r#"{{"hostile.example/x":"{said}"}}"#),
        )]),
        "label" => {
            and_apply([with(snapshot, "metadata labels", &format!(r#"{{"{}":"x"}}"#, word(&said)))])
        }
        "name" => and_apply([with(snapshot, "metadata name", &format!(r#""{said}""#))]),
        "data" => and_apply([with(snapshot, "spec", &format!(r#"{{"x":"{said}"}}"#))]),
        _ => Verdict::unknown("no such sink"),
    }
}

/// The value, base64 as the Secret has it.
fn read(snapshot: &Snapshot<'_>) -> Result<String, String> {
    let secret = lookup::get("", "Secret", snapshot.id().namespace, "canary");
    let secret = secret.map_err(|error| error.to_string())?.ok_or("it is not there")?;
    let secret = secret.value().map_err(|error| error.to_string())?;
    Ok(secret.str_at(&["data", "value"]).ok_or("it has no value")?.to_owned())
}

fn spelled(spelling: &str, plain: &str, encoded: &str) -> String {
    match spelling {
        "base64" => encoded.to_owned(),
        "hex" => plain.bytes().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }),
        "reversed" => plain.chars().rev().collect(),
        "split" => plain.chars().flat_map(|letter| [letter, '.']).collect(),
        _ => plain.to_owned(),
    }
}

/// With the letters that a name may have.
fn word(text: &str) -> String {
    text.chars().filter(|letter| letter.is_ascii_alphanumeric() || "-.".contains(*letter)).collect()
}

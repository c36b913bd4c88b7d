//! Whether what came of a case is what its author expects: sentences about what is not.

use crate::cases::{self, Expect};
use serde_json::Value;
use trimtab_core::decision::{Action, Comparison, Decision, Difference, Verdict};

/// What is wrong with the comparison.
pub(crate) fn comparison(expect: &Expect, found: &Comparison) -> Vec<String> {
    let (verdict, reason) = match found {
        Comparison::InSync => (cases::Verdict::InSync, None),
        Comparison::Different(_) => (cases::Verdict::Different, None),
        Comparison::Invalid(how) => (cases::Verdict::Invalid, Some(how)),
        Comparison::Unknown(why) => (cases::Verdict::Unknown, Some(why)),
    };
    if verdict != expect.verdict {
        let mut wrong = format!("verdict: expected {:?}, found {verdict:?}", expect.verdict);
        match (found, reason) {
            (Comparison::Different(all), _) => {
                all.iter().for_each(|each| wrong.push_str(&format!("\n  {}", shown(each))));
            }
            (_, Some(reason)) => wrong.push_str(&format!(": {reason}")),
            _ => {}
        }
        return vec![wrong];
    }
    let mut wrong = Vec::new();
    if let Some(part) = &expect.reason {
        contains("reason", part, reason.map_or("", String::as_str), &mut wrong);
    }
    if let (Some(expected), Comparison::Different(found)) = (&expect.differences, found) {
        differences(expected, found, &mut wrong);
    }
    wrong
}

/// What is wrong with the decision.
pub(crate) fn verdict(expect: &cases::Decision, found: &Verdict) -> Vec<String> {
    let mut wrong = Vec::new();
    match (expect, found) {
        (cases::Decision { defer: Some(part), .. }, Verdict::Defer { reason, .. }) => {
            contains("defer", part, reason, &mut wrong);
        }
        (cases::Decision { unknown: Some(part), .. }, Verdict::Unknown(reason)) => {
            contains("unknown", part, reason, &mut wrong);
        }
        (cases::Decision { defer: None, unknown: None, .. }, Verdict::Decided(decision)) => {
            decided(expect, decision, &mut wrong);
        }
        (_, Verdict::Decided(decision)) => {
            let actions: Vec<String> = decision.actions.iter().map(action).collect();
            wrong.push(format!("decision: it decides [{}]", actions.join(", ")));
        }
        (_, Verdict::Defer { reason, .. }) => wrong.push(format!("decision: it defers: {reason}")),
        (_, Verdict::Unknown(reason)) => {
            wrong.push(format!("decision: it cannot tell: {reason}"));
        }
    }
    wrong
}

fn decided(expect: &cases::Decision, found: &Decision, wrong: &mut Vec<String>) {
    if let Some(expected) = &expect.actions {
        let found: Vec<String> = found.actions.iter().map(action).collect();
        // A `leave` may state its reason or not.
        let same = expected.len() == found.len()
            && expected.iter().zip(&found).all(|(expected, found)| {
                let bare = found.split_once(':').map_or(&**found, |(name, _)| name);
                expected == found || expected == bare
            });
        if !same {
            let list = |all: &[String]| all.join(", ");
            wrong.push(format!("actions: expected [{}], found [{}]", list(expected), list(&found)));
        }
    }
    if let Some(expected) = &expect.findings {
        let mut expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        let mut found: Vec<&str> = found.findings.iter().map(|each| &*each.name).collect();
        expected.sort_unstable();
        found.sort_unstable();
        if expected != found {
            wrong.push(format!(
                "findings: expected [{}], found [{}]",
                expected.join(", "),
                found.join(", ")
            ));
        }
    }
}

fn differences(expected: &[cases::Difference], found: &[Difference], wrong: &mut Vec<String>) {
    for each in found {
        if !expected.iter().any(|difference| difference.path == each.path) {
            wrong.push(format!("a difference too many: {}", shown(each)));
        }
    }
    for each in expected {
        let Some(found) = found.iter().find(|difference| difference.path == each.path) else {
            wrong.push(format!("a difference too few: {}", each.path));
            continue;
        };
        let kind = found.kind.as_str();
        if each.kind.as_deref().is_some_and(|expected| expected != kind) {
            wrong.push(format!("{}: it is {kind}", each.path));
        }
        for (side, expected, found) in
            [("desired", &each.desired, &found.desired), ("live", &each.live, &found.live)]
        {
            let value = found.as_ref().and_then(|json| serde_json::from_slice::<Value>(json).ok());
            if expected.is_some() && *expected != value {
                wrong.push(format!("{}: {side} is {}", each.path, text(found.as_ref())));
            }
        }
    }
}

fn contains(what: &str, part: &str, found: &str, wrong: &mut Vec<String>) {
    if !found.contains(part) {
        wrong.push(format!("{what}: expected {part:?} in {found:?}"));
    }
}

fn shown(difference: &Difference) -> String {
    let Difference { path, kind, desired, live, .. } = difference;
    let path = if path.is_empty() { "(root)" } else { path };
    format!(
        "{} {path}: desired {}, live {}",
        kind.as_str(),
        text(desired.as_ref()),
        text(live.as_ref())
    )
}

fn text(json: Option<&Vec<u8>>) -> String {
    json.map_or("nothing".into(), |json| String::from_utf8_lossy(json).into_owned())
}

/// An action as cases write it.
fn action(action: &Action) -> String {
    let name = action.kind().map_or("leave", |kind| kind.as_str());
    match action {
        Action::ApplyDesired { without } if !without.is_empty() => {
            format!("{name} without {}", without.join(" "))
        }
        Action::RemoveFields(paths) => format!("{name} {}", paths.join(" ")),
        Action::ApplyContent(json) | Action::PatchStatus(json) => {
            format!("{name}: {}", text(Some(json)))
        }
        Action::Leave(reason) => format!("{name}: {reason}"),
        Action::ApplyDesired { .. } | Action::Recreate | Action::Delete | Action::Adopt => {
            name.to_owned()
        }
    }
}

//! A plugin's answers as JSON: two answers are the same exactly where their texts are.

use serde_json::{Value, json};
use trimtab_core::decision::{Action, Comparison, Decision, Difference, Verdict};

/// The answer to `compare`.
pub(super) fn comparison(comparison: &Comparison) -> Value {
    match comparison {
        Comparison::InSync => json!("in-sync"),
        Comparison::Different(all) => json!({ "different": differences(all) }),
        Comparison::Invalid(what) => json!({ "invalid": what }),
        Comparison::Unknown(why) => json!({ "unknown": why }),
    }
}

/// The answer to `decide`.
pub(super) fn verdict(verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Decided(decided) => json!({ "decided": decision(decided) }),
        Verdict::Unknown(why) => json!({ "unknown": why }),
        Verdict::Defer { reason, after_ms } => {
            json!({ "defer": { "reason": reason, "afterMs": after_ms } })
        }
    }
}

fn decision(decision: &Decision) -> Value {
    let Decision { actions, conditions, findings, look_again_after_ms } = decision;
    let conditions = conditions.iter().map(|it| {
        json!({ "type": it.type_, "status": it.status.as_str(), "reason": it.reason, "message": it.message })
    });
    let findings = findings.iter().map(|it| {
        json!({ "name": it.name, "severity": it.severity.as_str(), "message": it.message, "path": it.path })
    });
    json!({
        "actions": actions.iter().map(action).collect::<Vec<_>>(),
        "conditions": conditions.collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
        "lookAgainAfterMs": look_again_after_ms,
    })
}

fn action(action: &Action) -> Value {
    let word = action.kind().map_or("leave", |kind| kind.as_str());
    match action {
        Action::ApplyDesired { without } => json!({ word: { "without": without } }),
        Action::ApplyContent(json) | Action::PatchStatus(json) => json!({ word: text(json) }),
        Action::RemoveFields(paths) => json!({ word: paths }),
        Action::Recreate | Action::Delete | Action::Adopt => json!(word),
        Action::Leave(why) => json!({ word: why }),
    }
}

/// Differences, with values as the text that the plugin gave.
pub(super) fn differences(all: &[Difference]) -> Vec<Value> {
    let one = |it: &Difference| {
        json!({
            "path": it.path,
            "kind": it.kind.as_str(),
            "desired": it.desired.as_deref().map(text),
            "live": it.live.as_deref().map(text),
            "immutable": it.immutable,
        })
    };
    all.iter().map(one).collect()
}

/// JSON text is UTF-8: the host has read it.
fn text(json: &[u8]) -> String {
    String::from_utf8_lossy(json).into_owned()
}

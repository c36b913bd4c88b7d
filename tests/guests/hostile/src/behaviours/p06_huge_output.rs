//! Answers more than anybody should have to hold: a very long list, a very long text, a value of
//! very many levels, or a list that is a little too long.

use crate::content::{desired, raw};
use crate::shape;
use trimtab_sdk::{Action, Decision, Finding, Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    let decision = Decision::new();
    match shape(snapshot) {
        "list" => {
            let finding = Finding::info("many", "x");
            Decision { findings: vec![finding; 300_000], ..decision }.into()
        }
        "text" => decision.leave("x".repeat(20 << 20)).into(),
        "levels" => {
            let levels = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
            let mut content = desired(snapshot);
            if let Some(object) = content.as_object_mut() {
                object.insert("spec", raw(&levels));
            }
            decision.action(Action::ApplyContent(content)).into()
        }
        _ => Decision { actions: vec![Action::Delete; 1_000], ..decision }.into(),
    }
}

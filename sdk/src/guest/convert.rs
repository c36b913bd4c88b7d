//! The SDK's values as the contract's: paths and JSON become text here.

use super::bindings::exports::trimtab::plugin::reconciler as wit;
use super::bindings::trimtab::plugin::types;
use crate::{
    Action, Comparison, Condition, ConditionStatus, DifferenceKind, Finding, NoComparison, Path,
    Severity, Value, Verdict, json,
};
use std::time::Duration;

pub(super) fn comparison(from: &Comparison<'_>) -> wit::Comparison {
    if from.differences.is_empty() {
        return wit::Comparison::InSync;
    }
    let convert = |difference: &crate::Difference<'_>| wit::Difference {
        path: difference.path.to_string(),
        kind: kind(difference.kind),
        desired: difference.desired.as_deref().map(text),
        live: difference.live.as_deref().map(text),
        immutable: difference.immutable.as_ref().map(ToString::to_string),
    };
    wit::Comparison::Different(from.differences.iter().map(convert).collect())
}

pub(super) fn no_comparison(from: NoComparison) -> wit::Comparison {
    match from {
        NoComparison::Invalid(how) => wit::Comparison::Invalid(how),
        NoComparison::Unknown(why) => wit::Comparison::Unknown(why),
    }
}

pub(super) fn verdict(from: &Verdict) -> wit::Verdict {
    match from {
        Verdict::Unknown(reason) => wit::Verdict::Unknown(reason.clone()),
        Verdict::Defer { reason, after } => wit::Verdict::Defer(types::Deferral {
            reason: reason.clone(),
            after_ms: milliseconds(*after),
        }),
        Verdict::Decided(decision) => wit::Verdict::Decided(types::Decision {
            actions: decision.actions.iter().map(action).collect(),
            conditions: decision.conditions.iter().map(condition).collect(),
            findings: decision.findings.iter().map(finding).collect(),
            look_again_after_ms: decision.look_again_after.map(milliseconds),
        }),
    }
}

pub(super) fn kind_from(kind: types::DifferenceKind) -> DifferenceKind {
    match kind {
        types::DifferenceKind::Changed => DifferenceKind::Changed,
        types::DifferenceKind::Missing => DifferenceKind::Missing,
        types::DifferenceKind::Stray => DifferenceKind::Stray,
        types::DifferenceKind::Released => DifferenceKind::Released,
        types::DifferenceKind::Pruned => DifferenceKind::Pruned,
    }
}

fn kind(kind: DifferenceKind) -> types::DifferenceKind {
    match kind {
        DifferenceKind::Changed => types::DifferenceKind::Changed,
        DifferenceKind::Missing => types::DifferenceKind::Missing,
        DifferenceKind::Stray => types::DifferenceKind::Stray,
        DifferenceKind::Released => types::DifferenceKind::Released,
        DifferenceKind::Pruned => types::DifferenceKind::Pruned,
    }
}

fn action(from: &Action) -> types::Action {
    match from {
        Action::ApplyDesired { without } => {
            types::Action::ApplyDesired(types::ApplyOptions { without: paths(without) })
        }
        Action::ApplyContent(content) => types::Action::ApplyContent(text(content)),
        Action::RemoveFields(fields) => types::Action::RemoveFields(paths(fields)),
        Action::Recreate => types::Action::Recreate,
        Action::Delete => types::Action::Delete,
        Action::PatchStatus(status) => types::Action::PatchStatus(text(status)),
        Action::Adopt => types::Action::Adopt,
        Action::Leave(reason) => types::Action::Leave(reason.clone()),
    }
}

fn condition(from: &Condition) -> types::Condition {
    types::Condition {
        type_: from.type_.clone(),
        status: match from.status {
            ConditionStatus::True => types::ConditionStatus::True,
            ConditionStatus::False => types::ConditionStatus::False,
            ConditionStatus::Unknown => types::ConditionStatus::Unknown,
        },
        reason: from.reason.clone(),
        message: from.message.clone(),
    }
}

fn finding(from: &Finding) -> types::Finding {
    types::Finding {
        name: from.name.clone(),
        severity: match from.severity {
            Severity::Info => types::Severity::Info,
            Severity::Warning => types::Severity::Warning,
            Severity::Critical => types::Severity::Critical,
        },
        message: from.message.clone(),
        path: from.path.as_ref().map(ToString::to_string),
    }
}

fn paths(paths: &[Path]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

fn text(value: &Value<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    json::write(value, &mut out);
    out
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

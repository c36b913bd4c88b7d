//! `trust`: something unsigned, altered, stepped back, denied or beyond its grant was turned away.
//!
//! It was turned away elsewhere; that it was tried is the signal.

use super::{Name, Observation, Subject};
use crate::decision::Severity;
use crate::record::Record;
use crate::{bookkeeping, denial, fields, taint};
use std::collections::BTreeMap;

/// Refusals of the gate that are about what a plugin may do at all.
const GRANT_EXCEEDED: [&str; 9] = [
    "KindNotGranted",
    "KindNotClaimed",
    "ActionNotGranted",
    "ActionNotDeclared",
    "ClusterScopeNotGranted",
    "NamespaceNotGranted",
    "NameNotCanonical",
    "OutsideTargetNamespace",
    fields::REFUSED,
];
/// Refusals that are about what is never done without a second word.
const DENIED: [&str; 4] =
    [denial::REFUSED, taint::REFUSED, bookkeeping::HOST_OWNED, bookkeeping::ANOTHER_OBJECT];

/// What the gate refused in a pass: one observation for each sort.
pub fn of_record(record: &Record) -> Vec<Observation> {
    let mut sorts: BTreeMap<(&'static str, &'static str), Vec<&str>> = BTreeMap::new();
    for refusal in &record.refusals {
        let sort = match refusal.reason {
            reason if GRANT_EXCEEDED.contains(&reason) => "grant-exceeded",
            reason if DENIED.contains(&reason) => "denied-change",
            _ => continue,
        };
        sorts.entry((sort, refusal.reason)).or_default().push(&refusal.message);
    }
    sorts.into_iter().map(|((sort, reason), all)| told(record, sort, reason, &all)).collect()
}

fn told(record: &Record, sort: &str, reason: &str, messages: &[&str]) -> Observation {
    let plugin = &record.plugin;
    let words = match sort {
        "denied-change" => "asked for a change that is denied",
        _ => "asked for more than it is granted",
    };
    let text = format!(
        "{}: plugin {} {words} ({reason}): {}",
        record.key,
        plugin.name,
        messages.join("; ")
    );
    let subject = Subject::Object(record.key.clone());
    Observation::new(Name::Trust, Severity::Warning, subject, text, record.at_ms)
        .about(format!("{sort} {reason} {}", plugin.name))
        .with("sort", sort)
        .with("reason", reason)
        .with("plugin", format!("{} {}", plugin.name, plugin.version))
        .with("digest", plugin.digest.to_string())
        .with("mode", record.mode.as_str())
        .with("source", &*record.source)
        .with("revision", &*record.revision)
}

/// What is wrong with the trust in a source or a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// No signature that counts.
    Unsigned,
    /// A signature is there and is not of these bytes.
    Altered,
    /// An older state is offered as the newest.
    SteppedBack,
    /// It gives two answers to one question.
    Impure,
}

impl Breach {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unsigned => "unsigned",
            Self::Altered => "altered",
            Self::SteppedBack => "stepped-back",
            Self::Impure => "impure",
        }
    }
}

/// What is told of a source or a plugin that was turned away; `why` is the refusal's words.
pub fn of_breach(subject: Subject, breach: Breach, why: &str, at_ms: u64) -> Observation {
    let text = format!("{subject} is turned away, {}: {why}", breach.as_str());
    Observation::new(Name::Trust, Severity::Critical, subject, text, at_ms)
        .about(format!("{} {why}", breach.as_str()))
        .with("sort", breach.as_str())
        .with("why", why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grant::Refusal;
    use crate::signals::edit::samples;

    #[test]
    fn what_the_gate_refuses_for_want_of_power_is_told_by_sort_and_the_rest_is_not() {
        let mut record = samples::record();
        let refusal = |reason: &'static str| Refusal { reason, message: format!("{reason}!") };
        record.refusals = ["ActionNotGranted", "ActionNotGranted", denial::REFUSED, "FieldIgnored"]
            .map(refusal)
            .to_vec();
        let told = of_record(&record);
        let sorts: Vec<&str> = told.iter().map(|it| it.evidence[0].1.as_str()).collect();
        assert_eq!(sorts, ["denied-change", "grant-exceeded"]);
        assert!(told[1].message.contains("ActionNotGranted!; ActionNotGranted!"), "{told:?}");
        record.refusals.clear();
        assert!(of_record(&record).is_empty());
    }
}

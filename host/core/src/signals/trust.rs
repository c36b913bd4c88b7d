//! `trust`: something unsigned, altered, stepped back, denied or beyond its grant was turned away.
//!
//! It was turned away elsewhere; that it was tried is the signal.

use super::{Name, Observation, Subject};
use crate::decision::Severity;
use crate::identity::ObjectKey;
use crate::policy::Opinion;
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

/// What the gate refused in a pass, one observation for each sort, and what policies stopped.
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
    let mut all: Vec<Observation> =
        sorts.into_iter().map(|((sort, reason), all)| told(record, sort, reason, &all)).collect();
    let Record { key, source, revision, reviews, at_ms, .. } = record;
    all.extend(of_opinions(key, (source, revision), reviews, *at_ms));
    all
}

/// What policies stopped, of an object from this source and revision.
pub fn of_opinions(
    key: &ObjectKey,
    (source, revision): (&str, &str),
    opinions: &[Opinion],
    at_ms: u64,
) -> Vec<Observation> {
    let stopped = opinions.iter().filter(|opinion| opinion.stops());
    let told = stopped.map(|opinion| {
        let controls: Vec<&str> = match opinion.reasons() {
            [] => vec!["policy-failed"],
            reasons => reasons.iter().map(|reason| reason.control.as_str()).collect(),
        };
        let (reason, point) = (controls.join(", "), opinion.point.as_str());
        let text = format!("{key}: {opinion}");
        Observation::new(Name::Trust, Severity::Warning, Subject::Object(key.clone()), text, at_ms)
            .about(format!("denied-change {point} {} {reason}", opinion.policy.name))
            .with("sort", "denied-change")
            .with("reason", reason)
            .with("policy", format!("{} {}", opinion.policy.name, opinion.policy.version))
            .with("digest", opinion.policy.digest.to_string())
            .with("point", point)
            .with("source", source)
            .with("revision", revision)
    });
    told.collect()
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
    use crate::grant::{Mode, Refusal};
    use crate::policy::{Point, Reason, Said, Verdict};
    use crate::signals::edit::samples;

    #[test]
    fn what_a_policy_stops_is_told_with_its_controls_and_what_it_would_stop_is_not() {
        let opinion = |mode| Opinion {
            policy: samples::record().plugin,
            mode,
            point: Point::BeforeWrite,
            said: Said::Verdict(Verdict::Deny(vec![Reason {
                control: "host-path".into(),
                message: "no".into(),
                path: None,
            }])),
        };
        let mut record = samples::record();
        record.reviews = vec![opinion(Mode::Enforce), opinion(Mode::Observe)];
        let told = of_record(&record);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].evidence.iter().any(|(_, it)| it == "host-path"), "{told:?}");
        assert!(told[0].message.contains("host-path: no"), "{told:?}");
    }

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

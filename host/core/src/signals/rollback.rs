//! `unsafe-rollback`: a field returns again and again to a value that policy denies, whoever
//! writes it. Loudest where our own desired state does so.
//!
//! What policy denies is an input. In what enters, an administrator's policies say it
//! ([`of_opinions`]); in what is there, which they are not asked about, [`HardDenials`]: pods beyond
//! the baseline, which no grant allows without a word of its own. A value counts each time that it
//! comes back after it was gone.

use super::bounded::Bounded;
use super::{Id, Name, Observation, Rings, Subject, id_of};
use crate::decision::Severity;
use crate::denial;
use crate::identity::ObjectKey;
use crate::policy::{Opinion, Said, Verdict};
use std::collections::BTreeSet;
use trimtab_json::Value;

/// Times within [`WITHIN_MS`] that make it a signal.
pub const TIMES: usize = 3;
/// A day, in milliseconds.
pub const WITHIN_MS: u64 = 24 * 3600 * 1000;
/// Objects of which it is remembered what is denied in them now.
pub const OBJECTS_AT_MOST: usize = 4096;
/// Values of which returns are counted.
pub const VALUES_AT_MOST: usize = 4096;
/// Denied places of one object that are looked at.
const PLACES_AT_MOST: usize = 32;

/// One value that policy denies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Denied {
    /// Who denies it: a policy's name, or a hard denial's word.
    pub policy: String,
    /// What and where, for people; no value of a Secret.
    pub what: String,
}

/// What policy says of an object's values.
pub trait Denies {
    /// What of this object is denied; none where nobody denies anything.
    fn denied(&self, key: &ObjectKey, object: &Value<'_>) -> Vec<Denied>;
}

/// The hard denials that are about values: pods beyond the baseline of the Pod Security Standards.
#[derive(Clone, Copy, Debug)]
pub struct HardDenials;

impl Denies for HardDenials {
    fn denied(&self, key: &ObjectKey, object: &Value<'_>) -> Vec<Denied> {
        let found = denial::beyond_baseline(key, object);
        let policy = denial::Denial::PrivilegedPods.as_str();
        found.into_iter().map(|what| Denied { policy: policy.into(), what }).collect()
    }
}

/// What policies deny of an object that enters, those that only observe included.
pub fn of_opinions(opinions: &[Opinion]) -> Vec<Denied> {
    let mut all = Vec::new();
    for opinion in opinions {
        let Said::Verdict(Verdict::Deny(reasons)) = &opinion.said else { continue };
        all.extend(reasons.iter().map(|reason| Denied {
            policy: format!("policy {}", opinion.policy.name),
            what: match &reason.path {
                Some(path) => format!("{} at {path}", reason.control),
                None => reason.control.clone(),
            },
        }));
    }
    all
}

/// Whose word a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By<'a> {
    /// Desired state of ours: source and revision.
    Source(&'a str, &'a str),
    /// The same, held against policies before it is in force.
    Entering(&'a str, &'a str),
    /// Somebody in the cluster: managers by managedFields, empty if they do not tell.
    Managers(&'a str),
}

/// What is remembered.
#[derive(Clone, Debug)]
pub struct Rollbacks {
    /// What is denied now, by object and side.
    now: Bounded<Id, BTreeSet<Denied>>,
    /// Returns, for whoever keeps them over a restart.
    pub returns: Rings,
}

impl Default for Rollbacks {
    fn default() -> Self {
        Self {
            now: Bounded::new(OBJECTS_AT_MOST),
            returns: Rings::new(VALUES_AT_MOST, 64, WITHIN_MS),
        }
    }
}

impl Rollbacks {
    /// What policy denies in an object as it is now, and whose word that is.
    pub fn seen(
        &mut self,
        key: &ObjectKey,
        denied: Vec<Denied>,
        by: By<'_>,
        at_ms: u64,
    ) -> Vec<Observation> {
        let side = match by {
            By::Source(..) => "desired",
            By::Entering(..) => "entering",
            By::Managers(_) => "live",
        };
        let object = key.to_string();
        let id = id_of(&[side, &object]);
        let denied: BTreeSet<Denied> = denied.into_iter().take(PLACES_AT_MOST).collect();
        let before = self.now.remove(&id).unwrap_or_default();
        let mut all = Vec::new();
        for it in denied.difference(&before) {
            let value = id_of(&[side, &object, &it.policy, &it.what]);
            let (times, since_ms) = self.returns.note(value, at_ms);
            if times >= TIMES {
                all.push(told(key, it, by, times, since_ms, at_ms));
            }
        }
        if !denied.is_empty() {
            self.now.set(id, denied);
        }
        all
    }
}

fn told(
    key: &ObjectKey,
    denied: &Denied,
    by: By<'_>,
    times: usize,
    since_ms: u64,
    at_ms: u64,
) -> Observation {
    let Denied { policy, what } = denied;
    let minutes = at_ms.saturating_sub(since_ms) / 60_000;
    let (severity, who) = match by {
        By::Source(source, revision) | By::Entering(source, revision) => (
            Severity::Critical,
            format!("OUR OWN DESIRED STATE does so: source {source} at {revision}"),
        ),
        By::Managers("") => (Severity::Warning, "by somebody managedFields do not tell".into()),
        By::Managers(who) => (Severity::Warning, format!("by {who}, according to managedFields")),
    };
    let text = format!(
        "{key} returns to what {policy} denies for the {times}th time within {minutes} min ({what}), {who}"
    );
    let subject = Subject::Object(key.clone());
    let side = if matches!(by, By::Managers(_)) { "live" } else { "desired" };
    Observation::new(Name::UnsafeRollback, severity, subject, text, at_ms)
        .about(format!("{side} {policy} {what}"))
        .with("policy", policy.clone())
        .with("what", what.clone())
        .with("times", times.to_string())
        .with("by", who)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::GroupKind;

    fn key() -> ObjectKey {
        ObjectKey::new(GroupKind::new("apps", "Deployment"), "shop", "web")
    }

    fn denied() -> Vec<Denied> {
        vec![Denied { policy: "p".into(), what: "/spec/x".into() }]
    }

    #[test]
    fn the_third_return_within_a_day_is_told_and_a_value_that_stays_is_one() {
        let mut all = Rollbacks::default();
        let mallory = By::Managers("mallory");
        for at in [1, 2, 3] {
            assert!(all.seen(&key(), denied(), mallory, at).is_empty(), "it stays as it is");
        }
        let mut told = Vec::new();
        for at in [10, 20] {
            assert!(all.seen(&key(), vec![], mallory, at).is_empty());
            told.extend(all.seen(&key(), denied(), mallory, at + 1));
        }
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].message.contains("by mallory"), "{told:?}");
        assert_eq!(told[0].severity, Severity::Warning);
    }

    #[test]
    fn returns_that_are_days_apart_are_none() {
        let mut all = Rollbacks::default();
        for day in 0..6 {
            assert!(all.seen(&key(), denied(), By::Managers("m"), day * WITHIN_MS).is_empty());
            all.seen(&key(), vec![], By::Managers("m"), day * WITHIN_MS + 1);
        }
    }

    #[test]
    fn our_own_desired_state_is_told_loudest() {
        let mut all = Rollbacks::default();
        let mut told = Vec::new();
        for at in 0..3 {
            told.extend(all.seen(&key(), denied(), By::Source("shop", "abc"), at));
            all.seen(&key(), vec![], By::Source("shop", "abd"), at);
        }
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].severity, Severity::Critical);
        assert!(told[0].message.contains("OUR OWN DESIRED STATE"), "{told:?}");
        // What is in force and what policies say of what enters are counted apart.
        all.seen(&key(), denied(), By::Entering("shop", "abc"), 9);
        assert!(all.seen(&key(), vec![], By::Source("shop", "abc"), 10).is_empty());
        assert!(
            all.seen(&key(), denied(), By::Entering("shop", "abc"), 11).is_empty(),
            "it stayed"
        );
    }

    #[test]
    fn a_privileged_container_is_denied_and_a_plain_one_is_not() {
        let object = |privileged: bool| {
            format!(
                r#"{{"spec":{{"template":{{"spec":{{"containers":[{{"name":"a","securityContext":{{"privileged":{privileged}}}}}]}}}}}}}}"#
            )
        };
        let judge = |text: &str| {
            HardDenials.denied(&key(), &trimtab_json::parse(text.as_bytes()).unwrap()).len()
        };
        assert_eq!((judge(&object(true)), judge(&object(false))), (1, 0));
    }
}

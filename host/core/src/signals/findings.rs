//! What the signals said: each finding once, with its first and last time and how often.
//!
//! Two observations are one finding where name, subject and what they are about are the same. There
//! are at most [`AT_MOST`]; of those that are too many the least severe goes first, and of these the
//! one that was seen longest ago.

use super::{Name, Observation, Subject, id_of, shortened};
use crate::decision::Severity;
use std::collections::{BTreeMap, HashMap};

/// Findings that are kept.
pub const AT_MOST: usize = 2000;
/// How long a finding that was not seen again is kept: 30 days, in milliseconds.
pub const KEPT_MS: u64 = 30 * 24 * 3600 * 1000;

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stable over restarts: 16 hexadecimal digits of what it is about.
    pub id: String,
    /// What it is called.
    pub name: Name,
    /// How urgent, at its worst.
    pub severity: Severity,
    /// What it is about.
    pub subject: Subject,
    /// In words, of the last time.
    pub message: String,
    /// Of the last time.
    pub evidence: Vec<(String, String)>,
    /// Milliseconds since the Unix epoch.
    pub first_ms: u64,
    /// Milliseconds since the Unix epoch.
    pub last_ms: u64,
    /// How often it was observed.
    pub count: u64,
    /// When what it tells was over, for what lasts (`stale`).
    pub ended_ms: Option<u64>,
}

impl Finding {
    /// Whether this time is worth a word: the first, and then each time that the count has doubled.
    pub fn is_loud(&self) -> bool {
        self.count.is_power_of_two()
    }
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    by_id: HashMap<String, Finding>,
    /// Observations by name and severity since the host started: for whoever makes metrics of them.
    counts: BTreeMap<(Name, Severity), u64>,
}

impl Findings {
    /// From before a restart.
    pub fn restore(kept: Vec<Finding>, now_ms: u64) -> Self {
        let mut findings = Self::default();
        let young = |finding: &Finding| finding.last_ms + KEPT_MS >= now_ms;
        for finding in kept.into_iter().filter(young) {
            findings.by_id.insert(finding.id.clone(), finding);
        }
        while findings.by_id.len() > AT_MOST {
            findings.make_room();
        }
        findings
    }

    /// Takes an observation up; the finding that it is part of.
    pub fn take(&mut self, observation: Observation) -> Finding {
        let Observation { name, severity, subject, about, message, evidence, at_ms } = observation;
        *self.counts.entry((name, severity)).or_default() += 1;
        let id = id_of(&[name.as_str(), &subject.to_string(), &about]);
        let id: String = id[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let evidence =
            evidence.into_iter().map(|(name, text)| (name.to_owned(), shortened(&text))).collect();
        let before = self.by_id.remove(&id);
        let finding = Finding {
            name,
            severity: before.as_ref().map_or(severity, |before| before.severity.max(severity)),
            subject,
            message: shortened(&message),
            evidence,
            first_ms: before.as_ref().map_or(at_ms, |before| before.first_ms.min(at_ms)),
            last_ms: before.as_ref().map_or(at_ms, |before| before.last_ms.max(at_ms)),
            count: before.map_or(1, |before| before.count + 1),
            ended_ms: None,
            id: id.clone(),
        };
        if self.by_id.len() >= AT_MOST {
            self.make_room();
        }
        self.by_id.insert(id, finding.clone());
        finding
    }

    /// What lasted is over.
    pub fn ended(&mut self, name: Name, subject: &Subject, at_ms: u64) -> bool {
        let mut any = false;
        for finding in self.by_id.values_mut() {
            let its = finding.name == name && finding.subject == *subject;
            if its && finding.ended_ms.is_none() {
                finding.ended_ms = Some(at_ms);
                any = true;
            }
        }
        any
    }

    /// Every finding, the newest first.
    pub fn all(&self) -> Vec<&Finding> {
        let mut all: Vec<&Finding> = self.by_id.values().collect();
        all.sort_by(|a, b| b.last_ms.cmp(&a.last_ms).then_with(|| a.id.cmp(&b.id)));
        all
    }

    /// Observations since the host started, by name and severity.
    pub fn counts(&self) -> &BTreeMap<(Name, Severity), u64> {
        &self.counts
    }

    fn make_room(&mut self) {
        let least = self.by_id.values().min_by_key(|it| (it.severity, it.last_ms, it.id.clone()));
        if let Some(id) = least.map(|finding| finding.id.clone()) {
            self.by_id.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(source: &str, about: &str, severity: Severity, at_ms: u64) -> Observation {
        let subject = Subject::Source(source.into());
        Observation::new(Name::Trust, severity, subject, "unsigned", at_ms).about(about)
    }

    #[test]
    fn the_same_again_is_one_finding_with_first_and_last_time_and_a_count() {
        let mut findings = Findings::default();
        assert!(findings.take(seen("a", "x", Severity::Warning, 10)).is_loud());
        findings.take(seen("a", "x", Severity::Critical, 20));
        let third = findings.take(seen("a", "x", Severity::Warning, 30));
        assert_eq!((third.first_ms, third.last_ms, third.count), (10, 30, 3));
        assert_eq!(third.severity, Severity::Critical);
        assert!(!third.is_loud());
        findings.take(seen("a", "y", Severity::Warning, 40));
        findings.take(seen("b", "x", Severity::Warning, 50));
        assert_eq!(findings.all().len(), 3);
        assert_eq!(findings.counts()[&(Name::Trust, Severity::Warning)], 4);
    }

    #[test]
    fn a_restart_goes_on_counting_and_forgets_what_is_a_month_old() {
        let mut findings = Findings::default();
        findings.take(seen("a", "x", Severity::Warning, 10));
        findings.take(seen("b", "x", Severity::Warning, KEPT_MS));
        let kept: Vec<Finding> = findings.all().into_iter().cloned().collect();
        let mut next = Findings::restore(kept, KEPT_MS + 11);
        assert_eq!(next.take(seen("b", "x", Severity::Warning, KEPT_MS + 12)).count, 2);
        assert_eq!(next.take(seen("a", "x", Severity::Warning, KEPT_MS + 13)).count, 1);
    }

    #[test]
    fn what_is_over_says_so_until_it_is_seen_again() {
        let mut findings = Findings::default();
        let subject = Subject::Source("a".into());
        let stale = || Observation::new(Name::Stale, Severity::Warning, subject.clone(), "gone", 1);
        findings.take(stale());
        assert!(findings.ended(Name::Stale, &subject, 5));
        assert!(!findings.ended(Name::Stale, &subject, 6));
        assert_eq!(findings.all()[0].ended_ms, Some(5));
        assert_eq!(findings.take(stale()).ended_ms, None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn however_many_findings_there_are_a_bounded_number_is_kept_and_the_severe_ones_first(
            extra in 1usize..300,
        ) {
            let mut findings = Findings::default();
            findings.take(seen("first", "x", Severity::Critical, 0));
            for number in 0..AT_MOST + extra {
                let at = u64::try_from(number).unwrap_or(0) + 1;
                findings.take(seen(&number.to_string(), &"y".repeat(5000), Severity::Info, at));
            }
            prop_assert_eq!(findings.all().len(), AT_MOST);
            prop_assert!(findings.all().iter().any(|it| it.severity == Severity::Critical));
        }
    }
}

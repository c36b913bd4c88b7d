//! `stale`: a source, a watch or a plugin has stopped answering.
//!
//! A short outage is none: only what lasts for [`AFTER_MS`] is told, once, and when it is over the
//! finding says so.

use super::{Name, Observation, Subject};
use crate::decision::Severity;
use std::collections::BTreeMap;

/// How long something may be silent: an API server that restarts is back by then.
pub const AFTER_MS: u64 = 15_000;
/// Subjects that are silent at once.
pub const SUBJECTS_AT_MOST: usize = 1024;

#[derive(Clone, Debug)]
struct Silent {
    since_ms: u64,
    why: String,
    told: bool,
}

/// Who is silent.
#[derive(Clone, Debug, Default)]
pub struct Silence {
    subjects: BTreeMap<Subject, Silent>,
}

impl Silence {
    /// It does not answer, and why.
    pub fn failed(&mut self, subject: Subject, why: &str, at_ms: u64) {
        if let Some(silent) = self.subjects.get_mut(&subject) {
            why.clone_into(&mut silent.why);
        } else if self.subjects.len() < SUBJECTS_AT_MOST {
            let silent = Silent { since_ms: at_ms, why: why.to_owned(), told: false };
            self.subjects.insert(subject, silent);
        }
    }

    /// It answers. Whether it was told that it does not.
    pub fn answers(&mut self, subject: &Subject) -> bool {
        self.subjects.remove(subject).is_some_and(|silent| silent.told)
    }

    /// When [`Silence::due`] has something to say next.
    pub fn next_ms(&self) -> Option<u64> {
        let untold = self.subjects.values().filter(|silent| !silent.told);
        untold.map(|silent| silent.since_ms + AFTER_MS).min()
    }

    /// Those that were silent for too long by now, each once.
    pub fn due(&mut self, now_ms: u64) -> Vec<Observation> {
        let mut all = Vec::new();
        for (subject, silent) in &mut self.subjects {
            if silent.told || now_ms < silent.since_ms + AFTER_MS {
                continue;
            }
            silent.told = true;
            let seconds = now_ms.saturating_sub(silent.since_ms) / 1000;
            let why = &silent.why;
            let text = format!(
                "{subject} has not answered for {seconds} s; what it said last stays in force: {why}"
            );
            let told =
                Observation::new(Name::Stale, Severity::Warning, subject.clone(), text, now_ms);
            all.push(told.with("why", why.clone()));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_told_once_and_a_short_outage_is_not() {
        let mut silence = Silence::default();
        let (a, b) = (Subject::Source("a".into()), Subject::Source("b".into()));
        silence.failed(a.clone(), "refused", 1_000);
        silence.failed(b.clone(), "refused", 1_000);
        assert_eq!(silence.next_ms(), Some(1_000 + AFTER_MS));
        assert!(silence.due(1_000 + AFTER_MS - 1).is_empty());
        assert!(!silence.answers(&b));
        silence.failed(a.clone(), "still refused", 9_000);
        let told = silence.due(1_000 + AFTER_MS);
        assert_eq!(told.len(), 1);
        assert!(told[0].message.contains("still refused"), "{told:?}");
        assert!(silence.due(1_000_000).is_empty());
        assert!(silence.answers(&a));
    }

    #[test]
    fn memory_is_bounded_however_many_are_silent() {
        let mut silence = Silence::default();
        for number in 0..SUBJECTS_AT_MOST + 10 {
            silence.failed(Subject::Plugin(number.to_string().into()), "x", 1);
        }
        assert_eq!(silence.subjects.len(), SUBJECTS_AT_MOST);
    }
}

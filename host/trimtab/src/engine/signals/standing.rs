//! How watches, sources and plugins stand: who is silent, and who was turned away.

use crate::engine::Engine;
use crate::plugins::FileStatus;
use crate::timestamp::now_ms;
use std::time::Instant;
use trimtab_core::decision::Severity;
use trimtab_core::identity::Gvk;
use trimtab_core::signals::trust::{self, Breach};
use trimtab_core::signals::{Name, Observation, Subject};
use trimtab_source::SourceError;

impl Engine {
    /// A watch is broken, or works.
    pub(in crate::engine) fn signal_watch(&mut self, gvk: &Gvk, trouble: Option<&str>) {
        self.signal_silence(Subject::Watch(gvk.clone()), trouble);
    }

    /// How a source stands.
    pub(in crate::engine) fn signal_source(&mut self, name: &str, problem: Option<&SourceError>) {
        let subject = Subject::Source(name.into());
        let breach = match problem {
            Some(SourceError::Unverified { .. }) => Some(Breach::Unsigned),
            Some(SourceError::SteppedBack { .. }) => Some(Breach::SteppedBack),
            _ => None,
        };
        let silent = problem.filter(|problem| {
            matches!(
                problem,
                SourceError::Unreachable { .. }
                    | SourceError::AuthRefused { .. }
                    | SourceError::Missing { .. }
                    | SourceError::Unreadable { .. }
                    | SourceError::ReferenceMissing { .. }
            )
        });
        if let (Some(breach), Some(problem)) = (breach, problem) {
            let why = problem.to_string();
            self.signal_all(vec![trust::of_breach(subject.clone(), breach, &why, now_ms())]);
        }
        self.signal_silence(subject, silent.map(ToString::to_string).as_deref());
    }

    fn signal_silence(&mut self, subject: Subject, why: Option<&str>) {
        match why {
            Some(why) => self.signals.silence.failed(subject, why, now_ms()),
            None => {
                if self.signals.silence.answers(&subject) {
                    self.signal_over(&subject);
                }
            }
        }
    }

    fn signal_over(&mut self, subject: &Subject) {
        if self.signals.findings.ended(Name::Stale, subject, now_ms()) {
            tracing::info!("{subject} answers again");
            self.signals.changed_at.get_or_insert_with(Instant::now);
        }
    }

    /// How plugins stand that stand otherwise than before.
    pub(in crate::engine) fn signal_plugins(&mut self, changed: &[FileStatus]) {
        for plugin in changed {
            let name = if plugin.name.is_empty() { &plugin.file } else { &plugin.name };
            let subject = Subject::Plugin(name.as_str().into());
            let now = now_ms();
            if let Some(breach) = breach_of(plugin) {
                self.signal_all(vec![trust::of_breach(subject, breach, &plugin.reason, now)]);
            } else if plugin.state == "quarantined" {
                let text = format!("{subject} is not called any more: {}", plugin.reason);
                let seen = Observation::new(Name::Stale, Severity::Warning, subject, text, now);
                self.signal_all(vec![seen.with("why", plugin.reason.clone())]);
            } else {
                self.signal_over(&subject);
            }
        }
    }
}

/// What of a plugin's standing is about trust.
fn breach_of(plugin: &FileStatus) -> Option<Breach> {
    if plugin.reason.contains(crate::signing::UNSIGNED) {
        return Some(Breach::Unsigned);
    }
    if plugin.reason.contains(crate::signing::NO_SIGNATURE_COUNTS) {
        return Some(Breach::Altered);
    }
    (plugin.state == "refused" && plugin.reason.contains("is not pure")).then_some(Breach::Impure)
}

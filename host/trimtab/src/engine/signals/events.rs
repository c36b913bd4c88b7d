//! Findings as Kubernetes Events on their objects.
//!
//! One Event for a finding; what is seen again raises its count. Few are written in a minute,
//! whatever is found, and where RBAC does not allow it that is said once and left for a while.

use super::Heard;
use crate::timestamp::now_ms;
use serde_json::json;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use trimtab_core::decision::Severity;
use trimtab_core::gate;
use trimtab_core::identity::Gvk;
use trimtab_core::object::Live;
use trimtab_core::ports::{ApplyError, Cluster as _};
use trimtab_core::signals::{Finding, Subject};
use trimtab_kube::Writer;

/// Events that may be written at once, and how soon there is room for another.
const AT_ONCE: u32 = 20;
const ANOTHER_AFTER: Duration = Duration::from_secs(6);
/// How long nothing is tried after RBAC forbade it.
const FORBIDDEN_PAUSE: Duration = Duration::from_secs(600);
/// Names of Events that are remembered, to raise their counts.
const NAMES_AT_MOST: usize = 1024;
/// Longest note that the API server takes, in bytes.
const NOTE_AT_MOST: usize = 1024;

/// What is known of Events.
pub(super) struct Posts {
    on: bool,
    tokens: u32,
    filled_at: Instant,
    forbidden: Option<Instant>,
    told: bool,
    /// By the finding's id: the Event's namespace and name.
    names: HashMap<String, (String, String)>,
}

/// What came of one.
pub(in crate::engine) struct Posted {
    id: String,
    namespace: String,
    name: String,
    result: Result<(), ApplyError>,
}

impl Posts {
    pub(super) fn new(on: bool) -> Self {
        Self {
            on,
            tokens: AT_ONCE,
            filled_at: Instant::now(),
            forbidden: None,
            told: false,
            names: HashMap::new(),
        }
    }

    /// Writes an Event about this finding, beside the loop, where there is room for one.
    pub(super) fn post(
        &mut self,
        finding: &Finding,
        object: Option<(Gvk, Live)>,
        writer: &Writer,
        sender: &mpsc::Sender<Heard>,
    ) {
        let (Subject::Object(key), Some((gvk, live))) = (&finding.subject, object) else { return };
        if !self.on
            || self.forbidden.is_some_and(|at| at.elapsed() < FORBIDDEN_PAUSE)
            || !self.take()
        {
            return;
        }
        let known = self.names.get(&finding.id).cloned();
        let (namespace, name) = known.clone().unwrap_or_else(|| {
            // Of objects without a namespace the API server takes Events in this one alone.
            let namespace = key.namespace.as_deref().unwrap_or("default").to_owned();
            (namespace, format!("trimtab.{}.{:x}", finding.id, now_ms()))
        });
        let change = match known {
            Some(_) => {
                gate::event_again(&namespace, &name, finding.count.max(2), &micro(finding.last_ms))
            }
            None => {
                let uid = live.object().map(|live| live.uid.to_string()).unwrap_or_default();
                let event = json!({
                    "apiVersion": "events.k8s.io/v1",
                    "kind": "Event",
                    "metadata": { "namespace": namespace, "name": name },
                    "eventTime": micro(finding.last_ms),
                    "reportingController": "trimtab.dev/host",
                    "reportingInstance": "trimtab",
                    "action": "Found",
                    "reason": finding.name.as_reason(),
                    "type": if finding.severity == Severity::Info { "Normal" } else { "Warning" },
                    "note": note(&finding.message),
                    "regarding": {
                        "apiVersion": gvk.api_version(),
                        "kind": &*gvk.kind,
                        "namespace": key.namespace_str(),
                        "name": &*key.name,
                        "uid": uid,
                    },
                });
                gate::event(&namespace, &name, event.to_string().into_bytes())
            }
        };
        let (writer, sender, id) = (writer.clone(), sender.clone(), finding.id.clone());
        tokio::spawn(async move {
            let result = writer.write(&change).await.map(drop);
            let _ = sender.send(Heard::Posted(Posted { id, namespace, name, result })).await;
        });
    }

    /// Takes up what came of one; what a person has to know of it, once.
    pub(super) fn posted(&mut self, posted: Posted) -> Option<String> {
        let Posted { id, namespace, name, result } = posted;
        let error = match result {
            Ok(()) => {
                self.forbidden = None;
                if self.names.len() >= NAMES_AT_MOST {
                    self.names.clear();
                }
                self.names.insert(id, (namespace, name));
                return None;
            }
            Err(error) => error,
        };
        // It is gone by its time, or never was: the next one is a new one.
        self.names.remove(&id);
        if let ApplyError::Forbidden(_) = error {
            self.forbidden = Some(Instant::now());
        }
        if std::mem::replace(&mut self.told, true) {
            tracing::debug!("an Event about a finding is not written: {error}");
            return None;
        }
        Some(format!(
            "Events about findings are not written, and findings are in the log and in `trimtab findings` alone: {error}; RBAC has to allow: apiGroups: [\"events.k8s.io\"], resources: [events], verbs: [create, patch]; or turn them off with --no-events"
        ))
    }

    fn take(&mut self) -> bool {
        let passed = self.filled_at.elapsed().as_secs() / ANOTHER_AFTER.as_secs();
        if passed > 0 {
            let more = u32::try_from(passed).unwrap_or(AT_ONCE);
            self.tokens = self.tokens.saturating_add(more).min(AT_ONCE);
            self.filled_at = Instant::now();
        }
        let some = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        some
    }
}

/// A time as Events have it.
fn micro(ms: u64) -> String {
    crate::timestamp::rfc3339(ms).replace('Z', "000Z")
}

/// As far as the API server takes it.
fn note(text: &str) -> &str {
    let mut end = text.len().min(NOTE_AT_MOST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_events_are_written_at_once_whatever_is_found() {
        let mut posts = Posts::new(true);
        let written = (0..1000).filter(|_| posts.take()).count();
        assert_eq!(written, usize::try_from(AT_ONCE).unwrap());
    }

    #[test]
    fn what_rbac_forbids_is_said_once() {
        let mut posts = Posts::new(true);
        let forbidden = || Posted {
            id: "a".into(),
            namespace: "n".into(),
            name: "e".into(),
            result: Err(ApplyError::Forbidden("no".into())),
        };
        let told = posts.posted(forbidden()).unwrap();
        assert!(told.contains("events.k8s.io"), "{told}");
        assert_eq!(posts.posted(forbidden()), None);
        assert!(posts.forbidden.is_some());
    }

    #[test]
    fn a_note_ends_at_a_whole_character() {
        assert_eq!(note(&"é".repeat(600)).len(), 1024);
        assert_eq!(note(&format!("a{}", "é".repeat(600))).len(), 1023);
        assert_eq!(micro(1_767_323_045_678), "2026-01-02T03:04:05.678000Z");
    }
}

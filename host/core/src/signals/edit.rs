//! `manual-edit`: what was in force was changed past its source. Who, managedFields say, and where
//! it is given the API server's own audit log; where the two do not agree, that is a finding of its
//! own, `manual-edit-mismatch`. That the edit was corrected takes nothing of it away.
//!
//! A difference is an edit only where the same desired state was in force before and the object has
//! moved since: what another revision of the source changes is nobody's edit.

use super::bounded::Bounded;
use super::witness::Seen;
use super::{Id, Name, Observation, Subject, id_of};
use crate::decision::{Difference, DifferenceKind, Manager, Severity};
use crate::identity::{Digest, ObjectKey};
use crate::object::LiveObject;
use crate::record::{Outcome, Record};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Objects of which it is remembered what was in force.
pub const OBJECTS_AT_MOST: usize = 65_536;
/// Paths that a finding names.
const PATHS_AT_MOST: usize = 8;
/// An entry of ours in managedFields that is this much newer than our last write is somebody
/// else's: clocks differ, and its time is to the second.
const UNDER_OUR_NAME_AFTER_MS: u64 = 5_000;
/// Components of Kubernetes that write by themselves: no hand, but past the source all the same.
const COMPONENTS: [&str; 6] = [
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-apiserver",
    "cloud-controller-manager",
    "cluster-autoscaler",
];

#[derive(Clone, Debug)]
struct InForce {
    digest: Digest,
    /// The object's resourceVersion when it was last as declared.
    version: Option<Arc<str>>,
    /// When we last wrote it.
    wrote_ms: Option<u64>,
    /// The resourceVersion of which an edit was told.
    told: Option<Arc<str>>,
}

/// What is remembered.
#[derive(Clone, Debug)]
pub struct Edits {
    in_force: Bounded<Id, InForce>,
}

impl Default for Edits {
    fn default() -> Self {
        Self { in_force: Bounded::new(OBJECTS_AT_MOST) }
    }
}

/// An edit by one hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Of which object.
    pub key: ObjectKey,
    /// The last writer by managedFields; `None`: they do not tell.
    pub manager: Option<Manager>,
    /// What was changed.
    pub paths: Vec<String>,
    /// What became of it: the pass's outcome.
    pub outcome: &'static str,
    /// When it was found, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

impl Edits {
    /// Takes up a pass that ended. `left`: the object as the pass's writes left it; `before`: whether
    /// a host before this one had this desired state in force, where nothing is remembered.
    pub fn pass(&mut self, record: &Record, left: Option<&LiveObject>, before: bool) -> Vec<Edit> {
        let id = id_of(&[&record.key.to_string()]);
        let known = self.in_force.get(&id).cloned();
        let was = match &known {
            Some(known) => known.digest == record.desired_digest,
            None => before,
        };
        let found = if was { edits(record, known.as_ref()) } else { Vec::new() };
        let wrote_ms = left.map(|_| record.at_ms);
        if record.outcome.converged() {
            let version = match left {
                Some(left) => Some(left.resource_version.clone()),
                None => record.live_resource_version.clone(),
            };
            let wrote_ms = wrote_ms.or(known.and_then(|known| known.wrote_ms));
            let digest = record.desired_digest;
            self.in_force.set(id, InForce { digest, version, wrote_ms, told: None });
        } else if !found.is_empty() {
            let known = known.unwrap_or(InForce {
                digest: record.desired_digest,
                version: None,
                wrote_ms: None,
                told: None,
            });
            let told = record.live_resource_version.clone();
            self.in_force.set(id, InForce { told, ..known });
        }
        found
    }

    /// Nobody declares it any more.
    pub fn forget(&mut self, key: &ObjectKey) {
        self.in_force.remove(&id_of(&[&key.to_string()]));
    }
}

fn edits(record: &Record, known: Option<&InForce>) -> Vec<Edit> {
    let looked = !matches!(
        record.outcome,
        Outcome::Stale
            | Outcome::Failed { .. }
            | Outcome::Unknown(_)
            | Outcome::Waiting(_)
            | Outcome::Fault(_)
            | Outcome::NotKept(_)
            | Outcome::InSync
            | Outcome::InSyncByServer
            | Outcome::Created
    );
    let same = |version: Option<&Arc<str>>| {
        version.is_some() && version == record.live_resource_version.as_ref()
    };
    let moved = known.is_none_or(|it| !same(it.version.as_ref()) && !same(it.told.as_ref()));
    if !looked || !moved || record.live_uid.is_none() {
        return Vec::new();
    }
    let wrote_ms = known.and_then(|known| known.wrote_ms);
    let mut by: BTreeMap<String, Edit> = BTreeMap::new();
    let changes = |it: &&Difference| {
        let kind = matches!(
            it.kind,
            DifferenceKind::Changed | DifferenceKind::Missing | DifferenceKind::Stray
        );
        kind && !it.path.is_empty()
    };
    for difference in record.differences.iter().filter(changes) {
        let others = difference.managers.iter().find(|manager| !manager.is_ours());
        let manager = match (others, difference.managers.first()) {
            (None, Some(ours)) if !under_our_name(ours, wrote_ms) => continue,
            (others, first) => others.or(first),
        };
        let name = manager.map(|manager| manager.name.clone()).unwrap_or_default();
        let edit = by.entry(name).or_insert_with(|| Edit {
            key: record.key.clone(),
            manager: manager.cloned(),
            paths: Vec::new(),
            outcome: record.outcome.as_str(),
            at_ms: record.at_ms,
        });
        if edit.paths.len() < PATHS_AT_MOST {
            edit.paths.push(difference.path.clone());
        }
    }
    // Whom managedFields do not tell is whom they tell, if there is one: a field that is gone has
    // no entry.
    let untold = by.remove("");
    match (untold, by.values_mut().next()) {
        (Some(untold), Some(told)) => told.paths.extend(untold.paths),
        (Some(untold), None) => drop(by.insert(String::new(), untold)),
        (None, _) => {}
    }
    by.into_values().collect()
}

/// Whether an entry under our own name is none of our writes.
fn under_our_name(manager: &Manager, wrote_ms: Option<u64>) -> bool {
    let at = super::witness::ms_of(&manager.time);
    at.zip(wrote_ms).is_some_and(|(at, wrote)| at > wrote + UNDER_OUR_NAME_AFTER_MS)
}

impl Edit {
    /// What is told of it: with what the API server's audit log has of the request, if that is
    /// known. A mismatch comes with the edit and never in its place.
    pub fn told(&self, witness: Option<&Seen>) -> Vec<Observation> {
        let name = self.manager.as_ref().map(|manager| manager.name.as_str()).unwrap_or_default();
        let ours = self.manager.as_ref().is_some_and(Manager::is_ours);
        let who = match (&self.manager, witness) {
            (_, Some(Seen::Request(request))) => {
                format!("{} (audit id {})", request.user, request.audit_id)
            }
            (Some(_), _) if ours => {
                format!("another client under the name {name}, according to managedFields")
            }
            (Some(_), _) => format!("{name}, according to managedFields"),
            (None, _) => "somebody whom managedFields do not tell".into(),
        };
        let component = COMPONENTS.contains(&name) && witness.is_none();
        let severity = match (ours, component) {
            (true, _) => Severity::Critical,
            (_, true) => Severity::Info,
            _ => Severity::Warning,
        };
        let hand = match witness {
            Some(Seen::Request(request)) => request.user.as_str(),
            _ => name,
        };
        let paths = self.paths.join(", ");
        let text = format!(
            "{}: {paths} was in force and was changed past its source by {who}; it is {}",
            self.key, self.outcome
        );
        let subject = || Subject::Object(self.key.clone());
        let mut edit =
            Observation::new(Name::ManualEdit, severity, subject(), text, self.at_ms).about(hand);
        edit = self.evidence(edit, witness);
        let mut all = vec![edit];
        if let Some(Seen::Request(request)) = witness
            && let Some(why) = request.contradicts(self.manager.as_ref())
        {
            let text = format!(
                "{}: managedFields say that {} wrote {paths}, and the API server's audit log says {} ({why}); the audit log is the API server's own word, managedFields are the client's",
                self.key,
                if name.is_empty() { "nobody" } else { name },
                request.user
            );
            let told = Observation::new(
                Name::ManualEditMismatch,
                Severity::Critical,
                subject(),
                text,
                self.at_ms,
            )
            .about(format!("{name} {}", request.user));
            all.push(self.evidence(told, witness));
        }
        all
    }

    fn evidence(&self, to: Observation, witness: Option<&Seen>) -> Observation {
        let mut told = to.with("paths", self.paths.join(", ")).with("outcome", self.outcome);
        if let Some(manager) = &self.manager {
            told = told
                .with("manager", manager.name.clone())
                .with("operation", manager.operation.clone())
                .with("subresource", manager.subresource.clone())
                .with("time", manager.time.clone());
        }
        match witness {
            Some(Seen::Request(request)) => told
                .with("user", request.user.clone())
                .with("auditId", request.audit_id.clone())
                .with("userAgent", request.agent.clone()),
            Some(Seen::Nothing) => {
                told.with("audit", "the API server's audit log has no such request")
            }
            None => told,
        }
    }
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;

/// Records and differences for tests of signals.
#[cfg(test)]
pub(crate) mod samples {
    use crate::decision::{Difference, DifferenceKind, Manager};
    use crate::grant::Mode;
    use crate::identity::{Digest, GroupKind, Gvk, ObjectKey};
    use crate::object::Origin;
    use crate::plugin::PluginIdentity;
    use crate::record::{Outcome, Record, Timings, Trigger};

    pub(crate) fn by(name: &str) -> Manager {
        Manager {
            name: name.into(),
            operation: "Update".into(),
            subresource: String::new(),
            time: "2026-01-02T03:04:05Z".into(),
        }
    }

    pub(crate) fn difference(path: &str, managers: &[&str]) -> Difference {
        Difference {
            path: path.into(),
            kind: DifferenceKind::Changed,
            desired: Some(b"1".to_vec()),
            live: Some(b"2".to_vec()),
            immutable: None,
            managers: managers.iter().map(|name| by(name)).collect(),
        }
    }

    pub(crate) fn record() -> Record {
        Record {
            at_ms: 1_000,
            key: ObjectKey::new(GroupKind::new("", "ConfigMap"), "shop", "c"),
            gvk: Gvk::from_api_version("v1", "ConfigMap"),
            trigger: Trigger::Watch,
            plugin: PluginIdentity {
                name: "generic".into(),
                version: "1".into(),
                digest: Digest::of(b"plugin"),
            },
            mode: Mode::Enforce,
            source: "shop".into(),
            revision: "r1".into(),
            origin: Origin { file: "a.yaml".into(), line: 1 },
            desired_digest: Digest::of(b"desired"),
            live_uid: Some("u".into()),
            live_resource_version: Some("1".into()),
            ignored: Vec::new(),
            differences: Vec::new(),
            planned: Vec::new(),
            refusals: Vec::new(),
            reviews: vec![],
            findings: Vec::new(),
            conditions: Vec::new(),
            look_again: None,
            outcome: Outcome::InSync,
            after: None,
            timings: Timings::default(),
        }
    }
}

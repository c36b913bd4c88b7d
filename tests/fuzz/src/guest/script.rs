//! The plugin, which says what the input says, and a world that takes what it is sent.

use super::{CANARY, SECRET, UID, VERSION, is_secret};
use crate::draw::Draw;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use trimtab_core::decision::{
    Action, ActionKind, Comparison, Condition, ConditionStatus, Decision, Difference,
    DifferenceKind, Finding, Severity, Verdict,
};
use trimtab_core::gate::{Change, Effect, Probe, Target};
use trimtab_core::ports::{
    ApplyError, Clock, Cluster, Journal, JournalError, Judge, PluginFault, Written,
};
use trimtab_core::record::Intent;
use trimtab_core::snapshot::Snapshot;
use trimtab_json::{Value, parse, write};

/// The plugin and everything around the pass.
#[derive(Default)]
pub(super) struct Script {
    differences: Vec<Difference>,
    decision: Decision,
    invalid: Option<String>,
    fault: Option<PluginFault>,
    pub(super) read: bool,
    /// Whether it must not see the object's values.
    pub(super) blind: bool,
    /// As the API server has it.
    live: Arc<[u8]>,
    pub(super) seen: Seen,
}

/// What was applied, as the API server keeps it.
fn stored(body: &[u8]) -> Arc<[u8]> {
    let mut object = parse(body).expect("what is applied is JSON").into_owned();
    let metadata = object.as_object_mut().and_then(|root| root.get_mut("metadata"));
    if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
        metadata.insert("uid", UID);
        metadata.insert("resourceVersion", VERSION);
    }
    let mut json = Vec::new();
    write(&object, &mut json);
    json.into()
}

/// What the world was told, in order.
#[derive(Default)]
pub(super) struct Seen(pub(super) Mutex<Vec<Told>>);

pub(super) enum Told {
    Intent,
    Write(ActionKind, Target, Effect),
}

impl Seen {
    fn push(&self, told: Told) {
        self.0.lock().expect("nobody panics with it").push(told);
    }
}

impl Script {
    pub(super) fn read(mut draw: Draw<'_>, snapshot: &Snapshot, read: bool) -> Self {
        let live = snapshot.live_object().map(|live| live.json.clone()).unwrap_or_default();
        let mut script = Self { read, live, ..Self::default() };
        while let Some(line) = draw.line() {
            let (Some(letter), text) = (line.first(), line.get(1..).unwrap_or_default()) else {
                continue;
            };
            script.line(*letter, text);
        }
        if script.differences.is_empty() {
            script.differences.push(difference("", snapshot));
        }
        for difference in &mut script.differences {
            difference.live = snapshot.live_object().map(|live| live.json.to_vec());
        }
        script
    }

    fn line(&mut self, letter: u8, bytes: &[u8]) {
        let text = || String::from_utf8_lossy(bytes).into_owned();
        let action = match letter {
            b'a' => Action::ApplyDesired { without: vec![] },
            b'w' => Action::ApplyDesired { without: vec![text()] },
            b'o' => Action::Adopt,
            b'd' => Action::Delete,
            b'n' => Action::Recreate,
            b'c' => Action::ApplyContent(bytes.to_vec()),
            b's' => Action::PatchStatus(bytes.to_vec()),
            b'r' => Action::RemoveFields(vec![text()]),
            b'l' => Action::Leave(text()),
            b'-' => return self.differences.push(stated(text(), DifferenceKind::Missing)),
            b'+' => return self.differences.push(stated(text(), DifferenceKind::Stray)),
            b'~' => return self.differences.push(stated(text(), DifferenceKind::Changed)),
            b'*' => {
                let mut immutable = stated(text(), DifferenceKind::Changed);
                immutable.immutable = Some(text());
                return self.differences.push(immutable);
            }
            b'=' => {
                if let Some(difference) = self.differences.last_mut() {
                    difference.desired = serde_json::to_vec(&text()).ok();
                }
                return;
            }
            b'?' => return self.fault = Some(PluginFault::Trap(text())),
            b'!' => return self.invalid = Some(text()),
            b'f' => {
                let path = Some(text());
                let finding =
                    Finding { name: text(), severity: Severity::Info, message: text(), path };
                return self.decision.findings.push(finding);
            }
            b'i' => {
                let condition = Condition {
                    type_: text(),
                    status: ConditionStatus::True,
                    reason: text(),
                    message: text(),
                };
                return self.decision.conditions.push(condition);
            }
            _ => return,
        };
        self.decision.actions.push(action);
    }

    /// The Secrets that are about.
    pub(super) fn secrets(&self, snapshot: &Snapshot) -> Vec<&'static [u8]> {
        let about = self.read || is_secret(&snapshot.key);
        about.then_some(SECRET.as_bytes()).into_iter().collect()
    }
}

fn stated(path: String, kind: DifferenceKind) -> Difference {
    let value = Some(br#""x""#.to_vec());
    Difference { path, kind, desired: value, live: None, immutable: None, managers: vec![] }
}

fn difference(path: &str, snapshot: &Snapshot) -> Difference {
    match snapshot.live_object() {
        Some(_) => stated(path.to_owned(), DifferenceKind::Changed),
        None => stated(path.to_owned(), DifferenceKind::Missing),
    }
}

impl Judge for Script {
    async fn compare(&self, shown: &Snapshot) -> Result<Comparison, PluginFault> {
        let live = shown.live_object().map(|live| &*live.json).unwrap_or_default();
        let seen = String::from_utf8_lossy(&[&shown.desired.json, live].concat()).into_owned();
        let canary = CANARY.iter().any(|canary| seen.contains(canary));
        assert!(!self.blind || !canary, "a plugin without a grant sees {seen}");
        Ok(match &self.invalid {
            Some(how) => Comparison::Invalid(how.clone()),
            None => Comparison::Different(self.differences.clone()),
        })
    }

    async fn decide(&self, _: &Snapshot, _: &[Difference]) -> Result<Verdict, PluginFault> {
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None => Ok(Verdict::Decided(self.decision.clone())),
        }
    }

    fn secrets_read(&self) -> Vec<Arc<[u8]>> {
        if self.read { vec![SECRET.as_bytes().into()] } else { Vec::new() }
    }
}

impl Cluster for Script {
    async fn rehearse(&self, probe: &Probe) -> Result<Arc<[u8]>, ApplyError> {
        Ok(stored(probe.body()))
    }

    async fn write(&self, change: &Change) -> Result<Written, ApplyError> {
        let (target, effect) = (change.target().clone(), change.effect().clone());
        self.seen.push(Told::Write(change.planned().action, target, effect));
        Ok(match change.effect() {
            Effect::Delete { .. } => Written::Deleted,
            Effect::Apply { body, .. } | Effect::ApplyStatus { body } | Effect::Create { body } => {
                Written::Object(stored(body))
            }
            Effect::Patch { .. } => Written::Object(self.live.clone()),
        })
    }
}

impl Journal for Script {
    async fn intent(&self, _: &Intent<'_>) -> Result<(), JournalError> {
        self.seen.push(Told::Intent);
        Ok(())
    }
}

impl Clock for Script {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

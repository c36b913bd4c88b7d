//! What a plugin answers, through a whole pass: comparison, decision, gate, write and record.
//!
//! The world around the pass is scripted: the API server takes what it is sent. What has to hold
//! is looked up in the grant and in what was sent, never asked of the gate.

use crate::draw::Draw;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use trimtab_core::budget::Budgets;
use trimtab_core::decision::{
    Action, ActionKind, Comparison, Condition, ConditionStatus, Decision, Difference,
    DifferenceKind, Finding, Severity, Verdict,
};
use trimtab_core::denial::Denial;
use trimtab_core::fields::{FieldPath, Fields};
use trimtab_core::gate::{Change, Effect, Probe};
use trimtab_core::grant::{Grant, Mode, Namespaces, Power, Terms};
use trimtab_core::identity::{Digest, Gvk, ObjectKey};
use trimtab_core::object::{Desired, Live, LiveObject, Origin};
use trimtab_core::pass::{Bounds, World};
use trimtab_core::plugin::{KindPattern, PluginIdentity, PluginManifest};
use trimtab_core::ports::{
    ApplyError, Clock, Cluster, Journal, JournalError, Judge, PluginFault, Written,
};
use trimtab_core::record::{Intent, Record, Trigger};
use trimtab_core::redact::Redactor;
use trimtab_core::snapshot::Snapshot;
use trimtab_json::{Object, Value, parse, write};

const UID: &str = "00000000-0000-0000-0000-000000000001";
const VERSION: &str = "7";
const NAME: &str = "c";
const PLACE: &str = "n";
/// A value that stands in a Secret, its base64, and how a plugin would spell it.
const CANARY: [&str; 3] = ["canary-of-a-secret", "Y2FuYXJ5LW9mLWEtc2VjcmV0", "terces-a-fo-yranac"];
const SECRET: &str = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"n"},"data":{"pw":"Y2FuYXJ5LW9mLWEtc2VjcmV0"}}"#;
/// Actions in one pass, by each grant here.
const ACTIONS: u32 = 3;

const KINDS: [(&str, &str, bool); 9] = [
    ("v1", "ConfigMap", true),
    ("v1", "Secret", true),
    ("v1", "Namespace", false),
    ("v1", "PersistentVolume", false),
    ("apps/v1", "Deployment", true),
    ("rbac.authorization.k8s.io/v1", "Role", true),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", false),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", false),
    ("ex.io/v1", "Thing", true),
];

/// The first lines choose kind and grant, and are desired and live; each further line is one thing
/// that the plugin says, by its first letter. See `seeds/guest`.
pub fn guest(data: &[u8]) {
    let mut draw = Draw::new(data);
    let (power, read) = power(&mut draw);
    let choice = draw.pick(&KINDS);
    draw.line();
    let Some(snapshot) = snapshot(choice, &mut draw) else { return };
    let mut script = Script::read(draw, &snapshot, read);
    script.blind = power.grant.is_none() && is_secret(&snapshot.key);
    script.blind &= only_there(&snapshot, true);
    let redactor = Redactor::new([7; 32]).aware_of(script.secrets(&snapshot));
    let world = World {
        judge: &script,
        cluster: &script,
        journal: &script,
        clock: &script,
        redactor: &redactor,
        bounds: &Bounds::default(),
    };
    let record = now(world.pass(&power, &snapshot, Trigger::Watch));
    check(&power, &snapshot, &script, &record);
}

/// A future whose every answer is at hand.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a scripted world does not wait"),
    }
}

/// What the plugin may do, and whether it read a Secret.
fn power(draw: &mut Draw<'_>) -> (Power, bool) {
    let path = |text: &str| FieldPath::parse(text).expect("a path of ours");
    let kinds = draw.pick(&["*", "ConfigMap", "Secret", "*.apps", "*.ex.io"]);
    let (allow, deny) = draw.pick(&[("", ""), ("/data/**", ""), ("", "/data/a"), ("/spec", "")]);
    let fields = |text: &str| if text.is_empty() { vec![] } else { vec![path(text)] };
    let plugin =
        PluginIdentity { name: "p".into(), version: "1.0.0".into(), digest: Digest::of(b"p") };
    let grant = Grant {
        plugin: "p".into(),
        digest: plugin.digest,
        mode: draw.pick(&[Mode::Enforce, Mode::Observe]),
        kinds: vec![KindPattern::parse(kinds).expect("a pattern of ours")],
        namespaces: Namespaces::Only([draw.pick(&[PLACE, "elsewhere"]).to_owned()].into()),
        cluster_scoped: draw.pick(&[true, false]),
        actions: draw.some(&ActionKind::ALL).into_iter().collect(),
        predecessors: BTreeSet::from(["helm".to_owned()]),
        terms: Terms {
            fields: Fields { allow: fields(allow), deny: fields(deny) },
            allow: draw.some(&Denial::ALL).into_iter().collect(),
            budgets: Budgets { actions_per_pass: ACTIONS, ..Budgets::default() },
            ..Terms::default()
        },
        origin: "g.yaml".into(),
    };
    let manifest = PluginManifest {
        name: "p".into(),
        version: "1.0.0".into(),
        description: String::new(),
        wit: "0.1.0".into(),
        claims: vec![KindPattern::Any],
        reads: vec![],
        actions: ActionKind::ALL.into(),
    };
    let granted = draw.pick(&[true, true, true, false]);
    (Power { plugin, manifest, grant: granted.then_some(grant) }, draw.pick(&[false, true]))
}

/// Desired and live, one line each: any object, under the identity that the host knows it by.
fn snapshot(choice: (&str, &str, bool), draw: &mut Draw<'_>) -> Option<Snapshot> {
    let (api_version, kind, namespaced) = choice;
    let gvk = Gvk::from_api_version(api_version, kind);
    let key = ObjectKey::new(gvk.group_kind(), if namespaced { PLACE } else { "" }, NAME);
    let desired = placed(draw.line()?, &gvk, &key, false)?;
    let live = match draw.line()? {
        b"" => Live::Absent,
        line => Live::Present(LiveObject::read(placed(line, &gvk, &key, true)?)?),
    };
    let desired = Desired {
        key: key.clone(),
        gvk: gvk.clone(),
        digest: Digest::of(&desired),
        json: desired,
        source: "s".into(),
        revision: "r".into(),
        origin: Origin { file: "a.yaml".into(), line: 1 },
        ignore: Default::default(),
    };
    Some(Snapshot {
        desired: Arc::new(desired),
        live,
        key,
        gvk,
        applied_uid: Some(UID.into()),
        facts: Arc::default(),
        now_ms: 0,
        retries: 0,
        standoff: None,
    })
}

fn placed(line: &[u8], gvk: &Gvk, key: &ObjectKey, live: bool) -> Option<Arc<[u8]>> {
    let Value::Object(mut object) = parse(line).ok()? else { return None };
    let mut metadata = match object.remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => Object::new(),
    };
    metadata.insert("name", NAME);
    metadata.remove("namespace");
    if let Some(namespace) = &key.namespace {
        metadata.insert("namespace", &**namespace);
    }
    let server = [("uid", UID), ("resourceVersion", VERSION)];
    for (name, value) in server {
        metadata.remove(name);
        if live {
            metadata.insert(name, value);
        }
    }
    let api_version = gvk.api_version();
    object.insert("apiVersion", &*api_version);
    object.insert("kind", &*gvk.kind);
    object.insert("metadata", metadata);
    let mut json = Vec::new();
    write(&Value::Object(object), &mut json);
    Some(json.into())
}

/// The plugin and everything around the pass.
#[derive(Default)]
struct Script {
    differences: Vec<Difference>,
    decision: Decision,
    invalid: Option<String>,
    fault: Option<PluginFault>,
    read: bool,
    /// Whether it must not see the object's values.
    blind: bool,
    /// As the API server has it.
    live: Arc<[u8]>,
    seen: Seen,
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

/// What the world was told.
#[derive(Default)]
struct Seen(std::sync::Mutex<Vec<(ActionKind, Option<(ObjectKey, Effect)>)>>);

impl Script {
    fn read(mut draw: Draw<'_>, snapshot: &Snapshot, read: bool) -> Self {
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
    fn secrets(&self, snapshot: &Snapshot) -> Vec<&'static [u8]> {
        let about = self.read || is_secret(&snapshot.key);
        about.then_some(SECRET.as_bytes()).into_iter().collect()
    }
}

fn is_secret(key: &ObjectKey) -> bool {
    &*key.group_kind.kind == "Secret"
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
        let told = (change.target().key.clone(), change.effect().clone());
        self.seen.push(change.planned().action, Some(told));
        Ok(match change.effect() {
            Effect::Delete { .. } => Written::Deleted,
            Effect::Apply { body, .. } | Effect::ApplyStatus { body } => {
                Written::Object(stored(body))
            }
            Effect::Patch { .. } => Written::Object(self.live.clone()),
        })
    }
}

impl Seen {
    fn push(&self, action: ActionKind, told: Option<(ObjectKey, Effect)>) {
        self.0.lock().expect("nobody panics with it").push((action, told));
    }
}

impl Journal for Script {
    fn intent(&self, intent: &Intent<'_>) -> Result<(), JournalError> {
        self.seen.push(intent.planned.action, None);
        Ok(())
    }
}

impl Clock for Script {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

fn check(power: &Power, snapshot: &Snapshot, script: &Script, record: &Record) {
    let seen = script.seen.0.lock().expect("nobody panics with it");
    let (mut intents, mut deleted) = (0, false);
    for (action, told) in seen.iter() {
        let Some((key, effect)) = told else {
            intents += 1;
            continue;
        };
        assert_eq!(std::mem::take(&mut intents), 1, "a write without its own intent");
        let Some(grant) = &power.grant else { panic!("written without a grant: {action}") };
        inside(grant, snapshot, *action, key);
        let held = snapshot.live_object().is_some() && !deleted;
        changed(grant, snapshot, key, effect, held);
        deleted |= matches!(effect, Effect::Delete { .. });
    }
    let own = is_secret(&snapshot.key);
    // What it never saw it cannot carry away: a plugin without a grant guessed it.
    if (script.read || own) && !script.blind && only_there(snapshot, own) {
        let values = record.differences.iter().flat_map(|it| [&it.desired, &it.live]);
        let values: Vec<_> = values.flatten().map(|it| String::from_utf8_lossy(it)).collect();
        let told = format!(
            "{values:?} {:?} {:?} {:?} {:?} {:?} {:?} {}",
            record.differences,
            record.planned,
            record.refusals,
            record.findings,
            record.conditions,
            record.outcome,
            record.outcome.message(),
        );
        for canary in CANARY {
            assert!(!told.contains(canary), "a Secret's value leaves the host: {told}");
        }
    }
}

/// Whether the value stands in the Secret alone, so that only the plugin can have carried it away.
fn only_there(snapshot: &Snapshot, own: bool) -> bool {
    let live = snapshot.live_object().map(|live| &*live.json);
    let mut held = false;
    let elsewhere = [Some(&*snapshot.desired.json), live].into_iter().flatten().any(|json| {
        let Ok(mut object) = parse(json) else { return true };
        let data = object.as_object_mut().and_then(|root| root.get_mut("data"));
        if let Some(data) = data.and_then(Value::as_object_mut).filter(|_| own) {
            held |= data.remove("pw").is_some_and(|pw| pw.as_str() == Some(CANARY[1]));
        }
        let mut rest = Vec::new();
        write(&object, &mut rest);
        let rest = String::from_utf8_lossy(&rest);
        CANARY.iter().any(|canary| rest.contains(canary))
    });
    !elsewhere && (held || !own)
}

/// The grant covers it.
fn inside(grant: &Grant, snapshot: &Snapshot, action: ActionKind, key: &ObjectKey) {
    assert_eq!(grant.mode, Mode::Enforce);
    assert_eq!(key, &snapshot.key, "another object");
    assert!(grant.kinds[0].covers(&key.group_kind), "{key}");
    assert!(grant.actions.contains(&action), "{action}");
    let place = match &key.namespace {
        Some(place) => grant.namespaces == Namespaces::Only([place.to_string()].into()),
        None => grant.cluster_scoped,
    };
    assert!(place, "{key} is outside of {:?}", grant.namespaces);
    let lifted = |denial| grant.terms.allow.contains(&denial);
    assert!(
        match &*key.group_kind.group {
            "rbac.authorization.k8s.io" => lifted(Denial::Rbac),
            "apiextensions.k8s.io" => lifted(Denial::Definitions),
            "" if &*key.group_kind.kind == "PersistentVolume" => lifted(Denial::PersistentVolumes),
            _ => true,
        },
        "{key} takes a second word"
    );
}

/// What is sent is about this object, and carries nothing that is the host's alone; of an object
/// that is there it names the one that was seen.
fn changed(grant: &Grant, snapshot: &Snapshot, key: &ObjectKey, effect: &Effect, held: bool) {
    let (body, whole) = match effect {
        Effect::Delete { uid, resource_version, .. } => {
            assert_eq!((&**uid, &**resource_version), (UID, VERSION));
            assert!(grant.terms.fields.allow.is_empty(), "a deletion changes every field");
            return;
        }
        Effect::Patch { body } => return patched(body),
        Effect::Apply { body, .. } => (body, true),
        Effect::ApplyStatus { body } => (body, false),
    };
    let body = parse(body).expect("a body is JSON");
    let text = |path: &[&str]| body.str_at(path);
    assert_eq!(text(&["apiVersion"]), Some(&*snapshot.gvk.api_version()));
    assert_eq!(text(&["kind"]), Some(&*snapshot.gvk.kind));
    assert_eq!(text(&["metadata", "name"]), Some(NAME));
    assert_eq!(text(&["metadata", "namespace"]), key.namespace.as_deref());
    if held {
        assert_eq!(text(&["metadata", "uid"]), Some(UID));
    }
    let desired = parse(&snapshot.desired.json).expect("desired is JSON");
    for name in ["ownerReferences", "finalizers"] {
        let held = body.at(&["metadata", name]);
        assert!(held.is_none() || held == desired.at(&["metadata", name]), "{name}");
    }
    for name in ["managedFields", "generateName", "creationTimestamp", "deletionTimestamp"] {
        assert!(
            body.at(&["metadata", name]).is_none() || desired.at(&["metadata", name]).is_some()
        );
    }
    for section in ["annotations", "labels"] {
        let held = body.at(&["metadata", section]).and_then(Value::as_object);
        for (name, value) in held.into_iter().flat_map(Object::iter) {
            let ours = name.contains("trimtab.dev/");
            let stated = desired.at(&["metadata", section, name]) == Some(value);
            assert!(!ours || stated, "{section} {name}");
        }
    }
    let status = body.get("status").is_some();
    assert!(status != whole || !status || desired.get("status").is_some(), "status");
    let privileged = body.at(&["spec", "template", "spec", "hostPID"]) == Some(&Value::Bool(true));
    if whole && privileged && &*key.group_kind.kind == "Deployment" {
        assert!(grant.terms.allow.contains(&Denial::PrivilegedPods), "host processes");
    }
}

/// A patch is held to what was seen, and touches no ownership.
fn patched(body: &[u8]) {
    let body: serde_json::Value = serde_json::from_slice(body).expect("a patch is JSON");
    let steps = body.as_array().expect("a patch is a list");
    let tests = |path: &str, value: &str| {
        let held = |it: &serde_json::Value| {
            it["op"] == "test" && it["path"] == path && it["value"] == value
        };
        assert!(steps.iter().any(held), "not held to {path}");
    };
    tests("/metadata/uid", UID);
    tests("/metadata/resourceVersion", VERSION);
    for step in steps.iter().filter(|step| step["op"] != "test") {
        let path = step["path"].as_str().expect("a step has a path");
        for owned in ["finalizers", "ownerReferences", "name", "namespace", "uid"] {
            let owned = format!("/metadata/{owned}");
            let within = path == owned || path.starts_with(&format!("{owned}/"));
            assert!(!within && path != "/metadata" && !path.is_empty(), "a patch of {path}");
        }
    }
}

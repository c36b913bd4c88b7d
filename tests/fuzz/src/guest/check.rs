//! What has to hold, looked up in the grant and in what was sent.

use super::script::{Script, Told};
use super::{CANARY, NAME, UID, VERSION, is_secret};
use trimtab_core::decision::ActionKind;
use trimtab_core::denial::Denial;
use trimtab_core::gate::Effect;
use trimtab_core::grant::{Grant, Mode, Namespaces, Power};
use trimtab_core::identity::ObjectKey;
use trimtab_core::record::Record;
use trimtab_core::snapshot::Snapshot;
use trimtab_json::{Object, Value, parse, write};

/// All of it: what was written, and what is told of it.
pub(super) fn check(power: &Power, snapshot: &Snapshot, script: &Script, record: &Record) {
    let seen = script.seen.0.lock().expect("nobody panics with it");
    let (mut intents, mut deleted) = (0, false);
    for told in seen.iter() {
        let Told::Write(action, target, effect) = told else {
            intents += 1;
            continue;
        };
        assert_eq!(std::mem::take(&mut intents), 1, "a write without its own intent");
        let Some(grant) = &power.grant else { panic!("written without a grant: {action}") };
        inside(grant, snapshot, *action, &target.key);
        assert_eq!(target.acts_as, snapshot.desired.terms.acts_as, "as somebody else");
        let held = snapshot.live_object().is_some() && !deleted;
        changed(grant, snapshot, &target.key, effect, held);
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
pub(super) fn only_there(snapshot: &Snapshot, own: bool) -> bool {
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
    let terms = &snapshot.desired.terms;
    assert_eq!((grant.mode, terms.mode), (Mode::Enforce, Mode::Enforce));
    assert!(terms.confined_to.is_none() || terms.confined_to == key.namespace, "{key} is outside");
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
        Effect::Create { .. } => panic!("a plugin has the host's own lists made"),
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
    let denies = grant.terms.fields.deny.iter().any(|path| path.text() == "/data/a");
    if denies && whole && &*key.group_kind.kind == "ConfigMap" {
        denied_field(snapshot, &body, held);
    }
    let status = body.get("status").is_some();
    assert!(status != whole || !status || desired.get("status").is_some(), "status");
    let privileged = body.at(&["spec", "template", "spec", "hostPID"]) == Some(&Value::Bool(true));
    if whole && privileged && &*key.group_kind.kind == "Deployment" {
        assert!(grant.terms.allow.contains(&Denial::PrivilegedPods), "host processes");
    }
}

/// A field that may not change is sent as it is there, or not at all.
fn denied_field(snapshot: &Snapshot, body: &Value<'_>, held: bool) {
    let Some(stated) = body.at(&["data", "a"]).filter(|value| value.as_str().is_some()) else {
        return;
    };
    let live = snapshot.live_object().filter(|_| held).map(|live| parse(&live.json));
    let there = live
        .and_then(Result::ok)
        .and_then(|live| live.at(&["data", "a"]).and_then(Value::as_str).map(str::to_owned));
    assert_eq!(stated.as_str(), there.as_deref(), "/data/a may not change");
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

//! What a plugin answers, through a whole pass: comparison, decision, gate, write and record.
//!
//! The world around the pass is scripted: the API server takes what it is sent. What has to hold
//! is looked up in the grant and in what was sent, never asked of the gate.

mod check;
mod script;

use self::check::{check, only_there};
use self::script::Script;
use crate::draw::Draw;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use trimtab_core::budget::Budgets;
use trimtab_core::decision::ActionKind;
use trimtab_core::denial::Denial;
use trimtab_core::fields::{FieldPath, Fields};
use trimtab_core::grant::{Grant, Mode, Namespaces, Power, Terms};
use trimtab_core::identity::{Digest, GroupKind, Gvk, ObjectKey};
use trimtab_core::object::{Desired, Live, LiveObject, Origin};
use trimtab_core::pass::{Bounds, World};
use trimtab_core::plugin::{KindPattern, PluginIdentity, PluginManifest};
use trimtab_core::record::Trigger;
use trimtab_core::redact::Redactor;
use trimtab_core::snapshot::Snapshot;
use trimtab_core::terms::{Account, SourceTerms};
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
    let terms = terms(&mut draw);
    draw.line();
    let Some(snapshot) = snapshot(choice, terms, &mut draw) else { return };
    let mut script = Script::read(draw, &snapshot, read);
    script.blind = power.grant.is_none() && is_secret(&snapshot.key);
    script.blind &= only_there(&snapshot, true);
    let kind = GroupKind::new("", "Secret");
    let secrets = script.secrets(&snapshot);
    let redactor = Redactor::new([7; 32]).aware_of(secrets.into_iter().map(|json| (&kind, json)));
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

/// What the source is held to.
fn terms(draw: &mut Draw<'_>) -> SourceTerms {
    let account = Account::parse("n/deployer").ok().map(Arc::new);
    let (mode, confined_to, acts_as) = draw.pick(&[
        (Mode::Enforce, None, false),
        (Mode::Observe, None, false),
        (Mode::Enforce, Some("elsewhere"), false),
        (Mode::Enforce, Some(PLACE), true),
    ]);
    SourceTerms {
        mode,
        confined_to: confined_to.map(Into::into),
        acts_as: account.filter(|_| acts_as),
        ..SourceTerms::default()
    }
}

/// Desired and live, one line each: any object, under the identity that the host knows it by.
fn snapshot(
    choice: (&str, &str, bool),
    terms: SourceTerms,
    draw: &mut Draw<'_>,
) -> Option<Snapshot> {
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
        terms: Arc::new(terms),
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

fn is_secret(key: &ObjectKey) -> bool {
    &*key.group_kind.kind == "Secret"
}

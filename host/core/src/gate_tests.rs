//! The gate by itself: what each rule refuses, and that nothing slips by for any grant and decision.

use crate::budget::Budgets;
use crate::decision::{Action, ActionKind, Decision};
use crate::denial::{Accounts, Denial};
use crate::fields::FieldPath;
use crate::gate::{Circumstances, Draft, Effect, Gated, gate};
use crate::grant::{Grant, Mode, Namespaces, Power, Terms};
use crate::identity::{Digest, GroupKind, Gvk, ObjectKey};
use crate::object::{Desired, Live, LiveObject, Origin};
use crate::plugin::{KindPattern, PluginIdentity, PluginManifest};
use crate::snapshot::Snapshot;
use crate::taint::Taint;
use proptest::prelude::*;
use std::sync::Arc;

const UID: &str = "00000000-0000-0000-0000-000000000001";

/// An object of this kind; `more` stands behind its metadata.
fn object(api_version: &str, kind: &str, namespace: &str, metadata: &str, more: &str) -> String {
    let place = match namespace {
        "" => String::new(),
        name => format!(r#","namespace":"{name}""#),
    };
    format!(
        r#"{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{{"name":"c"{place}{metadata}}}{more}}}"#
    )
}

fn seen(
    api_version: &str,
    kind: &str,
    namespace: &str,
    more: &str,
    live: Option<&str>,
) -> Snapshot {
    let gvk = Gvk::from_api_version(api_version, kind);
    let key = ObjectKey::new(gvk.group_kind(), namespace, "c");
    let json: Arc<[u8]> = object(api_version, kind, namespace, "", more).into_bytes().into();
    let live = live.map(|more| {
        let metadata = format!(
            r#","uid":"{UID}","resourceVersion":"7","managedFields":[{{"manager":"trimtab","operation":"Apply","apiVersion":"{api_version}","fieldsType":"FieldsV1","fieldsV1":{{"f:data":{{"f:a":{{}},"f:old":{{}}}}}}}}]"#
        );
        object(api_version, kind, namespace, &metadata, more)
    });
    Snapshot {
        desired: Arc::new(Desired {
            key: key.clone(),
            gvk: gvk.clone(),
            digest: Digest::of(&json),
            json,
            source: "s".into(),
            revision: "r".into(),
            origin: Origin { file: "a.yaml".into(), line: 1 },
            ignore: Default::default(),
            terms: Default::default(),
        }),
        live: live.map_or(Live::Absent, |json| {
            Live::Present(LiveObject::read(json.into_bytes().into()).unwrap())
        }),
        key,
        gvk,
        applied_uid: Some(UID.into()),
        facts: Arc::default(),
        now_ms: 0,
        retries: 0,
        standoff: None,
    }
}

fn map(desired: &str, live: Option<&str>) -> Snapshot {
    seen("v1", "ConfigMap", "n", desired, live)
}

fn power(terms: Terms) -> Power {
    let plugin =
        PluginIdentity { name: "p".into(), version: "1.0.0".into(), digest: Digest::of(b"p") };
    Power {
        manifest: PluginManifest {
            name: "p".into(),
            version: "1.0.0".into(),
            description: String::new(),
            wit: "0.1.0".into(),
            claims: vec![KindPattern::Any],
            reads: vec![KindPattern::Any],
            actions: ActionKind::ALL.into(),
        },
        grant: Some(Grant {
            plugin: "p".into(),
            digest: plugin.digest,
            mode: Mode::Enforce,
            kinds: vec![KindPattern::Any],
            namespaces: Namespaces::All,
            cluster_scoped: true,
            actions: ActionKind::ALL.into(),
            predecessors: Default::default(),
            terms,
            origin: "g.yaml".into(),
        }),
        plugin,
    }
}

fn decide(actions: Vec<Action>) -> Decision {
    Decision { actions, ..Decision::default() }
}

fn judge(power: &Power, snapshot: &Snapshot, action: Action) -> Gated {
    gate(power, snapshot, &decide(vec![action]), &Circumstances::default()).unwrap()
}

fn reasons(gated: &Gated) -> Vec<&'static str> {
    gated.refusals.iter().map(|refusal| refusal.reason).collect()
}

fn apply() -> Action {
    Action::ApplyDesired { without: vec![] }
}

fn content(json: &str) -> Action {
    Action::ApplyContent(json.as_bytes().to_vec())
}

fn changes(gated: &Gated, snapshot: &Snapshot) -> Vec<Draft> {
    gated.permits.iter().flat_map(|permit| permit.drafts(snapshot, snapshot).unwrap()).collect()
}

#[test]
fn a_hard_denial_holds_for_every_action_until_the_grant_lifts_it_by_name() {
    let role = |live| seen("rbac.authorization.k8s.io/v1", "Role", "n", r#","rules":[]"#, live);
    let made = object("rbac.authorization.k8s.io/v1", "Role", "n", "", r#","rules":[1]"#);
    let live = Some(r#","rules":[{"verbs":["*"]}]"#);
    let mut snapshot = role(live);
    let annotated = String::from_utf8_lossy(&snapshot.desired.json).replace(
        r#""name":"c""#,
        r#""name":"c","annotations":{"trimtab.dev/on-immutable":"recreate"}"#,
    );
    snapshot.desired =
        Arc::new(Desired { json: annotated.into_bytes().into(), ..(*snapshot.desired).clone() });
    let lifted = power(Terms { allow: [Denial::Rbac].into(), ..Terms::default() });
    let made = made.replace(
        r#""name":"c""#,
        r#""name":"c","annotations":{"trimtab.dev/on-immutable":"recreate"}"#,
    );
    for action in [
        apply(),
        Action::Adopt,
        Action::Recreate,
        Action::Delete,
        content(&made),
        Action::PatchStatus(br#"{"status":{"a":1}}"#.to_vec()),
        Action::RemoveFields(vec!["/rules/0/verbs".into()]),
    ] {
        let gated = judge(&power(Terms::default()), &snapshot, action.clone());
        assert!(gated.permits.is_empty() && gated.planned.is_empty(), "{action:?}");
        assert!(reasons(&gated).contains(&"HardDenial"), "{action:?}: {:?}", gated.refusals);
        assert!(gated.refusals[0].message.contains("rbac under allow"), "{:?}", gated.refusals);
        let gated = judge(&lifted, &snapshot, action.clone());
        assert!(!gated.permits.is_empty(), "{action:?}: {:?}", gated.refusals);
    }
    let gated = judge(&power(Terms::default()), &role(None), apply());
    assert_eq!(reasons(&gated), ["HardDenial"], "a creation too");
}

#[test]
fn a_dry_run_says_what_an_apply_would_change_and_another_content_is_estimated() {
    let fields =
        crate::fields::Fields { allow: vec![FieldPath::parse("/data/a").unwrap()], deny: vec![] };
    let power = power(Terms { fields, ..Terms::default() });
    let snapshot = map(r#","data":{"a":"1"}"#, Some(r#","data":{"a":"2"}"#));
    let rehearsed = |more: &str| object("v1", "ConfigMap", "n", "", more);
    let judged = |json: &str| {
        let known = Circumstances { rehearsed: Some(json.as_bytes()), ..Circumstances::default() };
        reasons(&gate(&power, &snapshot, &decide(vec![apply()]), &known).unwrap())
    };
    assert_eq!(judged(&rehearsed(r#","data":{"a":"1"}"#)), [""; 0]);
    assert_eq!(judged(&rehearsed(r#","data":{"a":"1","b":"a webhook's"}"#)), ["FieldNotGranted"]);
    let made = |more: &str| reasons(&judge(&power, &snapshot, content(&rehearsed(more))));
    assert_eq!(made(r#","data":{"a":"9"}"#), [""; 0]);
    assert_eq!(made(r#","data":{"a":"9","b":"1"}"#), ["FieldNotGranted"]);
}

#[test]
fn a_field_is_changed_by_leaving_it_out_by_removing_it_and_by_deleting_the_object() {
    let deny = vec![FieldPath::parse("/data/old").unwrap()];
    let power =
        power(Terms { fields: crate::fields::Fields { allow: vec![], deny }, ..Terms::default() });
    let snapshot = map(r#","data":{"a":"1"}"#, Some(r#","data":{"a":"2","old":"1"}"#));
    for action in [
        apply(),
        content(&object("v1", "ConfigMap", "n", "", r#","data":{"a":"3"}"#)),
        Action::RemoveFields(vec!["/data/old".into()]),
        Action::Delete,
    ] {
        let gated = judge(&power, &snapshot, action.clone());
        assert_eq!(reasons(&gated), ["FieldNotGranted"], "{action:?}");
        assert!(gated.refusals[0].message.contains("/data/old"), "{:?}", gated.refusals);
    }
    let keeps = object("v1", "ConfigMap", "n", "", r#","data":{"a":"3","old":"1"}"#);
    assert_eq!(reasons(&judge(&power, &snapshot, content(&keeps))), [""; 0]);
}

#[test]
fn content_that_a_plugin_made_carries_no_bookkeeping_and_is_no_other_object() {
    let snapshot = map(r#","data":{"a":"1"}"#, Some(r#","data":{"a":"2"}"#));
    let with = |metadata: &str, more: &str| object("v1", "ConfigMap", "n", metadata, more);
    let cases = [
        (with(r#","ownerReferences":[{"uid":"x"}]"#, ""), "HostOwnedField"),
        (with(r#","finalizers":["a/b"]"#, ""), "HostOwnedField"),
        (with(r#","managedFields":[]"#, ""), "HostOwnedField"),
        (with(r#","generateName":"c-""#, ""), "HostOwnedField"),
        (with(r#","uid":"x""#, ""), "HostOwnedField"),
        (with(r#","resourceVersion":"1""#, ""), "HostOwnedField"),
        (with(r#","annotations":{"trimtab.dev/ignore":"/data"}"#, ""), "HostOwnedField"),
        (with(r#","labels":{"x.trimtab.dev/y":"1"}"#, ""), "HostOwnedField"),
        (with("", r#","status":{"a":1}"#), "HostOwnedField"),
        (with("", "").replace("ConfigMap", "Secret"), "ContentOfAnotherObject"),
        (with("", "").replace("ConfigMap", "ConfigMapList"), "ContentOfAnotherObject"),
        (r#"{"apiVersion":"v1","kind":"List","items":[]}"#.into(), "ContentOfAnotherObject"),
        (with("", "").replace(r#""v1""#, r#""v2""#), "ContentOfAnotherObject"),
        (with("", "").replace(r#""c""#, r#""C""#), "ContentOfAnotherObject"),
        (with("", "").replace(r#""n""#, r#""kube-system""#), "ContentOfAnotherObject"),
        (with("", r#","data":{"a":"1","a":"2"}"#), "ContentUnreadable"),
        ("[]".into(), "ContentUnreadable"),
    ];
    for (json, reason) in cases {
        let gated = judge(&power(Terms::default()), &snapshot, content(&json));
        assert_eq!(reasons(&gated), [reason], "{json}");
        assert!(gated.permits.is_empty() && gated.planned.is_empty(), "{json}");
        assert_eq!(gated.findings[0].name, "plugin-overstepped", "{json}");
    }
    let status = |json: &str| {
        let action = Action::PatchStatus(json.as_bytes().to_vec());
        reasons(&judge(&power(Terms::default()), &snapshot, action))
    };
    assert_eq!(status(r#"{"status":{"a":1}}"#), [""; 0]);
    for json in [
        r#"{"data":{"a":"x"},"status":{}}"#,
        r#"{"metadata":{"labels":{"a":"b"}},"status":{}}"#,
        r#"{"metadata":{"finalizers":[]},"status":{}}"#,
    ] {
        assert_eq!(status(json), ["HostOwnedField"], "{json}");
    }
}

#[test]
fn bookkeeping_that_desired_states_stays_when_a_plugin_leaves_it_out() {
    let mut snapshot = map(r#","data":{"a":"1"}"#, None);
    let stated = r#","annotations":{"trimtab.dev/ignore":"/data/x"},"finalizers":["ex.io/hold"]"#;
    let json = object("v1", "ConfigMap", "n", stated, "");
    snapshot.desired =
        Arc::new(Desired { json: json.into_bytes().into(), ..(*snapshot.desired).clone() });
    let made = object("v1", "ConfigMap", "n", "", r#","data":{"a":"9"}"#);
    let gated = judge(&power(Terms::default()), &snapshot, content(&made));
    let written = changes(&gated, &snapshot);
    let Effect::Apply { body, .. } = written[0].effect() else { panic!("{written:?}") };
    let body = String::from_utf8_lossy(body);
    assert!(body.contains("ex.io/hold") && body.contains("trimtab.dev/ignore"), "{body}");
    assert!(body.contains(r#""a":"9""#), "{body}");
}

#[test]
fn what_holds_an_object_or_says_whose_it_is_is_not_removed() {
    let mut snapshot = map("", None);
    let metadata = format!(
        r#","uid":"{UID}","resourceVersion":"7","finalizers":["ex.io/a"],"ownerReferences":[{{"uid":"u"}}],"annotations":{{"trimtab.dev/on-immutable":"recreate","x":"y"}}"#
    );
    let live = object("v1", "ConfigMap", "n", &metadata, "");
    snapshot.live = Live::Present(LiveObject::read(live.into_bytes().into()).unwrap());
    let removal = |path: &str| {
        let action = Action::RemoveFields(vec![path.into()]);
        reasons(&judge(&power(Terms::default()), &snapshot, action))
    };
    for path in
        ["/metadata/finalizers", "/metadata/finalizers/0", "/metadata/ownerReferences", "/metadata"]
    {
        assert_eq!(removal(path), ["HostOwnedField"], "{path}");
    }
    assert_eq!(removal("/metadata/annotations/x"), [""; 0]);
    assert_eq!(removal("/metadata/annotations"), [""; 0], "desired states none of ours");
}

#[test]
fn a_pass_does_no_more_than_its_budgets_say() {
    let snapshot = map(r#","data":{"a":"1"}"#, Some(r#","data":{"a":"2","b":"1"}"#));
    let judged = |budgets: Budgets, actions: Vec<Action>| {
        let power = power(Terms { budgets, ..Terms::default() });
        gate(&power, &snapshot, &decide(actions), &Circumstances::default()).unwrap()
    };
    let one = Budgets { actions_per_pass: 1, ..Budgets::default() };
    let gated = judged(one, vec![apply(), Action::RemoveFields(vec!["/data/b".into()])]);
    assert_eq!((gated.permits.len(), reasons(&gated)), (1, vec!["PassBudgetSpent"]));
    let none = Budgets { deletes_per_pass: 0, ..Budgets::default() };
    assert_eq!(reasons(&judged(none, vec![Action::Delete])), ["PassBudgetSpent"]);
    let gated = judged(Budgets::default(), vec![Action::Delete, Action::Delete]);
    assert_eq!((gated.permits.len(), reasons(&gated)), (1, vec!["PassBudgetSpent"]));
}

#[test]
fn a_value_of_a_secret_that_the_plugin_read_is_not_written_as_content() {
    let snapshot = map(r#","data":{"a":"1"}"#, Some(r#","data":{"a":"2"}"#));
    let secret: Arc<[u8]> = br#"{"data":{"pw":"Y29ycmVjdCBob3JzZQ=="}}"#.as_slice().into();
    let known = Circumstances { taint: Taint::of(&snapshot, vec![secret]), ..Default::default() };
    let judged = |json: &str| {
        let decision = decide(vec![content(json)]);
        gate(&power(Terms::default()), &snapshot, &decision, &known).unwrap()
    };
    for carried in ["correct horse", "Y29ycmVjdCBob3JzZQ==", "esroh tcerroc"] {
        let json = object("v1", "ConfigMap", "n", "", &format!(r#","data":{{"a":"<{carried}>"}}"#));
        let gated = judged(&json);
        assert_eq!(reasons(&gated), ["SecretInContent"], "{json}");
        assert!(!gated.refusals[0].message.contains("horse"));
    }
    let clean = object("v1", "ConfigMap", "n", "", r#","data":{"a":"fine"}"#);
    assert_eq!(reasons(&judged(&clean)), [""; 0]);
}

#[test]
fn a_name_that_is_none_of_the_api_is_not_written() {
    for (name, fine) in [
        ("c", true),
        ("a-b.c9", true),
        ("C", false),
        ("..", false),
        ("a/b", false),
        ("a%2fb", false),
        ("а", false),
        ("a\0", false),
        ("-a", false),
        ("", false),
        (&*"a".repeat(254), false),
    ] {
        let mut snapshot = map("", None);
        snapshot.key = ObjectKey::new(GroupKind::new("", "ConfigMap"), "n", name);
        let expected: &[&str] = if fine { &[] } else { &["NameNotCanonical"] };
        assert_eq!(
            reasons(&judge(&power(Terms::default()), &snapshot, apply())),
            expected,
            "{name:?}"
        );
    }
}

#[test]
fn a_custom_resource_with_a_pod_template_is_told_to_be_unjudged() {
    let more = r#","spec":{"template":{"spec":{"containers":[{"image":"i"}]}}}"#;
    let snapshot = seen("ex.io/v1", "Workers", "n", more, None);
    let gated = judge(&power(Terms::default()), &snapshot, apply());
    assert_eq!(gated.findings[0].name, "pod-template-not-judged");
    assert_eq!(gated.permits.len(), 1);
}

#[test]
fn reads_are_narrowed_by_the_grant_and_bounded_by_its_places() {
    let key =
        |kind: &str, namespace: &str| ObjectKey::new(GroupKind::new("", kind), namespace, "c");
    let mut power = power(Terms {
        reads: Some(vec![KindPattern::parse("Service").unwrap()]),
        ..Terms::default()
    });
    let grant = power.grant.as_mut().unwrap();
    grant.kinds = vec![KindPattern::parse("ConfigMap").unwrap()];
    grant.namespaces = Namespaces::Only(["n".to_owned()].into());
    assert!(power.may_read(&key("Service", "n")));
    assert!(!power.may_read(&key("Service", "elsewhere")));
    assert!(!power.may_read(&key("ConfigMap", "n")));
    power.grant.as_mut().unwrap().terms.reads = None;
    assert!(power.may_read(&key("ConfigMap", "n")) && !power.may_read(&key("Service", "n")));
    power.manifest.reads.clear();
    assert!(!power.may_read(&key("ConfigMap", "n")));
}

#[test]
fn without_a_grant_a_plugin_reads_what_it_claims_and_no_secret() {
    let key = |kind: &str| ObjectKey::new(GroupKind::new("", kind), "n", "c");
    let mut power = power(Terms::default());
    power.grant = None;
    assert!(power.may_read(&key("ConfigMap")) && !power.may_read(&key("Secret")));
    power.manifest.claims = vec![KindPattern::parse("ConfigMap").unwrap()];
    assert!(power.may_read(&key("ConfigMap")) && !power.may_read(&key("Service")));
}

const KINDS: [(&str, &str, bool); 7] = [
    ("v1", "ConfigMap", true),
    ("v1", "Secret", true),
    ("v1", "Namespace", false),
    ("apps/v1", "Deployment", true),
    ("rbac.authorization.k8s.io/v1", "Role", true),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", false),
    ("ex.io/v1", "Thing", true),
];

/// What stands in desired, in live or in content: some of it is denied, owned or not granted.
const BODIES: [&str; 7] = [
    "",
    r#","data":{"a":"1"}"#,
    r#","data":{"a":"2","b":"3"}"#,
    r#","type":"kubernetes.io/service-account-token","data":{"a":"MQ=="}"#,
    r#","spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}"#,
    r#","spec":{"template":{"spec":{"hostPID":true,"containers":[{"name":"c","image":"i"}]}}}"#,
    r#","spec":{"template":{"spec":{"serviceAccountName":"root","containers":[{"name":"c","image":"j"}]}}}"#,
];

fn actions(api_version: &'static str, kind: &'static str) -> impl Strategy<Value = Action> {
    prop_oneof![
        Just(apply()),
        Just(Action::Adopt),
        Just(Action::Delete),
        Just(Action::Recreate),
        Just(Action::Leave("no".into())),
        Just(Action::RemoveFields(vec!["/data/b".into()])),
        Just(Action::RemoveFields(vec!["/metadata/finalizers".into()])),
        Just(Action::PatchStatus(br#"{"status":{"a":1}}"#.to_vec())),
        (
            0..BODIES.len(),
            prop_oneof![
                Just(""),
                Just(r#","finalizers":["x/y"]"#),
                Just(r#","annotations":{"trimtab.dev/ignore":"/x"}"#),
            ],
            prop_oneof![Just("n"), Just("m")]
        )
            .prop_map(move |(body, metadata, namespace)| {
                content(&object(api_version, kind, namespace, metadata, BODIES[body]))
            }),
    ]
}

fn cases() -> impl Strategy<Value = (Snapshot, Power, Vec<Action>, bool)> {
    (0..KINDS.len(), 0..BODIES.len(), proptest::option::of(0..BODIES.len())).prop_flat_map(
        |(kind, desired, live)| {
            let (api_version, kind, namespaced) = KINDS[kind];
            let namespace = if namespaced { "n" } else { "" };
            let snapshot =
                seen(api_version, kind, namespace, BODIES[desired], live.map(|live| BODIES[live]));
            let granted = proptest::sample::subsequence(ActionKind::ALL.to_vec(), 0..=7);
            let lifted = proptest::sample::subsequence(Denial::ALL.to_vec(), 0..=10);
            let fields = prop_oneof![
                Just((vec![], vec![])),
                Just((vec!["/data/*"], vec![])),
                Just((vec![], vec!["/data/a"])),
            ];
            let kinds = prop_oneof![Just("*"), Just("ConfigMap"), Just("*.apps")];
            let places = (any::<bool>(), any::<bool>());
            (
                granted,
                lifted,
                fields,
                kinds,
                places,
                any::<bool>(),
                proptest::collection::vec(actions(api_version, kind), 0..5),
            )
                .prop_map(
                    move |(
                        granted,
                        lifted,
                        (allow, deny),
                        kinds,
                        (inside, cluster),
                        enforce,
                        actions,
                    )| {
                        let paths = |list: Vec<&str>| {
                            list.into_iter().map(|path| FieldPath::parse(path).unwrap()).collect()
                        };
                        let mut power = power(Terms {
                            allow: lifted.into_iter().collect(),
                            fields: crate::fields::Fields {
                                allow: paths(allow),
                                deny: paths(deny),
                            },
                            budgets: Budgets { actions_per_pass: 3, ..Budgets::default() },
                            ..Terms::default()
                        });
                        if let Some(grant) = &mut power.grant {
                            grant.actions = granted.into_iter().collect();
                            grant.kinds = vec![KindPattern::parse(kinds).unwrap()];
                            grant.cluster_scoped = cluster;
                            let place = if inside { "n" } else { "elsewhere" };
                            grant.namespaces = Namespaces::Only([place.to_owned()].into());
                            grant.mode = if enforce { Mode::Enforce } else { Mode::Observe };
                        }
                        (snapshot.clone(), power, actions, enforce)
                    },
                )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn for_no_grant_and_no_decision_a_change_lies_outside((snapshot, power, actions, enforce) in cases()) {
        let Ok(gated) = gate(&power, &snapshot, &decide(actions), &Circumstances::default()) else {
            return Ok(());
        };
        let grant = power.grant.as_ref().unwrap();
        let changes = changes(&gated, &snapshot);
        prop_assert!(enforce || changes.is_empty());
        prop_assert!(gated.permits.len() <= 3);
        let read = |json: &[u8]| trimtab_json::parse(json).unwrap().into_owned();
        let live = snapshot.live_object().map(|live| read(&live.json));
        for change in &changes {
            let (target, planned) = (change.target(), change.planned());
            prop_assert_eq!(&target.key, &snapshot.key);
            prop_assert!(grant.kinds[0].covers(&target.key.group_kind));
            prop_assert!(grant.actions.contains(&planned.action));
            match &target.key.namespace {
                Some(place) => prop_assert_eq!(&grant.namespaces, &Namespaces::Only([place.to_string()].into())),
                None => prop_assert!(grant.cluster_scoped),
            }
            let (body, gone) = match change.effect() {
                Effect::Apply { body, .. } => (Some(read(body)), false),
                Effect::Delete { uid, resource_version, .. } => {
                    prop_assert_eq!((&**uid, &**resource_version), (UID, "7"));
                    (None, true)
                }
                _ => (None, false),
            };
            if let Some(body) = &body {
                prop_assert_eq!(body.str_at(&["kind"]), Some(&*target.gvk.kind));
                prop_assert_eq!(body.str_at(&["metadata", "name"]), Some("c"));
                prop_assert_eq!(body.str_at(&["metadata", "namespace"]), target.key.namespace.as_deref());
                prop_assert!(body.at(&["metadata", "finalizers"]).is_none());
                prop_assert!(body.at(&["metadata", "annotations"]).is_none());
                for denied in crate::denial::judge(&target.key, live.as_ref(), Some(body), &Accounts::new()) {
                    prop_assert!(grant.terms.allow.contains(&denied.denial), "{:?}", denied);
                }
                if !grant.terms.fields.allow.is_empty() && live.is_none() {
                    prop_assert!(body.get("spec").is_none() && body.get("type").is_none());
                }
            }
            if gone {
                prop_assert!(grant.terms.fields.allow.is_empty());
                if &*target.key.group_kind.group == "rbac.authorization.k8s.io" {
                    prop_assert!(grant.terms.allow.contains(&Denial::Rbac));
                }
            }
        }
    }
}

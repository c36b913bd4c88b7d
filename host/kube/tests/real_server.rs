//! This crate against a real kube-apiserver: one control plane, one behaviour after the other, each
//! in a namespace of its own. Start reading at `behaviours`.

use futures::FutureExt as _;
use std::collections::BTreeSet;
use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trimtab_core::decision::{Action, ActionKind, Decision};
use trimtab_core::gate::{self, Change};
use trimtab_core::grant::{Grant, Mode, Namespaces, Power};
use trimtab_core::identity::{Digest, Gvk, ObjectKey};
use trimtab_core::object::{Desired, Live, LiveObject, Origin};
use trimtab_core::plugin::{KindPattern, PluginIdentity, PluginManifest};
use trimtab_core::ports::{ApplyError, Cluster as _, Written};
use trimtab_core::snapshot::Snapshot;
use trimtab_dev::{ControlPlane, Options as PlaneOptions, to_stderr};
use trimtab_kube::{Credentials, Event, Events, Lookup, Options, Store, Writer, connect};

/// How long anything may take that takes milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Long enough for an event that must not come to have come.
const QUIET: Duration = Duration::from_millis(400);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behaviours() {
    let mut plane = ControlPlane::start(PlaneOptions::default(), &to_stderr).await.unwrap();
    let mut failed: Vec<&str> = Vec::new();
    macro_rules! run {
        ($($behaviour:ident),* $(,)?) => {$(
            let begun = Instant::now();
            let done = AssertUnwindSafe($behaviour(&mut plane)).catch_unwind().await;
            let word = if done.is_ok() { "ok" } else { "FAILED" };
            eprintln!("  {} ... {word} in {:?}", stringify!($behaviour), begun.elapsed());
            failed.extend(done.err().map(|_| stringify!($behaviour)));
        )*};
    }
    run!(
        what_others_create_change_and_delete_is_seen,
        our_own_writes_are_known_at_once_and_cause_no_event,
        a_rehearsal_writes_nothing,
        a_conflict_names_its_manager_and_field,
        a_write_on_an_old_reading_is_stale_and_the_new_one_is_known,
        what_is_not_there_yet_is_waited_for,
        content_that_the_schema_does_not_know_is_rejected,
        an_unreachable_webhook_is_named_and_tried_again,
        a_kind_that_appears_later_is_watched_without_a_restart,
        a_service_account_sees_what_its_role_allows_and_no_more,
        twelve_hundred_objects_come_in_three_pages,
        the_servers_own_schema_is_read,
        an_outage_of_the_server_is_said_survived_and_recovered_from,
    );
    plane.shutdown().await;
    assert!(failed.is_empty(), "failed: {failed:?}");
}

async fn what_others_create_change_and_delete_is_seen(plane: &mut ControlPlane) {
    let mut world = World::new(plane, "seen").await;
    let key = world.watch(&["a"]).await;
    assert!(matches!(world.live(&key[0]), Live::Absent));
    world.other(plane, "kubectl", "a", r#"{"x":"1"}"#).await;
    world.changed(&key[0]).await;
    let created = world.present(&key[0]);
    assert!(text(&created).contains(r#""x":"1""#) && text(&created).contains("managedFields"));
    world.other(plane, "kubectl", "a", r#"{"x":"2"}"#).await;
    world.changed(&key[0]).await;
    assert!(text(&world.present(&key[0])).contains(r#""x":"2""#));
    world.delete_by_another(plane, "a").await;
    world.changed(&key[0]).await;
    assert!(matches!(world.live(&key[0]), Live::Absent));
}

async fn our_own_writes_are_known_at_once_and_cause_no_event(plane: &mut ControlPlane) {
    let mut world = World::new(plane, "echo").await;
    let key = &world.watch(&["a"]).await[0];
    for data in [r#"{"x":"1"}"#, r#"{"x":"2"}"#] {
        let written = world.apply(key, data).await.unwrap();
        let Written::Object(bytes) = written else { panic!("an object") };
        assert_eq!(world.present(key).json, bytes);
    }
    let delete = world.change(key, "{}", Action::Delete);
    assert!(matches!(world.writer.write(&delete).await, Ok(Written::Deleted)));
    assert!(matches!(world.live(key), Live::Absent));
    world.quiet().await;
    // And what comes after is seen again.
    world.other(plane, "kubectl", "a", "{}").await;
    world.changed(key).await;
}

async fn a_rehearsal_writes_nothing(plane: &mut ControlPlane) {
    let mut world = World::new(plane, "rehearse").await;
    let key = &world.watch(&["a"]).await[0];
    let before = world.store.server().requests();
    let probe = gate::probe(&power(BTreeSet::new()), &world.snapshot(key, r#"{"x":"1"}"#)).unwrap();
    let dry = world.writer.rehearse(&probe).await.unwrap();
    assert!(std::str::from_utf8(&dry).unwrap().contains(r#""x":"1""#));
    world.quiet().await;
    assert!(matches!(world.live(key), Live::Absent));
    let after = world.store.server().requests();
    assert_eq!(after.mutating(), before.mutating());
    assert_eq!(after.rehearse, before.rehearse + 1);
}

async fn a_conflict_names_its_manager_and_field(plane: &mut ControlPlane) {
    let mut world = World::new(plane, "conflict").await;
    let key = &world.watch(&["a"]).await[0];
    world.other(plane, "kubectl-edit", "a", r#"{"x":"theirs"}"#).await;
    world.changed(key).await;
    let refusal = world.apply(key, r#"{"x":"ours"}"#).await.unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "conflict with other field managers: kubectl-edit owns .data.x"
    );
    let adopt = world.change(key, r#"{"x":"ours"}"#, Action::Adopt);
    world.writer.write(&adopt).await.unwrap();
    assert!(text(&world.present(key)).contains(r#""x":"ours""#));
}

async fn a_write_on_an_old_reading_is_stale_and_the_new_one_is_known(plane: &mut ControlPlane) {
    let mut world = World::new(plane, "stale").await;
    let key = &world.watch(&["a"]).await[0];
    world.apply(key, r#"{"x":"1"}"#).await.unwrap();
    let first = world.present(key);
    let apply = world.change(key, r#"{"x":"2"}"#, Action::ApplyDesired { without: vec![] });
    let remove = world.change(key, "{}", Action::RemoveFields(vec!["/data/x".into()]));
    let delete = world.change(key, "{}", Action::Delete);
    // Someone deletes it and makes it again: another UID and version, other values.
    world.delete_by_another(plane, "a").await;
    world.changed(key).await;
    for change in [&apply, &remove, &delete] {
        assert_stale(world.writer.write(change).await, "the object is gone");
        assert!(matches!(world.live(key), Live::Absent));
    }
    world.other(plane, "kubectl", "a", r#"{"x":"9"}"#).await;
    for change in [&apply, &remove, &delete] {
        assert_stale(world.writer.write(change).await, "it is another object");
        assert_ne!(world.present(key).uid, first.uid, "it was read again");
    }
    world.changed(key).await;
    // The same UID, and a value that is not the one that was seen.
    let remove = world.change(key, "{}", Action::RemoveFields(vec!["/data/x".into()]));
    world.other(plane, "kubectl", "a", r#"{"x":"10"}"#).await;
    assert_stale(world.writer.write(&remove).await, "another value");
    let remove = world.change(key, "{}", Action::RemoveFields(vec!["/data/x".into()]));
    world.writer.write(&remove).await.unwrap();
    assert!(!text(&world.present(key)).contains(r#""x":"#));
}

async fn what_is_not_there_yet_is_waited_for(plane: &mut ControlPlane) {
    let world = World::new(plane, "later").await;
    let nowhere = ObjectKey::new(config_map().group_kind(), "nowhere", "a");
    let refusal = world.apply(&nowhere, "{}").await.unwrap_err();
    assert_eq!(refusal.to_string(), "waiting: namespace nowhere does not exist");
    let gvk = Gvk::from_api_version("nobody.example/v1", "Thing");
    let key = ObjectKey::new(gvk.group_kind(), "later", "a");
    let change = change_of(
        &snapshot(&key, &gvk, "{}", Live::Absent),
        Action::ApplyDesired { without: vec![] },
    );
    let refusal = world.writer.write(&change).await.unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "waiting: the API server does not serve nobody.example/v1 Thing: is its CRD installed?"
    );
    let path = "/api/v1/namespaces/later";
    // Without a controller manager a namespace stays terminating for ever.
    assert_eq!(plane.client().send("DELETE", path, None).await.unwrap().status, 200);
    let key = ObjectKey::new(config_map().group_kind(), "later", "a");
    let refusal = world.apply(&key, "{}").await.unwrap_err();
    assert_eq!(refusal.to_string(), "waiting: namespace later is being deleted");
}

async fn content_that_the_schema_does_not_know_is_rejected(plane: &mut ControlPlane) {
    let world = World::new(plane, "strict").await;
    let key = ObjectKey::new(config_map().group_kind(), "strict", "a");
    let mut snapshot = snapshot(&key, &config_map(), "{}", Live::Absent);
    for (json, says) in [
        (
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"bogus":1}"#,
            ".bogus: field not declared in schema",
        ),
        (
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":1}}"#,
            ".data.a: expected string",
        ),
        (
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"a":"-"}}}"#,
            "metadata.labels",
        ),
    ] {
        let desired = Arc::make_mut(&mut snapshot.desired);
        desired.json = json.as_bytes().into();
        let change = change_of(&snapshot, Action::ApplyDesired { without: vec![] });
        let refusal = world.writer.write(&change).await.unwrap_err();
        assert!(matches!(&refusal, ApplyError::Rejected(text) if text.contains(says)), "{refusal}");
    }
    let status = change_of(&snapshot, Action::PatchStatus(b"{}".to_vec()));
    let refusal = world.writer.write(&status).await.unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the API server refuses it: v1 ConfigMap has no status of its own"
    );
}

async fn an_unreachable_webhook_is_named_and_tried_again(plane: &mut ControlPlane) {
    let world = World::new(plane, "webhook").await;
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/w";
    let webhook = r#"{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"w"},"webhooks":[{
        "name":"check.example.org","clientConfig":{"url":"https://127.0.0.1:1/x"},"sideEffects":"None","admissionReviewVersions":["v1"],"timeoutSeconds":2,
        "namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"webhook"}},
        "rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["*"],"resources":["configmaps"]}]}]}"#;
    as_other(plane, "kubectl", path, webhook).await;
    let key = ObjectKey::new(config_map().group_kind(), "webhook", "a");
    let begun = Instant::now();
    loop {
        match world.apply(&key, r#"{"x":"1"}"#).await {
            Err(ApplyError::Unavailable { message, .. }) => {
                assert!(
                    message.contains(r#"failed calling webhook "check.example.org""#),
                    "{message}"
                );
                break;
            }
            // The API server takes a moment to know the webhook.
            Ok(_) => assert!(begun.elapsed() < PATIENCE),
            Err(other) => panic!("{other}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(plane.client().send("DELETE", path, None).await.unwrap().status, 200);
}

async fn a_kind_that_appears_later_is_watched_without_a_restart(plane: &mut ControlPlane) {
    let world = World::new(plane, "crd").await;
    let gvk = Gvk::from_api_version("example.org/v1", "Widget");
    let key = ObjectKey::new(gvk.group_kind(), "crd", "w");
    world.store.set_interest(&gvk, &HashSet::from([key.clone()]));
    world
        .until(|| {
            shown(&world.store.live(&key, &gvk))
                == "unknown: the API server does not serve example.org/v1 Widget"
        })
        .await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.org";
    let crd = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.org"},"spec":{"group":"example.org","scope":"Namespaced",
        "names":{"kind":"Widget","plural":"widgets","singular":"widget","listKind":"WidgetList"},"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
        "schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer"}}},"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}"#;
    as_other(plane, "kubectl", path, crd).await;
    world.until(|| matches!(world.store.live(&key, &gvk), Live::Absent)).await;
    let mut snapshot = snapshot(&key, &gvk, "{}", Live::Absent);
    Arc::make_mut(&mut snapshot.desired).json =
        br#"{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"n":1}}"#.as_slice().into();
    let apply = change_of(&snapshot, Action::ApplyDesired { without: vec![] });
    world.writer.write(&apply).await.unwrap();
    snapshot.live = world.store.live(&key, &gvk);
    let status = br#"{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"w"},"status":{"seen":true}}"#;
    world.writer.write(&change_of(&snapshot, Action::PatchStatus(status.to_vec()))).await.unwrap();
    let Live::Present(now) = world.store.live(&key, &gvk) else { panic!("it is there") };
    assert!(text(&now).contains(r#""seen":true"#));
    // And it goes: the objects are unknown, not deleted by anyone's wish.
    assert_eq!(plane.client().send("DELETE", path, None).await.unwrap().status, 200);
    world.until(|| shown(&world.store.live(&key, &gvk)).starts_with("unknown: ")).await;
}

async fn a_service_account_sees_what_its_role_allows_and_no_more(plane: &mut ControlPlane) {
    let _ = World::new(plane, "role").await;
    let accounts = "/api/v1/namespaces/role/serviceaccounts/bob";
    as_other(
        plane,
        "kubectl",
        accounts,
        r#"{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"bob"}}"#,
    )
    .await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/role";
    as_other(plane, "kubectl", &format!("{rbac}/roles/bob"), r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"bob"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]}]}"#).await;
    as_other(plane, "kubectl", &format!("{rbac}/rolebindings/bob"), r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"bob"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"bob"},"subjects":[{"kind":"ServiceAccount","name":"bob","namespace":"role"}]}"#).await;
    let request = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}"#;
    let answer =
        plane.client().send("POST", &format!("{accounts}/token"), Some(request)).await.unwrap();
    let answer: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    let (ca, file) = (plane.dir().join("bob-ca.pem"), plane.dir().join("bob.kubeconfig"));
    std::fs::write(&ca, plane.ca_pem()).unwrap();
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "bob",
        "clusters": [{"name": "c", "cluster": {"server": plane.server(), "certificate-authority": ca}}],
        "users": [{"name": "bob", "user": {"token": answer["status"]["token"]}}],
        "contexts": [{"name": "bob", "context": {"cluster": "c", "user": "bob", "namespace": "role"}}],
    });
    std::fs::write(&file, kubeconfig.to_string()).unwrap();
    let credentials = Credentials::Kubeconfig { file: Some(file), context: Some("bob".into()) };
    let server = connect(&credentials).await.unwrap();
    plane.guard(server.address()).unwrap();
    assert_eq!(server.default_namespace(), "role");

    let (store, _events) = Store::start(server.clone(), Options::default());
    let key = ObjectKey::new(config_map().group_kind(), "role", "a");
    store.set_interest(&config_map(), &HashSet::from([key.clone()]));
    wait(|| shown(&store.live(&key, &config_map())).contains("403 Forbidden")).await;
    let said = shown(&store.live(&key, &config_map()));
    assert!(
        said.ends_with(r#"apiGroups: [""], resources: ["configmaps"], verbs: [get, list, watch]"#),
        "{said}"
    );

    let options = Options { namespaces: ["role".to_owned()].into(), ..Options::default() };
    let (store, _events) = Store::start(server, options);
    store.set_interest(&config_map(), &HashSet::from([key.clone()]));
    wait(|| matches!(store.live(&key, &config_map()), Live::Absent)).await;
    let writer = Writer::new(store.clone());
    let change = change_of(
        &snapshot(&key, &config_map(), "{}", Live::Absent),
        Action::ApplyDesired { without: vec![] },
    );
    let refusal = writer.write(&change).await.unwrap_err().to_string();
    assert!(
        refusal.starts_with("forbidden: ") && refusal.contains("system:serviceaccount:role:bob"),
        "{refusal}"
    );
    assert!(refusal.ends_with(r#"in namespace role, RBAC has to allow: apiGroups: [""], resources: ["configmaps"], verbs: [create, patch]"#), "{refusal}");
}

async fn twelve_hundred_objects_come_in_three_pages(plane: &mut ControlPlane) {
    let mut world = World::new(plane, "many").await;
    let writer = world.writer.clone();
    let keys: Vec<ObjectKey> = (0..1200)
        .map(|n| ObjectKey::new(secret().group_kind(), "many", &format!("n{n}")))
        .collect();
    let tasks: Vec<_> = keys
        .chunks(100)
        .map(|keys| {
            let (keys, writer) = (keys.to_vec(), writer.clone());
            tokio::spawn(async move {
                for key in keys {
                    let mut snapshot = snapshot(&key, &secret(), "{}", Live::Absent);
                    Arc::make_mut(&mut snapshot.desired).json =
                        br#"{"apiVersion":"v1","kind":"Secret","metadata":{}}"#.as_slice().into();
                    let change = change_of(&snapshot, Action::ApplyDesired { without: vec![] });
                    writer.write(&change).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let before = world.store.server().requests();
    let begun = Instant::now();
    world.store.set_interest(&secret(), &keys.iter().cloned().collect());
    world.synced(&secret()).await;
    eprintln!("    1200 objects known after {:?}", begun.elapsed());
    for key in &keys {
        assert!(matches!(world.store.live(key, &secret()), Live::Present(_)), "{key}");
    }
    let after = world.store.server().requests();
    assert_eq!((after.list - before.list, after.get), (3, before.get));
    // A list anew finds nothing to tell.
    world.store.relist(&secret());
    world.until(|| world.store.server().requests().list - before.list == 6).await;
    world.quiet().await;
}

async fn the_servers_own_schema_is_read(plane: &mut ControlPlane) {
    let world = World::new(plane, "schema").await;
    let server = world.store.server();
    let index = server.schema_index().await.unwrap();
    let address = index.address(&Gvk::from_api_version("apps/v1", "Deployment")).unwrap();
    let document = server.schema(address).await.unwrap();
    assert!(std::str::from_utf8(&document).unwrap().contains("x-kubernetes-list-map-keys"));
    assert!(server.schema("/api/v1/secrets").await.is_err());
    assert!(server.version().await.unwrap().starts_with("v1."));
    let kinds = world.store.kinds().unwrap();
    let deployment = Gvk::from_api_version("apps/v1", "Deployment");
    let Lookup::Found(kind) = kinds.lookup(&deployment) else { panic!("served") };
    assert!(kind.namespaced && kind.has_status && &*kind.plural == "deployments");
    assert_eq!(kinds.preferred(&deployment.group_kind()), Lookup::Found(kind));
}

async fn an_outage_of_the_server_is_said_survived_and_recovered_from(plane: &mut ControlPlane) {
    let mut world = World::new(plane, "outage").await;
    let key = &world.watch(&["a"]).await[0];
    world.apply(key, r#"{"x":"1"}"#).await.unwrap();
    let before = world.present(key);
    plane.stop_apiserver().await;
    loop {
        if let Event::Degraded { reason, .. } = world.event().await {
            assert!(reason.contains("onnection refused") || reason.contains("ervice"), "{reason}");
            break;
        }
    }
    assert_eq!(world.present(key).resource_version, before.resource_version, "what is known stays");
    let refusal = world.apply(key, r#"{"x":"2"}"#).await.unwrap_err();
    assert!(matches!(refusal, ApplyError::Unavailable { .. }), "{refusal}");
    let trouble = world.store.health().into_iter().find_map(|it| it.trouble);
    assert!(trouble.is_some());
    plane.start_apiserver().await.unwrap();
    let begun = Instant::now();
    while !matches!(world.event().await, Event::Recovered(_)) {}
    eprintln!("    recovered {:?} after the server was ready", begun.elapsed());
    assert_eq!(world.present(key).resource_version, before.resource_version);
    world.other(plane, "kubectl", "a", r#"{"y":"3"}"#).await;
    world.changed(key).await;
    assert!(world.store.health().iter().all(|it| it.trouble.is_none()));
}

// --- the stage

struct World {
    namespace: &'static str,
    store: Store,
    events: Events,
    writer: Writer,
}

impl World {
    async fn new(plane: &ControlPlane, namespace: &'static str) -> Self {
        let credentials =
            Credentials::Kubeconfig { file: Some(plane.kubeconfig().into()), context: None };
        let server = connect(&credentials).await.unwrap();
        plane.guard(server.address()).unwrap();
        let (store, events) = Store::start(server, Options::default());
        store.refresh_discovery().await.unwrap();
        let path = format!("/api/v1/namespaces/{namespace}");
        let object = format!(
            r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{namespace}"}}}}"#
        );
        as_other(plane, "kubectl", &path, &object).await;
        let writer = Writer::new(store.clone());
        Self { namespace, store, events, writer }
    }

    /// Watches these ConfigMaps and waits until they are known.
    async fn watch(&mut self, names: &[&str]) -> Vec<ObjectKey> {
        let keys: Vec<ObjectKey> = names
            .iter()
            .map(|name| ObjectKey::new(config_map().group_kind(), self.namespace, name))
            .collect();
        self.store.set_interest(&config_map(), &keys.iter().cloned().collect());
        self.synced(&config_map()).await;
        keys
    }

    async fn event(&mut self) -> Event {
        tokio::time::timeout(PATIENCE, self.events.next()).await.expect("an event").expect("open")
    }

    async fn synced(&mut self, gvk: &Gvk) {
        while self.event().await != Event::Synced(gvk.clone()) {}
    }

    async fn changed(&mut self, key: &ObjectKey) {
        loop {
            if matches!(self.event().await, Event::Changed(changed, _) if changed == *key) {
                return;
            }
        }
    }

    /// No event about an object comes.
    async fn quiet(&mut self) {
        let until = tokio::time::Instant::now() + QUIET;
        while let Ok(event) = tokio::time::timeout_at(until, self.events.next()).await {
            assert!(!matches!(event, Some(Event::Changed(..))), "{event:?}");
        }
    }

    async fn until(&self, condition: impl Fn() -> bool) {
        wait(condition).await;
    }

    fn live(&self, key: &ObjectKey) -> Live {
        self.store.live(key, &config_map())
    }

    fn present(&self, key: &ObjectKey) -> LiveObject {
        match self.live(key) {
            Live::Present(object) => object,
            other => panic!("{key} is {}", shown(&other)),
        }
    }

    fn snapshot(&self, key: &ObjectKey, data: &str) -> Snapshot {
        let live = if *key.namespace_str() == *self.namespace && self.store.health().len() == 1 {
            self.live(key)
        } else {
            Live::Absent
        };
        snapshot(key, &config_map(), data, live)
    }

    fn change(&self, key: &ObjectKey, data: &str, action: Action) -> Change {
        change_of(&self.snapshot(key, data), action)
    }

    async fn apply(&self, key: &ObjectKey, data: &str) -> Result<Written, ApplyError> {
        let change = self.change(key, data, Action::ApplyDesired { without: vec![] });
        self.writer.write(&change).await
    }

    /// Another manager applies a ConfigMap.
    async fn other(&self, plane: &ControlPlane, manager: &str, name: &str, data: &str) {
        let path = format!("/api/v1/namespaces/{}/configmaps/{name}", self.namespace);
        let object = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{data}}}"#
        );
        as_other(plane, manager, &path, &object).await;
    }

    async fn delete_by_another(&self, plane: &ControlPlane, name: &str) {
        let path = format!("/api/v1/namespaces/{}/configmaps/{name}", self.namespace);
        assert_eq!(plane.client().send("DELETE", &path, None).await.unwrap().status, 200);
    }
}

async fn wait(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "it never came true");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn as_other(plane: &ControlPlane, manager: &str, path: &str, object: &str) {
    let path = format!("{path}?fieldManager={manager}&force=true");
    let answer = plane.client().send("PATCH", &path, Some(object)).await.unwrap();
    assert!(answer.status < 300, "{}", answer.body);
}

fn assert_stale(answer: Result<Written, ApplyError>, why: &str) {
    assert!(matches!(answer, Err(ApplyError::Stale(_))), "{why}: {answer:?}");
}

fn config_map() -> Gvk {
    Gvk::from_api_version("v1", "ConfigMap")
}

fn secret() -> Gvk {
    Gvk::from_api_version("v1", "Secret")
}

fn text(object: &LiveObject) -> String {
    String::from_utf8(object.json.to_vec()).unwrap()
}

fn shown(live: &Live) -> String {
    match live {
        Live::Present(object) => object.resource_version.to_string(),
        Live::Absent => "absent".into(),
        Live::Unknown(reason) => format!("unknown: {reason}"),
    }
}

fn snapshot(key: &ObjectKey, gvk: &Gvk, data: &str, live: Live) -> Snapshot {
    let json = format!(
        r#"{{"apiVersion":"{}","kind":"{}","metadata":{{"name":"{}"}},"data":{data}}}"#,
        gvk.api_version(),
        gvk.kind,
        key.name
    );
    let desired = Desired {
        key: key.clone(),
        gvk: gvk.clone(),
        digest: Digest::of(json.as_bytes()),
        json: json.into_bytes().into(),
        source: "test".into(),
        revision: "1".into(),
        origin: Origin { file: "test.yaml".into(), line: 1 },
        ignore: Default::default(),
        terms: Arc::default(),
    };
    Snapshot {
        key: key.clone(),
        gvk: gvk.clone(),
        desired: Arc::new(desired),
        live,
        facts: [].into(),
        applied_uid: None,
        now_ms: 0,
        retries: 0,
        standoff: None,
    }
}

/// The change that the gate makes of this action for a plugin that may do everything.
fn change_of(snapshot: &Snapshot, action: Action) -> Change {
    // Adoption is granted only where it is what the test is about.
    let actions = ActionKind::ALL
        .into_iter()
        .filter(|kind| *kind != ActionKind::Adopt || action.kind() == Some(ActionKind::Adopt))
        .collect();
    let decision = Decision { actions: vec![action], ..Decision::default() };
    let mut gated = gate::gate(&power(actions), snapshot, &decision, &Default::default()).unwrap();
    assert_eq!(gated.refusals, []);
    // No policy is in force here.
    let draft = gated.permits.remove(0).drafts(snapshot, snapshot).unwrap().remove(0);
    trimtab_core::gate::change(trimtab_core::review::by_hand(draft))
}

fn power(actions: BTreeSet<ActionKind>) -> Power {
    let digest = Digest::of(b"test");
    let manifest = PluginManifest {
        name: "test".into(),
        version: "1.0.0".into(),
        description: String::new(),
        wit: "0.1.0".into(),
        claims: vec![KindPattern::Any],
        reads: vec![],
        actions: ActionKind::ALL.into(),
    };
    let grant = Grant {
        plugin: "test".into(),
        digest,
        mode: Mode::Enforce,
        kinds: vec![KindPattern::Any],
        namespaces: Namespaces::All,
        cluster_scoped: true,
        actions,
        predecessors: BTreeSet::new(),
        terms: Default::default(),
        origin: "test".into(),
    };
    let plugin = PluginIdentity { name: "test".into(), version: "1.0.0".into(), digest };
    Power { plugin, manifest, grant: Some(grant) }
}

//! Order: who is let go when, and what is said of what waits.

use super::needs::SourceNeeds;
use super::*;
use crate::identity::{Digest, GroupKind, Gvk};
use crate::ignore::Rules;
use crate::object::{Desired, Origin};
use std::cell::RefCell;
use std::sync::Arc;

const SHOP: &str = "shop";

fn key(kind: &str, name: &str) -> ObjectKey {
    let (group, namespace) = match kind {
        "Namespace" => ("", ""),
        "CustomResourceDefinition" => ("apiextensions.k8s.io", ""),
        "ValidatingWebhookConfiguration" => ("admissionregistration.k8s.io", ""),
        "Foo" => ("ex.io", SHOP),
        "Deployment" => ("apps", SHOP),
        _ => ("", SHOP),
    };
    ObjectKey::new(GroupKind::new(group, kind), namespace, name)
}

fn of_source(source: &str, key: &ObjectKey, depends_on: &str, spec: &str) -> Arc<Desired> {
    let group = &key.group_kind.group;
    let version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
    let annotations = match depends_on {
        "" => String::new(),
        names => format!(r#","annotations":{{"trimtab.dev/depends-on":"{names}"}}"#),
    };
    let json = format!(
        r#"{{"apiVersion":"{version}","kind":"{}","metadata":{{"name":"{}"{annotations}}},"spec":{{{spec}}}}}"#,
        key.group_kind.kind, key.name
    );
    Arc::new(Desired {
        key: key.clone(),
        gvk: Gvk::from_api_version(&version, &key.group_kind.kind),
        digest: Digest::of(json.as_bytes()),
        json: json.into_bytes().into(),
        source: source.into(),
        revision: "r".into(),
        origin: Origin { file: "a.yaml".into(), line: 1 },
        ignore: Rules::default(),
        terms: Arc::default(),
    })
}

fn object(kind: &str, name: &str, depends_on: &str) -> Arc<Desired> {
    of_source("s", &key(kind, name), depends_on, "")
}

/// A definition of the kind Foo.
fn foos() -> Arc<Desired> {
    let spec = r#""group":"ex.io","names":{"kind":"Foo"}"#;
    of_source("s", &key("CustomResourceDefinition", "foos.ex.io"), "", spec)
}

/// An order over these objects, and a world in which nothing is there yet.
struct World {
    order: Order,
    standings: RefCell<HashMap<Dependency, Standing>>,
}

impl World {
    fn of(objects: Vec<Arc<Desired>>, sources: &SourceNeeds) -> Self {
        let desired: HashMap<_, _> =
            objects.into_iter().map(|object| (object.key.clone(), object)).collect();
        let mut order = Order::default();
        order.set_needs(Needs::read(&desired, sources));
        for key in desired.keys() {
            order.add(key.clone(), true);
        }
        Self { order, standings: RefCell::default() }
    }

    fn release(&mut self, at: u64) -> Vec<String> {
        let standings = &self.standings;
        let standing = |on: &Dependency| standing(standings, on);
        let released = self.order.release(Duration::from_secs(at), standing);
        released.iter().map(ToString::to_string).collect()
    }

    fn waits(&self, at: u64) -> Vec<String> {
        let standing = |on: &Dependency| standing(&self.standings, on);
        let waits = self.order.waits(Duration::from_secs(at), standing);
        waits.iter().map(|wait| format!("{} {}", wait.key, wait.words)).collect()
    }

    /// The object had its pass, which made it, and is ready or not.
    fn applied(&mut self, key: &ObjectKey, readiness: Readiness) {
        let standing = Standing { in_force: Ok(()), readiness: Some(readiness) };
        self.standings.borrow_mut().insert(Dependency::Object(key.clone()), standing);
        self.order.passed(key);
    }

    /// The object had its pass, which failed.
    fn failed(&mut self, key: &ObjectKey, why: &str) {
        let standing = Standing { in_force: Err(why.into()), readiness: None };
        self.standings.borrow_mut().insert(Dependency::Object(key.clone()), standing);
        self.order.passed(key);
    }

    fn is_ready(&mut self, key: &ObjectKey) {
        let on = Dependency::Object(key.clone());
        self.standings.borrow_mut().insert(on.clone(), Standing::MET);
        self.order.stir(&on);
    }
}

fn standing(standings: &RefCell<HashMap<Dependency, Standing>>, on: &Dependency) -> Standing {
    let absent = Standing { in_force: Ok(()), readiness: None };
    standings.borrow().get(on).cloned().unwrap_or(absent)
}

fn not_yet(what: &str) -> Readiness {
    Readiness::InProgress(what.into())
}

#[test]
fn a_turn_begins_when_every_object_of_the_one_before_had_its_first_pass() {
    let (config, web) = (key("ConfigMap", "c"), key("Deployment", "web"));
    let hook = key("ValidatingWebhookConfiguration", "h");
    let all = ["ValidatingWebhookConfiguration/h", "Deployment/web", "ConfigMap/c"];
    let all = all.map(|it| it.split_once('/').unwrap()).map(|(kind, name)| object(kind, name, ""));
    let mut world = World::of(all.to_vec(), &SourceNeeds::new());
    assert_eq!(world.release(0), [config.to_string()]);
    assert!(world.release(1).is_empty(), "its pass has not ended");
    world.failed(&config, "rejected");
    assert_eq!(world.release(2), [web.to_string()], "a failure is an end too");
    world.applied(&web, not_yet("0 of 1 replicas"));
    assert_eq!(world.release(3), [hook.to_string()]);
    world.applied(&hook, Readiness::Ready);
    assert!(world.order.is_through() && !world.order.some_blocked());
}

#[test]
fn an_object_waits_for_its_namespace_and_its_definition_to_be_ready() {
    let (namespace, definition) =
        (key("Namespace", SHOP), key("CustomResourceDefinition", "foos.ex.io"));
    let (foo, config) = (key("Foo", "f"), key("ConfigMap", "c"));
    let all = vec![
        object("Foo", "f", ""),
        foos(),
        object("ConfigMap", "c", ""),
        object("Namespace", SHOP, ""),
    ];
    let mut world = World::of(all, &SourceNeeds::new());
    assert_eq!(world.release(0), [namespace.to_string()]);
    world.applied(&namespace, Readiness::Ready);
    assert_eq!(world.release(0), [definition.to_string()]);
    world.applied(&definition, not_yet("not established"));
    assert_eq!(world.release(1), [config.to_string()]);
    world.applied(&config, Readiness::Ready);
    assert!(world.release(2).is_empty());
    assert_eq!(
        world.waits(42),
        [
            "Foo.ex.io shop/f waits for CustomResourceDefinition.apiextensions.k8s.io foos.ex.io (which defines its kind): not ready: not established for 40 s"
        ]
    );
    world.is_ready(&definition);
    assert_eq!(world.release(43), [foo.to_string()]);
}

#[test]
fn a_failing_object_stops_what_depends_on_it_and_nothing_else() {
    let (config, other) = (key("ConfigMap", "bad"), key("ConfigMap", "good"));
    let (one, two) = (key("Deployment", "one"), key("Deployment", "two"));
    let all = vec![
        object("ConfigMap", "bad", ""),
        object("ConfigMap", "good", ""),
        object("Deployment", "one", "ConfigMap/bad"),
        object("Deployment", "two", "ConfigMap/good, /ConfigMap/shop/good"),
        object("Deployment", "three", "apps/Deployment/shop/one"),
    ];
    let mut world = World::of(all, &SourceNeeds::new());
    assert_eq!(world.release(0).len(), 2);
    world.failed(&config, "rejected: no");
    world.applied(&other, Readiness::Ready);
    assert_eq!(world.release(10), [two.to_string()]);
    world.applied(&two, Readiness::Ready);
    assert!(world.order.is_through());
    assert_eq!(
        world.waits(15),
        [
            "Deployment.apps shop/one waits for ConfigMap shop/bad (named by its annotation): rejected: no for 5 s",
            "Deployment.apps shop/three waits for Deployment.apps shop/one (named by its annotation), which waits for ConfigMap shop/bad (named by its annotation): rejected: no for 5 s",
        ]
    );
    world.is_ready(&config);
    assert_eq!(world.release(16), [one.to_string()]);
}

#[test]
fn what_waits_long_is_told_otherwise_and_never_dropped() {
    let all = vec![object("ConfigMap", "a", "/Secret/shop/foreign")];
    let mut world = World::of(all, &SourceNeeds::new());
    assert!(world.release(0).is_empty());
    let at = |world: &World, at: u64| {
        let standing = |on: &Dependency| standing(&world.standings, on);
        world.order.waits(Duration::from_secs(at), standing).remove(0)
    };
    assert!(!at(&world, 300).overdue);
    assert!(at(&world, 301).overdue);
    assert_eq!(
        at(&world, 90_000).words,
        "waits for Secret shop/foreign (named by its annotation): not in the cluster for 90000 s"
    );
    assert!(world.order.needs().undeclared().contains(&key("Secret", "foreign")));
    world.is_ready(&key("Secret", "foreign"));
    assert_eq!(world.release(90_001), [key("ConfigMap", "a").to_string()]);
}

#[test]
fn a_circle_is_named_whole_and_stops_nothing_else() {
    let all = vec![
        object("ConfigMap", "a", "ConfigMap/b"),
        object("ConfigMap", "b", "ConfigMap/c"),
        object("ConfigMap", "c", "ConfigMap/a"),
        object("ConfigMap", "d", "ConfigMap/a"),
        object("ConfigMap", "e", ""),
    ];
    let mut world = World::of(all, &SourceNeeds::new());
    assert_eq!(world.release(0), [key("ConfigMap", "e").to_string()]);
    world.applied(&key("ConfigMap", "e"), Readiness::Ready);
    let circle =
        "ConfigMap shop/a needs ConfigMap shop/b needs ConfigMap shop/c needs ConfigMap shop/a";
    let waits = world.waits(1);
    assert_eq!(
        waits[0],
        format!(
            "ConfigMap shop/a needs itself, and is never applied so: {circle}; take one of these needs out"
        )
    );
    assert_eq!(
        waits[3],
        format!(
            "ConfigMap shop/d waits for ConfigMap shop/a (named by its annotation), which needs itself: {circle}"
        )
    );
    world.order.stir_all();
    assert!(world.release(2).is_empty());
}

#[test]
fn a_namespace_that_needs_what_lies_in_it_is_a_circle() {
    let all = vec![object("Namespace", SHOP, "ConfigMap/shop/c"), object("ConfigMap", "c", "")];
    let mut world = World::of(all, &SourceNeeds::new());
    assert!(world.release(0).is_empty());
    assert!(world.waits(1)[0].contains("needs itself"), "{:?}", world.waits(1));
}

#[test]
fn a_source_waits_for_all_of_the_source_that_it_depends_on() {
    let (base, app) = (key("ConfigMap", "base"), key("ConfigMap", "app"));
    let all = vec![of_source("infra", &base, "", ""), of_source("apps", &app, "", "")];
    let needs = SourceNeeds::from([("apps".into(), vec!["infra".into()])]);
    let mut world = World::of(all.clone(), &needs);
    assert_eq!(world.release(0), [base.to_string()]);
    world.applied(&base, Readiness::Ready);
    assert_eq!(
        world.waits(3),
        ["ConfigMap shop/app waits for source infra: not in the cluster for 3 s"]
    );
    let infra = Dependency::Source("infra".into());
    world.standings.borrow_mut().insert(infra.clone(), Standing::MET);
    world.order.stir(&infra);
    assert_eq!(world.release(4), [app.to_string()]);

    let both = SourceNeeds::from([
        ("apps".into(), vec!["infra".into()]),
        ("infra".into(), vec!["apps".into()]),
    ]);
    let mut world = World::of(all, &both);
    assert!(world.release(0).is_empty());
    assert!(world.waits(0)[0].contains("needs source infra needs"), "{:?}", world.waits(0));
}

#[test]
fn names_are_read_in_each_documented_form_and_others_say_what_to_write() {
    let needed = |annotation: &str| {
        let all = [object("ConfigMap", "c", ""), object("Deployment", "web", annotation)];
        let desired = all.map(|object| (object.key.clone(), object)).into_iter().collect();
        let needs = Needs::read(&desired, &SourceNeeds::new());
        needs
            .of(&key("Deployment", "web"))
            .iter()
            .map(|need| need.on.to_string())
            .collect::<Vec<_>>()
    };
    for (name, object) in [
        ("ConfigMap/c", "ConfigMap shop/c"),
        ("ConfigMap/shop/c", "ConfigMap shop/c"),
        ("/ConfigMap/shop/c", "ConfigMap shop/c"),
        ("ex.io/Foo/shop/f", "Foo.ex.io shop/f"),
        ("ex.io/Bar/b", "Bar.ex.io b"),
        ("/Namespace/n", "Namespace n"),
        ("ex.io/namespaces/shop/Foo/f", "Foo.ex.io shop/f"),
        ("/namespaces/shop/Secret/s", "Secret shop/s"),
    ] {
        assert_eq!(needed(name), [object], "{name}");
    }
    for (name, words) in [
        ("", "names no object: write"),
        ("web", "names no object: write"),
        ("a/b/c/d/e/f", "names no object: write"),
        ("ex.io/foo/shop/f", "names no object: write"),
        ("Secret/s", "no source declares: correct it"),
    ] {
        let found = needed(name);
        assert!(found.iter().all(|it| it.contains(words)), "{name}: {found:?}");
    }
}

#[test]
fn what_is_only_observed_waits_for_its_turn_alone() {
    let all = vec![object("Deployment", "web", "/Secret/shop/absent")];
    let mut world = World::of(all, &SourceNeeds::new());
    assert!(world.release(0).is_empty());
    world.order.add(key("Deployment", "web"), false);
    assert_eq!(world.release(1), [key("Deployment", "web").to_string()]);
}

#[test]
fn an_object_that_left_desired_state_is_waited_for_no_more_by_its_turn() {
    let all = vec![object("ConfigMap", "c", ""), object("Deployment", "web", "")];
    let mut world = World::of(all, &SourceNeeds::new());
    assert_eq!(world.release(0), [key("ConfigMap", "c").to_string()]);
    world.order.passed(&key("ConfigMap", "c"));
    assert_eq!(world.release(1), [key("Deployment", "web").to_string()]);
}

//! Pruning: what of an inventory goes, in which order, what stays, and what waits for a person.

use super::*;
use crate::identity::Gvk;

const SOURCE: &str = "shop";

fn key(kind: &str, name: &str) -> ObjectKey {
    let (group, namespace) = match kind {
        "Namespace" => ("", ""),
        "CustomResourceDefinition" => ("apiextensions.k8s.io", ""),
        "ClusterRole" => ("rbac.authorization.k8s.io", ""),
        "Foo" => ("ex.io", "shop"),
        "Deployment" => ("apps", "shop"),
        _ => ("", "shop"),
    };
    ObjectKey::new(GroupKind::new(group, kind), namespace, name)
}

fn live(key: &ObjectKey, uid: &str, metadata: &str, rest: &str) -> LiveObject {
    let json = format!(
        r#"{{"kind":"{}","metadata":{{"name":"{}","uid":"{uid}","resourceVersion":"7"{metadata}}}{rest}}}"#,
        key.group_kind.kind, key.name
    );
    LiveObject::read(json.into_bytes().into()).unwrap()
}

/// A cluster in which everything that was made is there, and a source that declares it no more.
struct World {
    inventory: Inventory,
    seen: HashMap<ObjectKey, Seen>,
    declared: HashMap<ObjectKey, Arc<str>>,
    contents: HashMap<ObjectKey, Contents>,
    state: SourceState,
    declares: usize,
    terms: SourceTerms,
}

impl World {
    fn of(made: &[(&str, &str)]) -> Self {
        let mut world = Self {
            inventory: Inventory::new(&SOURCE.into()),
            seen: HashMap::new(),
            declared: HashMap::new(),
            contents: HashMap::new(),
            state: SourceState::InForce("r2".into()),
            declares: 1,
            terms: SourceTerms { prune: true, ..SourceTerms::default() },
        };
        // Others that are declared, so that what is looked at is no large share.
        for number in 0..20 {
            world.declare(&key("Secret", &format!("stays-{number}")), SOURCE);
        }
        for (kind, name) in made {
            world.make(&key(kind, name), "", "");
        }
        world
    }

    fn declare(&mut self, key: &ObjectKey, source: &str) {
        self.inventory.set(key, Entry { uid: Some("u".into()), ..Entry::intended(&"r1".into()) });
        self.declared.insert(key.clone(), source.into());
    }

    fn make(&mut self, key: &ObjectKey, metadata: &str, rest: &str) {
        let uid: Arc<str> = format!("uid-{}", key.name).into();
        let live = live(key, &uid, metadata, rest);
        self.inventory.set(key, Entry { uid: Some(uid), ..Entry::intended(&"r1".into()) });
        self.seen.insert(key.clone(), Seen::Live(live));
    }

    fn approve(&mut self, held: &Held) {
        for key in &held.keys {
            let entry = self.inventory.get(key).unwrap().clone();
            self.inventory.set(key, Entry { approved: held.allows, ..entry });
        }
    }

    fn gone(&mut self, key: &ObjectKey) {
        self.seen.insert(key.clone(), Seen::Absent);
    }

    fn plan(&self) -> Plan {
        let now = Situation {
            inventory: &self.inventory,
            state: &self.state,
            declares: self.declares,
            terms: &self.terms,
            seen: &self.seen,
            contents: &self.contents,
        };
        plan(&now, |key| self.declared.get(key).cloned())
    }

    /// The plan in words.
    fn told(&self) -> Vec<String> {
        self.plan().steps.iter().map(|(key, step)| told(key, step)).collect()
    }

    fn of_one(&self, key: &ObjectKey) -> String {
        let plan = self.plan();
        let (key, step) = plan.steps.iter().find(|(it, _)| it == key).expect("a step");
        told(key, step)
    }
}

fn told(key: &ObjectKey, step: &Step) -> String {
    let name = &key.name;
    match step {
        Step::Delete => format!("delete {name}"),
        Step::Wait(why) => format!("{name} waits: {why}"),
        Step::Look => format!("look into {name}"),
        Step::Going(what) => format!("{name} goes: {what}"),
        Step::Held(held) => format!("{name} is held: {}", held.reason),
        Step::Keep(why) => format!("keep {name}: {why}"),
        Step::Forget(why) => format!("forget {name}: {why}"),
    }
}

#[test]
fn what_needs_others_goes_before_them_and_a_namespace_when_all_in_it_is_gone() {
    let mut world = World::of(&[
        ("Namespace", "shop"),
        ("ConfigMap", "settings"),
        ("Deployment", "web"),
        ("Foo", "f"),
    ]);
    assert_eq!(
        world.told(),
        [
            "delete f",
            "delete web",
            "delete settings",
            "shop waits: ConfigMap shop/settings goes first"
        ]
    );
    for (kind, name) in [("ConfigMap", "settings"), ("Deployment", "web"), ("Foo", "f")] {
        world.gone(&key(kind, name));
    }
    assert_eq!(world.of_one(&key("Namespace", "shop")), "look into shop");
    world.contents.insert(key("Namespace", "shop"), Contents::Nothing);
    assert_eq!(world.of_one(&key("Namespace", "shop")), "delete shop");
}

#[test]
fn a_definition_goes_when_everything_of_its_kind_is_gone() {
    let mut world = World::of(&[("Foo", "f")]);
    let foos = key("CustomResourceDefinition", "foos.ex.io");
    world.make(&foos, "", r#","spec":{"group":"ex.io","names":{"kind":"Foo"}}"#);
    let denied = world.of_one(&foos);
    assert!(denied.contains("definitions under deletion.allow"), "{denied}");
    world.terms.deletion.allow.insert(Denial::Definitions);
    assert_eq!(world.of_one(&foos), "foos.ex.io waits: Foo.ex.io shop/f goes first");
    world.gone(&key("Foo", "f"));
    assert_eq!(world.of_one(&foos), "look into foos.ex.io");
    world.contents.insert(foos.clone(), Contents::Some("Foo.ex.io other/g".into()));
    let plan = world.plan();
    assert!(plan.held[0].reason.starts_with("definition_in_use: "), "{plan:?}");
    world.approve(&plan.held[0]);
    assert_eq!(world.of_one(&foos), "delete foos.ex.io");
}

#[test]
fn an_annotated_dependency_goes_after_what_names_it_and_a_circle_stops_nobody() {
    let mut world = World::of(&[("ConfigMap", "base")]);
    let needs = |names: &str| format!(r#","annotations":{{"trimtab.dev/depends-on":"{names}"}}"#);
    world.make(&key("ConfigMap", "user"), &needs("ConfigMap/base"), "");
    assert_eq!(
        world.told(),
        ["base waits: ConfigMap shop/user needs it and is still there", "delete user"]
    );
    world.gone(&key("ConfigMap", "user"));
    assert_eq!(world.of_one(&key("ConfigMap", "base")), "delete base");

    let mut world = World::of(&[]);
    world.make(&key("ConfigMap", "a"), &needs("ConfigMap/b"), "");
    world.make(&key("ConfigMap", "b"), &needs("/ConfigMap/shop/a"), "");
    assert_eq!(world.told(), ["delete a", "delete b"]);
}

#[test]
fn an_object_that_says_so_or_has_another_owner_stays() {
    let mut world = World::of(&[]);
    let annotated = |name: &str, value: &str| format!(r#","annotations":{{"{name}":"{value}"}}"#);
    world.make(&key("ConfigMap", "a"), &annotated("trimtab.dev/prune", "disabled"), "");
    world.make(&key("ConfigMap", "b"), &annotated("helm.sh/resource-policy", "keep"), "");
    let owner = r#","ownerReferences":[{"kind":"Foo","name":"f","uid":"x","controller":true}]"#;
    world.make(&key("ConfigMap", "c"), owner, "");
    world.make(&key("ConfigMap", "d"), "", "");
    let entry = world.inventory.get(&key("ConfigMap", "d")).unwrap().clone();
    world.inventory.set(&key("ConfigMap", "d"), Entry { keep: true, ..entry });
    world.make(&key("ClusterRole", "e"), "", "");
    assert_eq!(
        world.told(),
        [
            "keep a: it is annotated trimtab.dev/prune: disabled",
            "keep b: it is annotated helm.sh/resource-policy: keep",
            "keep c: Foo f is its controller, and the one to delete it",
            "keep d: its last manifest has trimtab.dev/prune: disabled",
            "keep e: HardDenial: ClusterRole.rbac.authorization.k8s.io e: it says who may do what: its deletion takes a second word; its source lifts it with rbac under deletion.allow",
        ]
    );
}

#[test]
fn what_is_not_ours_any_more_is_forgotten_and_never_deleted() {
    let mut world = World::of(&[("ConfigMap", "gone"), ("ConfigMap", "moved")]);
    world.gone(&key("ConfigMap", "gone"));
    world.declared.insert(key("ConfigMap", "moved"), "other".into());
    let replaced = key("ConfigMap", "replaced");
    world.make(&replaced, "", "");
    world.seen.insert(replaced.clone(), Seen::Live(live(&replaced, "another", "", "")));
    // About to be made when the host was killed: once by us after all, once by somebody else.
    let ours = r#","managedFields":[{"manager":"trimtab","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{}}]"#;
    for (name, fields) in
        [("made", ours), ("foreign", r#","labels":{"trimtab.dev/inventory":"shop"}"#)]
    {
        let key = key("ConfigMap", name);
        world.make(&key, fields, "");
        world.inventory.set(&key, Entry::intended(&"r1".into()));
    }
    assert_eq!(
        world.told(),
        [
            "forget foreign: Trimtab was about to make it and never did",
            "forget gone: it is gone",
            "forget moved: source other declares it now",
            "forget replaced: another object has its name now (UID another, and ours was uid-replaced): that one is not ours",
            "delete made",
        ]
    );
}

#[test]
fn a_stuck_deletion_is_told_with_its_finalizers_and_blocks_nobody() {
    let mut world = World::of(&[("ConfigMap", "other")]);
    let stuck = key("ConfigMap", "stuck");
    world.make(
        &stuck,
        r#","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["ex.io/x"]"#,
        "",
    );
    world.make(&key("Namespace", "shop"), "", "");
    assert_eq!(
        world.told(),
        [
            "stuck goes: ConfigMap shop/stuck is being deleted since 2026-01-01T00:00:00Z and waits for its finalizers ex.io/x, which whoever put them there has to take off",
            "delete other",
            "shop waits: ConfigMap shop/other goes first",
        ]
    );
    world.gone(&key("ConfigMap", "other"));
    assert_eq!(
        world.of_one(&key("Namespace", "shop")),
        "shop waits: ConfigMap shop/stuck goes first"
    );
}

#[test]
fn where_something_is_not_known_nothing_is_deleted() {
    let made = [("ConfigMap", "a"), ("Deployment", "b")];
    let mut world = World::of(&made);
    world
        .seen
        .insert(key("Deployment", "b"), Seen::Unknown("list of Deployment is forbidden".into()));
    let plan = world.plan();
    assert_eq!(
        plan.stopped.as_deref(),
        Some(
            "prune_incomplete: whether Deployment.apps shop/b is there cannot be told: list of Deployment is forbidden"
        )
    );
    assert!(plan.steps.iter().all(|(_, step)| matches!(step, Step::Keep(_))), "{plan:?}");

    let mut world = World::of(&made);
    world.state = SourceState::Not("source shop cannot be read: no such directory".into());
    assert!(world.told().iter().all(|it| it.starts_with("keep ")), "{:?}", world.told());

    let mut world = World::of(&made);
    world.terms.prune = false;
    assert!(world.told().iter().all(|it| it.ends_with("says prune: false")), "{:?}", world.told());

    let mut world = World::of(&made);
    world.seen.remove(&key("ConfigMap", "a"));
    assert!(world.told().iter().all(|it| it.starts_with("keep ")), "{:?}", world.told());
}

#[test]
fn a_source_that_declares_nothing_prunes_nothing_whatever_else_is_there() {
    let mut world = World::of(&[("ConfigMap", "a"), ("ConfigMap", "b")]);
    world.declares = 0;
    world.make(&key("ConfigMap", "z"), r#","labels":{"team":"someone-else"}"#, "");
    world.inventory.remove(&key("ConfigMap", "z"));
    let plan = world.plan();
    assert!(plan.stopped.unwrap().starts_with("empty_source: "));
    assert_eq!(plan.steps.len(), 22 - 20);
    world.state = SourceState::Removed;
    assert_eq!(world.told(), ["delete a", "delete b"]);
}

#[test]
fn the_digest_names_exactly_the_objects_that_are_held() {
    let three = [("ConfigMap", "a"), ("ConfigMap", "b"), ("ConfigMap", "c")];
    let digest = |world: &World| world.plan().held[0].digest;
    let mut world = World::of(&three);
    let first = digest(&world);
    assert_eq!(first, digest(&World::of(&three)));
    let other = key("ConfigMap", "c");
    let entry = Entry { uid: Some("new".into()), ..Entry::intended(&"r".into()) };
    world.inventory.set(&other, entry);
    world.seen.insert(other.clone(), Seen::Live(live(&other, "new", "", "")));
    assert_ne!(digest(&world), first, "the same names, and another object among them");
    assert_ne!(digest(&World::of(&[three[0], three[1], three[2], ("ConfigMap", "d")])), first);
}

#[test]
fn the_guard_counts_shares_numbers_and_kinds_of_what_was_made_alone() {
    let held = |made: &[(&str, &str)], also: usize| {
        let mut world = World::of(made);
        for number in 0..also {
            world.declare(&key("ConfigMap", &format!("also-{number}")), SOURCE);
        }
        world.plan().held.first().map(|held| held.reason.clone())
    };
    let four = [("ConfigMap", "a"), ("ConfigMap", "b"), ("ConfigMap", "c"), ("ConfigMap", "d")];
    assert_eq!(held(&four, 1), None, "16 % and not all of a kind");
    assert_eq!(
        held(&four, 0).as_deref(),
        Some("mass_prune: all 4 objects of kind ConfigMap would be deleted")
    );
    assert_eq!(held(&four[..2], 0), None, "two of a kind are few");
    let names: Vec<String> = (0..60).map(|number| format!("c{number}")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| ("ConfigMap", name.as_str())).collect();
    assert_eq!(held(&many[..9], 1).as_deref().map(|it| &it[..20]), None, "9 of 30 are 30 %");
    assert_eq!(
        held(&many[..10], 1).as_deref(),
        Some("mass_prune: 10 of 31 objects would be deleted, 32 % and more than 30 %")
    );
    assert_eq!(
        held(&many[..51], 1000).as_deref(),
        Some("mass_prune: 51 objects would be deleted, more than 50")
    );
    assert_eq!(held(&many[..50], 1000), None);
}

#[test]
fn what_a_person_allowed_goes_also_after_some_of_it_is_gone() {
    let four = [("ConfigMap", "a"), ("ConfigMap", "b"), ("ConfigMap", "c"), ("ConfigMap", "d")];
    let mut world = World::of(&four);
    let held = world.plan().held[0].clone();
    assert_eq!(held.keys.len(), 4);
    assert!(world.told().iter().all(|it| it.contains("is held: mass_prune")));
    world.approve(&held);
    world.gone(&key("ConfigMap", "a"));
    assert_eq!(
        world.told(),
        ["forget a: it is gone", "delete b", "delete c", "delete d"],
        "the approval is with each object"
    );
}

#[test]
fn a_namespace_with_what_others_have_in_it_waits_for_a_word_of_its_own() {
    let mut world = World::of(&[("Namespace", "shop")]);
    let shop = key("Namespace", "shop");
    world.contents.insert(shop.clone(), Contents::Some("4 objects, such as Pod shop/x".into()));
    let plan = world.plan();
    assert_eq!(
        plan.held[0].reason,
        "namespace_not_empty: Namespace shop holds what is not to be deleted: 4 objects, such as Pod shop/x"
    );
    assert_eq!(plan.held[0].allows, Approval::WithContents);
    // Allowed as one of many is not allowed with everything in it.
    let entry = world.inventory.get(&shop).unwrap().clone();
    world.inventory.set(&shop, Entry { approved: Approval::Deletion, ..entry });
    assert!(world.of_one(&shop).contains("is held"));
    world.contents.insert(shop.clone(), Contents::Unknown("may not list Pods".into()));
    assert!(world.of_one(&shop).contains("cannot be told: may not list Pods"));
    world.approve(&plan.held[0]);
    assert_eq!(world.of_one(&shop), "delete shop");
}

#[test]
fn one_object_under_two_names_in_the_source_is_one_entry_and_no_deletion() {
    // A manifest that was renamed, and one whose API version changed, are the same object.
    let mut world = World::of(&[("Deployment", "web")]);
    world.declared.insert(key("Deployment", "web"), SOURCE.into());
    assert_eq!(world.plan(), Plan::default());
}

#[test]
fn the_gate_deletes_exactly_what_was_made_and_only_where_the_source_says_so() {
    let key = key("ConfigMap", "c");
    let gvk = Gvk::from_api_version("v1", "ConfigMap");
    let object = live(&key, "u1", "", "");
    let entry = Entry { uid: Some("u1".into()), ..Entry::intended(&"r".into()) };
    let terms = SourceTerms { prune: true, ..SourceTerms::default() };
    let change = gate::prune(&terms, &key, &gvk, &entry, &object).unwrap();
    assert_eq!(
        *change.effect(),
        gate::Effect::Delete { uid: "u1".into(), resource_version: "7".into(), orphan: false }
    );
    let refused = |terms: SourceTerms, entry: &Entry| {
        gate::prune(&terms, &key, &gvk, entry, &object).unwrap_err().reason
    };
    let observe = crate::grant::Mode::Observe;
    assert_eq!(refused(SourceTerms { prune: false, ..terms.clone() }, &entry), "PruneOff");
    assert_eq!(refused(SourceTerms { mode: observe, ..terms.clone() }, &entry), "Observing");
    let confined = SourceTerms { confined_to: Some("other".into()), ..terms.clone() };
    assert_eq!(refused(confined, &entry), "OutsideTargetNamespace");
    let other = Entry { uid: Some("u2".into()), ..entry };
    assert_eq!(refused(terms, &other), "NotOurs");
}

//! What rules do to what is shown and to what is written.

use super::*;
use crate::identity::{Digest, GroupKind, Gvk};
use crate::object::Origin;

/// A type with a keyed list, a list that is replaced as a whole, and such a map.
const CRD: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"spec":{"group":"sea.test","names":{"kind":"Ship"},"versions":[{"name":"v1","schema":{"openAPIV3Schema":{
"type":"object","properties":{"spec":{"type":"object","properties":{
"sails":{"type":"integer"},"flag":{"type":"string"},
"log":{"type":"object","additionalProperties":{"type":"string"}},
"chart":{"type":"object","x-kubernetes-map-type":"atomic","additionalProperties":{"type":"string"}},
"crew":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{
"type":"object","properties":{"name":{"type":"string"},"rank":{"type":"string"},"pay":{"type":"integer"}}}},
"legs":{"type":"array","items":{"type":"object","properties":{"to":{"type":"string"},"by":{"type":"string"}}}}
}}}}}}]}}"#;

fn rules(texts: &[&str]) -> Rules {
    let mut rules = Rules::default();
    let scoped: Vec<Scoped> =
        texts.iter().map(|text| Scoped::everywhere(Rule::parse(text, "here").unwrap())).collect();
    rules.extend(&scoped, &ObjectKey::new(GroupKind::new("sea.test", "Ship"), "n", "s"));
    rules
}

fn ship(spec: &str, managed: &str) -> String {
    format!(
        r#"{{"apiVersion":"sea.test/v1","kind":"Ship","metadata":{{"name":"s"{managed}}},"spec":{spec}}}"#
    )
}

fn owned(owners: &[(&str, &str, &str)]) -> String {
    let entry = |(manager, operation, fields): &(&str, &str, &str)| {
        format!(
            r#"{{"manager":"{manager}","operation":"{operation}","apiVersion":"sea.test/v1","fieldsV1":{{"f:spec":{fields}}}}}"#
        )
    };
    let entries: Vec<String> = owners.iter().map(entry).collect();
    format!(r#","managedFields":[{}]"#, entries.join(","))
}

/// The spec of what is shown of desired, of live if that is another, and of what is applied.
fn outcome(
    texts: &[&str],
    desired: &str,
    live: &str,
    owners: &[(&str, &str, &str)],
) -> (String, String, String) {
    let crd = trimtab_json::parse(CRD.as_bytes()).unwrap();
    let facts = trimtab_compare::facts::build_crd(&crd, "v1").unwrap();
    let (desired, live) = (ship(desired, ""), ship(live, &owned(owners)));
    let (mut wanted, mut content) = (
        trimtab_json::parse(desired.as_bytes()).unwrap(),
        trimtab_json::parse(desired.as_bytes()).unwrap(),
    );
    let live = trimtab_json::parse(live.as_bytes()).unwrap();
    let places = Places::of(&rules(texts), &wanted, Some(&live), &facts);
    let seen = places.show(&mut wanted, &live);
    places.keep(&mut content, &live);
    let spec = |object: &Value<'_>| {
        let mut bytes = Vec::new();
        if let Some(spec) = object.get("spec") {
            trimtab_json::write(spec, &mut bytes);
        }
        String::from_utf8(bytes).unwrap()
    };
    (spec(&wanted), seen.as_ref().map(spec).unwrap_or_default(), spec(&content))
}

#[test]
fn an_ignored_field_is_shown_as_live_has_it_and_is_not_applied() {
    let (shown, live, applied) =
        outcome(&["/spec/sails"], r#"{"sails":2,"flag":"a"}"#, r#"{"sails":7,"flag":"b"}"#, &[]);
    assert_eq!(shown, r#"{"sails":7,"flag":"a"}"#);
    assert_eq!((live.as_str(), applied.as_str()), ("", r#"{"flag":"a"}"#));
    // What live lacks is not put there either.
    let (shown, _, applied) =
        outcome(&["/spec/log/x"], r#"{"sails":2,"log":{"x":"1"}}"#, r#"{"sails":2}"#, &[]);
    assert_eq!((shown.as_str(), applied.as_str()), (r#"{"sails":2}"#, r#"{"sails":2}"#));
}

#[test]
fn an_ignored_field_that_we_applied_is_sent_as_live_has_it_so_that_it_stays() {
    let ours = [("trimtab", "Apply", r#"{"f:sails":{},"f:flag":{}}"#)];
    let (_, _, applied) =
        outcome(&["/spec/sails"], r#"{"sails":2,"flag":"a"}"#, r#"{"sails":7,"flag":"b"}"#, &ours);
    assert_eq!(applied, r#"{"flag":"a","sails":7}"#);
    // Also where it is not declared any more, and where only a part beneath the place is ours.
    let ours = [("trimtab", "Apply", r#"{"f:log":{".":{},"f:x":{}}}"#)];
    let live = r#"{"log":{"x":"1","y":"2"},"sails":7}"#;
    let (shown, _, applied) = outcome(&["/spec/log"], r#"{"sails":2}"#, live, &ours);
    assert_eq!(shown, r#"{"sails":2,"log":{"x":"1","y":"2"}}"#);
    assert_eq!(applied, r#"{"sails":2,"log":{"x":"1"}}"#);
}

#[test]
fn wildcards_lead_to_every_place_that_fits() {
    let desired = r#"{"crew":[{"name":"a","rank":"x","pay":1},{"name":"b","pay":1}]}"#;
    let live = r#"{"crew":[{"name":"b","rank":"y","pay":3},{"name":"a","rank":"x","pay":2}]}"#;
    for rule in ["/spec/crew/*/pay", "/spec/crew/[name=*]/pay", "/spec/crew/[*]/pay", "/**/pay"] {
        let (shown, seen, applied) = outcome(&[rule], desired, live, &[]);
        assert_eq!(
            shown, r#"{"crew":[{"name":"a","rank":"x","pay":2},{"name":"b","pay":3}]}"#,
            "{rule}"
        );
        assert_eq!(
            (seen.as_str(), applied.as_str()),
            ("", r#"{"crew":[{"name":"a","rank":"x"},{"name":"b"}]}"#)
        );
    }
    let (shown, ..) = outcome(&["/spec/crew/[name=b]"], desired, live, &[]);
    assert_eq!(
        shown,
        r#"{"crew":[{"name":"a","rank":"x","pay":1},{"name":"b","rank":"y","pay":3}]}"#
    );
}

#[test]
fn in_a_list_that_is_replaced_as_a_whole_the_ignored_part_is_always_live_s() {
    let desired = r#"{"legs":[{"to":"a","by":"sail"},{"to":"c","by":"oar"}]}"#;
    let live = r#"{"legs":[{"to":"a","by":"oar"},{"to":"b"}]}"#;
    let (shown, _, applied) = outcome(&["/spec/legs/*/by"], desired, live, &[]);
    let expected = r#"{"legs":[{"to":"a","by":"oar"},{"to":"c"}]}"#;
    assert_eq!((shown.as_str(), applied.as_str()), (expected, expected));
    // An element that live does not have is made as it is declared.
    let live = r#"{"legs":[{"to":"a","by":"oar"}]}"#;
    let (_, _, applied) = outcome(&["/spec/legs/*/by"], desired, live, &[]);
    assert_eq!(applied, r#"{"legs":[{"to":"a","by":"oar"},{"to":"c","by":"oar"}]}"#);
    // So it is in a map that is replaced as a whole.
    let (desired, live) = (r#"{"chart":{"a":"1","b":"1"}}"#, r#"{"chart":{"a":"2","b":"2"}}"#);
    let (_, _, applied) = outcome(&["/spec/chart/a"], desired, live, &[]);
    assert_eq!(applied, r#"{"chart":{"a":"2","b":"1"}}"#);
}

#[test]
fn an_element_that_one_side_alone_has_is_made_and_goes_as_a_whole() {
    let (desired, live) =
        (r#"{"crew":[{"name":"a","pay":1}]}"#, r#"{"crew":[{"name":"b","pay":2}]}"#);
    let (shown, seen, applied) = outcome(&["/spec/crew/*/pay"], desired, live, &[]);
    assert_eq!((shown.as_str(), seen.as_str(), applied.as_str()), (desired, "", desired));
}

#[test]
fn all_that_a_manager_owns_is_ignored_by_its_name() {
    let theirs =
        r#"{"f:sails":{},"f:crew":{"k:{\"name\":\"mate\"}":{".":{},"f:name":{},"f:pay":{}}}}"#;
    let owners = [("scaler", "Update", theirs)];
    let desired = r#"{"sails":2,"flag":"a","crew":[{"name":"a","pay":1}]}"#;
    let live = r#"{"sails":7,"flag":"b","crew":[{"name":"a","pay":2},{"name":"mate","pay":3}]}"#;
    let (shown, seen, applied) = outcome(&["by scaler"], desired, live, &owners);
    assert_eq!(
        shown,
        r#"{"sails":7,"flag":"a","crew":[{"name":"a","pay":1},{"name":"mate","pay":3}]}"#
    );
    assert_eq!(
        (seen.as_str(), applied.as_str()),
        ("", r#"{"flag":"a","crew":[{"name":"a","pay":1}]}"#)
    );
    // Narrowed to a path, the rest of it is judged.
    let (shown, ..) = outcome(&["/spec/crew by scaler"], desired, live, &owners);
    assert_eq!(
        shown,
        r#"{"sails":2,"flag":"a","crew":[{"name":"a","pay":1},{"name":"mate","pay":3}]}"#
    );
    let (shown, ..) = outcome(&["by nobody", "/spec/sails by nobody"], desired, live, &owners);
    assert_eq!(shown, desired);
}

#[test]
fn what_lies_where_desired_states_nothing_is_taken_out_of_live() {
    let live = r#"{"sails":2,"log":{"x":"1","y":"2"}}"#;
    let (shown, seen, applied) = outcome(&["/spec/log/x"], r#"{"sails":2}"#, live, &[]);
    assert_eq!(
        (shown.as_str(), seen.as_str()),
        (r#"{"sails":2}"#, r#"{"sails":2,"log":{"y":"2"}}"#)
    );
    assert_eq!(applied, r#"{"sails":2}"#);
}

#[test]
fn what_names_the_object_is_never_ignored() {
    let (desired, live) = (r#"{"sails":2}"#, r#"{"sails":7}"#);
    for rule in ["/**", "/*", "/spec"] {
        let (shown, _, applied) = outcome(&[rule], desired, live, &[]);
        assert_eq!((shown.as_str(), applied.as_str()), (live, ""), "{rule}");
    }
    let object = ship(desired, r#","labels":{"a":"b"}"#);
    let object = trimtab_json::parse(object.as_bytes()).unwrap();
    let found = |rule: &str| -> Vec<String> {
        let rule = trimtab_compare::Rule::path(rule).unwrap();
        let places = rule.places(&object, trimtab_compare::Facts::NONE);
        places.iter().map(|place| place.path.to_string()).collect()
    };
    assert_eq!(found("/*"), ["/metadata/labels", "/spec"]);
    assert_eq!(found("/metadata/name"), [""; 0]);
}

#[test]
fn a_secrets_value_is_ignored_by_either_of_its_names() {
    let secret = |content: &str| {
        let text =
            format!(r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"s"}},{content}}}"#);
        text.into_bytes()
    };
    let (desired, live) = (
        secret(r#""stringData":{"pw":"declared","user":"u"}"#),
        secret(r#""data":{"pw":"bGl2ZQ==","user":"dQ=="}"#),
    );
    for rule in ["/data/pw", "/stringData/pw"] {
        let mut content = trimtab_json::parse(&desired).unwrap();
        let live = trimtab_json::parse(&live).unwrap();
        let places = Places::of(&rules(&[rule]), &content, Some(&live), &[]);
        places.keep(&mut content, &live);
        let mut bytes = Vec::new();
        trimtab_json::write(&content, &mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(r#""stringData":{"user":"u"}"#), "{rule}: {text}");
    }
}

#[test]
fn rules_count_where_they_lead() {
    let desired = desired_with("/data/a\n/data/none\nby kubectl\n");
    let live =
        br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"2"}}"#;
    let shown = shown(&desired, Some(live), &[]).unwrap();
    let counts: Vec<(&str, usize)> =
        shown.matched.iter().map(|matched| (matched.rule.text(), matched.places)).collect();
    assert_eq!(counts, [("/data/a", 1), ("/data/none", 0), ("by kubectl", 0)]);
}

#[test]
fn a_rule_that_cannot_be_read_names_itself_and_where_it_stands() {
    let cases = [
        ("", "names neither"),
        ("spec/replicas", "begins with '/'"),
        ("/spec/[name]", "in brackets"),
        ("/spec by ", "/spec by"),
        ("by trimtab", "Trimtab itself"),
        ("/spec replicas", "a space"),
    ];
    for (text, expected) in cases {
        let error = Rule::parse(text, "a.yaml:3").unwrap_err();
        assert!(error.contains("a.yaml:3") && error.contains(expected), "{text:?}: {error}");
    }
    let problem = shown(&desired_with("/data/a\nspec\n"), None, &[]).unwrap_err();
    assert!(problem.contains("annotation trimtab.dev/ignore of ConfigMap n/c"), "{problem}");
    assert!(problem.contains("\"spec\""), "{problem}");
}

#[test]
fn a_rule_of_a_source_is_for_the_objects_that_it_names() {
    let rule = Scoped {
        kinds: vec![KindPattern::parse("Deployment.apps").unwrap()],
        namespaces: vec!["shop".into()],
        names: vec!["web".into()],
        ..Scoped::everywhere(Rule::parse("/spec/replicas", "here").unwrap())
    };
    let covers = |group, kind, namespace, name| {
        rule.covers(&ObjectKey::new(GroupKind::new(group, kind), namespace, name))
    };
    assert!(covers("apps", "Deployment", "shop", "web"));
    for (kind, namespace, name) in [
        ("StatefulSet", "shop", "web"),
        ("Deployment", "other", "web"),
        ("Deployment", "shop", "x"),
    ] {
        assert!(!covers("apps", kind, namespace, name), "{kind} {namespace}/{name}");
    }
}

fn desired_with(annotation: &str) -> Desired {
    let key = ObjectKey::new(GroupKind::new("", "ConfigMap"), "n", "c");
    let json =
        br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1"}}"#;
    let annotations = Object::new().with(ANNOTATION, annotation.to_owned());
    let metadata = Object::new().with("annotations", annotations);
    Desired {
        ignore: Rules::annotated(&metadata, &key),
        terms: Default::default(),
        key,
        gvk: Gvk::from_api_version("v1", "ConfigMap"),
        digest: Digest::of(json),
        json: json[..].into(),
        source: "s".into(),
        revision: "r".into(),
        origin: Origin { file: "a.yaml".into(), line: 1 },
    }
}

//! Paths: their text, and where they lead.

use proptest::prelude::*;
use trimtab_json::{Path, PathError, Step, parse};

const POD: &str = r#"{"metadata":{"finalizers":["a/b","foo"],"annotations":{"x/y":"1","7":"seven"}},
"spec":{"containers":[{"name":"a","args":["x","y"],"ports":[{"containerPort":80,"protocol":"TCP"},
{"containerPort":80,"protocol":"UDP"},{"containerPort":53}],"volumeMounts":[{"mountPath":"/tmp"}]}]}}"#;

fn led(path: &str) -> Option<(String, String)> {
    let root = parse(POD.as_bytes()).unwrap();
    let path = Path::parse(path).unwrap();
    let value = path.resolve(&root);
    let pointer = path.pointer(&root);
    assert_eq!(value.is_some(), pointer.is_some());
    let mut out = Vec::new();
    trimtab_json::write(value?, &mut out);
    Some((String::from_utf8(out).unwrap(), pointer?))
}

#[test]
fn each_form_of_step_leads_to_its_value() {
    for (path, value, pointer) in [
        ("/spec/containers/[name=a]/args/1", "\"y\"", "/spec/containers/0/args/1"),
        (
            "/spec/containers/[name=a]/ports/[containerPort=80,protocol=UDP]/protocol",
            "\"UDP\"",
            "/spec/containers/0/ports/1/protocol",
        ),
        ("/metadata/finalizers/[=foo]", "\"foo\"", "/metadata/finalizers/1"),
        ("/metadata/finalizers/[=a~1b]", "\"a/b\"", "/metadata/finalizers/0"),
        ("/metadata/annotations/x~1y", "\"1\"", "/metadata/annotations/x~1y"),
        ("/metadata/annotations/7", "\"seven\"", "/metadata/annotations/7"),
        (
            "/spec/containers/[name=a]/volumeMounts/[mountPath=~1tmp]/mountPath",
            "\"/tmp\"",
            "/spec/containers/0/volumeMounts/0/mountPath",
        ),
    ] {
        assert_eq!(led(path), Some((value.into(), pointer.into())), "{path}");
        assert_eq!(Path::parse(path).unwrap().to_string(), path);
    }
}

#[test]
fn an_element_that_leaves_a_key_to_its_default_is_found() {
    let path = "/spec/containers/[name=a]/ports/[containerPort=53,protocol=TCP]";
    assert_eq!(led(path).unwrap().1, "/spec/containers/0/ports/2");
}

#[test]
fn what_is_not_there_leads_nowhere() {
    for path in [
        "/spec/containers/[name=b]",
        "/spec/containers/[name=a]/args/2",
        "/spec/containers/[name=a]/ports/[containerPort=80,protocol=SCTP]",
        "/metadata/finalizers/[=bar]",
        "/metadata/name",
        "/spec/[name=a]",
        "/metadata/annotations/7/x",
    ] {
        assert_eq!(led(path), None, "{path}");
    }
}

#[test]
fn the_empty_text_is_the_root() {
    assert!(Path::parse("").unwrap().is_root());
    assert_eq!(Path::root().to_string(), "");
}

#[test]
fn what_is_no_path_is_refused() {
    for (text, error) in [
        ("a", PathError::NoSlash),
        ("/a~", PathError::Escape),
        ("/a~9", PathError::Escape),
        ("/[name]", PathError::Bracket),
        ("/[name=a", PathError::Bracket),
        ("/[name=a]b]", PathError::Bracket),
        ("/[a=b=c]", PathError::Bracket),
    ] {
        assert_eq!(Path::parse(text), Err(error), "{text}");
    }
}

#[test]
fn a_path_is_beneath_its_ancestors_alone() {
    let path = |text| Path::parse(text).unwrap();
    assert!(path("/a/[name=x]/b").starts_with(&path("/a/[name=x]")));
    assert!(!path("/ab").starts_with(&path("/a")));
    assert_eq!(path("/a/b").parent(), Some(path("/a")));
}

fn step() -> impl Strategy<Value = Step> {
    let word = "[a-z0-9~/,\\]\\[= é]{0,6}";
    prop_oneof![
        word.prop_map(Step::Field),
        any::<usize>().prop_map(Step::Index),
        word.prop_map(Step::Element),
        prop::collection::vec(("[a-z~/,\\]=]{1,4}", word), 1..3).prop_map(Step::Keyed),
    ]
}

proptest! {
    #[test]
    fn text_and_path_are_the_same_both_ways(steps in prop::collection::vec(step(), 0..6)) {
        let path = Path::from(steps);
        let text = path.to_string();
        let read = Path::parse(&text).unwrap();
        prop_assert_eq!(&read, &path);
        prop_assert_eq!(read.to_string(), text);
    }

    #[test]
    fn no_text_makes_a_path_panic(text in any::<String>()) {
        if let Ok(path) = Path::parse(&text) {
            let root = parse(POD.as_bytes()).unwrap();
            let _ = path.resolve(&root);
            let _ = path.pointer(&root);
        }
    }
}

//! What `managedFields` tells: strays, released fields, who wrote what.

mod common;

use common::{told, told_with};
use trimtab_compare::managed_fields::{self, Operation};
use trimtab_compare::{Options, Rule};
use trimtab_json::{Path, parse};

fn entry(manager: &str, operation: &str, fields: &str) -> String {
    format!(
        r#"{{"manager":"{manager}","operation":"{operation}","apiVersion":"apps/v1","time":"2024-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{fields}}}"#
    )
}

fn live(spec: &str, entries: &[String]) -> String {
    let entries = entries.join(",");
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"w","managedFields":[{entries}]}},"spec":{spec}}}"#
    )
}

fn desired(spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"w"}},"spec":{spec}}}"#
    )
}

const SPEC: &str = r#"{"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"i:1"}]}}}"#;
const EDITED: &str = r#"{"replicas":1,"paused":true,"template":{"metadata":{"labels":{"a":"b"},"annotations":{
"kubectl.kubernetes.io/restartedAt":"2024","note":"x"}},"spec":{"dnsPolicy":"ClusterFirst","containers":[
{"name":"a","image":"i:1","imagePullPolicy":"IfNotPresent","args":["x"],"env":[{"name":"A","value":"1"}]}]}}}"#;
const EDITOR: &str = r#"{"f:spec":{"f:replicas":{},"f:paused":{},"f:template":{"f:metadata":{"f:annotations":{".":{},
"f:kubectl.kubernetes.io/restartedAt":{},"f:note":{}}},"f:spec":{"f:dnsPolicy":{},"f:containers":{
"k:{\"name\":\"a\"}":{"f:imagePullPolicy":{},"f:args":{},"f:env":{".":{},"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}}}}}}}}"#;

#[test]
fn what_a_person_added_is_stray_and_defaults_are_not() {
    let container = "/spec/template/spec/containers/[name=a]";
    assert_eq!(
        told(&desired(SPEC), &live(EDITED, &[entry("kubectl-edit", "Update", EDITOR)])),
        format!(
            "stray /spec/template/metadata/annotations/note\nstray {container}/args\n\
             stray {container}/env/[name=A]\nstray /spec/paused"
        )
    );
}

#[test]
fn what_the_control_plane_or_we_wrote_is_not_stray() {
    for manager in ["kube-controller-manager", "trimtab"] {
        let live = live(EDITED, &[entry(manager, "Update", EDITOR)]);
        assert_eq!(told(&desired(SPEC), &live), "", "{manager}");
    }
    let scale = entry("x", "Update", r#"{"f:spec":{"f:paused":{}}}"#)
        .replace("\"time\"", "\"subresource\":\"scale\",\"time\"");
    assert_eq!(told(&desired(SPEC), &live(EDITED, &[scale])), "");
    let options = Options { managers: &["trimtab"], trusted: &["injector"], ..Options::default() };
    let injected = live(EDITED, &[entry("injector", "Update", EDITOR)]);
    assert_eq!(told_with(&desired(SPEC), &injected, &options), "");
}

#[test]
fn what_we_applied_and_no_longer_state_is_released() {
    let before = r#"{"f:metadata":{"f:labels":{"f:gone":{}}},"f:spec":{"f:replicas":{},"f:paused":{},"f:template":{"f:metadata":{"f:labels":{"f:a":{}}},
    "f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:image":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}}}}"#;
    let held = r#"{"replicas":5,"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"i:1"},{"name":"b"}]}}}"#;
    let entries = [entry("trimtab", "Apply", before)];
    assert_eq!(
        told(&desired(SPEC), &live(held, &entries)),
        "released /spec/replicas\nreleased /spec/template/spec/containers/[name=b]"
    );
    let defaulted = held.replace("\"replicas\":5", "\"replicas\":1");
    assert_eq!(
        told(&desired(SPEC), &live(&defaulted, &entries)),
        "released /spec/template/spec/containers/[name=b]"
    );
}

#[test]
fn what_a_predecessor_stated_is_released_too() {
    let entries = [entry("kubectl-client-side-apply", "Update", r#"{"f:spec":{"f:paused":{}}}"#)];
    let options = Options {
        managers: &["trimtab"],
        predecessors: &["kubectl-client-side-apply"],
        ..Options::default()
    };
    let held = r#"{"paused":true}"#;
    assert_eq!(told_with(&desired("{}"), &live(held, &entries), &options), "released /spec/paused");
}

#[test]
fn rules_leave_out_paths_and_managers() {
    let wanted = desired(
        r#"{"replicas":2,"paused":true,"template":{"spec":{"containers":[{"name":"a","image":"i:2"}]}}}"#,
    );
    let entries = [entry("scaler", "Update", r#"{"f:spec":{"f:replicas":{}}}"#)];
    let held = live(
        r#"{"replicas":7,"template":{"spec":{"containers":[{"name":"a","image":"i:1"}]}}}"#,
        &entries,
    );
    let image = "changed /spec/template/spec/containers/[name=a]/image";
    let (replicas, paused) = ("changed /spec/replicas", "missing /spec/paused");
    for (rule, left) in [
        (Rule::path("/spec/replicas").unwrap(), vec![paused, image]),
        (Rule::manager("scaler"), vec![paused, image]),
        (Rule::path("/**/image").unwrap(), vec![replicas, paused]),
        (
            Rule::path("/spec/template/spec/containers/[name=*]/image").unwrap(),
            vec![replicas, paused],
        ),
        (Rule::path("/spec/template/spec/containers/[*]").unwrap(), vec![replicas, paused]),
        (Rule::path("/spec/*").unwrap().by("scaler"), vec![paused, image]),
        (Rule::path("/spec").unwrap(), vec![]),
        (Rule::path("/spec/repl").unwrap(), vec![replicas, paused, image]),
    ] {
        let rules = [rule];
        let options = Options { ignore: &rules, ..Options::default() };
        assert_eq!(told_with(&wanted, &held, &options), left.join("\n"), "{rules:?}");
    }
}

#[test]
fn attribution_names_all_writers_of_each_path() {
    let entries = [
        entry(
            "a",
            "Apply",
            r#"{"f:spec":{"f:x":{},"f:list":{"k:{\"n\":1,\"p\":\"TCP\"}":{".":{},"f:v":{}}}}}"#,
        ),
        entry("b", "Update", r#"{"f:spec":{"f:x":{},"f:set":{"v:\"s\"":{}}}}"#),
    ];
    let text = live("{}", &entries);
    let object = parse(text.as_bytes()).unwrap();
    let paths: Vec<Path> = [
        "/spec/x",
        "/spec/x/deep",
        "/spec/list/[n=1,p=TCP]/v",
        "/spec/set/[=s]",
        "/spec/y",
        "/spec",
    ]
    .map(|path| Path::parse(path).unwrap())
    .into();
    let named: Vec<String> = managed_fields::attribute(&object, &paths)
        .iter()
        .map(|entries| entries.iter().map(|entry| entry.manager).collect())
        .collect();
    assert_eq!(named, ["ab", "ab", "a", "b", "", "ab"]);
    let first = managed_fields::managers_of(&object, &paths[0]).next().unwrap();
    assert_eq!((first.operation, first.time), (Operation::Apply, Some("2024-01-01T00:00:00Z")));
    let owned = managed_fields::owned_paths(&object, "a", Operation::Apply);
    let owned: Vec<String> = owned.iter().map(ToString::to_string).collect();
    assert_eq!(owned, ["/spec/x", "/spec/list/[n=1,p=TCP]", "/spec/list/[n=1,p=TCP]/v"]);
}

#[test]
fn limits_that_admission_filled_in_are_let_be() {
    let pod = |annotations: &str, resources: &str, entries: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p"{annotations}{entries}}},"spec":{{"containers":[{{"name":"a"{resources}}}]}}}}"#
        )
    };
    let wrote = r#","managedFields":[{"manager":"kubectl-create","operation":"Update","apiVersion":"v1",
        "fieldsV1":{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:resources":{"f:limits":{"f:cpu":{}}}}}}}}]"#;
    let limits = r#","resources":{"limits":{"cpu":"1"}}"#;
    let marked =
        r#","annotations":{"kubernetes.io/limit-ranger":"LimitRanger plugin set: cpu limit"}"#;
    assert_eq!(told(&pod("", "", ""), &pod(marked, limits, wrote)), "");
    assert_eq!(
        told(&pod("", "", ""), &pod("", limits, wrote)),
        "stray /spec/containers/[name=a]/resources"
    );
}

#[test]
fn content_that_others_add_is_stray_beside_content_and_not_where_none_is_declared() {
    let adds = |kind: &str, data: &str, held: &str| {
        let desired =
            format!(r#"{{"apiVersion":"v1","kind":"{kind}","metadata":{{"name":"w"}}{data}}}"#);
        let owned = r#"{"f:data":{"f:a":{}},"f:binaryData":{"f:c":{}}}"#;
        let entry = entry("injector", "Update", owned).replace("apps/v1", "v1");
        let live = format!(
            r#"{{"apiVersion":"v1","kind":"{kind}","metadata":{{"name":"w","managedFields":[{entry}]}},{held}}}"#
        );
        told(&desired, &live)
    };
    for kind in ["ConfigMap", "Secret"] {
        for data in ["", r#","data":{}"#, r#","data":null"#] {
            assert_eq!(adds(kind, data, r#""data":{"a":"MQ=="}"#), "", "{kind}{data}");
        }
        let beside = adds(kind, r#","data":{"b":"Yg=="}"#, r#""data":{"a":"MQ==","b":"Yg=="}"#);
        assert_eq!(beside, "stray /data/a", "{kind}");
    }
    let binary = r#""data":{"b":"1"},"binaryData":{"c":"MQ=="}"#;
    assert_eq!(adds("ConfigMap", r#","data":{"b":"1"}"#, binary), "stray /binaryData/c");
    let binary = r#""binaryData":{"c":"MQ=="}"#;
    assert_eq!(adds("ConfigMap", r#","binaryData":{}"#, binary), "");
}

//! What cannot stand beside what desired states.

use crate::common::facts_of;
use trimtab_compare::{Facts, excluded};
use trimtab_json::parse;

/// Where live has something that desired rules out, for Deployments with these specs.
fn of(kind: &str, version: &str, desired: &str, live: &str) -> String {
    let object = |spec: &str| {
        format!(
            r#"{{"apiVersion":"{version}","kind":"{kind}","metadata":{{"name":"x"}},"spec":{spec}}}"#
        )
    };
    let (desired, live) = (object(desired), object(live));
    let (desired, live) = (parse(desired.as_bytes()).unwrap(), parse(live.as_bytes()).unwrap());
    let facts = facts_of(&desired);
    let found = excluded(&desired, &live, Facts::new(&facts));
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn deployment(desired: &str, live: &str) -> String {
    of("Deployment", "apps/v1", desired, live)
}

fn container(members: &str) -> String {
    format!(r#"{{"containers":[{{"name":"a","image":"i"}},{{"name":"b",{members}}}]}}"#)
}

fn pod(desired: &str, live: &str) -> String {
    of("Pod", "v1", &container(desired), &container(live))
}

#[test]
fn parameters_of_another_type_are_ruled_out_and_those_of_the_stated_one_are_not() {
    let live = r#"{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%"}}}"#;
    let recreate = r#"{"strategy":{"type":"Recreate"}}"#;
    assert_eq!(deployment(recreate, live), "/spec/strategy/rollingUpdate");
    for desired in [
        r#"{"strategy":{"type":"RollingUpdate"}}"#,
        r#"{"strategy":{"type":"Recreate","rollingUpdate":{"maxSurge":1}}}"#,
        r#"{"strategy":{}}"#,
        "{}",
    ] {
        assert_eq!(deployment(desired, live), "", "{desired}");
    }
}

#[test]
fn of_alternatives_the_one_that_is_stated_rules_the_others_out() {
    let from = r#""env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]"#;
    let value = r#""env":[{"name":"B","value":"2"},{"name":"A","value":"1"}]"#;
    let place = "/spec/containers/[name=b]";
    assert_eq!(pod(from, value), format!("{place}/env/[name=A]/value"));
    assert_eq!(pod(value, from), format!("{place}/env/[name=A]/valueFrom"));
    assert_eq!(pod(value, value), "");
    let http = r#""readinessProbe":{"httpGet":{"port":80}}"#;
    let exec = r#""readinessProbe":{"exec":{"command":["a"]},"periodSeconds":3}"#;
    assert_eq!(pod(http, exec), format!("{place}/readinessProbe/exec"));
    let slower = r#""readinessProbe":{"periodSeconds":9}"#;
    assert_eq!(pod(slower, exec), "");
}

#[test]
fn a_volume_has_one_source() {
    let volumes = |source: &str| format!(r#"{{"volumes":[{{"name":"v"{source}}}]}}"#);
    let of = |desired: &str| of("Pod", "v1", &volumes(desired), &volumes(r#","emptyDir":{}"#));
    assert_eq!(of(r#","configMap":{"name":"c"}"#), "/spec/volumes/[name=v]/emptyDir");
    assert_eq!(of(""), "");
    assert_eq!(of(r#","configMap":null"#), "");
}

#[test]
fn the_keys_of_a_map_rule_nothing_out() {
    let labels = |keys: &str| format!(r#"{{"template":{{"metadata":{{"labels":{{{keys}}}}}}}}}"#);
    let (desired, live) = (r#""value":"1""#, r#""value":"1","valueFrom":"2","other":"3""#);
    assert_eq!(deployment(&labels(desired), &labels(live)), "");
}

#[test]
fn of_types_that_are_not_kubernetes_own_nothing_is_ruled_out() {
    let (desired, live) =
        (r#"{"hold":{"type":"A","value":1}}"#, r#"{"hold":{"rollingUpdate":{},"valueFrom":{}}}"#);
    assert_eq!(of("Ship", "sea.test/v1", desired, live), "");
    assert_eq!(of("Unheard", "x.test/v1", desired, live), "");
}

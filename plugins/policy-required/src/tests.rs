//! What is asked for, where, and what meets it.

use super::*;
use trimtab_sdk::testing::ReviewCase;

fn check(object: &str, configuration: &str, expected: &str) {
    ReviewCase::new().desired(object).configuration(configuration).check::<Required>(expected);
}

fn deployment(labels: &str, pod: &str) -> String {
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"a","namespace":"shop","labels":{labels}}},
        "spec":{{"template":{{"metadata":{{"labels":{{"app":"a"}}}},"spec":{pod}}}}}}}"#
    )
}

const NAMED: &str = r#"{"app.kubernetes.io/name":"a"}"#;
const BOUNDED: &str = r#"{"containers":[{"name":"a","resources":{"requests":{"cpu":"1"},"limits":{"memory":"1Gi"}}}]}"#;
const ROOM: &str = r#"{"resources":{"requests":[],"limits":[]}}"#;

#[test]
fn a_workload_has_a_name_and_bounds_where_nothing_is_configured() {
    check(&deployment(NAMED, BOUNDED), "null", "allow");
    check(
        &deployment("{}", r#"{"containers":[{"name":"a"}],"initContainers":[{"name":"b"}],"ephemeralContainers":[{"name":"c"}]}"#),
        "null",
        "deny required-label /metadata/labels/app.kubernetes.io~1name
         deny resource-requests /spec/template/spec/initContainers/[name=b]/resources/requests/cpu
         deny resource-requests /spec/template/spec/initContainers/[name=b]/resources/requests/memory
         deny resource-limits /spec/template/spec/initContainers/[name=b]/resources/limits/memory
         deny resource-requests /spec/template/spec/containers/[name=a]/resources/requests/cpu
         deny resource-requests /spec/template/spec/containers/[name=a]/resources/requests/memory
         deny resource-limits /spec/template/spec/containers/[name=a]/resources/limits/memory",
    );
}

#[test]
fn a_limit_is_a_request_too_and_the_pod_as_a_whole_can_have_them() {
    let pod = r#"{"containers":[{"name":"a","resources":{"limits":{"cpu":"1","memory":"1Gi"}}}]}"#;
    check(&deployment(NAMED, pod), "null", "allow");
    let pod = r#"{"resources":{"limits":{"cpu":1,"memory":"1Gi"}},"containers":[{"name":"a"}]}"#;
    check(&deployment(NAMED, pod), "null", "allow");
    let pod = r#"{"containers":[{"name":"a","resources":{"requests":{"cpu":null,"memory":""},"limits":{"memory":"1Gi"}}}]}"#;
    let at = "/spec/template/spec/containers/[name=a]/resources/requests/cpu";
    check(&deployment(NAMED, pod), "null", &format!("deny resource-requests {at}"));
    let init = r#"{"resources":{"initContainers":false,"limits":[]}}"#;
    let pod = r#"{"containers":[],"initContainers":[{"name":"b"}]}"#;
    check(&deployment(NAMED, pod), init, "allow");
}

#[test]
fn labels_and_annotations_are_asked_of_kinds_and_their_values_held_to_patterns() {
    let configuration = r#"{"resources":{"requests":[],"limits":[]},
        "labels":[{"name":"tier","values":["web","db-*"],"kinds":["*.apps"],"namespaces":["sh*"],"pods":true}],
        "annotations":[{"name":"contact","kinds":["*"],"effect":"warn"}]}"#;
    check(
        &deployment(r#"{"tier":"db-1"}"#, "{}"),
        configuration,
        "deny required-label /spec/template/metadata/labels/tier",
    );
    check(
        &deployment(r#"{"tier":"cache"}"#, "{}"),
        configuration,
        "deny required-label /metadata/labels/tier
         deny required-label /spec/template/metadata/labels/tier",
    );
    let config_map =
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}"#;
    check(config_map, configuration, "warn required-annotation /metadata/annotations/contact");
    check(&config_map.replace("\"shop\"", "\"kube-system\""), configuration, "allow");
}

#[test]
fn a_namespace_says_whose_it_is() {
    let namespace = |annotations: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"shop","annotations":{annotations}}}}}"#
        )
    };
    check(&namespace("{}"), "null", "deny namespace-owner /metadata/annotations/owner");
    check(
        &namespace(r#"{"owner":" "}"#),
        "null",
        "deny namespace-owner /metadata/annotations/owner",
    );
    check(&namespace(r#"{"owner":"team-a"}"#), "null", "allow");
    check(&namespace("{}"), r#"{"owner":""}"#, "allow");
    check(
        &namespace("{}"),
        r#"{"owner":"x/y"}"#,
        "deny namespace-owner /metadata/annotations/x~1y",
    );
    check(&namespace("{}").replace("\"shop\"", "\"kube-system\""), "null", "allow");
}

#[test]
fn what_is_misspelt_in_the_configuration_denies() {
    for bad in [
        r#"{"lables":[]}"#,
        r#"{"labels":[{"name":"a"}]}"#,
        r#"{"labels":[{"name":"a","kinds":"*"}]}"#,
        r#"{"resources":{"request":[]}}"#,
        r#"{"effect":"log"}"#,
    ] {
        check(&deployment(NAMED, BOUNDED), bad, "deny configuration");
    }
    check(
        &deployment("{}", "{}"),
        ROOM,
        "deny required-label /metadata/labels/app.kubernetes.io~1name",
    );
}

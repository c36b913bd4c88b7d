//! Readiness, kind by kind: each row is an object, shortened to what is read, and its readiness.

use super::*;

fn of(api_version: &str, kind: &str, rest: &str) -> Readiness {
    let json = format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}",{rest}}}"#);
    assert!(trimtab_json::parse(json.as_bytes()).is_ok(), "{json}");
    readiness(&Gvk::from_api_version(api_version, kind), json.as_bytes())
}

fn said(readiness: &Readiness) -> &'static str {
    match readiness {
        Readiness::Ready => "ready",
        Readiness::InProgress(_) => "in progress",
        Readiness::Failed(_) => "failed",
        Readiness::Terminating => "terminating",
        Readiness::Unknown(_) => "unknown",
    }
}

fn check(api_version: &str, kind: &str, rows: &[(&str, &str)]) {
    for (rest, wanted) in rows {
        let found = of(api_version, kind, rest);
        assert_eq!(said(&found), *wanted, "{kind} {rest}: {found}");
    }
}

#[test]
fn a_deployment_is_ready_when_all_replicas_are_updated_and_available() {
    let done = r#""replicas":2,"updatedReplicas":2,"availableReplicas":2,"readyReplicas":2"#;
    let conditions = r#""conditions":[{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"},{"type":"Available","status":"True"}]"#;
    let spec = r#""spec":{"replicas":2,"progressDeadlineSeconds":600}"#;
    check(
        "apps/v1",
        "Deployment",
        &[
            (r#""spec":{}"#, "in progress"),
            (&format!(r#"{spec},"status":{{{done},{conditions}}}"#), "ready"),
            (&format!(r#"{spec},"status":{{{done}}}"#), "in progress"),
            (
                &format!(
                    r#"{spec},"status":{{{},{conditions}}}"#,
                    done.replace("\"replicas\":2", "\"replicas\":3")
                ),
                "in progress",
            ),
            (
                &format!(
                    r#"{spec},"metadata":{{"generation":2}},"status":{{"observedGeneration":1,{done},{conditions}}}"#
                ),
                "in progress",
            ),
            (
                r#""status":{"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"}]}"#,
                "failed",
            ),
            (
                r#""spec":{"replicas":0},"status":{"conditions":[{"type":"Available","status":"True"}]}"#,
                "ready",
            ),
        ],
    );
}

#[test]
fn a_stateful_set_is_ready_when_its_pods_are_of_its_newest_revision() {
    let done = r#""replicas":2,"readyReplicas":2,"currentReplicas":2,"updatedReplicas":2"#;
    check(
        "apps/v1",
        "StatefulSet",
        &[
            (r#""spec":{"replicas":2}"#, "in progress"),
            (
                &format!(
                    r#""spec":{{"replicas":2}},"status":{{{done},"currentRevision":"a","updateRevision":"a"}}"#
                ),
                "ready",
            ),
            (
                &format!(
                    r#""spec":{{"replicas":2}},"status":{{{done},"currentRevision":"a","updateRevision":"b"}}"#
                ),
                "in progress",
            ),
            (
                &format!(
                    r#""spec":{{"replicas":2,"updateStrategy":{{"rollingUpdate":{{"partition":1}}}}}},"status":{{{},"currentRevision":"a","updateRevision":"b"}}"#,
                    done.replace("\"updatedReplicas\":2", "\"updatedReplicas\":1")
                ),
                "ready",
            ),
            (r#""spec":{"replicas":2,"updateStrategy":{"type":"OnDelete"}}"#, "ready"),
        ],
    );
}

#[test]
fn what_runs_on_nodes_is_ready_when_as_many_as_wanted_are() {
    let done = r#""observedGeneration":1,"currentNumberScheduled":2,"updatedNumberScheduled":2,"numberAvailable":2,"numberReady":2"#;
    check(
        "apps/v1",
        "DaemonSet",
        &[
            (r#""status":{}"#, "in progress"),
            (&format!(r#""status":{{"desiredNumberScheduled":2,{done}}}"#), "ready"),
            (&format!(r#""status":{{"desiredNumberScheduled":3,{done}}}"#), "in progress"),
        ],
    );
    check(
        "apps/v1",
        "ReplicaSet",
        &[
            (
                r#""spec":{},"status":{"replicas":1,"fullyLabeledReplicas":1,"availableReplicas":1,"readyReplicas":1}"#,
                "ready",
            ),
            (
                r#""spec":{},"status":{"conditions":[{"type":"ReplicaFailure","status":"True"}]}"#,
                "in progress",
            ),
        ],
    );
}

#[test]
fn a_pod_is_ready_by_its_condition_and_failed_when_it_crashes() {
    check(
        "v1",
        "Pod",
        &[
            (r#""spec":{}"#, "in progress"),
            (r#""status":{"phase":"Succeeded"}"#, "ready"),
            (r#""status":{"phase":"Failed"}"#, "failed"),
            (
                r#""status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}"#,
                "ready",
            ),
            (
                r#""status":{"phase":"Running","containerStatuses":[{"name":"a","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}"#,
                "failed",
            ),
            (r#""status":{"phase":"Running"}"#, "in progress"),
        ],
    );
}

#[test]
fn a_job_is_ready_when_it_is_complete() {
    check(
        "batch/v1",
        "Job",
        &[
            (r#""status":{"startTime":"2026-01-01T00:00:00Z"}"#, "in progress"),
            (r#""status":{"conditions":[{"type":"Complete","status":"True"}]}"#, "ready"),
            (r#""status":{"conditions":[{"type":"Failed","status":"True"}]}"#, "failed"),
        ],
    );
    check("batch/v1", "CronJob", &[(r#""spec":{}"#, "ready")]);
}

#[test]
fn a_definition_is_ready_when_it_is_established_and_failed_when_its_names_are_taken() {
    check(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        &[
            (r#""spec":{}"#, "in progress"),
            (r#""status":{"conditions":[{"type":"Established","status":"True"}]}"#, "ready"),
            (
                r#""status":{"conditions":[{"type":"Established","status":"False","reason":"Installing"}]}"#,
                "in progress",
            ),
            (
                r#""status":{"conditions":[{"type":"NamesAccepted","status":"False"},{"type":"Established","status":"False"}]}"#,
                "failed",
            ),
        ],
    );
    check(
        "apiregistration.k8s.io/v1",
        "APIService",
        &[
            (r#""spec":{}"#, "in progress"),
            (r#""status":{"conditions":[{"type":"Available","status":"False"}]}"#, "in progress"),
            (r#""status":{"conditions":[{"type":"Available","status":"True"}]}"#, "ready"),
        ],
    );
}

#[test]
fn what_has_a_phase_is_ready_in_the_right_one() {
    check(
        "v1",
        "Namespace",
        &[
            (r#""status":{"phase":"Active"}"#, "ready"),
            (r#""status":{"phase":"Terminating"}"#, "in progress"),
            (r#""metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}"#, "terminating"),
        ],
    );
    check(
        "v1",
        "PersistentVolumeClaim",
        &[
            (r#""status":{"phase":"Bound"}"#, "ready"),
            (r#""status":{"phase":"Pending"}"#, "in progress"),
        ],
    );
    check(
        "v1",
        "Service",
        &[
            (r#""spec":{"type":"LoadBalancer"}"#, "in progress"),
            (r#""spec":{"type":"LoadBalancer","clusterIP":"10.0.0.1"}"#, "ready"),
            (r#""spec":{"clusterIP":"None"}"#, "ready"),
        ],
    );
}

#[test]
fn what_is_there_to_be_read_is_ready_when_it_is_there() {
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("networking.k8s.io/v1", "Ingress"),
        ("policy/v1", "PodDisruptionBudget"),
        ("rbac.authorization.k8s.io/v1", "Role"),
    ] {
        // Conditions of such kinds say other things than readiness.
        let other = r#""status":{"conditions":[{"type":"Ready","status":"False"}]}"#;
        check(api_version, kind, &[(r#""metadata":{}"#, "ready"), (other, "ready")]);
    }
}

#[test]
fn a_custom_resource_is_ready_by_its_conditions() {
    check(
        "ex.io/v1",
        "Foo",
        &[
            (r#""spec":{}"#, "ready"),
            (r#""status":{"conditions":[{"type":"Ready","status":"True"}]}"#, "ready"),
            (r#""status":{"conditions":[{"type":"Ready","status":"Unknown"}]}"#, "in progress"),
            (r#""status":{"conditions":[{"type":"Available","status":"False"}]}"#, "in progress"),
            (
                r#""status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Reconciling","status":"True"}]}"#,
                "in progress",
            ),
            (r#""status":{"conditions":[{"type":"Stalled","status":"True"}]}"#, "failed"),
            (
                r#""metadata":{"generation":3},"status":{"observedGeneration":2,"conditions":[{"type":"Ready","status":"True"}]}"#,
                "in progress",
            ),
            (
                r#""metadata":{"generation":3},"status":{"conditions":[{"type":"Ready","status":"True","observedGeneration":2}]}"#,
                "in progress",
            ),
        ],
    );
    // A group of others that looks like Kubernetes' own.
    let gateway = r#""status":{"conditions":[{"type":"Ready","status":"False"}]}"#;
    check("gateway.networking.k8s.io/v1", "Gateway", &[(gateway, "in progress")]);
}

#[test]
fn an_object_that_does_not_decode_is_unknown_and_never_ready() {
    let found = readiness(&Gvk::from_api_version("v1", "ConfigMap"), b"{");
    assert_eq!(said(&found), "unknown");
}

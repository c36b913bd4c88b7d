//! Refusals as a real API server words them, and what each means.

use super::*;
use std::time::Duration;
use trimtab_core::identity::{GroupKind, Gvk};

fn kind() -> ApiKind {
    ApiKind {
        gvk: Gvk::from_api_version("apps/v1", "Deployment"),
        plural: "deployments".into(),
        namespaced: true,
        verbs: vec![],
        has_status: true,
    }
}

/// What a refusal with this body means, in words.
fn check(asked: Asked, code: u16, body: &str, expect: &str) {
    let status = Status::from_answer(code, None, "application/json", body.as_bytes());
    let error = RequestError {
        request: "apply /x".into(),
        failure: RequestFailure::Refused(Box::new(status)),
    };
    let key = ObjectKey::new(GroupKind::new("apps", "Deployment"), "shop", "web");
    let meaning = meaning(error, asked, &kind(), &key);
    let word = match &meaning {
        ApplyError::Conflict(_) => "conflict",
        ApplyError::Stale(_) => "stale",
        ApplyError::NotYet(_) => "not yet",
        ApplyError::Forbidden(_) => "forbidden",
        ApplyError::Immutable { .. } => "immutable",
        ApplyError::Rejected(_) => "rejected",
        ApplyError::NoDryRun(_) => "no dry run",
        ApplyError::ManagedInUnserved { .. } => "unserved",
        ApplyError::Unavailable { .. } => "unavailable",
    };
    assert_eq!(format!("{word} | {meaning}"), expect);
}

#[test]
fn a_conflict_names_each_manager_and_field() {
    check(
        Asked::Apply,
        409,
        r#"{"kind":"Status","status":"Failure","message":"Apply failed with 2 conflicts","reason":"Conflict","details":{"causes":[
            {"reason":"FieldManagerConflict","message":"conflict with \"kubectl-edit\"","field":".spec.replicas"},
            {"reason":"FieldManagerConflict","message":"conflict with \"a \\\"b\\\"\" with subresource \"scale\" using apps/v1","field":".spec.paused"}]},"code":409}"#,
        r#"conflict | conflict with other field managers: kubectl-edit owns .spec.replicas, a "b" owns .spec.paused"#,
    );
}

#[test]
fn another_version_or_uid_is_stale() {
    for message in [
        "Operation cannot be fulfilled on deployments.apps \\\"web\\\": the object has been modified; please apply your changes to the latest version and try again",
        "Operation cannot be fulfilled on deployments.apps \\\"web\\\": uid mismatch: the provided object specified uid a, and no existing object was found",
        "Operation cannot be fulfilled on Deployment.apps \\\"web\\\": the UID in the precondition (x) does not match the UID in record (y). The object might have been deleted and then recreated",
    ] {
        let body = format!(
            r#"{{"kind":"Status","message":"{message}","reason":"Conflict","details":{{"name":"web","group":"apps","kind":"deployments"}},"code":409}}"#
        );
        let shown = message.replace("\\\"", "\"");
        check(
            Asked::Apply,
            409,
            &body,
            &format!("stale | the object changed since it was read: {shown}"),
        );
    }
    let body = r#"{"kind":"Status","message":"deployments.apps \"web\" not found","reason":"NotFound","details":{"name":"web","group":"apps","kind":"deployments"},"code":404}"#;
    check(
        Asked::Delete,
        404,
        body,
        "stale | the object changed since it was read: it is not there any more",
    );
}

#[test]
fn a_missing_namespace_or_kind_and_a_terminating_namespace_are_waited_for() {
    let namespace = r#"{"kind":"Status","message":"namespaces \"shop\" not found","reason":"NotFound","details":{"name":"shop","kind":"namespaces"},"code":404}"#;
    check(Asked::Apply, 404, namespace, "not yet | waiting: namespace shop does not exist");
    let served = r#"{"kind":"Status","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}"#;
    check(
        Asked::Apply,
        404,
        served,
        "not yet | waiting: the API server does not serve apps/v1 Deployment",
    );
    check(
        Asked::Apply,
        404,
        "404 page not found",
        "not yet | waiting: the API server does not serve apps/v1 Deployment",
    );
    let ending = r#"{"kind":"Status","message":"deployments.apps \"web\" is forbidden: unable to create new content in namespace shop because it is being terminated","reason":"Forbidden","details":{"name":"web","kind":"deployments","causes":[{"reason":"NamespaceTerminating","message":"namespace shop is being terminated","field":"metadata.namespace"}]},"code":403}"#;
    check(Asked::Apply, 403, ending, "not yet | waiting: namespace shop is being deleted");
}

#[test]
fn a_webhook_without_dry_run_and_an_unserved_version_in_managed_fields_are_answers_of_their_own() {
    // As k8s.io/apiserver words it, in plugin/pkg/admission/webhook/errors; a 1.37 server takes no
    // new configuration with such side effects, and still honours stored ones.
    let unsupported = r#"{"kind":"Status","message":"admission webhook \"inject.example.com\" does not support dry run","reason":"BadRequest","code":400}"#;
    check(
        Asked::Apply,
        400,
        unsupported,
        r#"no dry run | no dry run is possible: admission webhook "inject.example.com" does not support dry run"#,
    );
    let unserved = r#"{"kind":"Status","message":"request to convert CR to an invalid group/version: ex.io/v1alpha1","code":500}"#;
    check(
        Asked::Apply,
        500,
        unserved,
        "unserved | request to convert CR to an invalid group/version: ex.io/v1alpha1",
    );
}

#[test]
fn missing_rbac_names_the_rule_and_admissions_no_is_a_rejection() {
    let rbac = r#"{"kind":"Status","message":"deployments.apps \"web\" is forbidden: User \"bob\" cannot patch resource \"deployments\" in API group \"apps\" in the namespace \"shop\"","reason":"Forbidden","details":{"name":"web","group":"apps","kind":"deployments"},"code":403}"#;
    check(
        Asked::Apply,
        403,
        rbac,
        r#"forbidden | forbidden: deployments.apps "web" is forbidden: User "bob" cannot patch resource "deployments" in API group "apps" in the namespace "shop"; in namespace shop, RBAC has to allow: apiGroups: ["apps"], resources: ["deployments"], verbs: [create, patch]"#,
    );
    let masquerade = r#"{"kind":"Status","message":"serviceaccounts \"d\" is forbidden: User \"trimtab\" cannot impersonate resource \"serviceaccounts\" in API group \"\" in the namespace \"shop\"","reason":"Forbidden","details":{"name":"d","kind":"serviceaccounts"},"code":403}"#;
    check(
        Asked::Apply,
        403,
        masquerade,
        "forbidden | forbidden: serviceaccounts \"d\" is forbidden: User \"trimtab\" cannot impersonate resource \"serviceaccounts\" in API group \"\" in the namespace \"shop\"; the object's source acts as a ServiceAccount: let Trimtab impersonate it, by the rules that `trimtab rbac --config FILE` prints",
    );
    let quota = r#"{"kind":"Status","message":"pods \"web\" is forbidden: exceeded quota: small","reason":"Forbidden","code":403}"#;
    check(
        Asked::Apply,
        403,
        quota,
        "rejected | the API server refuses it: pods \"web\" is forbidden: exceeded quota: small",
    );
    let webhook = r#"{"kind":"Status","message":"admission webhook \"policy.example\" denied the request: no","code":400}"#;
    check(
        Asked::Apply,
        400,
        webhook,
        "rejected | the API server refuses it: admission webhook \"policy.example\" denied the request: no",
    );
}

#[test]
fn a_patch_that_does_not_fit_any_more_is_stale_and_invalid_content_is_rejected() {
    let lost = r#"{"kind":"Status","message":"the server rejected our request due to an error in our request","reason":"Invalid","details":{},"code":422}"#;
    check(
        Asked::Patch,
        422,
        lost,
        "stale | the object changed since it was read: the patch does not fit what is there now",
    );
    let uid = r#"{"kind":"Status","message":"ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"nope\": field is immutable","reason":"Invalid","details":{"name":"a","kind":"ConfigMap","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"nope\": field is immutable","field":"metadata.uid"}]},"code":422}"#;
    check(
        Asked::Apply,
        422,
        uid,
        "stale | the object changed since it was read: it has another UID now",
    );
    let invalid = r#"{"kind":"Status","message":"Deployment.apps \"web\" is invalid: spec.replicas: Invalid value: -1","reason":"Invalid","code":422}"#;
    check(
        Asked::Patch,
        422,
        invalid,
        "rejected | the API server refuses it: Deployment.apps \"web\" is invalid: spec.replicas: Invalid value: -1",
    );
    let shape = r#"{"kind":"Status","message":"failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.bogus: field not declared in schema","code":500}"#;
    check(
        Asked::Apply,
        500,
        shape,
        "rejected | the API server refuses it: unknown_field: failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.bogus: field not declared in schema",
    );
}

/// Recorded from a server whose definition had another version before.
#[test]
fn managed_fields_that_the_server_cannot_read_are_told_apart_from_wrong_content() {
    let unread =
        r#"{"kind":"Status","message":".spec.brake: field not declared in schema","code":500}"#;
    check(Asked::Apply, 500, unread, "unserved | .spec.brake: field not declared in schema");
}

#[test]
fn a_busy_server_and_an_unreachable_webhook_are_tried_again() {
    let busy = r#"{"kind":"Status","message":"too many requests","reason":"TooManyRequests","details":{"retryAfterSeconds":3},"code":429}"#;
    check(
        Asked::Apply,
        429,
        busy,
        "unavailable | the API server answered 429 TooManyRequests: too many requests",
    );
    let webhook = r#"{"kind":"Status","message":"Internal error occurred: failed calling webhook \"validate.nginx.ingress.kubernetes.io\": failed to call webhook","reason":"InternalError","code":500}"#;
    check(
        Asked::Apply,
        500,
        webhook,
        "unavailable | the API server answered 500 InternalError: Internal error occurred: failed calling webhook \"validate.nginx.ingress.kubernetes.io\": failed to call webhook",
    );
    let status =
        Status { code: 429, retry_after: Some(Duration::from_secs(3)), ..Status::default() };
    let key = ObjectKey::new(GroupKind::new("", "Pod"), "s", "a");
    let ApplyError::Unavailable { retry_after, .. } = refused(&status, Asked::Apply, &kind(), &key)
    else {
        panic!("429 is unavailable")
    };
    assert_eq!(retry_after, Some(Duration::from_secs(3)));
}

#[test]
fn what_cannot_change_is_told_from_what_is_wrong() {
    let answer = |causes: &str| {
        format!(
            r#"{{"kind":"Status","message":"it is invalid","reason":"Invalid","details":{{"name":"web","kind":"Deployment","causes":[{causes}]}},"code":422}}"#
        )
    };
    let frozen = r#"{"reason":"FieldValueInvalid","message":"Invalid value: {}: field is immutable","field":"spec.selector"}"#;
    let wrong = r#"{"reason":"FieldValueRequired","message":"Required value","field":"spec.template.spec.containers"}"#;
    check(
        Asked::Apply,
        422,
        &answer(frozen),
        "immutable | the API server refuses it: it is invalid",
    );
    check(
        Asked::Apply,
        422,
        &answer(&format!("{frozen},{wrong}")),
        "rejected | the API server refuses it: it is invalid",
    );
}

//! Who may do what, under the usual rules and under others.

use super::*;
use trimtab_sdk::ActionKind::{Apply, Delete, Recreate, RemoveFields};
use trimtab_sdk::testing::ReviewCase;

fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> String {
    format!(
        r#"{{"apiVersion":{api_version:?},"kind":{kind:?},"metadata":{{"namespace":{namespace:?},"name":{name:?}}}}}"#
    )
}

fn config_map(namespace: &str) -> ReviewCase {
    ReviewCase::new().desired(object("v1", "ConfigMap", namespace, "a"))
}

fn role() -> ReviewCase {
    ReviewCase::new().desired(object("rbac.authorization.k8s.io/v1", "Role", "shop", "a"))
}

#[test]
fn the_systems_own_namespaces_are_left_alone_where_nothing_is_configured() {
    config_map("shop").check::<Protected>("allow");
    config_map("kube-system").check::<Protected>("deny protected (root)");
    config_map("kube-system").signers(&["alice"]).check::<Protected>("deny protected (root)");
    let apply = config_map("kube-system").change(Apply, &[]);
    apply.check::<Protected>("deny protected (root)");
}

#[test]
fn what_takes_others_with_it_may_be_changed_and_not_deleted() {
    let claim = ReviewCase::new().desired(object("v1", "PersistentVolumeClaim", "shop", "a"));
    claim.clone().check::<Protected>("allow");
    claim.clone().change(RemoveFields, &["/metadata/labels/a"]).check::<Protected>("allow");
    claim.clone().change(Recreate, &[""]).check::<Protected>("deny protected (root)");
    claim.change(Delete, &[""]).check::<Protected>("deny protected (root)");
    let namespace = ReviewCase::new().live(object("v1", "Namespace", "", "shop"));
    namespace.change(Delete, &[""]).check::<Protected>("deny protected (root)");
}

#[test]
fn a_signer_who_is_listed_may_and_another_may_not() {
    let rules = r#"{"protected":[{"kinds":["ConfigMap"],"namespaces":["pay*"],"names":["a"],"signers":["alice","ops-*"]}]}"#;
    let case = |signers: &[&str]| config_map("payments").configuration(rules).signers(signers);
    case(&["alice"]).check::<Protected>("allow");
    case(&["mallory", "ops-1"]).check::<Protected>("allow");
    case(&["mallory"]).check::<Protected>("deny protected (root)");
    case(&[]).check::<Protected>("deny protected (root)");
    config_map("shop").configuration(rules).check::<Protected>("allow");
    let warn = rules.replace(r#""names""#, r#""effect":"warn","names""#);
    config_map("payments").configuration(warn).check::<Protected>("warn protected (root)");
}

#[test]
fn a_namespace_lies_in_itself() {
    let rules = r#"{"protected":[{"namespaces":["payments"],"on":["delete"]}]}"#;
    let namespace = ReviewCase::new().live(object("v1", "Namespace", "", "payments"));
    let namespace = namespace.configuration(rules).change(Delete, &[""]);
    namespace.check::<Protected>("deny protected (root)");
}

#[test]
fn what_hands_out_power_takes_two_persons() {
    role().check::<Protected>("deny two-persons (root)");
    role().signers(&["alice"]).check::<Protected>("deny two-persons (root)");
    role().signers(&["alice", "alice"]).check::<Protected>("deny two-persons (root)");
    role().signers(&["alice", "bob"]).check::<Protected>("allow");
    // The author that a commit names is nobody's word.
    role()
        .author("Bob <bob@example.com>")
        .signers(&["alice"])
        .check::<Protected>("deny two-persons (root)");
    for (api_version, kind) in [
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
        ("apiregistration.k8s.io/v1", "APIService"),
    ] {
        let case =
            ReviewCase::new().desired(object(api_version, kind, "", "a")).signers(&["alice"]);
        case.clone().check::<Protected>("deny two-persons (root)");
        case.change(RemoveFields, &["/spec/a"]).check::<Protected>("deny two-persons (root)");
    }
}

#[test]
fn who_counts_as_one_of_two_and_for_what_is_configured() {
    let rules =
        r#"{"twoPersons":{"kinds":["ConfigMap"],"namespaces":["shop"],"signers":["lead-*"]}}"#;
    let case = |signers: &[&str]| config_map("shop").configuration(rules).signers(signers);
    case(&["lead-a", "lead-b"]).check::<Protected>("allow");
    case(&["lead-a", "bob"]).check::<Protected>("deny two-persons (root)");
    role().configuration(rules).check::<Protected>("allow");
    role().configuration(r#"{"twoPersons":{"kinds":[]}}"#).check::<Protected>("allow");
}

#[test]
fn a_deletion_takes_two_persons_where_that_is_asked_for() {
    let deleted = role().change(Delete, &[""]).signers(&["alice"]);
    deleted.clone().check::<Protected>("allow");
    let both = r#"{"twoPersons":{"on":["change","delete"]}}"#;
    deleted.clone().configuration(both).check::<Protected>("deny two-persons (root)");
    deleted.signers(&["alice", "bob"]).configuration(both).check::<Protected>("allow");
    // What guards others is protected from deletion in its own right.
    let webhook =
        object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "a");
    let deleted = ReviewCase::new().live(webhook).change(Delete, &[""]).signers(&["alice", "bob"]);
    deleted.check::<Protected>("deny protected (root)");
}

#[test]
fn a_reason_says_who_may_and_who_vouches() {
    let ReviewVerdict::Deny(reasons) = role().signers(&["alice"]).run::<Protected>() else {
        panic!("not denied")
    };
    let message = &reasons[0].message;
    assert!(message.starts_with("Role/a in shop hands out power"), "{message}");
    assert!(message.ends_with("alice vouches for this, which counts as 1"), "{message}");
}

#[test]
fn what_is_misspelt_in_the_configuration_denies() {
    for bad in [
        r#"{"protect":[]}"#,
        r#"{"protected":[{"kind":"a"}]}"#,
        r#"{"protected":[{"on":["update"]}]}"#,
        r#"{"twoPersons":{"count":3}}"#,
        r#"{"twoPersons":true}"#,
    ] {
        config_map("shop").configuration(bad).check::<Protected>("deny configuration");
    }
}

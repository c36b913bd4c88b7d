//! The generic reconciler: holds objects of any kind to what is declared.
//!
//! It compares by meaning, with what the cluster's schema says of the type, and knows nothing
//! beyond that: no type's habits, no controller's fields. So it applies what is declared as it is
//! declared, removes what it declared before or what lies in a place that is declared as a whole,
//! and touches nothing that is on its way out. A plugin that claims a kind by name takes it over.

use trimtab_sdk::{Difference, Finding, Reconciler, Snapshot, Verdict};

/// Reconciles any kind.
pub struct Generic;

impl Reconciler for Generic {
    fn decide(snapshot: &Snapshot<'_>, differences: &[Difference<'_>]) -> Verdict {
        let verdict = trimtab_sdk::decide(snapshot, differences);
        if snapshot.live().is_none() || snapshot.facts().is_known() {
            return verdict;
        }
        verdict.finding(Finding::info(
            "schema-unknown",
            "the cluster's schema of this type is not known: lists and quantities were compared by common rules",
        ))
    }
}

trimtab_sdk::export!(Generic);

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_sdk::testing::Case;

    fn config_map(data: &str) -> String {
        format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{data}}}"#
        )
    }

    #[test]
    fn what_is_as_declared_is_left_alone() {
        let same = config_map(r#"{"a":"1"}"#);
        Case::new().desired(&same).live(&same).check::<Generic>("in-sync");
    }

    #[test]
    fn an_absent_object_is_applied() {
        Case::new().desired(config_map("{}")).check::<Generic>(
            r#"
            missing (root) {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{}}
            apply-desired
            "#,
        );
    }

    #[test]
    fn a_changed_value_is_applied() {
        let (desired, live) = (config_map(r#"{"a":"1"}"#), config_map(r#"{"a":"2"}"#));
        Case::new().desired(desired).live(live).check::<Generic>(
            r#"
            changed /data/a "1" <- "2"
            apply-desired
            finding info schema-unknown
            "#,
        );
    }

    #[test]
    fn a_value_that_only_a_person_wrote_is_removed_and_not_applied() {
        let live = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":[
            {"manager":"trimtab","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1",
             "fieldsV1":{"f:data":{"f:a":{}}}},
            {"manager":"kubectl-edit","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1",
             "fieldsV1":{"f:data":{"f:b":{}}}}]},"data":{"a":"1","b":"2"}}"#;
        Case::new().desired(config_map(r#"{"a":"1"}"#)).live(live).check::<Generic>(
            r#"
            stray /data/b <- "2"
            remove-fields /data/b
            finding info schema-unknown
            "#,
        );
    }

    #[test]
    fn a_field_that_cannot_change_is_answered_by_making_it_anew_only_where_the_manifest_says_so() {
        let crd = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
            "spec":{"group":"ex.io","names":{"kind":"Claim"},"versions":[{"name":"v1","schema":
            {"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":
            {"class":{"type":"string","x-kubernetes-validations":[{"rule":"self == oldSelf"}]}}}}}}}]}}"#;
        let crd = trimtab_sdk::json::parse(crd.as_bytes()).unwrap();
        let facts = trimtab_sdk::comparison::facts::build_crd(&crd, "v1").unwrap();
        let object = |annotations: &str, class: &str| {
            format!(
                r#"{{"apiVersion":"ex.io/v1","kind":"Claim","metadata":{{"name":"b"{annotations}}},"spec":{{"class":"{class}"}}}}"#
            )
        };
        let run = |annotations: &str| {
            let case = Case::new().desired(object(annotations, "new")).live(object("", "old"));
            case.facts(facts.clone()).run::<Generic>()
        };
        assert!(run("").contains("leave: immutable_field: /spec/class"), "{}", run(""));
        let allowed = run(r#","annotations":{"trimtab.dev/on-immutable":"recreate"}"#);
        assert!(allowed.contains("\nrecreate\n"), "{allowed}");
    }

    #[test]
    fn an_object_on_its_way_out_is_left_until_it_is_gone() {
        let live = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a",
            "deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["x/y"]},"data":{"a":"2"}}"#;
        Case::new().desired(config_map(r#"{"a":"1"}"#)).live(live).check::<Generic>(
            r#"
            changed /data/a "1" <- "2"
            defer 10s: the live object is being deleted: it is made anew once it is gone
            "#,
        );
    }

    #[test]
    fn what_cannot_be_compared_is_unknown_and_says_why() {
        let run = Case::new().desired("[]").live(config_map("{}")).run::<Generic>();
        assert!(run.starts_with("unknown: the desired object is not an object"), "{run}");
    }
}

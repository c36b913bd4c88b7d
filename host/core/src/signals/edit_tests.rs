//! Which differences are somebody's edit, whose, and what the audit log adds.

use super::samples::{by, difference, record};
use super::*;
use crate::signals::witness::{ApiWrite, Seen};

fn ended(
    edits: &mut Edits,
    outcome: Outcome,
    version: &str,
    differences: Vec<Difference>,
) -> Vec<Edit> {
    let mut record = record();
    record.outcome = outcome;
    record.live_resource_version = Some(version.into());
    record.differences = differences;
    edits.pass(&record, None, false)
}

fn in_force() -> Edits {
    let mut edits = Edits::default();
    assert!(ended(&mut edits, Outcome::InSync, "1", vec![]).is_empty());
    edits
}

#[test]
fn what_was_in_force_and_is_not_any_more_is_an_edit_by_whoever_managed_fields_tell() {
    let mut edits = in_force();
    let differences = vec![
        difference("/data/a", &["mallory"]),
        difference("/data/b", &["mallory"]),
        difference("/data/c", &["alice"]),
        difference("/data/d", &["trimtab"]),
    ];
    let found = ended(&mut edits, Outcome::Corrected, "2", differences);
    let told: Vec<(&str, usize)> = found
        .iter()
        .map(|edit| (edit.manager.as_ref().unwrap().name.as_str(), edit.paths.len()))
        .collect();
    assert_eq!(told, [("alice", 1), ("mallory", 2)]);
    let observation = &found[1].told(None)[0];
    assert_eq!((observation.name, observation.severity), (Name::ManualEdit, Severity::Warning));
    assert!(observation.message.contains("by mallory, according to managedFields"));
    assert!(observation.message.contains("it is corrected"), "{observation:?}");
}

#[test]
fn what_another_revision_or_nobody_changes_is_no_edit() {
    let mut edits = Edits::default();
    let differs = || vec![difference("/data/a", &["mallory"])];
    assert!(ended(&mut edits, Outcome::Corrected, "1", differs()).is_empty(), "never in force");
    let mut edits = in_force();
    assert!(ended(&mut edits, Outcome::Corrected, "1", differs()).is_empty(), "it did not move");
    for outcome in [Outcome::Stale, Outcome::Unknown(String::new()), Outcome::Created] {
        assert!(ended(&mut in_force(), outcome, "2", differs()).is_empty());
    }
    let mut record = record();
    record.desired_digest = Digest::of(b"another revision");
    record.outcome = Outcome::Corrected;
    record.live_resource_version = Some("2".into());
    record.differences = differs();
    assert!(in_force().pass(&record, None, false).is_empty());
}

#[test]
fn an_edit_that_is_only_observed_is_told_once_for_each_state_of_the_object() {
    let mut edits = in_force();
    let differs = || vec![difference("/data/a", &["mallory"])];
    assert_eq!(ended(&mut edits, Outcome::Observed, "2", differs()).len(), 1);
    assert!(ended(&mut edits, Outcome::Observed, "2", differs()).is_empty());
    assert_eq!(ended(&mut edits, Outcome::Observed, "3", differs()).len(), 1);
}

#[test]
fn a_field_that_was_taken_out_is_by_whoever_is_told_beside_it_or_by_nobody() {
    let gone = || difference("/metadata/labels/a", &[]);
    let found =
        ended(&mut in_force(), Outcome::Corrected, "2", vec![gone(), difference("/d", &["bob"])]);
    assert_eq!((found.len(), found[0].paths.len()), (1, 2));
    let found = ended(&mut in_force(), Outcome::Corrected, "2", vec![gone()]);
    assert!(found[0].told(None)[0].message.contains("managedFields do not tell"));
}

#[test]
fn what_was_in_force_before_a_restart_is_known_from_the_inventory() {
    let mut edits = Edits::default();
    let mut record = record();
    record.outcome = Outcome::Corrected;
    record.differences = vec![difference("/data/a", &["mallory"])];
    assert_eq!(edits.pass(&record, None, true).len(), 1);
}

#[test]
fn a_component_of_kubernetes_is_told_quietly_and_our_own_name_in_other_hands_loudly() {
    let severity = |manager: Manager| {
        let edit = Edit {
            key: record().key,
            manager: Some(manager),
            paths: vec!["/a".into()],
            outcome: "corrected",
            at_ms: 1,
        };
        edit.told(None)[0].severity
    };
    assert_eq!(severity(by("kube-controller-manager")), Severity::Info);
    assert_eq!(severity(by("trimtab")), Severity::Critical);
}

#[test]
fn the_audit_log_names_the_user_and_a_contradiction_is_a_finding_beside_the_edit() {
    let found = ended(&mut in_force(), Outcome::Corrected, "2", vec![difference("/a", &["alice"])]);
    let request = |manager: &str| {
        Seen::Request(Box::new(ApiWrite {
            at_ms: 1,
            user: "mallory".into(),
            authenticated: "mallory".into(),
            agent: "curl/8".into(),
            verb: "patch".into(),
            manager: manager.into(),
            group: String::new(),
            resource: "configmaps".into(),
            namespace: "shop".into(),
            name: "c".into(),
            audit_id: "1234".into(),
        }))
    };
    let agreed = found[0].told(Some(&request("alice")));
    assert_eq!(agreed.len(), 1);
    assert!(agreed[0].message.contains("mallory (audit id 1234)"), "{agreed:?}");
    let told = found[0].told(Some(&request("curl")));
    let names: Vec<Name> = told.iter().map(|it| it.name).collect();
    assert_eq!(names, [Name::ManualEdit, Name::ManualEditMismatch]);
    assert_eq!(told[1].severity, Severity::Critical);
    assert_eq!(found[0].told(Some(&Seen::Nothing)).len(), 1);
}

//! What the API server taught: cases in which it and the comparison once disagreed, found by the
//! generated pairs of the system tests, each as small as it gets.

mod common;

use common::told;

/// A ship, which is a custom resource of the tests.
fn ship(spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"sea.test/v1","kind":"Ship","metadata":{{"name":"x"}},"spec":{{{spec}}}}}"#
    )
}

/// The same with the fields of `spec` that we own by apply, and those that somebody else wrote.
fn owned(spec: &str, ours: &str, theirs: &str) -> String {
    let entry = |manager: &str, operation: &str, fields: &str| {
        format!(
            r#"{{"manager":"{manager}","operation":"{operation}","apiVersion":"sea.test/v1","fieldsV1":{{"f:spec":{{{fields}}}}}}}"#
        )
    };
    let (ours, theirs) = (entry("trimtab", "Apply", ours), entry("mallory", "Update", theirs));
    format!(
        r#"{{"apiVersion":"sea.test/v1","kind":"Ship","metadata":{{"name":"x","managedFields":[{ours},{theirs}]}},"spec":{{{spec}}}}}"#
    )
}

#[test]
fn what_an_apply_replaces_as_a_whole_loses_what_desired_leaves_out_whoever_wrote_it() {
    let (desired, live) = (r#""legs":[{"to":"a"}]"#, r#""legs":[{"to":"a","by":"oar"}]"#);
    let expected = "changed /spec/legs/0/by";
    assert_eq!(told(&ship(desired), &owned(live, r#""f:legs":{}"#, "")), expected);
    assert_eq!(told(&ship(desired), &owned(live, "", r#""f:legs":{}"#)), expected);
    assert_eq!(told(&ship(desired), &ship(live)), expected);
    let live = r#""legs":[{"to":"a","by":"wind"}]"#;
    assert_eq!(told(&ship(desired), &owned(live, r#""f:legs":{}"#, "")), "", "the default is back");
}

#[test]
fn a_number_as_a_key_or_element_means_its_value() {
    let live = ship(r#""buoys":[{"id":80,"light":"red"}]"#);
    assert_eq!(told(&ship(r#""buoys":[{"id":80.0,"light":"red"}]"#), &live), "");
    assert_eq!(
        told(&ship(r#""buoys":[{"id":80.5,"light":"red"}]"#), &live),
        "missing /spec/buoys/[id=80.5]\nstray /spec/buoys/[id=80]"
    );
}

#[test]
fn a_member_that_moves_from_data_to_string_data_is_not_released() {
    let secret = |more: &str, metadata: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"s"{metadata}}},{more}}}"#
        )
    };
    let managed = r#","managedFields":[{"manager":"trimtab","operation":"Apply","apiVersion":"v1",
        "fieldsV1":{"f:data":{"f:a":{},"f:b":{}}}}]"#;
    let live = secret(r#""data":{"a":"eA==","b":"eQ=="}"#, managed);
    let moved = secret(r#""data":{"b":"eQ=="},"stringData":{"a":"x"}"#, "");
    assert_eq!(told(&moved, &live), "");
    let gone = secret(r#""data":{"b":"eQ=="},"stringData":{"c":"x"}"#, "");
    assert_eq!(told(&gone, &live), "missing /data/c\nreleased /data/a");
}

#[test]
fn what_we_let_go_is_released_unless_the_server_puts_it_back() {
    let all = r#""f:flag":{},"f:sails":{},"f:stops":{}"#;
    let live = owned(r#""flag":"none","sails":3,"stops":[]"#, all, "");
    assert_eq!(told(&ship(""), &live), "released /spec/sails\nreleased /spec/stops");
}

#[test]
fn the_text_of_custom_resources_is_kept_as_it_is_sent_and_that_of_secrets_is_not() {
    let secret = |data: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"s"}},"data":{{"a":"{data}"}}}}"#
        )
    };
    assert_eq!(told(&secret("ZWln\\naHQ="), &secret("ZWlnaHQ=")), "");
    assert_eq!(
        told(&ship(r#""seal":"ZWln\naHQ=""#), &ship(r#""seal":"ZWlnaHQ=""#)),
        "changed /spec/seal"
    );
}

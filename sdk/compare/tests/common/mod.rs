//! What the tests share: a small schema of our own, and one check that tells a comparison as text.

#![allow(dead_code, reason = "each test binary uses a part")]

use trimtab_compare::{Facts, Options, compare, facts};
use trimtab_json::{Value, parse};

/// A hand-written piece of an OpenAPI document: the types that the tests use, as far as they do.
const OPENAPI: &str = include_str!("openapi.json");

/// A CRD of our own.
const CRD: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"ships.sea.test"},"spec":{"group":"sea.test","names":{"kind":"Ship","plural":"ships"},
"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{
"type":"object","properties":{"spec":{"type":"object","properties":{
"sails":{"type":"integer"},"flag":{"type":"string","default":"none"},"interval":{"type":"string"},"seal":{"type":"string","format":"byte"},
"draught":{"x-kubernetes-int-or-string":true},
"port":{"type":"string","x-kubernetes-validations":[{"rule":"self == oldSelf"}]},
"hold":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
"log":{"type":"object","additionalProperties":{"type":"string"}},
"crew":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{
"type":"object","properties":{"name":{"type":"string"},"rank":{"type":"string","default":"mate"}}}},
"buoys":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["id"],"items":{
"type":"object","properties":{"id":{"type":"integer","default":1},"light":{"type":"string"},
"at":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}}},
"stops":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
"legs":{"type":"array","items":{"type":"object","properties":{"to":{"type":"string"},
"by":{"type":"string","default":"wind"}}}}}}}}}}]}}"#;

/// The facts that the schema gives of an object's kind; none for kinds it does not know.
pub(crate) fn facts_of(object: &Value<'_>) -> Vec<u8> {
    let version = object.str_at(&["apiVersion"]).unwrap_or_default();
    let kind = object.str_at(&["kind"]).unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    if kind == "Ship" {
        return facts::build_crd(&parse(CRD.as_bytes()).unwrap(), version).unwrap();
    }
    let document = parse(OPENAPI.as_bytes()).unwrap();
    facts::build(&document, group, version, kind).unwrap_or_default()
}

/// What a comparison says: one line a difference, `kind path`, or the error.
pub(crate) fn told_with(desired: &str, live: &str, options: &Options<'_>) -> String {
    let desired = parse(desired.as_bytes()).expect(desired);
    let live = (live != "-").then(|| parse(live.as_bytes()).expect(live));
    let facts = facts_of(&desired);
    match compare(&desired, live.as_ref(), Facts::new(&facts), options) {
        Err(error) => format!("{}: {error}", error.code()),
        Ok(differences) => {
            let line = |difference: &trimtab_compare::Difference<'_>| {
                let fixed = difference.immutable.as_ref();
                let fixed = fixed.map(|path| format!(" fixed {path}")).unwrap_or_default();
                format!("{} {}{fixed}", difference.kind, difference.path)
            };
            differences.iter().map(line).collect::<Vec<_>>().join("\n")
        }
    }
}

/// [`told_with`] our field manager `trimtab`.
pub(crate) fn told(desired: &str, live: &str) -> String {
    told_with(desired, live, &Options { managers: &["trimtab"], ..Options::default() })
}

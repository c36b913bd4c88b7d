//! What cannot stand beside what desired states: members of Kubernetes' own types of which an object
//! may have one (`value` and `valueFrom` of a variable, the sources of a volume), or that one word
//! allows (`rollingUpdate` beside `type: RollingUpdate`).
//!
//! An apply removes nothing but what we stated before. So a default, or what somebody else wrote, is
//! left beside desired's own choice, and the API server refuses both. Whoever applies has to take it
//! out.
//!
//! Source: validation in `pkg/apis/*/validation`; no schema says it in a form that can be read.

use crate::Facts;
use crate::facts::{List, Node};
use crate::trail::Trail;
use crate::walk::{By, Elements};
use alloc::vec::Vec;
use trimtab_json::{Object, Path, Value};

/// Members of which one object has one. Each set is the whole of it for one Go type.
const ALTERNATIVES: [&[&str]; 8] = [
    // EnvVar
    &["value", "valueFrom"],
    // ProbeHandler, LifecycleHandler
    &["exec", "httpGet", "tcpSocket", "grpc", "sleep"],
    // PodDisruptionBudgetSpec
    &["minAvailable", "maxUnavailable"],
    // IngressBackend
    &["service", "resource"],
    // ServiceBackendPort
    &["name", "number"],
    // WebhookClientConfig
    &["url", "service"],
    // PodResourceClaim
    &["resourceClaimName", "resourceClaimTemplateName"],
    // ParamRef
    &["name", "selector"],
];

/// A member, and the word of a neighbour beside which alone it may stand.
const ALLOWED_BY: [(&str, &str, &str); 6] = [
    ("rollingUpdate", "type", "RollingUpdate"),
    ("localhostProfile", "type", "Localhost"),
    ("limited", "type", "Limited"),
    ("exempt", "type", "Exempt"),
    ("queuing", "type", "Queue"),
    ("webhook", "strategy", "Webhook"),
];

/// Places that live has and desired does not state, beside something of desired's that rules them
/// out. Parents before children, in live's order.
pub fn excluded(desired: &Value<'_>, live: &Value<'_>, facts: Facts<'_>) -> Vec<Path> {
    let mut found = Vec::new();
    if let (Value::Object(desired), Value::Object(live)) = (desired, live) {
        members(desired, live, &facts.root(), &Trail::ROOT, &mut found);
    }
    found
}

fn members(
    wanted: &Object<'_>,
    held: &Object<'_>,
    node: &Node<'_>,
    trail: &Trail<'_>,
    found: &mut Vec<Path>,
) {
    for (name, live) in held.iter().filter(|(_, live)| !live.is_null()) {
        let trail = trail.field(name);
        match stated(wanted, name) {
            Some(desired) => value(desired, live, &node.field(name), &trail, found),
            None if is_excluded(name, wanted, node) => found.push(trail.path()),
            None => {}
        }
    }
}

fn value(
    desired: &Value<'_>,
    live: &Value<'_>,
    node: &Node<'_>,
    trail: &Trail<'_>,
    found: &mut Vec<Path>,
) {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) if !node.is_atomic_object() => {
            members(desired, live, node, trail, found);
        }
        // Other lists are replaced as a whole.
        (Value::Array(wanted), Value::Array(held)) if node.list() == List::Map => {
            let (keys, item) = (node.keys(), node.item());
            let mut elements = Elements::new(held, By::Keys(keys));
            for desired in wanted {
                if let Some((live, _)) = elements.take(desired) {
                    value(desired, live, &item, &trail.keyed(keys, desired), found);
                }
            }
        }
        _ => {}
    }
}

fn stated<'v, 'a>(wanted: &'v Object<'a>, name: &str) -> Option<&'v Value<'a>> {
    wanted.get(name).filter(|value| !value.is_null())
}

/// Whether a member cannot stand beside what desired states in the same object.
fn is_excluded(name: &str, wanted: &Object<'_>, node: &Node<'_>) -> bool {
    let is_go = |name: &str| node.field(name).is_go();
    // The keys of a map are no members of a type.
    if node.is_map() || !is_go(name) {
        return false;
    }
    if is_volume(node) {
        return name != "name"
            && wanted.iter().any(|(name, _)| name != "name" && stated(wanted, name).is_some());
    }
    let by_word = ALLOWED_BY.iter().filter(|(member, _, _)| *member == name);
    let mut words =
        by_word.filter_map(|(_, neighbour, word)| Some((stated(wanted, neighbour)?, word)));
    words.any(|(says, word)| says.as_str() != Some(word))
        || ALTERNATIVES.iter().any(|set| {
            let other = |other: &&str| is_go(other) && stated(wanted, other).is_some();
            set.contains(&name) && set.iter().any(other)
        })
}

/// Whether the type is a pod's volume, each member of which but its name is a source.
fn is_volume(node: &Node<'_>) -> bool {
    ["name", "emptyDir"].iter().all(|name| node.field(name).is_go())
}

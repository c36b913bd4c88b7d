//! What we stated before and no longer state: our own field set in `managedFields`, against desired.

use super::lookup::{By, Elements, Members};
use super::stray::{is_kept, reads_as_default};
use super::{Walk, context};
use crate::facts::Node;
use crate::managed_fields::{TreeStep, tree_step};
use crate::trail::Trail;
use crate::{Kind, scalar};
use trimtab_json::{Object, Value};

impl<'a> Walk<'a> {
    pub(super) fn released(
        &mut self,
        wanted: &'a Object<'a>,
        live: &'a Object<'a>,
        root: &Node<'_>,
    ) {
        let ours = core::mem::take(&mut self.ours);
        let before = self.out.len();
        for tree in &ours {
            if let Some(fields) = tree.root() {
                self.released_members(fields, wanted, live, root, &Trail::ROOT);
            }
        }
        if ours.len() > 1 {
            let mut seen = alloc::vec::Vec::new();
            let mut fresh = self.out.split_off(before);
            fresh.retain(|difference| {
                let new = !seen.contains(&difference.path);
                seen.push(difference.path.clone());
                new
            });
            self.out.append(&mut fresh);
        }
        self.ours = ours;
    }

    /// Members that we own in an object that desired states.
    fn released_members(
        &mut self,
        fields: &'a Object<'a>,
        wanted: &'a Object<'a>,
        live: &'a Object<'a>,
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) {
        let mut stated = Members::new(wanted);
        let mut held = Members::new(live);
        for (raw, below) in fields.iter() {
            let (Some(name), Some(below)) = (raw.strip_prefix("f:"), below.as_object()) else {
                continue;
            };
            let desired = stated.take(name).filter(|desired| !desired.is_null());
            // What is stated is not released, and nothing is owned within it.
            if desired.is_some() && is_leaf(below) {
                continue;
            }
            // A Secret states the member in plain text.
            let plain = || self.plain.and_then(|plain| plain.get(name));
            if desired.is_none()
                && trail.depth() == 1
                && trail.is_field("data")
                && plain().is_some_and(|plain| !plain.is_null())
            {
                continue;
            }
            let Some(value) = held.take(name) else { continue };
            // All that live has there is stated.
            if desired == Some(value) {
                continue;
            }
            if !is_ours_to_release(name, trail) {
                continue;
            }
            let child = node.field(name);
            let here = trail.field(name);
            if desired.is_none()
                && context::is_default_of_stated(name, value, live, &child, trail.depth())
            {
                continue;
            }
            match desired {
                Some(desired) => {
                    self.released_below(below, Some(desired), value, &child, &here);
                }
                _ if trail.depth() == 0 && name == "data" && wanted.get("stringData").is_some() => {
                    self.released_below(below, wanted.get("stringData"), value, &child, &here);
                }
                _ => self.released_below(below, None, value, &child, &here),
            }
        }
    }

    /// What we own at and beneath one place that live has.
    fn released_below(
        &mut self,
        fields: &'a Object<'a>,
        desired: Option<&'a Value<'a>>,
        live: &'a Value<'a>,
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) {
        const NONE: &Object<'_> = &Object::new();
        // Stated as empty where the server fills what is empty: it stays as it is.
        if desired.is_some_and(|desired| node.is_server_set() && scalar::is_zero(desired)) {
            return;
        }
        if desired.is_none() {
            // Nobody fills in a claim before it is made of its template.
            let filled = node.is_server_set() && !trail.is_within("volumeClaimTemplate");
            let back = !context::is_only_meant(trail, node) && self.is_back(live, node);
            if live.is_null() || filled || back {
                return;
            }
            if fields.is_empty() || fields.get(".").is_some() {
                self.report(Kind::Released, None, Some(live), node, trail);
                return;
            }
        }
        match live {
            Value::Object(live) => {
                let wanted = desired.and_then(Value::as_object).unwrap_or(NONE);
                self.released_members(fields, wanted, live, node, trail);
            }
            Value::Array(live) => {
                let wanted = desired.and_then(Value::as_array).unwrap_or_default();
                self.released_elements(fields, wanted, live, node, trail);
            }
            _ => {}
        }
    }

    /// Whether a value that we let go is there again, by default.
    fn is_back(&self, live: &Value<'_>, node: &Node<'_>) -> bool {
        if self.known { is_kept(live, node) } else { reads_as_default(live, node) }
    }

    /// Elements that we own in a list. Not inlined: what it keeps is large, and objects nest deeper.
    #[inline(never)]
    fn released_elements(
        &mut self,
        fields: &'a Object<'a>,
        wanted: &'a [Value<'a>],
        live: &'a [Value<'a>],
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) {
        let (keys, item) = (node.keys(), node.item());
        let mut stated = Elements::new(wanted, By::Keys(keys));
        let mut held = Elements::new(live, By::Keys(keys));
        let (mut stated_values, mut held_values) = (None, None);
        for (raw, below) in fields.iter() {
            let Some(below) = below.as_object() else { continue };
            match tree_step(raw) {
                Some(TreeStep::Keyed(key)) if !keys.is_empty() => {
                    let Some((value, _)) = held.take(&key) else { continue };
                    let desired = stated.take(&key).map(|(value, _)| value);
                    if desired.is_some_and(|desired| is_leaf(below) || desired == value) {
                        continue;
                    }
                    self.released_below(below, desired, value, &item, &trail.keyed(keys, value));
                }
                Some(TreeStep::Element(element)) => {
                    let Some((value, _)) = held_values
                        .get_or_insert_with(|| Elements::new(live, By::Value))
                        .take(&element)
                    else {
                        continue;
                    };
                    let stated_values =
                        stated_values.get_or_insert_with(|| Elements::new(wanted, By::Value));
                    if stated_values.take(&element).is_none() {
                        self.report(
                            Kind::Released,
                            None,
                            Some(value),
                            &item,
                            &trail.element(value),
                        );
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether a field set names nothing beneath a place.
fn is_leaf(fields: &Object<'_>) -> bool {
    fields.is_empty() || (fields.len() == 1 && fields.get(".").is_some())
}

/// Whether a member that we own and no longer state is ours to let go: not what is the server's.
fn is_ours_to_release(name: &str, parent: &Trail<'_>) -> bool {
    match parent.depth() {
        0 => !matches!(name, "apiVersion" | "kind" | "status"),
        1 if parent.is_field("metadata") => {
            matches!(name, "labels" | "annotations" | "finalizers" | "ownerReferences")
        }
        _ => name != "kubectl.kubernetes.io/last-applied-configuration",
    }
}

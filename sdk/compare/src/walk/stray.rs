//! What only live has: a default, something that the control plane put there, or a stray. Within a
//! value that is replaced as a whole it is changed: an apply of desired takes it away.

use super::{Walk, context};
use crate::facts::{List, Node};
use crate::trail::Trail;
use crate::{Kind, scalar};
use trimtab_json::{Object, Value};

impl<'a> Walk<'a> {
    /// Whether anything that only live has could be stray: not if it says who wrote what, and that
    /// is nobody but us and the control plane.
    pub(super) fn judges_strays(&self) -> bool {
        self.whole || !(self.quiet || self.managed && self.foreign.is_empty())
    }

    /// Live has the member `name` in an object that desired states without it; `siblings` are that
    /// object's members in live.
    #[inline(never)]
    pub(super) fn stray(
        &mut self,
        name: &str,
        live: &'a Value<'a>,
        siblings: &'a Object<'a>,
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) {
        if !self.judges_strays() || node.is_server_set() {
            return;
        }
        if self.whole {
            let kept = is_kept(live, node)
                || context::is_default(name, live, siblings, node)
                || context::is_injected(name);
            if !kept {
                self.report(Kind::Changed, None, Some(live), node, trail);
            }
            return;
        }
        if reads_as_default(live, node) {
            return;
        }
        if self.limited && trail.is_within("resources") {
            return;
        }
        if context::is_default(name, live, siblings, node) || context::is_injected(name) {
            return;
        }
        match live {
            Value::Array(items) if node.list() == List::Map => {
                let keys = node.keys();
                for item in items {
                    self.stray_element(item, node, &trail.keyed(keys, item));
                }
            }
            Value::Array(items) if node.list() == List::Set => {
                for item in items {
                    let trail = trail.element(item);
                    if self.evidence(&trail) {
                        self.report(Kind::Stray, None, Some(item), &node.item(), &trail);
                    }
                }
            }
            Value::Object(object) if node.is_map() && !node.is_atomic_object() => {
                for (name, value) in object.iter() {
                    let child = node.field(name);
                    self.stray_leaf(name, value, &child, &trail.field(name));
                }
            }
            _ => self.stray_leaf(name, live, node, trail),
        }
    }

    fn stray_leaf(&mut self, name: &str, live: &'a Value<'a>, node: &Node<'_>, trail: &Trail<'_>) {
        if context::is_injected(name) {
            return;
        }
        let told = self.strict && !self.managed && !scalar::is_zero(live);
        if told || self.evidence(trail) {
            self.report(Kind::Stray, None, Some(live), node, trail);
        }
    }

    /// Live has an element of a keyed list that desired does not state. Nothing defaults elements,
    /// so without word of who wrote it, it is stray unless it is of a kind that admission injects.
    pub(super) fn stray_element(
        &mut self,
        live: &'a Value<'a>,
        list: &Node<'_>,
        trail: &Trail<'_>,
    ) {
        if self.whole {
            return self.report(Kind::Changed, None, Some(live), &list.item(), trail);
        }
        let no_element = live.as_object().is_none();
        if no_element || list.is_server_set() || context::is_injected_element(live) {
            return;
        }
        if (!self.managed && !list.empty_is_unset()) || self.evidence(trail) {
            self.report(Kind::Stray, None, Some(live), &list.item(), trail);
        }
    }

    /// Whether someone who is neither we nor the control plane owns the place, and we do not: what
    /// we own and do not state is released, not stray.
    pub(super) fn evidence(&self, trail: &Trail<'_>) -> bool {
        if self.foreign.is_empty() {
            return false;
        }
        let path = trail.path();
        self.foreign.iter().any(|tree| tree.owns(path.steps()))
            && !self.ours.iter().any(|tree| tree.owns(path.steps()))
    }
}

/// Whether a value that desired leaves out is there again after an apply that replaces what it is in:
/// it is the default, or the type cannot do without it.
pub(super) fn is_kept(live: &Value<'_>, node: &Node<'_>) -> bool {
    if live.is_null() || scalar::is_default(live, node) {
        return true;
    }
    match live {
        Value::Object(object) if !node.is_unknown() && !node.is_map() => {
            let made = node.default_text().is_some_and(|text| text.starts_with('{'));
            (node.drops_zero() || made)
                && object.iter().all(|(name, value)| {
                    let child = node.field(name);
                    child.is_server_set()
                        || is_kept(value, &child)
                        || context::is_default_of_stated(name, value, object, &child, usize::MAX)
                })
        }
        Value::String(text) if node.is_quantity() => node.drops_zero() && text == "0",
        _ => node.drops_zero() && scalar::is_zero(live),
    }
}

/// Whether a value is what the place has when nothing is stated: empty, the default, or an object
/// of such.
pub(super) fn reads_as_default(live: &Value<'_>, node: &Node<'_>) -> bool {
    if scalar::is_hollow(live) || scalar::is_default(live, node) {
        return true;
    }
    match live {
        Value::Object(object) if !node.is_unknown() && !node.is_map() => {
            object.iter().all(|(name, value)| {
                let child = node.field(name);
                child.is_server_set() || reads_as_default(value, &child)
            })
        }
        _ => false,
    }
}

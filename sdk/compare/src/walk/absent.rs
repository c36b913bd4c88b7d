//! What desired states and live lacks; and whether desired is something that the server takes.

use super::value::{mismatch, wrong_type};
use super::{Answer, Walk, context, list};
use crate::facts::{Format, List, Node};
use crate::trail::Trail;
use crate::{Kind, base64, scalar};
use alloc::borrow::Cow;
use trimtab_json::Value;

impl<'a> Walk<'a> {
    /// Live lacks what desired states at `trail`, in something of type `parent`.
    #[inline(never)]
    pub(super) fn absent(
        &mut self,
        desired: &'a Value<'a>,
        parent: &Node<'_>,
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) -> Answer {
        if desired.is_null() {
            return Ok(());
        }
        if let Some(expected) = mismatch(desired, node) {
            return Err(wrong_type(expected, desired, trail));
        }
        // What a known type leaves open is stored as it is sent, empty objects too.
        let open = self.known && node.is_unknown();
        if !open && !context::is_told_where_it_holds(trail, node) && reads_as_absent(desired, node)
        {
            return Ok(());
        }
        if is_unlisted(parent, node) {
            self.report(Kind::Pruned, Some(Cow::Borrowed(desired)), None, node, trail);
            return Ok(());
        }
        match desired {
            // What is merged by member or element is missing by member or element.
            Value::Object(object)
                if node.is_map() && !node.is_atomic_object() && !object.is_empty() =>
            {
                for (name, value) in object.iter() {
                    self.absent(value, node, &node.field(name), &trail.field(name))?;
                }
            }
            Value::Array(items) if node.list() == List::Map && !items.is_empty() => {
                self.no_duplicate_keys(items, node, trail)?;
                let (keys, item) = (node.keys(), node.item());
                for value in items {
                    self.absent(value, node, &item, &trail.keyed(keys, value))?;
                }
            }
            _ => {
                self.report(Kind::Missing, Some(Cow::Borrowed(desired)), None, node, trail);
                self.check(desired, node, trail)?;
            }
        }
        Ok(())
    }

    /// Checks a member that live has nothing to set against: its type, and that the schema lists it.
    pub(super) fn check_member(
        &mut self,
        desired: &'a Value<'a>,
        parent: &Node<'_>,
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) -> Answer {
        if is_unlisted(parent, node) && !desired.is_null() {
            self.report(Kind::Pruned, Some(Cow::Borrowed(desired)), None, node, trail);
            return Ok(());
        }
        self.check(desired, node, trail)
    }

    /// Checks a value that live has nothing to set against.
    #[inline(never)]
    pub(super) fn check(
        &mut self,
        desired: &'a Value<'a>,
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) -> Answer {
        if desired.is_null() || node.is_unknown() {
            return Ok(());
        }
        if let Some(expected) = mismatch(desired, node) {
            return Err(wrong_type(expected, desired, trail));
        }
        match desired {
            Value::Object(object) => {
                for (name, value) in object.iter() {
                    self.check_member(value, node, &node.field(name), &trail.field(name))?;
                }
            }
            Value::Array(items) => {
                let (keys, item) = (node.keys(), node.item());
                match node.list() {
                    List::Map => self.no_duplicate_keys(items, node, trail)?,
                    List::Set if list::all_scalar(items) => {
                        self.no_duplicate_elements(items, trail)?
                    }
                    List::Set | List::Atomic | List::Multiset => {}
                }
                for (index, value) in items.iter().enumerate() {
                    match node.list() {
                        List::Map => self.check(value, &item, &trail.keyed(keys, value))?,
                        _ => self.check(value, &item, &trail.index(index))?,
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Whether the schema lists every field of `parent` and this is none of them.
fn is_unlisted(parent: &Node<'_>, node: &Node<'_>) -> bool {
    parent.is_closed() && node.is_unknown()
}

/// Whether the API reads an absent field as this value.
fn reads_as_absent(desired: &Value<'_>, node: &Node<'_>) -> bool {
    if node.is_unknown() {
        return scalar::is_hollow(desired);
    }
    // A struct that is not there was not defaulted either: a default of its own depends on a neighbour.
    let conditional = matches!(desired, Value::Object(_)) && node.default_text() != Some("{}");
    if !conditional && scalar::is_default(desired, node)
        || (node.empty_is_unset() && scalar::is_zero(desired))
    {
        return true;
    }
    if !node.drops_zero() {
        return desired.is_null();
    }
    match desired {
        Value::String(text) if node.format() == Format::Byte && node.is_go() => {
            base64::encodes(text, &[])
        }
        // A struct that is no pointer is there without being stated.
        Value::Object(object) if !node.is_map() => object
            .iter()
            .all(|(name, value)| value.is_null() || reads_as_absent(value, &node.field(name))),
        _ => scalar::is_zero(desired),
    }
}

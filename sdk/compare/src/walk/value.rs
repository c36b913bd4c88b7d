//! One value against another, and the members of two objects.

use super::lookup::Members;
use super::{Answer, Walk, context};
use crate::facts::{Node, Type};
use crate::trail::Trail;
use crate::{CompareError, Kind, scalar};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use trimtab_json::{Object, Value};

impl<'a> Walk<'a> {
    /// A member that desired states, live having it or not; `parent` is what holds it.
    pub(super) fn member(
        &mut self,
        desired: &'a Value<'a>,
        live: Option<&'a Value<'a>>,
        parent: &Node<'_>,
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) -> Answer {
        match live {
            _ if desired.is_null() => Ok(()),
            Some(live) if !live.is_null() => self.value(desired, live, node, trail),
            _ => self.absent(desired, parent, node, trail),
        }
    }

    /// Two values; neither is `null`.
    pub(super) fn value(
        &mut self,
        desired: &'a Value<'a>,
        live: &'a Value<'a>,
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) -> Answer {
        if let Some(expected) = mismatch(desired, node) {
            return Err(wrong_type(expected, desired, trail));
        }
        match (desired, live) {
            (Value::Object(wanted), _)
                if wanted.is_empty() && asks_for_nothing(desired, live, node) =>
            {
                Ok(())
            }
            (Value::Object(wanted), Value::Object(held)) => {
                let (whole, immutable) = (self.whole, self.immutable);
                self.whole |= node.is_atomic_object();
                if node.is_immutable() && immutable.is_none() {
                    self.immutable = Some(trail.depth());
                }
                let answer = self.members(wanted, held, node, trail);
                (self.whole, self.immutable) = (whole, immutable);
                answer
            }
            (Value::Array(wanted), Value::Array(held)) => {
                let (whole, immutable) = (self.whole, self.immutable);
                if node.is_immutable() && immutable.is_none() {
                    self.immutable = Some(trail.depth());
                }
                let answer = self.list(desired, wanted, live, held, node, trail);
                (self.whole, self.immutable) = (whole, immutable);
                answer
            }
            _ => {
                if !scalar::equal(desired, live, node) && !asks_for_nothing(desired, live, node) {
                    self.changed(desired, live, node, trail);
                }
                Ok(())
            }
        }
    }

    /// The members of two objects: those that desired states, then those that only live has.
    #[inline(never)]
    fn members(
        &mut self,
        wanted: &'a Object<'a>,
        held: &'a Object<'a>,
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) -> Answer {
        let mut members = Members::new(held);
        for (name, desired) in wanted.iter() {
            let live = members.take(name);
            if live.is_some_and(|live| is_the_same(desired, live)) {
                continue;
            }
            let child = node.field(name);
            // Stated as empty is not stated: the default that follows from a neighbour is right.
            let follows =
                |live| context::is_default_of_stated(name, live, held, &child, trail.depth());
            if child.drops_zero()
                && scalar::is_zero(desired)
                && live.is_some_and(follows)
                && mismatch(desired, &child).is_none()
            {
                continue;
            }
            self.member(desired, live, node, &child, &trail.field(name))?;
        }
        if self.judges_strays() {
            for (name, value) in members.rest() {
                self.stray(name, value, held, &node.field(name), &trail.field(name));
            }
        }
        Ok(())
    }

    pub(super) fn changed(
        &mut self,
        desired: &'a Value<'a>,
        live: &'a Value<'a>,
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) {
        self.report(Kind::Changed, Some(Cow::Borrowed(desired)), Some(live), node, trail);
    }
}

/// The same to the letter, as most values are: whatever the schema says of them, they mean the same,
/// and the server has taken them. Scalars and small objects of such; others are told apart at once, by
/// their size or their first member. (Not so with lists within: what desired says twice is wrong even
/// where live says it too.)
fn is_the_same(desired: &Value<'_>, live: &Value<'_>) -> bool {
    match (desired, live) {
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Number(a), Value::Number(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Object(a), Value::Object(b)) => a == b && is_flat(a),
        _ => false,
    }
}

fn is_flat(object: &Object<'_>) -> bool {
    object.iter().all(|(_, value)| value.scalar_text().is_some())
}

/// Whether an empty value is stated where the server fills empty values, as it has done in live.
pub(super) fn asks_for_nothing(desired: &Value<'_>, live: &Value<'_>, node: &Node<'_>) -> bool {
    (node.empty_is_unset() && scalar::is_zero(desired))
        || (node.defaults_zero() && scalar::is_zero(desired) && scalar::is_default(live, node))
}

/// What the schema asks for, if a value that is not `null` is of another type.
pub(super) fn mismatch(value: &Value<'_>, node: &Node<'_>) -> Option<&'static str> {
    let text_or_number = matches!(value, Value::String(_) | Value::Number(_));
    if node.is_quantity() {
        return (!text_or_number).then_some("a quantity");
    }
    if node.is_int_or_string() {
        return (!text_or_number).then_some("an integer or a string");
    }
    let (right, expected) = match node.kind() {
        Type::Any => return None,
        Type::Object => (matches!(value, Value::Object(_)), "an object"),
        Type::Array => (matches!(value, Value::Array(_)), "a list"),
        Type::String => (matches!(value, Value::String(_)), "a string"),
        Type::Integer => (matches!(value, Value::Number(_)), "an integer"),
        Type::Number => (matches!(value, Value::Number(_)), "a number"),
        Type::Boolean => (matches!(value, Value::Bool(_)), "a boolean"),
    };
    (!right).then_some(expected)
}

#[cold]
pub(super) fn wrong_type(
    expected: &'static str,
    value: &Value<'_>,
    trail: &Trail<'_>,
) -> Box<CompareError> {
    Box::new(CompareError::TypeMismatch { path: trail.path(), expected, found: value.type_name() })
}

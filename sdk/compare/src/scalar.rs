//! Whether two scalars mean the same at a place, and what counts as empty there.

use crate::facts::{Format, Node, Type};
use crate::{base64, quantity, time};
use trimtab_json::{Value, parse};

/// Whether a desired and a live scalar mean the same.
pub(crate) fn equal(desired: &Value<'_>, live: &Value<'_>, node: &Node<'_>) -> bool {
    match (desired, live) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => a == b || text_equal(a, b, node),
        (Value::Number(a), Value::Number(b)) => quantity::number_equal(a, b),
        (Value::String(text), Value::Number(number))
        | (Value::Number(number), Value::String(text)) => {
            if node.is_quantity() {
                quantity::equal(text, number)
            } else {
                node.is_int_or_string() && text == number
            }
        }
        _ => false,
    }
}

fn text_equal(desired: &str, live: &str, node: &Node<'_>) -> bool {
    if node.is_quantity() {
        return quantity::equal(desired, live);
    }
    match node.format() {
        // A custom resource's text is kept as it is sent.
        Format::Byte => (node.is_go() || node.is_unknown()) && base64::same(desired, live),
        Format::DateTime => node.is_go() && time::same_instant(desired, live),
        Format::Duration => time::same_duration(desired, live),
        // Custom resources have their durations as plain strings; controllers rewrite them.
        Format::Plain => {
            !node.is_go() && may_be_duration(node) && time::same_duration_rewritten(desired, live)
        }
    }
}

fn may_be_duration(node: &Node<'_>) -> bool {
    node.kind() == Type::String
}

/// Whether a value is what Go calls zero.
pub(crate) fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(text) => quantity::number_equal(text, "0"),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.is_empty(),
    }
}

/// Whether a value holds nothing at all: `null`, `{}`, `[]`, or an object of such.
pub(crate) fn is_hollow(value: &Value<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.iter().all(|(_, member)| is_hollow(member)),
        _ => false,
    }
}

/// Whether a value is the default that the schema gives the place.
pub(crate) fn is_default(value: &Value<'_>, node: &Node<'_>) -> bool {
    let Some(text) = node.default_text() else { return false };
    match (value, text.as_bytes()) {
        (Value::String(value), [b'"', .., b'"']) if !text.contains('\\') => {
            let inner = text.get(1..text.len() - 1).unwrap_or_default();
            *value == inner || text_equal(inner, value, node)
        }
        (Value::Bool(value), _) => text == if *value { "true" } else { "false" },
        (Value::Number(value), [b'0'..=b'9' | b'-', ..]) => quantity::number_equal(value, text),
        (Value::Object(object), b"{}") => object.is_empty(),
        (_, _) => parse(text.as_bytes()).is_ok_and(|default| means_same(&default, value, node)),
    }
}

/// Whether two trees mean the same: every member of both, by the schema.
pub(crate) fn means_same(a: &Value<'_>, b: &Value<'_>, node: &Node<'_>) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let covers = |one: &trimtab_json::Object<'_>, other: &trimtab_json::Object<'_>| {
                one.iter().all(|(name, value)| match other.get(name) {
                    Some(held) => means_same(value, held, &node.field(name)),
                    None => value.is_null() || is_default(value, &node.field(name)),
                })
            };
            a.len() <= 64 && b.len() <= 64 && covers(a, b) && covers(b, a)
        }
        (Value::Array(a), Value::Array(b)) => {
            let item = node.item();
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| means_same(a, b, &item))
        }
        _ => equal(a, b, node),
    }
}

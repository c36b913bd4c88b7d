//! Following a path through a tree.

use super::{Path, Step};
use crate::Value;
use alloc::string::String;
use core::fmt::Write;

impl Path {
    /// The value at this path, if `root` has one.
    ///
    /// A keyed step leads to the first element that has all the key values. If there is none, an
    /// element that lacks some of the keys and agrees in the others is taken, provided it is the
    /// only one: a key may be left out where the schema gives it a default (`protocol`).
    pub fn resolve<'v, 'a>(&self, root: &'v Value<'a>) -> Option<&'v Value<'a>> {
        self.steps().iter().try_fold(root, |value, step| step.resolve(value))
    }

    /// The plain RFC 6901 pointer to the same place in `root`, for JSON Patch: list steps become
    /// positions. `None` if `root` has no such place.
    pub fn pointer(&self, root: &Value<'_>) -> Option<String> {
        let mut out = String::new();
        let mut value = root;
        for step in self.steps() {
            out.push('/');
            value = match (value, step) {
                (Value::Object(object), Step::Field(name)) => {
                    for character in name.chars() {
                        match character {
                            '~' => out.push_str("~0"),
                            '/' => out.push_str("~1"),
                            other => out.push(other),
                        }
                    }
                    object.get(name)?
                }
                (Value::Object(object), Step::Index(index)) => {
                    let name = decimal(*index);
                    out.push_str(&name);
                    object.get(&name)?
                }
                (Value::Array(items), step) => {
                    let position = step.position(items)?;
                    out.push_str(&decimal(position));
                    items.get(position)?
                }
                _ => return None,
            };
        }
        Some(out)
    }
}

impl Step {
    /// What is one step down, if there is anything: see [`Path::resolve`].
    pub fn resolve<'v, 'a>(&self, value: &'v Value<'a>) -> Option<&'v Value<'a>> {
        match value {
            Value::Object(object) => match self {
                Step::Field(name) => object.get(name),
                Step::Index(index) => object.get(&decimal(*index)),
                Step::Keyed(_) | Step::Element(_) => None,
            },
            Value::Array(items) => items.get(self.position(items)?),
            _ => None,
        }
    }

    /// Where in a list the step leads.
    pub fn position(&self, items: &[Value<'_>]) -> Option<usize> {
        match self {
            Step::Index(index) => (*index < items.len()).then_some(*index),
            Step::Field(name) => name.parse().ok().filter(|index| *index < items.len()),
            Step::Element(text) => {
                items.iter().position(|item| item.scalar_text() == Some(text.as_str()))
            }
            Step::Keyed(keys) => {
                let exact = items.iter().position(|item| agreement(item, keys) == Some(keys.len()));
                exact.or_else(|| {
                    let partial = |item: &Value<'_>| agreement(item, keys).is_some_and(|n| n > 0);
                    let first = items.iter().position(partial)?;
                    let more = items.iter().skip(first + 1).any(partial);
                    (!more).then_some(first)
                })
            }
        }
    }
}

/// How many of the keys the element has; `None` if one of them has another value.
fn agreement(item: &Value<'_>, keys: &[(String, String)]) -> Option<usize> {
    let object = item.as_object()?;
    keys.iter().try_fold(0, |count, (name, text)| match object.get(name) {
        // A key that the element lacks and that has no default reads as the empty text.
        None => Some(count + usize::from(text.is_empty())),
        Some(value) if value.scalar_text() == Some(text.as_str()) => Some(count + 1),
        Some(_) => None,
    })
}

fn decimal(number: usize) -> String {
    let mut out = String::new();
    let _ = write!(out, "{number}");
    out
}

//! The tree: one enum that borrows from the parsed bytes wherever it can.

use crate::Object;
use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A JSON value that borrows from the text it was parsed from.
///
/// Equality is structural and exact: objects in a different order, and numbers or strings spelled
/// differently (`1` and `1.0`), are unequal. Comparison by meaning is `trimtab-compare`'s work.
// A tag as wide as the words of the payload: with a narrow one, a value is copied from its second
// byte on, across the words that it was written in, for which a processor waits.
#[repr(u32)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Value<'a> {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as its exact JSON text; never converted to floating point. Whoever builds one by
    /// hand vouches that the text is a JSON number: the writers copy it as it is.
    Number(Cow<'a, str>),
    /// A string, unescaped; borrowed when the text had no escapes.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<Value<'a>>),
    /// An object, in the order of the text.
    Object(Object<'a>),
}

impl<'a> Value<'a> {
    /// The member `name` of an object; `None` for anything else.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.as_object()?.get(name)
    }

    /// The value that plain field names lead to, one after the other: `at(&["metadata", "name"])`.
    pub fn at(&self, names: &[&str]) -> Option<&Value<'a>> {
        names.iter().try_fold(self, |value, name| value.get(name))
    }

    /// The string that plain field names lead to.
    pub fn str_at(&self, names: &[&str]) -> Option<&str> {
        self.at(names)?.as_str()
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The text of a number.
    pub fn as_number(&self) -> Option<&str> {
        match self {
            Value::Number(text) => Some(text),
            _ => None,
        }
    }

    /// A number that is written as a whole number in range.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number()?.parse().ok()
    }

    /// A number that is written as a whole number in range.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number()?.parse().ok()
    }

    /// A boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The elements of an array.
    pub fn as_array(&self) -> Option<&[Value<'a>]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// An object.
    pub fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// An object, for change.
    pub fn as_object_mut(&mut self) -> Option<&mut Object<'a>> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// An array, for change.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value<'a>>> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The text of a scalar: the string itself, the number's text, `true`, `false` or `null`;
    /// `None` for arrays and objects. Keyed steps of a [`crate::Path`] hold this.
    pub fn scalar_text(&self) -> Option<&str> {
        match self {
            Value::String(text) | Value::Number(text) => Some(text),
            Value::Bool(true) => Some("true"),
            Value::Bool(false) => Some("false"),
            Value::Null => Some("null"),
            Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// The JSON name of the value's type, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        }
    }

    /// The same tree without borrows.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Bool(value) => Value::Bool(value),
            Value::Number(text) => Value::Number(Cow::Owned(text.into_owned())),
            Value::String(text) => Value::String(Cow::Owned(text.into_owned())),
            Value::Array(items) => Value::Array(items.into_iter().map(Value::into_owned).collect()),
            Value::Object(object) => Value::Object(object.into_owned()),
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::String(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::String(Cow::Owned(text))
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Number(Cow::Owned(value.to_string()))
    }
}

impl From<u64> for Value<'_> {
    fn from(value: u64) -> Self {
        Value::Number(Cow::Owned(value.to_string()))
    }
}

impl<'a> From<Vec<Value<'a>>> for Value<'a> {
    fn from(items: Vec<Value<'a>>) -> Self {
        Value::Array(items)
    }
}

impl<'a> From<Object<'a>> for Value<'a> {
    fn from(object: Object<'a>) -> Self {
        Value::Object(object)
    }
}

//! The key fields of a keyed list, and the key of one of its elements.

use super::layout;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use trimtab_json::Value;

/// The key fields of a keyed list with their defaults, read in place.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'f> {
    bytes: &'f [u8],
    at: u32,
}

/// One key field of one element, as it is compared: a missing one is its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key<'v> {
    Absent,
    Bool(bool),
    Number(&'v str),
    String(&'v str),
}

impl<'v> Key<'v> {
    /// A scalar as a key; arrays and objects are none.
    pub(crate) fn of(value: &'v Value<'_>) -> Self {
        match value {
            Value::Bool(value) => Key::Bool(*value),
            Value::Number(text) => Key::Number(whole(text)),
            Value::String(text) => Key::String(text),
            Value::Null | Value::Array(_) | Value::Object(_) => Key::Absent,
        }
    }

    /// A key's default, which is JSON text of a scalar without escapes.
    fn of_text(text: &'v str) -> Self {
        match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some(text) => Key::String(text),
            None => match text {
                "true" => Key::Bool(true),
                "false" => Key::Bool(false),
                "null" => Key::Absent,
                number => Key::Number(number),
            },
        }
    }

    /// An empty name is stored as none at all.
    fn or_absent(self) -> Self {
        match self {
            Key::String("") => Key::Absent,
            key => key,
        }
    }

    /// A number that equal keys share and others hardly do.
    #[inline(never)]
    pub(crate) fn print(self) -> u32 {
        let tag: u64 = match self {
            Key::Absent => 1,
            Key::Bool(value) => 2 + u64::from(value),
            Key::Number(_) => 4,
            Key::String(_) => 5,
        };
        let text = self.text().as_bytes();
        let ends = match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
            (Some(first), Some(last)) => {
                u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(29)
            }
            _ => text.iter().fold(0, |folded, &byte| folded << 8 | u64::from(byte)),
        };
        let mixed = (ends ^ tag << 56 ^ text.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as u32
    }

    fn text(self) -> &'v str {
        match self {
            Key::Absent => "",
            Key::Bool(true) => "true",
            Key::Bool(false) => "false",
            Key::Number(text) | Key::String(text) => text,
        }
    }
}

impl<'f> Keys<'f> {
    /// No keys.
    pub const NONE: Keys<'static> = Keys { bytes: &[], at: 0 };

    pub(super) const fn new(bytes: &'f [u8], at: u32) -> Self {
        Keys { bytes, at }
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        layout::key(self.bytes, self.at, 0).is_none()
    }

    /// The key fields' names and defaults (JSON text), in the schema's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'f str, Option<&'f str>)> + use<'f> {
        self.iter_from(0)
    }

    fn iter_from(&self, index: u32) -> impl Iterator<Item = (&'f str, Option<&'f str>)> + use<'f> {
        let Keys { bytes, at } = *self;
        (index..).map_while(move |index| layout::key(bytes, at, index))
    }

    /// A key field of an element.
    pub(crate) fn key<'v>(item: &'v Value<'_>, name: &str, default: Option<&'v str>) -> Key<'v> {
        match item.get(name) {
            Some(value) if !value.is_null() => Key::of(value),
            _ => default.map_or(Key::Absent, Key::of_text),
        }
        .or_absent()
    }

    /// An order of elements by their keys but for the first field.
    #[inline(never)]
    pub(crate) fn compare_rest(&self, a: &Value<'_>, b: &Value<'_>) -> Ordering {
        for (name, default) in self.iter_from(1) {
            let order = Self::key(a, name, default).cmp(&Self::key(b, name, default));
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }

    /// The element's key as a path's step has it.
    pub(crate) fn texts(&self, item: &Value<'_>) -> Vec<(String, String)> {
        let text = |(name, default): (&str, Option<&str>)| {
            (name.to_owned(), Self::key(item, name, default).text().to_owned())
        };
        self.iter().map(text).collect()
    }
}

/// A number without a fraction of zeros: `80` of `80.0`. (A key with an exponent equals only itself.)
fn whole(text: &str) -> &str {
    match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|byte| byte == b'0') => whole,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::Key;
    use trimtab_json::Value;

    #[test]
    fn a_default_has_the_print_of_the_same_key_stated() {
        let stated = [Value::from("TCP"), Value::from(80_i64), Value::from(true), Value::Null];
        for (value, default) in stated.iter().zip(["\"TCP\"", "80", "true", "null"]) {
            let (value, default) = (Key::of(value), Key::of_text(default));
            assert_eq!(value, default);
            assert_eq!(value.print(), default.print());
        }
    }

    #[test]
    fn other_keys_have_other_prints() {
        let texts =
            ["", "a", "b", "ab", "setting-name-01", "setting-name-02", "my-long-name", "true"];
        let mut prints: alloc::vec::Vec<u32> = texts
            .iter()
            .flat_map(|text| [Key::String(text), Key::Number(text)])
            .chain([Key::Absent, Key::Bool(true), Key::Bool(false)])
            .map(Key::print)
            .collect();
        let count = prints.len();
        prints.sort_unstable();
        prints.dedup();
        assert_eq!(prints.len(), count);
    }
}

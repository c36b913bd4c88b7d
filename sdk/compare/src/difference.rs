//! What a comparison gives: differences, or the reason why there can be none.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;
use trimtab_json::{Path, Value};

/// One place where live is not what desired asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference<'a> {
    /// Where. The root (empty) path when the whole object is missing.
    pub path: Path,
    /// How.
    pub kind: Kind,
    /// What desired asks there; `None` for [`Kind::Stray`] and [`Kind::Released`], and for a keyed
    /// list that is [`Kind::Changed`] because live repeats a key. Owned only where desired says it
    /// in other words (`stringData` as the base64 it becomes).
    pub desired: Option<Cow<'a, Value<'a>>>,
    /// What live has there; `None` for [`Kind::Missing`] and [`Kind::Pruned`].
    pub live: Option<&'a Value<'a>>,
    /// If the schema or the type says that a field here cannot change after creation: the path of
    /// that field, which is this path or an ancestor (`/spec/selector`).
    pub immutable: Option<Path>,
}

/// How live differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Both have the field and they mean different things.
    Changed,
    /// Desired states the field and live lacks it.
    Missing,
    /// Live has something in a place that desired speaks for, and nobody entitled put it there.
    Stray,
    /// We stated the field before, no longer do, and live still has it.
    Released,
    /// Desired states the field, live lacks it and the schema does not know it: the server would
    /// drop it again (a misspelt field).
    Pruned,
}

impl Kind {
    /// The name in output: `changed`, `missing`, `stray`, `released`, `pruned`.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Changed => "changed",
            Kind::Missing => "missing",
            Kind::Stray => "stray",
            Kind::Released => "released",
            Kind::Pruned => "pruned",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why desired cannot be compared. Never holds a value of the object but for list keys, which are
/// names and numbers: the text can be shown for a Secret too.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompareError {
    /// Desired (or live, where it is given) is not a JSON object.
    NotAnObject,
    /// Two elements of a list in desired have the same key; server-side apply refuses it.
    DuplicateListKey {
        /// The list.
        path: Path,
        /// The key, as in a path: `[name=VAR]`, or `[=value]` in a set.
        key: String,
    },
    /// Desired has a value of a type that the schema does not allow; the API server refuses it.
    TypeMismatch {
        /// The field.
        path: Path,
        /// What the schema asks for (`string`).
        expected: &'static str,
        /// What stands there (`number`).
        found: &'static str,
    },
}

impl CompareError {
    /// The word for output and for branching across the sandbox.
    pub const fn code(&self) -> &'static str {
        match self {
            CompareError::NotAnObject => "not_a_kubernetes_object",
            CompareError::DuplicateListKey { .. } => "duplicate_list_key",
            CompareError::TypeMismatch { .. } => "type_mismatch",
        }
    }

    /// Where, if it is about one place.
    pub const fn path(&self) -> Option<&Path> {
        match self {
            CompareError::NotAnObject => None,
            CompareError::DuplicateListKey { path, .. }
            | CompareError::TypeMismatch { path, .. } => Some(path),
        }
    }
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompareError::NotAnObject => f.write_str("not a JSON object"),
            CompareError::DuplicateListKey { path, key } => {
                write!(f, "{path} has two elements with the key {key}")
            }
            CompareError::TypeMismatch { path, expected, found } => {
                write!(f, "{path} must be {expected}, and is {found}")
            }
        }
    }
}

impl core::error::Error for CompareError {}

//! What the parser says when bytes are not JSON: where, and what is wrong there.

use alloc::boxed::Box;
use core::fmt;

/// Why bytes are not one JSON document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Byte offset into the input where the fault was noticed.
    pub offset: usize,
    /// What is wrong.
    pub kind: ErrorKind,
}

/// The kinds of fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input is not UTF-8.
    Utf8,
    /// The input ends inside a value.
    UnexpectedEnd,
    /// A value was expected and something else stands there.
    ExpectedValue,
    /// An object key (a string) was expected.
    ExpectedKey,
    /// A `:` was expected after an object key.
    ExpectedColon,
    /// A `,` or the closing bracket was expected.
    ExpectedCommaOrEnd,
    /// A number that JSON's grammar does not allow (`01`, `+1`, `1.`, `NaN`).
    Number,
    /// A string holds an escape that JSON does not have.
    Escape,
    /// A string holds a raw control character (below U+0020).
    ControlCharacter,
    /// An object states this key twice. A parser that picks one of them would decide which of two
    /// contradicting statements a person meant.
    DuplicateKey(Box<str>),
    /// Nesting exceeds [`crate::MAX_DEPTH`].
    TooDeep,
    /// Something other than white space follows the document.
    TrailingBytes,
}

impl Error {
    #[cold]
    pub(crate) fn new(offset: usize, kind: ErrorKind) -> Self {
        Self { offset, kind }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match &self.kind {
            ErrorKind::Utf8 => "the text is not valid UTF-8",
            ErrorKind::UnexpectedEnd => "the text ends inside a value",
            ErrorKind::ExpectedValue => "a value is expected",
            ErrorKind::ExpectedKey => "a quoted key is expected",
            ErrorKind::ExpectedColon => "':' is expected after a key",
            ErrorKind::ExpectedCommaOrEnd => "',' or the closing bracket is expected",
            ErrorKind::Number => "the number is malformed",
            ErrorKind::Escape => "the string holds an unknown escape",
            ErrorKind::ControlCharacter => "the string holds a raw control character",
            ErrorKind::DuplicateKey(key) => {
                return write!(f, "the key \"{key}\" is stated twice, at byte {}", self.offset);
            }
            ErrorKind::TooDeep => "the nesting is too deep",
            ErrorKind::TrailingBytes => "something follows the document",
        };
        write!(f, "{text}, at byte {}", self.offset)
    }
}

impl core::error::Error for Error {}

//! Bytes to tree. Strict RFC 8259, duplicate keys refused, numbers kept as text.
//!
//! The parser is recursive with small frames, bounded by [`MAX_DEPTH`]. `string.rs` reads strings.

use crate::string::{self, Scanned};
use crate::{Error, ErrorKind, Object, Value, order};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// How deeply arrays and objects may nest.
///
/// The deepest objects that clusters hold are CRD schemas: two levels (`properties`, name) a field,
/// 60 to 100 in the widespread ones. A guest's stack is 64 KiB. On wasm32 (release profile, in V8,
/// with the stack cut down until it overflowed) the parser takes about 130 bytes of it a level, and
/// comparing, writing and dropping a tree at most 180: 160 levels fit into half of the stack.
pub const MAX_DEPTH: usize = 160;

/// Objects up to this size are checked for duplicate keys by looking at each earlier key, which
/// allocates nothing; larger ones by sorting an index once, at their end.
const SMALL_OBJECT: usize = 16;

/// Reads one JSON document.
///
/// Lone surrogates in escapes (`\ud800`) become U+FFFD, as in Go's decoder, which the API server
/// uses; everything else that RFC 8259 does not allow is an error, a byte order mark included.
///
/// # Errors
/// The first fault: its byte offset and kind. For a duplicate key the offset is where the second
/// one starts, or the end of its object when the key was written with escapes.
pub fn parse(bytes: &[u8]) -> Result<Value<'_>, Error> {
    let text = core::str::from_utf8(bytes)
        .map_err(|fault| Error::new(fault.valid_up_to(), ErrorKind::Utf8))?;
    let mut parser = Parser { text, bytes, at: 0, depth: 0 };
    parser.space();
    let value = parser.value()?;
    parser.space();
    if parser.at < bytes.len() {
        return Err(parser.fault(ErrorKind::TrailingBytes));
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn value(&mut self) -> Result<Value<'a>, Error> {
        match self.peek() {
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(_) => Err(self.fault(ErrorKind::ExpectedValue)),
            None => Err(self.fault(ErrorKind::UnexpectedEnd)),
        }
    }

    #[inline(never)]
    fn object(&mut self) -> Result<Value<'a>, Error> {
        self.enter()?;
        let mut members = Vec::new();
        if self.peek() == Some(b'}') {
            self.leave();
            return Ok(Value::Object(Object::new()));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.expected(ErrorKind::ExpectedKey));
            }
            let start = self.at;
            let key = self.string()?;
            if members.len() < SMALL_OBJECT && is_among(&members, &key) {
                return Err(duplicate(start, &key));
            }
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.expected(ErrorKind::ExpectedColon));
            }
            self.step();
            members.push((key, self.value()?));
            if self.more(b'}')? {
                continue;
            }
            self.leave();
            if members.len() > SMALL_OBJECT {
                self.unique(&members)?;
            }
            return Ok(Value::Object(Object::from_members(members)));
        }
    }

    #[inline(never)]
    fn array(&mut self) -> Result<Value<'a>, Error> {
        self.enter()?;
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.leave();
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value()?);
            if !self.more(b']')? {
                self.leave();
                return Ok(Value::Array(items));
            }
        }
    }

    /// After an element: whether another follows. The closing bracket is left for [`Self::leave`].
    fn more(&mut self, close: u8) -> Result<bool, Error> {
        self.space();
        match self.peek() {
            Some(b',') => {
                self.step();
                Ok(true)
            }
            Some(byte) if byte == close => Ok(false),
            _ => Err(self.expected(ErrorKind::ExpectedCommaOrEnd)),
        }
    }

    fn enter(&mut self) -> Result<(), Error> {
        if self.depth >= MAX_DEPTH {
            return Err(self.fault(ErrorKind::TooDeep));
        }
        self.depth += 1;
        self.step();
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
        self.at += 1;
    }

    /// One byte on, and over white space.
    fn step(&mut self) {
        self.at += 1;
        self.space();
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Error> {
        let Scanned { text, end } = string::scan(self.text, self.at + 1)?;
        self.at = end;
        Ok(text)
    }

    fn number(&mut self) -> Result<Value<'a>, Error> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let whole = self.digits();
        let leading_zero = whole > 1 && self.bytes.get(self.at - whole) == Some(&b'0');
        if whole == 0 || leading_zero {
            return Err(Error::new(start, ErrorKind::Number));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(Error::new(start, ErrorKind::Number));
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(Error::new(start, ErrorKind::Number));
            }
        }
        Ok(Value::Number(Cow::Borrowed(self.text.get(start..self.at).unwrap_or_default())))
    }

    /// Skips digits and counts them.
    fn digits(&mut self) -> usize {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        self.at - start
    }

    fn word(&mut self, word: &str, value: Value<'a>) -> Result<Value<'a>, Error> {
        let end = self.at + word.len();
        if self.bytes.get(self.at..end) == Some(word.as_bytes()) {
            self.at = end;
            return Ok(value);
        }
        Err(self.fault(ErrorKind::ExpectedValue))
    }

    /// The sorted check for large objects.
    #[cold]
    #[inline(never)]
    fn unique(&self, members: &[(Cow<'a, str>, Value<'a>)]) -> Result<(), Error> {
        let key = |position: usize| members.get(position).map(|(key, _)| key);
        // Stable: of equal keys the earlier comes first.
        let sorted = order(members.len(), &mut |a, b| key(a).cmp(&key(b)));
        for (earlier, later) in sorted.iter().zip(sorted.iter().skip(1)) {
            if let (Some(earlier), Some(later)) = (key(*earlier as usize), key(*later as usize))
                && earlier == later
            {
                let base = self.bytes.as_ptr() as usize;
                let offset = (later.as_ptr() as usize).wrapping_sub(base).wrapping_sub(1);
                let borrowed = matches!(later, Cow::Borrowed(_)) && offset < self.at;
                return Err(duplicate(if borrowed { offset } else { self.at }, later));
            }
        }
        Ok(())
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[cold]
    fn fault(&self, kind: ErrorKind) -> Error {
        Error::new(self.at, kind)
    }

    /// `kind`, unless the input is simply over.
    #[cold]
    fn expected(&self, kind: ErrorKind) -> Error {
        let over = self.at >= self.bytes.len();
        self.fault(if over { ErrorKind::UnexpectedEnd } else { kind })
    }
}

fn is_among(members: &[(Cow<'_, str>, Value<'_>)], key: &str) -> bool {
    members.iter().any(|(held, _)| held.as_ref() == key)
}

#[cold]
fn duplicate(offset: usize, key: &str) -> Error {
    Error::new(offset, ErrorKind::DuplicateKey(Box::from(key)))
}

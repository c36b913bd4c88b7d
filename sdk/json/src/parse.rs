//! Bytes to tree. Strict RFC 8259, duplicate keys refused, numbers kept as text.
//!
//! The parser is recursive with small frames, bounded by [`MAX_DEPTH`]. `string.rs` reads strings.

use crate::{Error, ErrorKind, Object, Value, order, string};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::num::NonZeroUsize;

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
    let mut value = Value::Null;
    let mut parser = Parser { text, bytes, depth: 0, error: None };
    let end = parser.value(parser.space(0), &mut value).map(|end| parser.space(end.get()));
    match end {
        Ok(end) if end >= bytes.len() => Ok(value),
        Ok(end) => Err(Error::new(end, ErrorKind::TrailingBytes)),
        Err(Fault) => Err(parser.error.unwrap_or(Error::new(0, ErrorKind::UnexpectedEnd))),
    }
}

/// How values travel decides what reading costs in a sandbox: a result wider than a register goes
/// through memory, is written there in words of four bytes and read back in words of eight, for
/// which a processor waits. So a function here takes the place that its value is to be written to,
/// and gives only where reading goes on.
type Next = Result<NonZeroUsize, Fault>;

/// Reading ended; [`Parser::error`] has the reason.
struct Fault;

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    depth: usize,
    error: Option<Error>,
}

impl<'a> Parser<'a> {
    /// The value that begins at `at`, into `slot`, which holds nothing yet. What is most frequent
    /// comes first, and apart: one jump over a table for all would be foreseen by no processor.
    #[inline(always)]
    fn value(&mut self, at: usize, slot: &mut Value<'a>) -> Next {
        if self.peek(at) != Some(b'"') {
            return self.no_string(at, slot);
        }
        let start = at + 1;
        let end = string::special(self.bytes, start);
        if self.peek(end) != Some(b'"') {
            return self.escaped(start, end, |text| put(slot, Value::String(text)));
        }
        let text = self.text.get(start..end).unwrap_or_default();
        put(slot, Value::String(Cow::Borrowed(text)));
        Ok(behind(end))
    }

    #[inline(never)]
    fn no_string(&mut self, at: usize, slot: &mut Value<'a>) -> Next {
        match self.peek(at) {
            Some(b'{') => self.object(at, slot),
            Some(b'[') => self.array(at, slot),
            _ => self.scalar(at, slot),
        }
    }

    #[inline(never)]
    fn scalar(&mut self, at: usize, slot: &mut Value<'a>) -> Next {
        match self.peek(at) {
            Some(b'-' | b'0'..=b'9') => self.number(at, slot),
            Some(b't') => self.word(at, "true", slot, Value::Bool(true)),
            Some(b'f') => self.word(at, "false", slot, Value::Bool(false)),
            Some(b'n') => self.word(at, "null", slot, Value::Null),
            Some(_) => Err(self.fault(at, ErrorKind::ExpectedValue)),
            None => Err(self.fault(at, ErrorKind::UnexpectedEnd)),
        }
    }

    #[inline(never)]
    fn object(&mut self, at: usize, slot: &mut Value<'a>) -> Next {
        let mut at = self.enter(at)?;
        let mut members: Vec<(Cow<'a, str>, Value<'a>)> = Vec::new();
        let mut seen = 0;
        if self.peek(at) == Some(b'}') {
            put(slot, Value::Object(Object::new()));
            return Ok(self.leave(at));
        }
        loop {
            if self.peek(at) != Some(b'"') {
                return Err(self.expected(at, ErrorKind::ExpectedKey));
            }
            let end = self.key(at, &mut members)?;
            let Some(((key, value), earlier)) = members.split_last_mut() else {
                return Err(Fault);
            };
            let mark = mark(key);
            if seen & mark != 0 && earlier.len() < SMALL_OBJECT && is_among(earlier, key) {
                let duplicate = duplicate(at, key);
                return Err(self.fail(duplicate));
            }
            seen |= mark;
            at = self.space(end.get());
            if self.peek(at) != Some(b':') {
                return Err(self.expected(at, ErrorKind::ExpectedColon));
            }
            at = self.value(self.space(at + 1), value)?.get();
            at = self.space(at);
            match self.peek(at) {
                Some(b',') => at = self.space(at + 1),
                Some(b'}') => break,
                _ => return Err(self.expected(at, ErrorKind::ExpectedCommaOrEnd)),
            }
        }
        if members.len() > SMALL_OBJECT {
            self.unique(&members, at + 1)?;
        }
        put(slot, Value::Object(Object::from_members(members)));
        Ok(self.leave(at))
    }

    #[inline(never)]
    fn array(&mut self, at: usize, slot: &mut Value<'a>) -> Next {
        let mut at = self.enter(at)?;
        let mut items = Vec::new();
        if self.peek(at) == Some(b']') {
            put(slot, Value::Array(items));
            return Ok(self.leave(at));
        }
        loop {
            items.push(Value::Null);
            let Some(item) = items.last_mut() else { return Err(Fault) };
            at = self.value(at, item)?.get();
            at = self.space(at);
            match self.peek(at) {
                Some(b',') => at = self.space(at + 1),
                Some(b']') => break,
                _ => return Err(self.expected(at, ErrorKind::ExpectedCommaOrEnd)),
            }
        }
        put(slot, Value::Array(items));
        Ok(self.leave(at))
    }

    /// Into an array or object: behind its opening bracket.
    fn enter(&mut self, at: usize) -> Result<usize, Fault> {
        if self.depth >= MAX_DEPTH {
            return Err(self.fault(at, ErrorKind::TooDeep));
        }
        self.depth += 1;
        Ok(self.space(at + 1))
    }

    /// Behind the closing bracket.
    fn leave(&mut self, at: usize) -> NonZeroUsize {
        self.depth -= 1;
        behind(at)
    }

    /// The key whose opening quote is at `at`, as a member without a value yet.
    #[inline(always)]
    fn key(&mut self, at: usize, members: &mut Vec<(Cow<'a, str>, Value<'a>)>) -> Next {
        let start = at + 1;
        let end = string::special(self.bytes, start);
        if self.peek(end) != Some(b'"') {
            return self.escaped(start, end, |key| members.push((key, Value::Null)));
        }
        let key = self.text.get(start..end).unwrap_or_default();
        members.push((Cow::Borrowed(key), Value::Null));
        Ok(behind(end))
    }

    /// A string that is not plain: its text goes to `take`.
    #[cold]
    #[inline(never)]
    fn escaped(&mut self, start: usize, end: usize, take: impl FnOnce(Cow<'a, str>)) -> Next {
        match string::escaped(self.text, start, end) {
            Ok((text, close)) => {
                take(Cow::Owned(text));
                Ok(behind(close))
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    fn number(&mut self, start: usize, slot: &mut Value<'a>) -> Next {
        let wrong = ErrorKind::Number;
        let mut at = start + usize::from(self.peek(start) == Some(b'-'));
        let whole = self.digits(at);
        if whole == 0 || (whole > 1 && self.peek(at) == Some(b'0')) {
            return Err(self.fault(start, wrong));
        }
        at += whole;
        if self.peek(at) == Some(b'.') {
            let fraction = self.digits(at + 1);
            if fraction == 0 {
                return Err(self.fault(start, wrong));
            }
            at += 1 + fraction;
        }
        if let Some(b'e' | b'E') = self.peek(at) {
            at += 1;
            if let Some(b'+' | b'-') = self.peek(at) {
                at += 1;
            }
            let exponent = self.digits(at);
            if exponent == 0 {
                return Err(self.fault(start, wrong));
            }
            at += exponent;
        }
        let text = self.text.get(start..at).unwrap_or_default();
        put(slot, Value::Number(Cow::Borrowed(text)));
        Ok(behind(at - 1))
    }

    /// How many digits there are from `at` on.
    fn digits(&self, at: usize) -> usize {
        let mut end = at;
        while let Some(b'0'..=b'9') = self.peek(end) {
            end += 1;
        }
        end - at
    }

    fn word(&mut self, at: usize, word: &str, slot: &mut Value<'a>, value: Value<'a>) -> Next {
        let end = at + word.len();
        if self.bytes.get(at..end) == Some(word.as_bytes()) {
            put(slot, value);
            return Ok(behind(end - 1));
        }
        Err(self.fault(at, ErrorKind::ExpectedValue))
    }

    /// The sorted check for large objects; `end` is behind this one.
    #[cold]
    #[inline(never)]
    fn unique(&mut self, members: &[(Cow<'a, str>, Value<'a>)], end: usize) -> Result<(), Fault> {
        let key = |position: usize| members.get(position).map(|(key, _)| key);
        // Stable: of equal keys the earlier comes first.
        let sorted = order(members.len(), &mut |a, b| key(a).cmp(&key(b)));
        for (earlier, later) in sorted.iter().zip(sorted.iter().skip(1)) {
            if let (Some(earlier), Some(later)) = (key(*earlier as usize), key(*later as usize))
                && earlier == later
            {
                let base = self.bytes.as_ptr() as usize;
                let offset = (later.as_ptr() as usize).wrapping_sub(base).wrapping_sub(1);
                let borrowed = matches!(later, Cow::Borrowed(_)) && offset < end;
                return Err(self.fail(duplicate(if borrowed { offset } else { end }, later)));
            }
        }
        Ok(())
    }

    /// The offset of the first byte from `at` on that is no white space. Usually there is none.
    #[inline(always)]
    fn space(&self, at: usize) -> usize {
        if self.peek(at).is_some_and(|byte| byte > b' ') { at } else { self.skip(at) }
    }

    #[cold]
    #[inline(never)]
    fn skip(&self, mut at: usize) -> usize {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek(at) {
            at += 1;
        }
        at
    }

    #[inline(always)]
    fn peek(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    #[cold]
    fn fail(&mut self, error: Error) -> Fault {
        self.error = Some(error);
        Fault
    }

    #[cold]
    fn fault(&mut self, at: usize, kind: ErrorKind) -> Fault {
        self.fail(Error::new(at, kind))
    }

    /// `kind`, unless the input is simply over.
    #[cold]
    fn expected(&mut self, at: usize, kind: ErrorKind) -> Fault {
        let over = at >= self.bytes.len();
        self.fault(at, if over { ErrorKind::UnexpectedEnd } else { kind })
    }
}

/// Behind the byte at `at`.
#[inline(always)]
fn behind(at: usize) -> NonZeroUsize {
    NonZeroUsize::MIN.saturating_add(at)
}

/// Writes over a value that holds nothing: there is nothing to drop.
#[inline(always)]
fn put<'a>(slot: &mut Value<'a>, value: Value<'a>) {
    core::mem::forget(core::mem::replace(slot, value));
}

/// One of 64 bits for a key: equal keys have the same, and most others another, so that few are
/// compared.
#[inline(always)]
fn mark(key: &str) -> u64 {
    let byte = |byte: Option<&u8>| byte.copied().map_or(0, u32::from);
    let bytes = key.as_bytes();
    let mix = byte(bytes.first()) ^ byte(bytes.last()).rotate_left(3) ^ (bytes.len() as u32);
    1 << (mix & 63)
}

fn is_among(members: &[(Cow<'_, str>, Value<'_>)], key: &str) -> bool {
    members.iter().any(|(held, _)| held.as_ref() == key)
}

#[cold]
fn duplicate(offset: usize, key: &str) -> Error {
    Error::new(offset, ErrorKind::DuplicateKey(Box::from(key)))
}

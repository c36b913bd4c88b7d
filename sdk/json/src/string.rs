//! Strings: a scan over eight bytes at a time to where a plain run ends, and the slow way for
//! those with escapes.

use crate::{Error, ErrorKind};
use alloc::string::String;

/// The offset of the first byte from `at` on that ends a plain run: a quote, a backslash or a
/// control character; the length of `bytes` if there is none. Most strings are short: those are
/// read without a loop, each turn of which costs a check of the deadline in a sandbox.
#[inline(always)]
pub(crate) fn special(bytes: &[u8], at: usize) -> usize {
    if let Some([a, b, c, d, e, f, g, h, second @ ..]) =
        bytes.get(at..).and_then(|rest| rest.first_chunk::<16>())
    {
        let found = marks(u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        let found = marks(u64::from_le_bytes(*second));
        if found != 0 {
            return at + 8 + (found.trailing_zeros() / 8) as usize;
        }
    }
    far(bytes, at)
}

#[inline(never)]
fn far(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let found = marks(u64::from_le_bytes(*chunk));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(&byte) = bytes.get(at) {
        if byte == b'"' || byte == b'\\' || byte < 0x20 {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

/// The high bit of each byte that is a quote, a backslash or below 0x20. Bytes above the lowest
/// marked one may be marked wrongly (the borrow runs upwards); the lowest mark is exact.
fn marks(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let quote = zero(word ^ (ONES * b'"' as u64));
    let backslash = zero(word ^ (ONES * b'\\' as u64));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & HIGHS
}

/// The text of a string that is not plain, and the offset of its closing quote; `start` is behind
/// the opening one, and the plain run from there stops at `end`.
pub(crate) fn escaped(text: &str, start: usize, end: usize) -> Result<(String, usize), Error> {
    let bytes = text.as_bytes();
    let mut out = String::from(text.get(start..end).unwrap_or_default());
    let mut at = end;
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok((out, at)),
            Some(b'\\') => at = unescape(bytes, at, &mut out)?,
            Some(&byte) if byte < 0x20 => {
                return Err(Error::new(at, ErrorKind::ControlCharacter));
            }
            Some(_) => {
                let end = special(bytes, at);
                out.push_str(text.get(at..end).unwrap_or_default());
                at = end;
            }
            None => return Err(Error::new(bytes.len(), ErrorKind::UnexpectedEnd)),
        }
    }
}

/// Decodes the escape at `at` and gives the offset behind it.
fn unescape(bytes: &[u8], at: usize, out: &mut String) -> Result<usize, Error> {
    let plain = match bytes.get(at + 1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(bytes, at, out),
        Some(_) => return Err(Error::new(at, ErrorKind::Escape)),
        None => return Err(Error::new(bytes.len(), ErrorKind::UnexpectedEnd)),
    };
    out.push(plain);
    Ok(at + 2)
}

/// `\uXXXX`, with the second half of a surrogate pair where one follows.
fn unicode(bytes: &[u8], at: usize, out: &mut String) -> Result<usize, Error> {
    let first = hex(bytes, at + 2).ok_or(Error::new(at, ErrorKind::Escape))?;
    let mut end = at + 6;
    let mut code = first;
    if (0xD800..0xDC00).contains(&first) && bytes.get(end..end + 2) == Some(b"\\u") {
        let second = hex(bytes, end + 2).ok_or(Error::new(end, ErrorKind::Escape))?;
        if (0xDC00..0xE000).contains(&second) {
            code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
            end += 6;
        }
    }
    // A lone surrogate is no character: U+FFFD, as Go's decoder has it.
    out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    Ok(end)
}

fn hex(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..)?.first_chunk::<4>()?;
    digits.iter().try_fold(0, |code, &digit| {
        let value = char::from(digit).to_digit(16)?;
        Some(code * 16 + value)
    })
}

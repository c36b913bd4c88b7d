//! base64 as Go's `StdEncoding` has it: the standard alphabet, padding asked for, line breaks
//! skipped, stray bits in the last character not minded.

use alloc::string::String;
use alloc::vec::Vec;

/// The bytes that `text` encodes; `None` if it is no base64.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    each(text, |byte| {
        out.push(byte);
        true
    })?;
    Some(out)
}

/// The canonical encoding of `bytes`.
pub fn encode(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            if place > chunk.len() {
                out.push('=');
                continue;
            }
            let six = (group >> (18 - 6 * place)) & 63;
            out.push(char::from(ALPHABET.get(six as usize).copied().unwrap_or(b'=')));
        }
    }
    out
}

/// Whether `text` encodes exactly `bytes`; allocates nothing.
pub(crate) fn encodes(text: &str, bytes: &[u8]) -> bool {
    let mut rest = bytes.iter();
    let all = each(text, |byte| rest.next() == Some(&byte));
    all == Some(true) && rest.next().is_none()
}

/// Whether both texts are base64 of the same bytes.
pub(crate) fn same(a: &str, b: &str) -> bool {
    match decode(a) {
        Some(bytes) => encodes(b, &bytes),
        None => false,
    }
}

/// Gives each decoded byte to `take` until that says no. `None` if `text` is no base64, otherwise
/// whether `take` took all.
fn each(text: &str, mut take: impl FnMut(u8) -> bool) -> Option<bool> {
    let mut group: u32 = 0;
    let mut held = 0;
    let mut padding = 0;
    for &character in text.as_bytes() {
        let six = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'\r' | b'\n' => continue,
            b'=' => {
                padding += 1;
                continue;
            }
            _ => return None,
        };
        if padding > 0 {
            return None;
        }
        group = (group << 6 | u32::from(six)) & 0xff_ffff;
        held += 1;
        if held == 4 {
            held = 0;
            let [_, a, b, c] = group.to_be_bytes();
            if !(take(a) && take(b) && take(c)) {
                return Some(false);
            }
        }
    }
    let [_, a, b, _] = (group << (6 * (4 - held) % 24)).to_be_bytes();
    match (held, padding) {
        (0, 0) => Some(true),
        (2, 2) => Some(take(a)),
        (3, 1) => Some(take(a) && take(b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_vectors_both_ways() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
            assert!(encodes(text, bytes.as_bytes()));
        }
    }

    #[test]
    fn spelling_does_not_matter_and_content_does() {
        assert!(same("Zm9v\nYmFy\n", "Zm9vYmFy"));
        assert!(same("QR==", "QQ=="));
        assert!(!same("Zm9v", "Zm9vYg=="));
        assert!(!encodes("Zm9v", b"fo"));
        assert!(!encodes("Zm9v", b"foo!"));
    }

    #[test]
    fn what_is_no_base64_is_none() {
        for text in ["Z", "Zg", "Zg=", "Zg===", "Z===", "Zg==Zg==", "Zm9v!", "="] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}

//! The format of a facts buffer. All numbers are little-endian, all offsets count from the start of
//! the buffer, and 0 is "none".
//!
//! ```text
//! header  u8 version, 3 bytes 0, u32 slot of the root
//! slot    u32 node, u32 default (text), u16 marks, u16 0
//! node    u32 bits, then in this order, each only if its bit is set:
//!         u32 slot of additional properties; u32 slot of items; u32 keys;
//!         u32 count and count × { u32 name (text), u32 slot }, sorted by name bytewise
//! keys    u32 count, count × { u32 name (text), u32 default (text) }
//! text    u16 length, bytes (UTF-8)
//! ```
//!
//! A slot is a place (a field, the items of a list), a node is a type: many slots share a node, and
//! a type may contain itself.

use core::cmp::Ordering;

/// The version of the format: the first byte of every buffer.
pub const VERSION: u8 = 1;

pub(super) const ROOT: u32 = 4;
pub(super) const HEADER: u32 = 8;

/// What a node's bits mean.
pub(super) mod bits {
    pub(in super::super) const TYPE: u32 = 0b111;
    pub(in super::super) const LIST_SHIFT: u32 = 3;
    pub(in super::super) const LIST: u32 = 0b11 << LIST_SHIFT;
    pub(in super::super) const FORMAT_SHIFT: u32 = 5;
    pub(in super::super) const FORMAT: u32 = 0b11 << FORMAT_SHIFT;
    pub(in super::super) const ATOMIC_OBJECT: u32 = 1 << 8;
    pub(in super::super) const QUANTITY: u32 = 1 << 9;
    pub(in super::super) const INT_OR_STRING: u32 = 1 << 10;
    pub(in super::super) const PRESERVES: u32 = 1 << 11;
    pub(in super::super) const CLOSED: u32 = 1 << 12;
    pub(in super::super) const HAS_ADDITIONAL: u32 = 1 << 16;
    pub(in super::super) const HAS_ITEM: u32 = 1 << 17;
    pub(in super::super) const HAS_KEYS: u32 = 1 << 18;
    pub(in super::super) const HAS_FIELDS: u32 = 1 << 19;
}

/// What a slot's marks mean.
pub(super) mod marks {
    pub(in super::super) const DROPS_ZERO: u16 = 1;
    pub(in super::super) const SERVER_SETS: u16 = 1 << 1;
    pub(in super::super) const ZERO_IS_DEFAULT: u16 = 1 << 2;
    pub(in super::super) const IMMUTABLE: u16 = 1 << 3;
    pub(in super::super) const NULLABLE: u16 = 1 << 4;
    pub(in super::super) const GO: u16 = 1 << 5;
    pub(in super::super) const EMPTY_UNSET: u16 = 1 << 6;
}

/// The u32 at an offset.
pub(super) fn word(bytes: &[u8], at: u32) -> Option<u32> {
    let chunk = bytes.get(at as usize..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*chunk))
}

/// The text at an offset.
pub(super) fn text(bytes: &[u8], at: u32) -> Option<&str> {
    core::str::from_utf8(raw(bytes, at)?).ok()
}

fn raw(bytes: &[u8], at: u32) -> Option<&[u8]> {
    let rest = bytes.get(at as usize..)?;
    let length = u16::from_le_bytes(*rest.first_chunk::<2>()?) as usize;
    rest.get(2..2 + length)
}

/// Node, its bits, default and marks of a slot that leads somewhere.
pub(super) fn slot(bytes: &[u8], at: u32) -> Option<(u32, u32, u32, u16)> {
    if at < HEADER {
        return None;
    }
    let slot = bytes.get(at as usize..)?.first_chunk::<12>()?;
    let [a, b, c, d, e, f, g, h, i, j, ..] = *slot;
    let node = u32::from_le_bytes([a, b, c, d]);
    let bits = if node < HEADER { None } else { word(bytes, node) }?;
    Some((node, bits, u32::from_le_bytes([e, f, g, h]), u16::from_le_bytes([i, j])))
}

/// How many optional words stand before the one whose bit is `bit`.
const fn before(bits: u32, bit: u32) -> u32 {
    ((bits & (bit - 1)) >> 16).count_ones()
}

fn optional(bytes: &[u8], node: u32, bits: u32, bit: u32) -> Option<u32> {
    if bits & bit == 0 {
        return None;
    }
    word(bytes, node.checked_add(4 + 4 * before(bits, bit))?)
}

pub(super) fn additional(bytes: &[u8], node: u32) -> Option<u32> {
    word(bytes, node.checked_add(4)?)
}

pub(super) fn item(bytes: &[u8], node: u32, bits: u32) -> Option<u32> {
    optional(bytes, node, bits, bits::HAS_ITEM)
}

pub(super) fn keys(bytes: &[u8], node: u32, bits: u32) -> Option<u32> {
    optional(bytes, node, bits, bits::HAS_KEYS)
}

/// The first eight bytes of a text as a number, filled up with zeros: in the order of the texts, as
/// far as it tells them apart.
fn prefix(text: &[u8]) -> u64 {
    let mut first = [0; 8];
    for (slot, &byte) in first.iter_mut().zip(text) {
        *slot = byte;
    }
    u64::from_be_bytes(first)
}

/// How the text at an offset stands to `name`, whose [`prefix`] is `wanted`. Most names differ
/// within the first bytes or have no more, and those are compared at once.
fn compare(bytes: &[u8], at: u32, name: &str, wanted: u64) -> Option<Ordering> {
    if let Some([a, b, first @ ..]) = bytes.get(at as usize..)?.first_chunk::<10>() {
        let length = usize::from(u16::from_le_bytes([*a, *b]));
        // What follows the text is not part of it.
        let beyond = if length < 8 { u64::MAX >> (8 * length) } else { 0 };
        let order = (u64::from_be_bytes(*first) & !beyond).cmp(&wanted);
        if order != Ordering::Equal || (length <= 8 && length == name.len()) {
            return Some(order);
        }
    }
    Some(raw(bytes, at)?.cmp(name.as_bytes()))
}

/// The slot of the field `name`.
pub(super) fn find(bytes: &[u8], node: u32, bits: u32, name: &str) -> Option<u32> {
    let count = optional(bytes, node, bits, bits::HAS_FIELDS)?;
    let start = node.checked_add(8 + 4 * before(bits, bits::HAS_FIELDS))? as usize;
    let (entries, _) = bytes.get(start..)?.as_chunks::<8>();
    let mut entries = entries.get(..count as usize)?;
    let wanted = prefix(name.as_bytes());
    while let Some((before, [[a, b, c, d, slot @ ..], after @ ..])) =
        entries.split_at_checked(entries.len() / 2)
    {
        entries = match compare(bytes, u32::from_le_bytes([*a, *b, *c, *d]), name, wanted)? {
            Ordering::Equal => return Some(u32::from_le_bytes(*slot)),
            Ordering::Less => after,
            Ordering::Greater => before,
        };
    }
    None
}

/// Name and default text of the key at `index` in the key block at `at`.
pub(super) fn key(bytes: &[u8], at: u32, index: u32) -> Option<(&str, Option<&str>)> {
    if index >= word(bytes, at)? {
        return None;
    }
    let entry = at.checked_add(4)?.checked_add(index.checked_mul(8)?)?;
    let name = text(bytes, word(bytes, entry)?)?;
    let default = word(bytes, entry.checked_add(4)?)?;
    Some((name, if default == 0 { None } else { text(bytes, default) }))
}

#[cfg(test)]
mod tests {
    use super::{compare, prefix};
    use alloc::vec::Vec;

    #[test]
    fn names_are_ordered_bytewise_wherever_they_differ() {
        let names = [
            "",
            "\0",
            "a",
            "a\0",
            "ab",
            "abcdefg",
            "abcdefg\0",
            "abcdefgh",
            "abcdefgha",
            "abcdefghb",
            "abcdefgi",
            "b",
            "z",
            "ä",
        ];
        for held in names {
            let mut alone = Vec::from((held.len() as u16).to_le_bytes());
            alone.extend_from_slice(held.as_bytes());
            let mut followed = alone.clone();
            followed.extend_from_slice(b"abcdefghi");
            for name in names {
                let wanted = Some(held.as_bytes().cmp(name.as_bytes()));
                let prefix = prefix(name.as_bytes());
                assert_eq!(compare(&alone, 0, name, prefix), wanted, "{held:?} {name:?}");
                assert_eq!(compare(&followed, 0, name, prefix), wanted, "{held:?} {name:?}");
            }
        }
        assert_eq!(compare(&[9, 0, b'a'], 0, "a", prefix(b"a")), None);
        assert_eq!(compare(&[], 1, "a", prefix(b"a")), None);
    }
}

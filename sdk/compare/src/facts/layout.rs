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

/// Node, default and marks of a slot that leads somewhere.
pub(super) fn slot(bytes: &[u8], at: u32) -> Option<(u32, u32, u16)> {
    if at < HEADER {
        return None;
    }
    let node = word(bytes, at)?;
    let default = word(bytes, at.checked_add(4)?)?;
    let marks = word(bytes, at.checked_add(8)?)? as u16;
    (node >= HEADER && word(bytes, node).is_some()).then_some((node, default, marks))
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

/// The slot of the field `name`.
pub(super) fn find(bytes: &[u8], node: u32, bits: u32, name: &str) -> Option<u32> {
    let count = optional(bytes, node, bits, bits::HAS_FIELDS)?;
    let start = node.checked_add(8 + 4 * before(bits, bits::HAS_FIELDS))? as usize;
    let table = bytes.get(start..)?;
    let (mut low, mut high) = (0, count as usize);
    while low < high {
        let middle = low + (high - low) / 2;
        let entry = table.get(middle.checked_mul(8)?..)?.first_chunk::<8>()?;
        let [a, b, c, d, e, f, g, h] = *entry;
        let held = raw(bytes, u32::from_le_bytes([a, b, c, d]))?;
        match held.cmp(name.as_bytes()) {
            core::cmp::Ordering::Equal => return Some(u32::from_le_bytes([e, f, g, h])),
            core::cmp::Ordering::Less => low = middle + 1,
            core::cmp::Ordering::Greater => high = middle,
        }
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

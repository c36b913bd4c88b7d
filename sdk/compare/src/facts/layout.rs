//! The format of a facts buffer. All numbers are little-endian, all offsets count from the start of
//! the buffer, and 0 is "none".
//!
//! ```text
//! header  u8 version, 3 bytes 0, u32 slot of the root
//! slot    u32 node, u32 default (text), u16 marks, u16 0
//! node    u32 bits, then in this order, each only if its bit is set:
//!         u32 slot of additional properties; u32 slot of items; u32 keys;
//!         fields: u32 count; u16 × (buckets + 1), the first entry of each bucket and the end,
//!         filled up to 4 bytes; count × { u32 name (text), u32 slot }, by bucket. There are as many
//!         buckets as the next power of two after the count; `bucket` says which a name is in
//! keys    u32 count, count × { u32 name (text), u32 default (text) }
//! text    u16 length, bytes (UTF-8)
//! ```
//!
//! A slot is a place (a field, the items of a list), a node is a type: many slots share a node, and
//! a type may contain itself.

/// The version of the format: the first byte of every buffer.
pub const VERSION: u8 = 2;

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

/// Up to the first eight bytes of a text as a number, without a loop.
fn first(text: &[u8]) -> u64 {
    if let Some(all) = text.first_chunk::<8>() {
        return u64::from_le_bytes(*all);
    }
    let byte = |at: usize| text.get(at).map_or(0, |&byte| u64::from(byte) << (8 * at));
    match (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        // The two overlap in bytes that are the same.
        (Some(low), Some(high)) => {
            let high = u64::from(u32::from_le_bytes(*high));
            u64::from(u32::from_le_bytes(*low)) | high << (8 * (text.len() & 7) - 32)
        }
        _ => byte(0) | byte(1) | byte(2),
    }
}

/// How many buckets hold so many fields.
pub(super) const fn buckets(count: usize) -> usize {
    count.next_power_of_two()
}

/// The bucket of a name, of so many. Part of the format.
pub(super) fn bucket(name: &[u8], buckets: usize) -> usize {
    let last = name.last_chunk::<8>().map_or(0, |last| u64::from_le_bytes(*last).rotate_left(29));
    let ends = first(name) ^ last ^ (name.len() as u64).rotate_left(56);
    (ends.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize & buckets.wrapping_sub(1)
}

/// Bytes of the table of so many buckets.
pub(super) const fn table_length(buckets: usize) -> usize {
    (2 * (buckets + 1)).next_multiple_of(4)
}

/// The slot of the field `name`.
pub(super) fn find(bytes: &[u8], node: u32, bits: u32, name: &str) -> Option<u32> {
    let count = optional(bytes, node, bits, bits::HAS_FIELDS)? as usize;
    let at = node.checked_add(8 + 4 * before(bits, bits::HAS_FIELDS))? as usize;
    let buckets = buckets(count.min(bytes.len()));
    let name = name.as_bytes();
    let bucket = bucket(name, buckets);
    let table = bytes.get(at..)?;
    let &[a, b, c, d] = table.get(2 * bucket..)?.first_chunk::<4>()?;
    let entries = table.get(table_length(buckets)..)?;
    for entry in u16::from_le_bytes([a, b])..u16::from_le_bytes([c, d]) {
        let &[a, b, c, d, e, f, g, h] =
            entries.get(8 * usize::from(entry)..)?.first_chunk::<8>()?;
        let held = raw(bytes, u32::from_le_bytes([a, b, c, d]))?;
        if held.len() == name.len() && first(held) == first(name) && held.get(8..) == name.get(8..)
        {
            return Some(u32::from_le_bytes([e, f, g, h]));
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

#[cfg(test)]
mod tests {
    use super::first;

    #[test]
    fn the_first_bytes_of_a_text_are_read_whatever_its_length() {
        let text = b"abcdefghij";
        for length in 0..=text.len() {
            let mut filled = [0; 8];
            let taken = length.min(8);
            filled[..taken].copy_from_slice(&text[..taken]);
            assert_eq!(first(&text[..length]), u64::from_le_bytes(filled), "{length}");
        }
    }
}

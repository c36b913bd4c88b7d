//! Tree to bytes: compactly in the tree's own order, or canonically for digests.

use crate::{Object, Value, order};
use alloc::vec::Vec;

/// Appends `value` as compact JSON, members in the object's order, numbers as they were written.
pub fn write(value: &Value<'_>, out: &mut Vec<u8>) {
    emit(value, out, false);
}

/// Appends `value` with the members of every object sorted by key (bytewise): trees that hold the
/// same members in any order give the same bytes, so a digest of them is a digest of the content.
/// Numbers stay as they were written: `1` and `1.0` are different content here.
pub fn canonical(value: &Value<'_>, out: &mut Vec<u8>) {
    emit(value, out, true);
}

/// Appends `text` as a JSON string with its quotes.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let plain = rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\');
        let Some((run, tail)) = plain.and_then(|end| rest.split_at_checked(end)) else {
            out.extend_from_slice(rest);
            break;
        };
        out.extend_from_slice(run);
        let Some((&byte, tail)) = tail.split_first() else { break };
        escape(byte, out);
        rest = tail;
    }
    out.push(b'"');
}

fn emit(value: &Value<'_>, out: &mut Vec<u8>, sorted: bool) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(text) => out.extend_from_slice(text.as_bytes()),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                emit(item, out, sorted);
            }
            out.push(b']');
        }
        Value::Object(object) => {
            out.push(b'{');
            if sorted && !is_sorted(object) {
                let key = |position: usize| object.member(position).map(|(key, _)| key);
                let sorted = order(object.len(), &mut |a, b| key(a).cmp(&key(b)));
                for (place, position) in sorted.into_iter().enumerate() {
                    if let Some(member) = object.member(position as usize) {
                        emit_member(member, place, out, true);
                    }
                }
            } else {
                for (place, member) in object.iter().enumerate() {
                    emit_member(member, place, out, sorted);
                }
            }
            out.push(b'}');
        }
    }
}

fn emit_member(member: (&str, &Value<'_>), place: usize, out: &mut Vec<u8>, sorted: bool) {
    if place > 0 {
        out.push(b',');
    }
    write_string(member.0, out);
    out.push(b':');
    emit(member.1, out, sorted);
}

fn is_sorted(object: &Object<'_>) -> bool {
    object.iter().map(|(key, _)| key).is_sorted()
}

fn escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
            out.extend_from_slice(b"\\u00");
            out.push(digit(byte >> 4));
            out.push(digit(byte & 0xf));
            return;
        }
    };
    out.push(b'\\');
    out.push(short);
}

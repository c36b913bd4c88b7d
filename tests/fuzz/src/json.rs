//! The JSON reader of both sides of the sandbox, and the text of paths.

use trimtab_json::{Value, canonical, parse, write};

/// Any bytes: what is read is JSON by another reader's word too, and is written as it was read.
pub fn json(data: &[u8]) {
    let Ok(value) = parse(data) else { return };
    let other = serde_json::from_slice::<serde::de::IgnoredAny>(data);
    assert!(other.is_ok(), "we read what serde_json does not: {other:?}");
    let mut text = Vec::new();
    write(&value, &mut text);
    let again = parse(&text).expect("what we write, we read");
    assert_eq!(again, value);
    let sorted = canonical_text(&value);
    let again = parse(&sorted).expect("what we write, we read");
    assert_eq!(canonical_text(&again), sorted, "sorting twice is sorting once");
    assert_eq!(value.clone().into_owned(), value);
}

fn canonical_text(value: &Value<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    canonical(value, &mut text);
    text
}

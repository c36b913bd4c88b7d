//! Short texts with a grammar: paths, ignore rules, kinds, digests, quantities, times.

use crate::MESSAGE_BYTES;
use std::cmp::Ordering;
use trimtab_compare::{decode_base64, encode_base64, quantity_equal, quantity_order};
use trimtab_core::fields::FieldPath;
use trimtab_core::identity::Digest;
use trimtab_core::ignore::Rule;
use trimtab_core::plugin::KindPattern;
use trimtab_json::Path;

/// Any text in each grammar: what is read is written as the same, and order is an order.
pub fn words(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (one, other) = text.split_once('\n').unwrap_or((&text, ""));
    if let Ok(path) = Path::parse(one) {
        assert_eq!(Path::parse(&path.to_string()), Ok(path));
    }
    match KindPattern::parse(one) {
        Ok(pattern) => assert_eq!(KindPattern::parse(&pattern.to_string()), Ok(pattern)),
        Err(why) => assert!(why.len() <= one.len() * 8 + MESSAGE_BYTES),
    }
    if let Ok(path) = FieldPath::parse(one) {
        assert_eq!(FieldPath::parse(path.text()), Ok(path));
    }
    if let Ok(rule) = Rule::parse(one, "here") {
        let again = Rule::parse(rule.text(), "here").expect("a rule's text is a rule");
        assert_eq!(again.to_string(), rule.to_string());
    }
    if let Some(digest) = Digest::parse(one) {
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
    }
    if let Some(bytes) = decode_base64(one) {
        assert_eq!(decode_base64(&encode_base64(&bytes)), Some(bytes));
    }
    let forth = quantity_order(one, other);
    let back = quantity_order(other, one);
    assert_eq!(forth.map(Ordering::reverse), back, "an order is one from both sides");
    assert_eq!(forth == Some(Ordering::Equal), quantity_equal(one, other) && forth.is_some());
}

//! Short texts with a grammar: paths, ignore rules, kinds, digests, quantities, times, locations of
//! sources.

use crate::MESSAGE_BYTES;
use std::cmp::Ordering;
use trimtab_compare::{decode_base64, encode_base64, quantity_equal, quantity_order};
use trimtab_core::fields::FieldPath;
use trimtab_core::identity::Digest;
use trimtab_core::ignore::Rule;
use trimtab_core::plugin::KindPattern;
use trimtab_json::Path;
use trimtab_source::{Location, parse_location};

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
    location(one);
    let forth = quantity_order(one, other);
    let back = quantity_order(other, one);
    assert_eq!(forth.map(Ordering::reverse), back, "an order is one from both sides");
    assert_eq!(forth == Some(Ordering::Equal), quantity_equal(one, other) && forth.is_some());
}

/// What is read of a location is read again as the same, leads to no folder outside its repository and
/// is no option of a program; a password is in nothing that is shown.
fn location(text: &str) {
    const PASSWORD: &str = "pass-7f21c9";
    if let Ok(Location::Git { url, path, .. }) = parse_location(text) {
        let shown = url.to_string();
        assert!(!shown.starts_with('-'), "an option: {shown}");
        match parse_location(&format!("{shown}#")) {
            Ok(Location::Git { url: again, .. }) => assert_eq!(again.to_string(), shown),
            // A path that is no repository any more, or never was.
            other => assert!(!shown.contains("://"), "{shown} is read as {other:?}"),
        }
        let leads_out =
            |name: &str| matches!(name, "" | "." | "..") || name.eq_ignore_ascii_case(".git");
        assert!(path.is_empty() || !path.split('/').any(leads_out), "{path:?}");
    }
    for scheme in ["https", "ssh"] {
        let shown = match parse_location(&format!("{scheme}://me:{PASSWORD}@{text}")) {
            Ok(Location::Git { url, .. }) => url.to_string(),
            Ok(Location::Directory(path)) => path.display().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(!shown.contains(PASSWORD), "a password is shown: {shown}");
    }
}

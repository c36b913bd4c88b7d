//! `resourceVersion`: opaque, except where both are decimal numbers.
//!
//! Since Kubernetes 1.35 clients may compare them for order, by length and then by text, when
//! both are decimal integers (KEP-5504). Anything else is only equal or not.

use std::cmp::Ordering;

/// How two resourceVersions of one resource type stand to each other; `None`: cannot be told.
pub fn compare(a: &str, b: &str) -> Option<Ordering> {
    if a == b {
        return Some(Ordering::Equal);
    }
    if !is_decimal(a) || !is_decimal(b) {
        return None;
    }
    Some(a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
}

/// Whether `a` is known to be older than `b`.
pub fn is_older(a: &str, b: &str) -> bool {
    compare(a, b) == Some(Ordering::Less)
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_versions_are_ordered_by_length_then_text() {
        assert_eq!(compare("9", "10"), Some(Ordering::Less));
        assert_eq!(compare("21", "10"), Some(Ordering::Greater));
        assert_eq!(compare("7", "7"), Some(Ordering::Equal));
        let beyond_u64 = "99999999999999999999999999";
        assert_eq!(compare(beyond_u64, "1"), Some(Ordering::Greater));
    }

    #[test]
    fn other_versions_are_equal_or_unknown() {
        assert_eq!(compare("abc", "abc"), Some(Ordering::Equal));
        for (a, b) in [("abc", "abd"), ("", "1"), ("01", "1"), ("1", "1x"), ("-1", "1")] {
            assert_eq!(compare(a, b), None, "{a} {b}");
        }
    }
}

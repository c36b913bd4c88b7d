//! Whether a value that the API server keeps says what was stated, whatever its spelling.
//!
//! For one question only: the server would change nothing and still has another text than
//! desired states. Is that its spelling, or another value? Here both sides have been through the
//! server, so that more counts as one than in a comparison: defaults within objects, letter case,
//! the forms of times, durations, addresses.

use core::net::IpAddr;
use trimtab_json::Value;

/// Whether `kept` says all that `stated` says.
pub(crate) fn alike(stated: &Value<'_>, kept: &Value<'_>) -> bool {
    match (stated, kept) {
        (Value::Object(stated), Value::Object(kept)) => {
            stated.iter().all(|(name, value)| match kept.get(name) {
                Some(kept) => alike(value, kept),
                None => is_empty(value),
            })
        }
        (Value::Array(stated), Value::Array(kept)) => {
            stated.len() == kept.len()
                && stated.iter().all(|value| kept.iter().any(|kept| alike(value, kept)))
        }
        _ if is_empty(stated) && is_empty(kept) => true,
        _ => match (stated.scalar_text(), kept.scalar_text()) {
            (Some(stated), Some(kept)) => same_text(stated.trim(), kept.trim()),
            _ => false,
        },
    }
}

/// Values that an API server may leave out without losing anything.
pub(crate) fn is_empty(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(text) => text == "0",
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.iter().all(|(_, value)| is_empty(value)),
    }
}

fn same_text(stated: &str, kept: &str) -> bool {
    let same_address = || {
        let parsed = (stated.parse::<IpAddr>(), kept.parse::<IpAddr>());
        matches!(parsed, (Ok(stated), Ok(kept)) if stated == kept)
    };
    let same_bytes = || {
        let decoded = trimtab_compare::decode_base64(stated);
        decoded.is_some() && decoded == trimtab_compare::decode_base64(kept)
    };
    stated.eq_ignore_ascii_case(kept)
        || trimtab_compare::quantity_equal(stated, kept)
        || trimtab_compare::number_equal(stated, kept)
        || same_address()
        || duration(stated).is_some_and(|stated| Some(stated) == duration(kept))
        || instant(stated).is_some_and(|stated| Some(stated) == instant(kept))
        || same_bytes()
}

/// A Go duration in nanoseconds (`1h30m`, `1.5h`, `0`); `None` for what is none.
fn duration(text: &str) -> Option<u128> {
    const UNITS: [(&str, u128); 7] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
    ];
    let (mut rest, mut sum) = (text, 0_u128);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = rest.split_at(end);
        let (name, size) = UNITS.iter().find(|(name, _)| unit.starts_with(name))?;
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        sum = sum.checked_add(whole.parse::<u128>().ok()?.checked_mul(*size)?)?;
        if !part.is_empty() {
            let scale = 10_u128.checked_pow(u32::try_from(part.len()).ok()?)?;
            sum = sum.checked_add(part.parse::<u128>().ok()?.checked_mul(*size)? / scale)?;
        }
        rest = unit.get(name.len()..)?;
    }
    (!text.is_empty()).then_some(sum)
}

/// An RFC 3339 time in UTC without its fraction of a second, of which Kubernetes keeps none.
fn instant(text: &str) -> Option<&str> {
    let (date_time, zone) = text.split_at_checked(19)?;
    let shape = date_time.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        13 | 16 => byte == b':',
        _ => byte.is_ascii_digit(),
    });
    let zone = zone.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    (shape && matches!(zone, "Z" | "+00:00" | "-00:00")).then_some(date_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(stated: &str, kept: &str) -> bool {
        let read = |text: &str| trimtab_json::parse(text.as_bytes()).unwrap().into_owned();
        alike(&read(stated), &read(kept))
    }

    #[test]
    fn the_servers_spellings_of_one_value_are_alike() {
        for (stated, kept) in [
            (r#""1000m""#, r#""1""#),
            ("80", r#""80""#),
            (r#""60m""#, r#""1h0m0s""#),
            (r#""1.5h""#, r#""1h30m""#),
            (r#""2026-01-01T00:00:00.000Z""#, r#""2026-01-01T00:00:00Z""#),
            (r#""2001:0db8::0001""#, r#""2001:db8::1""#),
            (r#""tcp""#, r#""TCP""#),
            (r#"{"a":1,"b":""}"#, r#"{"a":1,"c":2}"#),
            (r#"["a","b"]"#, r#"["b","a"]"#),
        ] {
            assert!(is(stated, kept), "{stated} {kept}");
        }
    }

    #[test]
    fn other_values_are_not_alike() {
        for (stated, kept) in [
            (r#""1""#, r#""2""#),
            ("true", "false"),
            (r#""1h""#, r#""1m""#),
            (r#"["a"]"#, r#"["a","b"]"#),
            (r#"{"a":1}"#, r"{}"),
            (r#""blue""#, r#""red""#),
            (r#""""#, r#""red""#),
        ] {
            assert!(!is(stated, kept), "{stated} {kept}");
        }
    }
}

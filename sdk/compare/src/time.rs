//! Durations and instants by meaning.

/// Whether `a` and `b` are the same Go duration and `canonical`, the one that a program wrote, is
/// spelled as Go's `Duration.String` spells it (`1h0m0s`, `1m0.5s`, `0s`).
pub(crate) fn same_duration_rewritten(a: &str, canonical: &str) -> bool {
    is_canonical(canonical) && same_duration(a, canonical)
}

/// Whether both are Go durations of the same length.
pub(crate) fn same_duration(a: &str, b: &str) -> bool {
    match (duration(a), duration(b)) {
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

/// Nanoseconds of a duration as Go's `ParseDuration` reads it.
fn duration(text: &str) -> Option<i128> {
    let (sign, rest) = match text.as_bytes() {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        rest => (1, rest),
    };
    if rest == b"0" {
        return Some(0);
    }
    if rest.is_empty() || rest.len() > 64 {
        return None;
    }
    let mut total: i128 = 0;
    let mut rest = rest;
    while !rest.is_empty() {
        let (whole, wholes, tail) = number(rest)?;
        let (fraction, fractions, tail) = match tail {
            [b'.', tail @ ..] => number(tail)?,
            tail => (0, 0, tail),
        };
        if wholes + fractions == 0 {
            return None;
        }
        let (unit, tail): (i128, &[u8]) = match tail {
            [b'n', b's', tail @ ..] => (1, tail),
            [b'u', b's', tail @ ..] | [0xc2, 0xb5, b's', tail @ ..] => (1_000, tail),
            [b'm', b's', tail @ ..] => (1_000_000, tail),
            [b's', tail @ ..] => (1_000_000_000, tail),
            [b'm', tail @ ..] => (60_000_000_000, tail),
            [b'h', tail @ ..] => (3_600_000_000_000, tail),
            _ => return None,
        };
        let part = fraction.checked_mul(unit)?.checked_div(10_i128.checked_pow(fractions)?)?;
        total = total.checked_add(whole.checked_mul(unit)?)?.checked_add(part)?;
        rest = tail;
    }
    Some(sign * total)
}

/// Leading digits: their value, their count, what follows.
fn number(bytes: &[u8]) -> Option<(i128, u32, &[u8])> {
    let count = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = bytes.split_at_checked(count)?;
    let value = digits.iter().try_fold(0_i128, |value, digit| {
        value.checked_mul(10)?.checked_add(i128::from(digit - b'0'))
    })?;
    Some((value, u32::try_from(count).ok()?, rest))
}

fn is_canonical(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    // Go writes the seconds always, and the larger units in order, without leading zeros.
    let units: [(char, bool); 3] = [('h', true), ('m', true), ('s', false)];
    let mut rest = text;
    for (unit, optional) in units {
        match rest.split_once(unit) {
            Some((digits, tail)) if is_amount(digits) => rest = tail,
            _ if optional && text.len() == rest.len() => {}
            _ => return false,
        }
    }
    rest.is_empty()
}

fn is_amount(digits: &str) -> bool {
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match digits.split_once('.') {
        Some((whole, fraction)) => plain(whole) && plain(fraction),
        None => plain(digits) && (digits == "0" || !digits.starts_with('0')),
    }
}

/// Whether both are the same instant in RFC 3339, to the second, as the API server stores it.
pub(crate) fn same_instant(a: &str, b: &str) -> bool {
    match (instant(a), instant(b)) {
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

/// Seconds since the epoch.
fn instant(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let field = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
    };
    let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    if !(is(4, b'-') && is(7, b'-') && is(10, b'T') && is(13, b':') && is(16, b':')) {
        return None;
    }
    let (year, month, day) = (field(0, 4)?, field(5, 7)?, field(8, 10)?);
    let seconds = field(11, 13)? * 3600 + field(14, 16)? * 60 + field(17, 19)?;
    let mut at = 19;
    if is(at, b'.') {
        at += 1 + bytes.get(at + 1..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    }
    let offset = match bytes.get(at) {
        Some(b'Z') if at + 1 == bytes.len() => 0,
        Some(sign @ (b'+' | b'-')) if at + 6 == bytes.len() && is(at + 3, b':') => {
            let minutes = field(at + 1, at + 3)? * 60 + field(at + 4, at + 6)?;
            if *sign == b'-' { -minutes * 60 } else { minutes * 60 }
        }
        _ => return None,
    };
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days from the civil calendar, with years that begin in March.
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let of_era = shifted.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(days * 86_400 + seconds - offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_equal_by_length_when_live_is_gos_own_spelling() {
        assert!(same_duration_rewritten("1h", "1h0m0s"));
        assert!(same_duration_rewritten("60s", "1m0s"));
        assert!(same_duration_rewritten("2160h", "2160h0m0s"));
        assert!(same_duration_rewritten("90m", "1h30m0s"));
        assert!(!same_duration_rewritten("1h0m0s", "1h"));
        assert!(!same_duration_rewritten("1h", "1h0m1s"));
        assert!(!same_duration_rewritten("1d", "24h0m0s"));
        assert!(!same_duration_rewritten("", "0s"));
    }

    #[test]
    fn instants_are_equal_across_offsets() {
        assert!(same_instant("2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00"));
        assert!(same_instant("2024-02-29T23:59:59.5Z", "2024-02-29T23:59:59Z"));
        assert!(same_instant("2023-12-31T23:30:00-01:00", "2024-01-01T00:30:00Z"));
        assert!(!same_instant("2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z"));
        assert!(!same_instant("2024-01-01", "2024-01-01"));
    }
}

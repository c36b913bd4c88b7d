//! Quantities and numbers as exact values: never floating point, no limit on digits.
//!
//! A text is read as `digits × 10^e × 2^b`; two are equal if what remains after taking out the
//! powers of ten is the same. Syntax and rounding are those of apimachinery's `resource.Quantity`
//! (`pkg/api/resource/quantity.go`): suffixes `n u m k M G T P E`, `Ki … Ei`, exponents, and what is
//! finer than a nano rounds away from zero.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::cmp::Ordering;

/// Whether two texts are the same quantity: `1000m` and `1`, `0.5` and `500m`, `1000M` and `1G`,
/// `1e3` and `1k`, but not `1G` and `1Gi`. A text that is no quantity equals only itself.
pub fn equal(a: &str, b: &str) -> bool {
    a == b || both(a, b, |text| Amount::read(text, true).map(Amount::rounded))
}

/// How two quantities stand to each other (`999Mi` is less than `1Gi`); `None` if one is none.
pub fn order(a: &str, b: &str) -> Option<Ordering> {
    let read = |text| Amount::read(text, true).map(Amount::rounded);
    Some(read(a)?.order(&read(b)?))
}

/// Whether two JSON numbers have the same value: `1`, `1.0` and `10e-1`.
pub fn number_equal(a: &str, b: &str) -> bool {
    a == b || both(a, b, |text| Amount::read(text, false))
}

fn both<'t>(a: &'t str, b: &'t str, read: impl Fn(&'t str) -> Option<Amount<'t>>) -> bool {
    match (read(a), read(b)) {
        (Some(a), Some(b)) => a.is_equal(b),
        _ => false,
    }
}

/// `digits × 10^ten`, negative or not; digits are ASCII, most significant first, without zeros at
/// either end (so zero has none).
struct Amount<'t> {
    negative: bool,
    digits: Cow<'t, [u8]>,
    ten: i64,
}

impl<'t> Amount<'t> {
    fn read(text: &'t str, suffixes: bool) -> Option<Self> {
        let (negative, rest) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] if suffixes => (false, rest),
            rest => (false, rest),
        };
        let end = rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'.'));
        let (number, suffix) = rest.split_at_checked(end.unwrap_or(rest.len()))?;
        let point = number.iter().position(|&byte| byte == b'.');
        let digits = match point {
            None => Cow::Borrowed(number),
            Some(point) => {
                let (whole, fraction) = number.split_at_checked(point)?;
                let fraction = fraction.get(1..)?;
                if fraction.contains(&b'.') {
                    return None;
                }
                match whole {
                    [] | [b'0'] => Cow::Borrowed(fraction),
                    _ => Cow::Owned([whole, fraction].concat()),
                }
            }
        };
        if digits.is_empty() && !number.iter().any(u8::is_ascii_digit) {
            return None;
        }
        let fraction = point.map_or(0, |point| number.len() - point - 1) as i64;
        let (ten, two) = scale(suffix, suffixes)?;
        let mut amount = Amount { negative, digits, ten: ten.saturating_sub(fraction) };
        for _ in 0..two / 10 {
            amount.multiply_by_1024();
        }
        amount.trim();
        Some(amount)
    }

    /// Takes zeros off both ends.
    fn trim(&mut self) {
        let leading = self.digits.iter().take_while(|&&digit| digit == b'0').count();
        let tail = self.digits.get(leading..).unwrap_or_default();
        let trailing = tail.iter().rev().take_while(|&&digit| digit == b'0').count();
        let kept = leading..self.digits.len() - trailing;
        self.ten = self.ten.saturating_add(trailing as i64);
        match &mut self.digits {
            Cow::Borrowed(digits) => *digits = digits.get(kept).unwrap_or_default(),
            Cow::Owned(digits) => {
                digits.truncate(kept.end);
                digits.drain(..kept.start);
            }
        }
        if self.digits.is_empty() {
            self.ten = 0;
            self.negative = false;
        }
    }

    fn multiply_by_1024(&mut self) {
        let digits = self.digits.to_mut();
        let mut carry: u32 = 0;
        for digit in digits.iter_mut().rev() {
            let value = u32::from(*digit - b'0') * 1024 + carry;
            *digit = b'0' + (value % 10) as u8;
            carry = value / 10;
        }
        let mut front = Vec::new();
        while carry > 0 {
            front.push(b'0' + (carry % 10) as u8);
            carry /= 10;
        }
        digits.splice(0..0, front.into_iter().rev());
    }

    /// Rounds what is finer than 10^-9 away from zero.
    fn rounded(mut self) -> Self {
        if self.ten >= -9 || self.digits.is_empty() {
            return self;
        }
        let cut = usize::try_from((-9_i64).saturating_sub(self.ten)).unwrap_or(usize::MAX);
        let keep = self.digits.len().saturating_sub(cut);
        // There were no zeros at the end, so what is cut off is not zero: up by one.
        let digits = self.digits.to_mut();
        digits.truncate(keep);
        let nines = digits.iter().rev().take_while(|&&digit| digit == b'9').count();
        digits.truncate(keep - nines);
        match digits.last_mut() {
            Some(last) => *last += 1,
            None => digits.push(b'1'),
        }
        self.ten = -9 + nines as i64;
        self.trim();
        self
    }

    fn order(&self, other: &Self) -> Ordering {
        // The place of the first digit; zero has none and lies below all.
        let top = |amount: &Self| match amount.digits.len() {
            0 => i64::MIN,
            length => amount.ten.saturating_add(length as i64),
        };
        let size = top(self).cmp(&top(other)).then_with(|| self.digits.cmp(&other.digits));
        match (self.negative, other.negative) {
            (false, false) => size,
            (true, true) => size.reverse(),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }

    fn is_equal(&self, other: Self) -> bool {
        self.negative == other.negative && self.ten == other.ten && self.digits == other.digits
    }
}

/// The powers of ten and of two that a suffix stands for.
fn scale(suffix: &[u8], suffixes: bool) -> Option<(i64, u32)> {
    if let [b'e' | b'E', exponent @ ..] = suffix
        && !exponent.is_empty()
        && exponent != b"i"
    {
        let text = core::str::from_utf8(exponent).ok()?;
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // Beyond this no two texts of a size that can be read are told apart wrongly.
        let limit = if text.starts_with('-') { i64::MIN / 4 } else { i64::MAX / 4 };
        return Some((text.parse().unwrap_or(limit).clamp(i64::MIN / 4, i64::MAX / 4), 0));
    }
    if suffix.is_empty() {
        return Some((0, 0));
    }
    if !suffixes {
        return None;
    }
    Some(match suffix {
        b"n" => (-9, 0),
        b"u" => (-6, 0),
        b"m" => (-3, 0),
        b"k" => (3, 0),
        b"M" => (6, 0),
        b"G" => (9, 0),
        b"T" => (12, 0),
        b"P" => (15, 0),
        b"E" => (18, 0),
        b"Ki" => (0, 10),
        b"Mi" => (0, 20),
        b"Gi" => (0, 30),
        b"Ti" => (0, 40),
        b"Pi" => (0, 50),
        b"Ei" => (0, 60),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_amount_in_other_words_is_equal() {
        for (a, b) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1000M", "1G"),
            ("1e3", "1k"),
            ("1E3", "1k"),
            ("1E", "1000P"),
            ("3072Mi", "3Gi"),
            ("1.5Gi", "1536Mi"),
            ("1.3Gi", "1395864371200m"),
            ("+1", "1"),
            ("-0", "0"),
            ("0Gi", "0"),
            ("1.", "1"),
            ("100000000000000000000000000001000m", "100000000000000000000000000001"),
            ("0.0000000001", "1n"),
            ("1.9999999999", "2"),
            ("1e-400000000000000000000", "1n"),
            ("16Ei", "18446744073709551616"),
        ] {
            assert!(equal(a, b), "{a} {b}");
            assert!(equal(b, a), "{b} {a}");
        }
    }

    #[test]
    fn another_amount_is_not_equal() {
        for (a, b) in [
            ("1G", "1Gi"),
            ("1", "1m"),
            ("1k", "1Ki"),
            ("-1", "1"),
            ("1", "10"),
            ("", "0"),
            ("a", "b"),
            ("1.2.3", "1"),
            ("1e", "1"),
            ("1ki", "1Ki"),
            ("9007199254740993", "9007199254740992"),
        ] {
            assert!(!equal(a, b), "{a} {b}");
        }
    }

    #[test]
    fn quantities_are_in_the_order_of_what_they_mean() {
        let ascending = [
            "-1Gi", "-1", "0", "1n", "1m", "0.9", "1", "999", "1k", "1Ki", "1e4", "1M", "1Mi",
            "1.5Mi", "1G", "1Gi", "1025Mi", "1T", "2Ti", "1E", "1Ei", "1e30",
        ];
        for (place, a) in ascending.iter().enumerate() {
            for (other, b) in ascending.iter().enumerate() {
                assert_eq!(order(a, b), Some(place.cmp(&other)), "{a} {b}");
            }
        }
        assert_eq!(order("3072Mi", "3Gi"), Some(Ordering::Equal));
        assert_eq!((order("lots", "1"), order("1", "1Zi")), (None, None));
    }

    #[test]
    fn numbers_are_equal_by_value_and_have_no_suffixes() {
        assert!(number_equal("1", "1.0"));
        assert!(number_equal("1e3", "1000"));
        assert!(number_equal("-0.0", "0"));
        assert!(!number_equal("1k", "1000"));
        assert!(!number_equal("1e-10", "1e-9"));
    }
}

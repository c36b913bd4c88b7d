//! What an unquoted YAML scalar means: the reading of the API server's own client.
//!
//! kubectl reads manifests through sigs.k8s.io/yaml, which resolves scalars as go-yaml v2 does:
//! YAML 1.1 with octal `0644`, underscores in numbers and words for booleans, but without base 60.
//! [`resolve`] follows its `resolve.go` step by step, with two differences, both on purpose:
//! whole numbers keep all their digits (Go rounds beyond 64 bits), and the words that YAML 1.1
//! takes for booleans and YAML 1.2 for text are given back as [`Scalar::Ambiguous`]. Even kubectl
//! is of two minds about those: `kubectl apply` reads `yes` as true, `kubectl kustomize` as text.

use std::borrow::Cow;

/// The meaning of one unquoted scalar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar<'a> {
    /// Empty, `~`, `null`.
    Null,
    /// `true`, `false` and their capitalised spellings.
    Bool(bool),
    /// A whole number as JSON text.
    Integer(Cow<'a, str>),
    /// A finite number.
    Float(f64),
    /// `.inf` or `.nan`, which JSON does not have.
    NotFinite,
    /// `yes`, `no`, `on`, `off`, `y`, `n`: a boolean to YAML 1.1, text to YAML 1.2.
    Ambiguous(bool),
    /// The text itself.
    Text,
}

/// Reads an unquoted scalar.
pub(crate) fn resolve(text: &str) -> Scalar<'_> {
    let Some(first) = text.bytes().next() else {
        return Scalar::Null;
    };
    match first {
        b'+' | b'-' | b'0'..=b'9' => {
            if let "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF" = text {
                return Scalar::NotFinite;
            }
            number(text)
        }
        b'.' => match text {
            ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN" => Scalar::NotFinite,
            _ => underscores(text).and_then(|plain| float(&plain)).unwrap_or(Scalar::Text),
        },
        b'~' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'y' | b'Y' | b'o' | b'O' => word(text),
        _ => Scalar::Text,
    }
}

fn word(text: &str) -> Scalar<'_> {
    match text {
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "true" | "True" | "TRUE" => Scalar::Bool(true),
        "false" | "False" | "FALSE" => Scalar::Bool(false),
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Scalar::Ambiguous(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Scalar::Ambiguous(false),
        _ => Scalar::Text,
    }
}

/// A number that starts with a sign or a digit; anything else is text (dates, `1.2.3`, `10m`).
fn number(text: &str) -> Scalar<'_> {
    let plain: Cow<'_, str> =
        if text.contains('_') { Cow::Owned(text.replace('_', "")) } else { Cow::Borrowed(text) };
    if let Some(integer) = integer(&plain) {
        return Scalar::Integer(match integer {
            Integer::AsWritten => plain,
            Integer::Value(value) => Cow::Owned(value),
        });
    }
    match float(&plain) {
        Some(Scalar::Float(value)) => Scalar::Float(value),
        _ => Scalar::Text,
    }
}

/// Without the underscores that stand between digits; `None` if one stands elsewhere. (Behind a
/// leading dot Go checks this, behind a leading digit go-yaml does not.)
fn underscores(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(Cow::Borrowed(text));
    }
    let parts: Vec<_> = text.split('_').collect();
    let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let separated = parts.windows(2).all(|pair| match pair {
        [before, after] => digit(before.as_bytes().last()) && digit(after.as_bytes().first()),
        _ => true,
    });
    separated.then(|| Cow::Owned(parts.concat()))
}

enum Integer {
    AsWritten,
    Value(String),
}

/// Go's `ParseInt(text, 0, 64)`, then `ParseUint`; decimal digits beyond that are kept as they are.
fn integer(plain: &str) -> Option<Integer> {
    let (sign, digits) = match plain.as_bytes().first()? {
        b'-' => ("-", plain.get(1..)?),
        b'+' => ("+", plain.get(1..)?),
        _ => ("", plain),
    };
    let all_decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if all_decimal && (digits == "0" || !digits.starts_with('0')) {
        return Some(match (sign, digits) {
            ("", _) => Integer::AsWritten,
            ("-", "0") | ("+", "0") => Integer::Value("0".to_owned()),
            ("-", _) => Integer::AsWritten,
            _ => Integer::Value(digits.to_owned()),
        });
    }
    let (base, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, digits.get(2..)?),
        [b'0', b'o' | b'O', _, ..] => (8, digits.get(2..)?),
        [b'0', b'b' | b'B', _, ..] => (2, digits.get(2..)?),
        [b'0', ..] => (8, digits.get(1..)?),
        _ => return None,
    };
    let value = digits
        .chars()
        .try_fold(0u64, |value, digit| {
            value.checked_mul(base)?.checked_add(digit.to_digit(base as u32)?.into())
        })
        .map(i128::from)
        .filter(|value| match sign {
            "-" => *value <= i128::from(i64::MIN.unsigned_abs()),
            "+" => *value <= i128::from(i64::MAX),
            _ => true,
        });
    match value {
        Some(value) if sign == "-" => Some(Integer::Value((-value).to_string())),
        Some(value) => Some(Integer::Value(value.to_string())),
        // `08` is no octal number, and Go then reads it as the decimal number 8.
        None if all_decimal => {
            let digits = digits.trim_start_matches('0');
            let digits = if digits.is_empty() { "0" } else { digits };
            Some(Integer::Value(format!("{}{digits}", sign.trim_matches('+'))))
        }
        None => None,
    }
}

/// go-yaml's `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`. What overflows stays text.
fn float(text: &str) -> Option<Scalar<'static>> {
    fn digits(text: &str) -> (usize, &str) {
        let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
        (text.len() - rest.len(), rest)
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, rest) = digits(unsigned);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => (0, rest),
    };
    if whole == 0 && fraction == 0 {
        return None;
    }
    let rest = match rest.strip_prefix(['e', 'E']) {
        Some(exponent) => {
            let (count, rest) = digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent));
            if count == 0 {
                return None;
            }
            rest
        }
        None => rest,
    };
    if !rest.is_empty() {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(Scalar::Float(value))
}

/// A finite number as Go's `encoding/json` writes it: the shortest text that reads back the same,
/// with an exponent below 1e-6 and from 1e21 on. (Where two shortest texts are equally near, Rust
/// and Go may choose differently: the number is the same.)
pub(crate) fn float_text(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = format!("{value:e}");
        return match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                format!("{digits}e+{exponent}")
            }
            _ => text,
        };
    }
    format!("{value}")
}

/// A JSON number as kubectl sends it on: `1.0` and `1e3` become `1` and `1000`, whole numbers stay
/// as they are; `None` for a number beyond 64-bit floating point.
pub(crate) fn json_number(text: &str) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return Some(Cow::Borrowed(text));
    }
    let value: f64 = text.parse().ok()?;
    value.is_finite().then(|| Cow::Owned(float_text(value)))
}

/// Whether a key that reads as this scalar is the text that it is spelled as. kubectl would turn
/// the key `1.20` into `1.2` and the key `on` into `true`.
pub(crate) fn key_is_literal(text: &str, scalar: &Scalar<'_>) -> bool {
    match scalar {
        Scalar::Text => true,
        Scalar::Bool(value) => text == if *value { "true" } else { "false" },
        Scalar::Integer(digits) => text == digits,
        // Keys pass through 32-bit floating point there.
        #[allow(clippy::cast_possible_truncation)]
        Scalar::Float(value) => {
            (1e-4..1e21).contains(&value.abs()) && text == format!("{}", *value as f32)
        }
        Scalar::Null | Scalar::NotFinite | Scalar::Ambiguous(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scalar as the JSON text that it becomes; `!` for what is refused.
    fn read(text: &str) -> String {
        match resolve(text) {
            Scalar::Null => "null".into(),
            Scalar::Bool(value) => value.to_string(),
            Scalar::Integer(digits) => digits.into_owned(),
            Scalar::Float(value) => float_text(value),
            Scalar::NotFinite => "!not finite".into(),
            Scalar::Ambiguous(value) => format!("!ambiguous {value}"),
            Scalar::Text => format!("{text:?}"),
        }
    }

    fn check(cases: &[(&str, &str)]) {
        for (text, expected) in cases {
            assert_eq!(read(text), *expected, "reading {text}");
        }
    }

    #[test]
    fn whole_numbers_are_read_as_kubectl_reads_them() {
        check(&[
            ("7", "7"),
            ("+7", "7"),
            ("-7", "-7"),
            ("-0", "0"),
            ("0640", "416"),
            ("-010", "-8"),
            ("0o640", "416"),
            ("0O17", "15"),
            ("0x1f", "31"),
            ("0XFF", "255"),
            ("0b101", "5"),
            ("2_500", "2500"),
            ("2__5", "25"),
            ("0_", "0"),
            ("012_3", "83"),
            ("08", "8"),
            ("009", "9"),
            ("0o9", "\"0o9\""),
            ("0x", "\"0x\""),
            ("_1", "\"_1\""),
        ]);
    }

    #[test]
    fn large_whole_numbers_keep_every_digit() {
        check(&[
            ("9223372036854775807", "9223372036854775807"),
            ("18446744073709551615", "18446744073709551615"),
            ("18446744073709551617", "18446744073709551617"),
            ("-98765432109876543210987", "-98765432109876543210987"),
            ("0xffffffffffffffff", "18446744073709551615"),
            ("0x10000000000000000", "\"0x10000000000000000\""),
        ]);
    }

    #[test]
    fn fractions_are_written_as_go_writes_them() {
        check(&[
            ("1.0", "1"),
            ("1.", "1"),
            (".5", "0.5"),
            ("+.5", "0.5"),
            ("-2.50", "-2.5"),
            ("1e3", "1000"),
            ("1.5e+3", "1500"),
            ("1E-7", "1e-7"),
            ("2.5e21", "2.5e+21"),
            ("0.1000000000000000055511151231257827", "0.1"),
            ("-0.0", "-0"),
            ("1e400", "\"1e400\""),
            ("12e", "\"12e\""),
            (".", "\".\""),
            (".5_0", "0.5"),
            (".5__0", "\".5__0\""),
        ]);
    }

    #[test]
    fn words_that_yaml_versions_disagree_on_are_ambiguous() {
        for word in "y Y yes Yes YES on On ON".split(' ') {
            assert_eq!(resolve(word), Scalar::Ambiguous(true), "{word}");
        }
        for word in "n N no No NO off Off OFF".split(' ') {
            assert_eq!(resolve(word), Scalar::Ambiguous(false), "{word}");
        }
        check(&[("yEs", "\"yEs\""), ("none", "\"none\""), ("True", "true")]);
    }

    #[test]
    fn nothing_else_is_more_than_text() {
        check(&[
            ("", "null"),
            ("~", "null"),
            ("NULL", "null"),
            ("nUll", "\"nUll\""),
            ("=", "\"=\""),
            ("2026-11-30", "\"2026-11-30\""),
            ("190:20:30", "\"190:20:30\""),
            ("100m", "\"100m\""),
            ("1.2.3", "\"1.2.3\""),
            ("10.0.0.1", "\"10.0.0.1\""),
            ("-", "\"-\""),
            ("--flag", "\"--flag\""),
            ("0x1.8p1", "\"0x1.8p1\""),
            (".inf", "!not finite"),
            ("-.INF", "!not finite"),
            (".NaN", "!not finite"),
        ]);
    }

    #[test]
    fn a_key_is_literal_only_if_its_reading_is_its_spelling() {
        for (key, literal) in [
            ("app", true),
            ("8080", true),
            ("1.5", true),
            ("true", true),
            ("1.20", false),
            ("0x10", false),
            ("True", false),
            ("on", false),
            ("null", false),
            ("16777217.5", false),
        ] {
            assert_eq!(key_is_literal(key, &resolve(key)), literal, "{key}");
        }
    }
}

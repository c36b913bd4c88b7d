//! The parser and the writers against a table of texts, and against serde_json as the oracle.

use proptest::prelude::*;
use serde_json::Value as Oracle;
use trimtab_json::{ErrorKind, MAX_DEPTH, Object, Value, canonical, parse, write};

fn kind(text: &str) -> ErrorKind {
    parse(text.as_bytes()).expect_err(text).kind
}

fn text(value: &Value<'_>) -> String {
    let mut out = Vec::new();
    write(value, &mut out);
    String::from_utf8(out).unwrap()
}

fn canon(value: &Value<'_>) -> String {
    let mut out = Vec::new();
    canonical(value, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn each_fault_has_its_kind() {
    for (text, expected) in [
        ("", ErrorKind::UnexpectedEnd),
        ("  ", ErrorKind::UnexpectedEnd),
        ("nul", ErrorKind::ExpectedValue),
        ("\u{feff}{}", ErrorKind::ExpectedValue),
        ("{\"a\":1,}", ErrorKind::ExpectedKey),
        ("{a:1}", ErrorKind::ExpectedKey),
        ("{\"a\" 1}", ErrorKind::ExpectedColon),
        ("[1 2]", ErrorKind::ExpectedCommaOrEnd),
        ("[1,]", ErrorKind::ExpectedValue),
        ("[1", ErrorKind::UnexpectedEnd),
        ("{\"a\"", ErrorKind::UnexpectedEnd),
        ("01", ErrorKind::Number),
        ("-", ErrorKind::Number),
        ("1.", ErrorKind::Number),
        ("1e", ErrorKind::Number),
        ("\"\\x\"", ErrorKind::Escape),
        ("\"\\u12\"", ErrorKind::Escape),
        ("\"a\nb\"", ErrorKind::ControlCharacter),
        ("\"abcdefghijk\u{1}\"", ErrorKind::ControlCharacter),
        ("\"open", ErrorKind::UnexpectedEnd),
        ("1 1", ErrorKind::TrailingBytes),
        ("{} x", ErrorKind::TrailingBytes),
    ] {
        assert_eq!(kind(text), expected, "{text:?}");
    }
    assert_eq!(parse(b"\"\xff\"").unwrap_err().kind, ErrorKind::Utf8);
}

#[test]
fn a_duplicate_key_is_named_with_its_place() {
    let error = parse(br#"{"a":1,"b":{"c":1,"c":2}}"#).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DuplicateKey("c".into()));
    assert_eq!(error.offset, 18);
    assert_eq!(error.to_string(), "the key \"c\" is stated twice, at byte 18");
    assert_eq!(kind(r#"{"a":1,"\u0061":2}"#), ErrorKind::DuplicateKey("a".into()));
}

#[test]
fn a_duplicate_key_among_ten_thousand_is_found() {
    let mut text = String::from("{");
    for number in 0..10_000 {
        text.push_str(&format!("\"key-{number}\":{number},"));
    }
    let unique = format!("{text}\"last\":1}}");
    assert_eq!(parse(unique.as_bytes()).unwrap().as_object().unwrap().len(), 10_001);
    let offset = text.len();
    let error = parse(format!("{text}\"key-7\":1}}").as_bytes()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DuplicateKey("key-7".into()));
    assert_eq!(error.offset, offset);
}

#[test]
fn nesting_ends_at_the_limit() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
    assert_eq!(kind(&nested(MAX_DEPTH + 1)), ErrorKind::TooDeep);
    assert_eq!(kind(&"{\"a\":".repeat(100_000)), ErrorKind::TooDeep);
}

#[test]
fn surrogates_pair_up_and_lone_ones_are_replaced_as_in_go() {
    for (text, expected) in [
        (r#""\ud83d\ude00""#, "\u{1f600}"),
        (r#""\ud83d""#, "\u{fffd}"),
        (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
        (r#""\ud83dx""#, "\u{fffd}x"),
        (r#""\ud83d\u0041""#, "\u{fffd}A"),
    ] {
        assert_eq!(parse(text.as_bytes()).unwrap(), Value::from(expected), "{text}");
    }
}

#[test]
fn numbers_keep_their_text() {
    for number in ["0", "-0", "1.0", "1e400", "12345678901234567890123456789", "1E-7"] {
        assert_eq!(text(&parse(number.as_bytes()).unwrap()), number);
    }
}

#[test]
fn canonical_sorts_within_and_write_keeps_the_order() {
    let value = parse(br#"{"b":{"z":1,"a":[{"y":1,"x":2}]},"a":null}"#).unwrap();
    assert_eq!(text(&value), r#"{"b":{"z":1,"a":[{"y":1,"x":2}]},"a":null}"#);
    assert_eq!(canon(&value), r#"{"a":null,"b":{"a":[{"x":2,"y":1}],"z":1}}"#);
}

#[test]
fn objects_are_built_in_place_and_in_order() {
    let mut object = Object::new().with("b", 1_i64).with("a", true);
    assert_eq!(object.insert("b", "two"), Some(Value::from(1_i64)));
    assert_eq!(object.insert("c", Value::Null), None);
    assert_eq!(object.remove("a"), Some(Value::Bool(true)));
    assert_eq!(text(&Value::Object(object.clone())), r#"{"b":"two","c":null}"#);
    object.insert("a", Vec::new());
    object.sort();
    assert_eq!(text(&Value::Object(object)), r#"{"a":[],"b":"two","c":null}"#);
}

#[test]
fn strings_without_escapes_are_borrowed() {
    let source = br#"{"plain text of some length":"and its value"}"#;
    let value = parse(source).unwrap();
    let within = |text: &str| source.as_ptr_range().contains(&text.as_ptr());
    let (key, value) = value.as_object().unwrap().member(0).unwrap();
    assert!(within(key));
    assert!(within(value.as_str().unwrap()));
}

fn json() -> impl Strategy<Value = Oracle> {
    let leaf = prop_oneof![
        Just(Oracle::Null),
        any::<bool>().prop_map(Oracle::from),
        any::<i64>().prop_map(Oracle::from),
        any::<u64>().prop_map(Oracle::from),
        any::<String>().prop_map(Oracle::from),
        "[a-z\\\\\"\u{0}-\u{1f}é😀]{0,24}".prop_map(Oracle::from),
    ];
    leaf.prop_recursive(5, 64, 24, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..24).prop_map(Oracle::from),
            prop::collection::btree_map(any::<String>(), inner, 0..24)
                .prop_map(|members| Oracle::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back_the_same_by_both_parsers(oracle in json()) {
        for source in [oracle.to_string(), serde_json::to_string_pretty(&oracle).unwrap()] {
            let value = parse(source.as_bytes()).unwrap();
            let written = text(&value);
            prop_assert_eq!(&serde_json::from_str::<Oracle>(&written).unwrap(), &oracle);
            prop_assert_eq!(&parse(written.as_bytes()).unwrap(), &value);
            prop_assert_eq!(&serde_json::from_str::<Oracle>(&canon(&value)).unwrap(), &oracle);
            prop_assert_eq!(value.clone().into_owned(), value);
        }
    }

    #[test]
    fn what_the_oracle_refuses_is_refused(source in "[\\[\\]{},:\"a1 .e+\\\\ntrue-]{0,20}") {
        let ours = parse(source.as_bytes());
        let theirs = serde_json::from_str::<Oracle>(&source);
        match ours {
            Ok(_) => prop_assert!(theirs.is_ok() || source.contains('e'), "{source}"),
            Err(error) if matches!(error.kind, ErrorKind::DuplicateKey(_)) => {}
            Err(_) => prop_assert!(theirs.is_err(), "{source}"),
        }
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }
}

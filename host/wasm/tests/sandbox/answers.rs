//! Answers that are too large or not valid: refused as a whole.

use crate::guest::{answer_unknown, compare, load};
use trimtab_core::decision::{Comparison, DifferenceKind};
use trimtab_core::ports::PluginFault;
use trimtab_wasm::{Limits, Plugin};

/// Answers `different` with this list.
fn answer_different(at: u32, length: u32) -> String {
    format!(
        "(i32.store8 (i32.const 1024) (i32.const 1))
         (i32.store (i32.const 1028) (i32.const {at}))
         (i32.store (i32.const 1032) (i32.const {length}))"
    )
}

/// One difference at 2048 with this path and desired value.
fn one_difference(path: &str, desired: &str) -> Plugin {
    let text = |text: &str| text.replace('"', "\\22");
    let data = format!(
        r#"(data (i32.const 4096) "{}") (data (i32.const 5120) "{}")"#,
        text(path),
        text(desired)
    );
    let store = format!(
        "(i32.store (i32.const 2048) (i32.const 4096))
         (i32.store (i32.const 2052) (i32.const {}))
         (i32.store8 (i32.const 2056) (i32.const 1))
         (i32.store8 (i32.const 2060) (i32.const 1))
         (i32.store (i32.const 2064) (i32.const 5120))
         (i32.store (i32.const 2068) (i32.const {}))
         {}",
        path.len(),
        desired.len(),
        answer_different(2048, 1)
    );
    load(&data, &store)
}

fn invalid(plugin: &Plugin) -> String {
    match compare(plugin) {
        Err(PluginFault::Invalid(text)) => text,
        other => panic!("not invalid: {other:?}"),
    }
}

fn limit(plugin: &Plugin) -> String {
    match compare(plugin) {
        Err(PluginFault::Limit(text)) => text,
        other => panic!("no limit: {other:?}"),
    }
}

#[test]
fn a_difference_arrives_as_it_was_answered() {
    let Ok(Comparison::Different(all)) = compare(&one_difference("/data/a", r#"{"x":1}"#)) else {
        panic!("no difference");
    };
    assert_eq!(all.len(), 1);
    assert_eq!((&*all[0].path, all[0].kind), ("/data/a", DifferenceKind::Missing));
    assert_eq!(all[0].desired.as_deref(), Some(&br#"{"x":1}"#[..]));
    assert_eq!(all[0].live, None);
}

#[test]
fn different_without_a_difference_is_invalid() {
    assert!(invalid(&load("", &answer_different(2048, 0))).contains("without a difference"));
}

#[test]
fn a_path_or_value_that_does_not_parse_is_invalid() {
    assert!(invalid(&one_difference("data", "1")).contains("begins with '/'"));
    assert!(invalid(&one_difference("/a", "{")).contains("not one JSON value"));
    assert!(invalid(&one_difference("/a", r#"{"k":1,"k":2}"#)).contains("twice"));
    assert!(invalid(&one_difference("/a", "1 2")).contains("not one JSON value"));
}

#[test]
fn text_that_is_not_utf8_and_numbers_that_name_no_case_are_invalid() {
    let data = r#"(data (i32.const 4096) "\ff\fe")"#;
    assert!(invalid(&load(data, &answer_unknown(4096, 2))).contains("utf-8"));
    invalid(&load("", "(i32.store8 (i32.const 1024) (i32.const 9))"));
    invalid(&load("", &answer_unknown(u32::MAX - 8, 4)));
    invalid(&load("", &answer_different(2048, u32::MAX)));
}

#[test]
fn an_answer_of_many_megabytes_is_a_limit_before_it_is_copied() {
    let grow = "(drop (memory.grow (i32.const 512)))";
    let huge = format!("{grow} {}", answer_unknown(65536, 20 << 20));
    assert!(limit(&load("", &huge)).contains("at once"));
    let many = format!("{grow} {}", answer_different(65536, 500_000));
    assert!(limit(&load("", &many)).contains("at once"));
}

#[test]
fn an_answer_beyond_its_cap_is_a_limit() {
    let long = answer_unknown(131_072, 5000);
    assert!(limit(&load("", &long)).contains("5000 bytes"));
    let limits = Limits { output_bytes: 10, ..Limits::default() };
    assert!(limit(&one_difference("/data/a", "12345").with_limits(limits)).contains("10 bytes"));
    assert!(compare(&one_difference("/d/a", "123").with_limits(limits)).is_ok());
}

#[test]
fn a_reason_is_shown_without_its_control_characters() {
    let data = r#"(data (i32.const 4096) "a\0ab\1b[31m")"#;
    assert_eq!(
        compare(&load(data, &answer_unknown(4096, 8))),
        Ok(Comparison::Unknown("a\\nb\\u{1b}[31m".into()))
    );
}

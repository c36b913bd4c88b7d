//! Texts in, JSON out: what a document becomes, and what is refused where.

use super::documents;
use crate::limits::{MAX_ALIAS_BYTES, MAX_DEPTH};

/// The documents as JSON, one a line; or the problem as it is shown.
fn read(name: &str, text: &str) -> String {
    match documents(name, text.as_bytes()) {
        Ok(documents) => {
            let lines: Vec<_> =
                documents.iter().map(|document| String::from_utf8_lossy(&document.json)).collect();
            lines.join("\n")
        }
        Err(fault) => fault.in_file(&name.into()).to_string(),
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(read("a.yaml", text), expected, "reading {text:?}");
}

/// The text is refused with this code, on this line, at this path.
#[track_caller]
fn refused(text: &str, code: &str, line: u32, path: Option<&str>) {
    match documents("a.yaml", text.as_bytes()) {
        Ok(read) => panic!("{text:?} was read: {read:?}"),
        Err(fault) => {
            let is = (fault.code.as_str(), fault.line, fault.path.as_deref());
            assert_eq!(is, (code, Some(line), path), "reading {text:?}");
            assert!(!fault.remedy.is_empty());
        }
    }
}

#[test]
fn scalars_keep_their_kind_only_when_unquoted() {
    check(
        "mode: 0600\ntext: '0600'\non: true".replace("on", "lit").as_str(),
        r#"{"mode":384,"text":"0600","lit":true}"#,
    );
    check(
        "a: \"true\"\nb: |\n  12\nc: >-\n  null\nd: !!str 12\ne: ! no\nf: =",
        r#"{"a":"true","b":"12\n","c":"null","d":"12","e":"no","f":"="}"#,
    );
    check("a: !!bool yes\nb: !!int \"7\"\nc: !!float 7", r#"{"a":true,"b":7,"c":7}"#);
    check("a:\nb: ~\nc: ''", r#"{"a":null,"b":null,"c":""}"#);
    check("day: 2026-11-30\nspan: 12:30:45", r#"{"day":"2026-11-30","span":"12:30:45"}"#);
}

#[test]
fn numbers_beyond_64_bits_are_not_rounded() {
    check("w: 36893488147419103232", r#"{"w":36893488147419103232}"#);
    check(
        r#"{"w": 36893488147419103232, "f": 2.50, "e": 1e3}"#,
        r#"{"w":36893488147419103232,"f":2.5,"e":1000}"#,
    );
}

#[test]
fn a_word_that_yaml_versions_read_differently_asks_for_quotes() {
    for word in ["yes", "No", "ON", "off", "y", "N"] {
        let text =
            format!("spec:\n  crew:\n  - name: mate\n    args:\n    - --watch\n    - {word}\n");
        refused(&text, "yaml_ambiguous_scalar", 6, Some("/spec/crew/[name=mate]/args/1"));
        check(&format!("a: '{word}'"), &format!(r#"{{"a":"{word}"}}"#));
    }
    check(
        "a: |\n  on\n  no\nb: go on\nc: \"y\"",
        "{\"a\":\"on\\nno\\n\",\"b\":\"go on\",\"c\":\"y\"}",
    );
    let shown = read("a.yaml", "lamp: on");
    assert!(shown.contains("write \"on\" for text, or true for the boolean"), "{shown}");
}

#[test]
fn a_key_that_readers_rewrite_asks_for_quotes() {
    refused("data:\n  on: a", "yaml_ambiguous_scalar", 2, Some("/data"));
    refused("data: {1.20: a}", "yaml_ambiguous_scalar", 1, Some("/data"));
    refused("data: {010: a}", "yaml_ambiguous_scalar", 1, Some("/data"));
    refused("data: {~: a}", "syntax", 1, Some("/data"));
    refused("data: {[a]: b}", "syntax", 1, Some("/data"));
    check("8080: a\ntrue: b\n'on': c", r#"{"8080":"a","true":"b","on":"c"}"#);
}

#[test]
fn a_key_stated_twice_names_both_lines_and_the_key() {
    refused("data:\n  lamp: '1'\n  horn: '2'\n  lamp: '3'", "yaml_duplicate_key", 4, Some("/data"));
    let shown = read("a.yaml", "lamp: 1\n\nlamp: 2");
    assert!(shown.contains("the key \"lamp\" is stated twice, first on line 1"), "{shown}");
    refused("'7': a\n7: b", "yaml_duplicate_key", 2, None);
    refused("{\"a\": 1,\n \"a\": 2}", "yaml_duplicate_key", 2, None);
    assert!(read("a.json", "{\"a\": 1,\n \"a\": 2}").starts_with("a.json:2: "));
    check("- a: 1\n- a: 2", r#"[{"a":1},{"a":2}]"#);
}

#[test]
fn documents_without_content_are_left_out() {
    check("", "");
    check("# nothing\n", "");
    check("---\n---\n# words\n---\na: 1\n---\n# end\n...\n", r#"{"a":1}"#);
    check("--- ~\n", "null");
    check("--- # first\na: 1\n--- {b: 2}\n", "{\"a\":1}\n{\"b\":2}");
}

#[test]
fn every_document_knows_its_line_and_those_of_its_items() {
    let text = "# head\n---\n\nkind: List\nitems:\n- a: 1\n# between\n-\n  b: 2\n---\nc: 3\n";
    let lines: Vec<_> = documents("a.yaml", text.as_bytes())
        .unwrap()
        .into_iter()
        .map(|document| (document.line, document.item_lines))
        .collect();
    assert_eq!(lines, [(4, vec![6, 9]), (11, vec![])]);
    let text = "\n{\"kind\": \"List\", \"items\": [\n{\"a\": [{}]},\n\n{\"b\": 2}\n]}\n\n{}";
    let lines: Vec<_> = documents("a.json", text.as_bytes())
        .unwrap()
        .into_iter()
        .map(|document| (document.line, document.item_lines))
        .collect();
    assert_eq!(lines, [(2, vec![3, 5]), (8, vec![])]);
}

#[test]
fn line_ends_and_byte_order_marks_make_no_difference() {
    check("a: 1\r\n---\r\nb: |\r\n  x\r\n  y\r\n", "{\"a\":1}\n{\"b\":\"x\\ny\\n\"}");
    check("\u{feff}a: 1\n", r#"{"a":1}"#);
    assert_eq!(read("a.json", "\u{feff}{\"a\":\r\n1}"), r#"{"a":1}"#);
    assert!(read("a.yaml", "a: 1\nb: \t c\n").contains(r#""b":"c""#));
}

#[test]
fn line_ends_of_old_yaml_alone_are_ambiguous() {
    for character in ['\u{85}', '\u{2028}', '\u{2029}'] {
        refused(&format!("a: 1\nb: 2 # {character}c: 3"), "yaml_ambiguous_scalar", 2, None);
        check(&format!("{{\"a\": \"{character}\"}}"), &format!("{{\"a\":\"{character}\"}}"));
    }
    check("a: \"\\L\"", "{\"a\":\"\u{2028}\"}");
}

#[test]
fn bytes_that_are_no_utf8_name_their_line() {
    let fault = documents("a.yaml", b"a: 1\nb: \xff\n").unwrap_err();
    assert_eq!((fault.line, fault.message.as_str()), (Some(2), "not valid UTF-8"));
    assert!(documents("a.yaml", &[0xfe, 0xff, 0, b'a']).is_err());
}

#[test]
fn broken_yaml_names_its_line_and_what_to_do() {
    refused("a:\n\tb: 1", "syntax", 2, None);
    assert!(read("a.yaml", "a:\n\tb: 1").contains("indent with spaces"));
    refused("a: 1\nb: [1, 2\nc: 3", "syntax", 3, None);
    refused("a: b: c", "syntax", 1, None);
    refused("a: 'open", "syntax", 1, None);
    refused("a: 1\n  b: 2", "syntax", 2, None);
    refused("a: @home", "syntax", 1, None);
    refused("a: *nobody", "syntax", 1, None);
    refused("a: \0", "syntax", 1, None);
    refused(" a: 1\nb: 2", "syntax", 2, None);
    refused("a: 1\n\u{feff}b: 2", "syntax", 2, None);
    assert!(read("a.yaml", "replicas: {{ .Values.replicas }}").contains("must be rendered"));
}

#[test]
fn numbers_that_json_lacks_and_foreign_tags_are_refused() {
    refused("a: {b: .inf}", "syntax", 1, Some("/a/b"));
    refused("a: .NaN", "syntax", 1, Some("/a"));
    refused("a: !!binary aGFyYm91cg==", "yaml_unsupported_tag", 1, None);
    refused("a: !Ref b", "yaml_unsupported_tag", 1, None);
    refused("a: !!set {b}", "yaml_unsupported_tag", 1, None);
    refused("a: !!int high", "syntax", 1, None);
    check("a: !!map {b: !!seq [1]}", r#"{"a":{"b":[1]}}"#);
}

#[test]
fn aliases_are_copies() {
    check(
        "a: &x {k: [1, &y two]}\nb: *x\nc: *y",
        r#"{"a":{"k":[1,"two"]},"b":{"k":[1,"two"]},"c":"two"}"#,
    );
    check("&k lamp: on-deck\nname: *k", r#"{"lamp":"on-deck","name":"lamp"}"#);
    refused("a: &x [1, *x]", "syntax", 1, Some("/a/1"));
    refused("a: &x 1\n---\nb: *x", "syntax", 3, None);
}

#[test]
fn merge_keys_join_their_mapping_which_has_the_last_word() {
    let base = "base: &b {port: 1, host: h}\n";
    let read = |rest: &str| {
        read("a.yaml", &format!("{base}{rest}")).replace(r#""base":{"port":1,"host":"h"},"#, "")
    };
    assert_eq!(read("use: {<<: *b, port: 2}"), r#"{"use":{"port":2,"host":"h"}}"#);
    assert_eq!(read("use:\n  <<: *b"), r#"{"use":{"port":1,"host":"h"}}"#);
    assert_eq!(read("use: {<<: [{port: 3}, *b], x: 4}"), r#"{"use":{"x":4,"port":3,"host":"h"}}"#);
    assert_eq!(
        read("use: {<<: &in {deep: &d [1]}, a: *d}\nagain: *in"),
        r#"{"use":{"a":[1],"deep":[1]},"again":{"deep":[1]}}"#
    );
    check("'<<': 1", r#"{"<<":1}"#);
    refused("a: {<<: 1}", "syntax", 1, Some("/a"));
    refused("a: {<<: {b: 1}, <<: {c: 1}}", "yaml_duplicate_key", 1, Some("/a"));
}

#[test]
fn a_merge_behind_the_key_that_it_overrides_is_ambiguous() {
    let text = "base: &b {port: 1}\nuse:\n  port: 2\n  <<: *b\n";
    refused(text, "yaml_ambiguous_scalar", 4, Some("/use"));
}

#[test]
fn a_yaml_bomb_is_stopped_by_what_it_expands_to() {
    let mut text = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 8].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let started = std::time::Instant::now();
    match documents("a.yaml", text.as_bytes()) {
        Err(fault) => assert_eq!(fault.code.as_str(), "too_large"),
        Ok(_) => panic!("more than {MAX_ALIAS_BYTES} bytes of aliases were accepted"),
    }
    assert!(started.elapsed().as_secs() < 5);
    let merges =
        (0..3000).fold(String::from("m0: &m0 {k: vvvvvvvvvvvvvvvvvvvvvvvv}\n"), |text, n| {
            format!("{text}m{}: &m{} {{<<: *m{n}, k{n}: {}}}\n", n + 1, n + 1, "v".repeat(40))
        });
    assert!(documents("a.yaml", merges.as_bytes()).is_err());
}

#[test]
fn merges_and_anchors_by_the_thousand_cost_no_more_than_their_size() {
    let text: String =
        (0..30_000).map(|n| format!("k{n}: &a{n} {{<<: &b{n} {{}}, x: 1}}\n")).collect();
    let started = std::time::Instant::now();
    assert!(documents("a.yaml", text.as_bytes()).is_ok());
    assert!(started.elapsed().as_secs() < 2, "{:?}", started.elapsed());
    let many = "---\na\n".repeat(crate::limits::MAX_DOCUMENTS + 1);
    assert_eq!(documents("a.yaml", many.as_bytes()).unwrap_err().code.as_str(), "too_large");
    assert_eq!(
        documents("a.json", "{}".repeat(crate::limits::MAX_DOCUMENTS + 1).as_bytes())
            .unwrap_err()
            .code
            .as_str(),
        "too_large"
    );
}

#[test]
fn nesting_is_limited_in_every_notation() {
    let deep = MAX_DEPTH + 1;
    for text in [
        "[".repeat(deep),
        "{a: ".repeat(deep),
        "- ".repeat(deep) + "x",
        (0..deep).map(|n| format!("{}a:\n", " ".repeat(n))).collect::<String>()
            + &" ".repeat(deep)
            + "b",
        "- ".repeat(100) + &"[".repeat(100),
        "[".repeat(1_000_000),
        format!("{{\"a\": {}{}}}", "[".repeat(deep), "]".repeat(deep)),
    ] {
        assert!(documents("a.yaml", text.as_bytes()).is_err(), "{}", text.get(..40).unwrap());
    }
    let fits = MAX_DEPTH;
    let text = format!("{}{}", "[".repeat(fits), "]".repeat(fits));
    check(&text, &text);
}

#[test]
fn json_is_read_as_json() {
    check(
        r#"{"a": "\ud83d\ude80\/", "b": [1, -2.0, true, null]}"#,
        r#"{"a":"🚀/","b":[1,-2,true,null]}"#,
    );
    check("{\"a\": 1}\n{\"b\": 2}", "{\"a\":1}\n{\"b\":2}");
    check("{\"a\": 1}\n---\n{\"b\": 2}", "{\"a\":1}\n{\"b\":2}");
    check("{a: 1}", r#"{"a":1}"#);
    check(&format!("{{\"{}\": 1}}", "k".repeat(2000)), &format!("{{\"{}\":1}}", "k".repeat(2000)));
    assert_eq!(read("a.json", "{\n\t\"a\":\t1\n}"), r#"{"a":1}"#);
    assert!(read("a.json", "{\"a\": 1,\n\"b\": }").starts_with("a.json:2: not valid JSON"));
    assert!(read("a.json", "{a: 1}").starts_with("a.json:1: not valid JSON"));
    assert!(read("a.json", "{\"a\": \"open").contains("[syntax]"));
    assert!(read("a.json", "{}}").contains("[syntax]"));
    assert_eq!(read("a.json", " \n"), "");
}

#[test]
fn no_value_of_a_file_stands_in_a_message() {
    for text in [
        "token: !!binary c2VjcmV0",
        "token: {secret: [}",
        "token: 'secret",
        "{\"token\": \"secret\", \"token\": \"secret\"}",
        "token: secret: secret",
    ] {
        let shown = read("a.yaml", text);
        assert!(!shown.contains("secret") && !shown.contains("c2Vj"), "{shown}");
    }
}

//! Values of Secrets are found in every spelling, in part, and nowhere where they are not.

use super::*;
use crate::identity::GroupKind;
use proptest::prelude::*;

const VALUE: &str = "Zk3-canary/5b1F27+qwX9";

fn secret_key() -> ObjectKey {
    ObjectKey::new(GroupKind::new("", "Secret"), "shop", "db")
}

fn config_map() -> ObjectKey {
    ObjectKey::new(GroupKind::new("", "ConfigMap"), "shop", "c")
}

fn index_of(value: &[u8]) -> Index {
    let data = trimtab_compare::encode_base64(value);
    let json = format!(r#"{{"kind":"Secret","data":{{"password":"{data}"}}}}"#);
    Index::new(&[7; 32], [(&secret_key(), json.as_bytes())])
}

fn stands(index: &Index, text: &str) -> bool {
    index.find(text.as_bytes()).is_some()
}

#[test]
fn a_value_is_found_in_every_spelling_within_other_text() {
    let index = index_of(VALUE.as_bytes());
    let base64 = |text: &str| trimtab_compare::encode_base64(text.as_bytes());
    let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    for text in [
        VALUE.to_owned(),
        base64(VALUE),
        base64(&format!("a{VALUE}z")),
        base64(&format!("url: postgres://u:{VALUE}@db")),
        base64(&format!("ab{VALUE}")).replace('+', "-").replace('/', "_"),
        hex.to_uppercase(),
        hex,
        VALUE.replace('/', "%2F").replace('+', "%2B"),
    ] {
        assert!(stands(&index, &format!("x {text} y")), "{text}");
    }
    assert_eq!(index.find(VALUE.as_bytes()), Some("Secret shop/db, key password"));
}

#[test]
fn a_part_of_16_bytes_is_found_wherever_it_begins_and_one_of_15_is_not() {
    let index = index_of(VALUE.as_bytes());
    for from in 0..=VALUE.len() - PART {
        assert!(stands(&index, &format!("<{}>", &VALUE[from..from + PART])), "from {from}");
    }
    assert!(!stands(&index, &VALUE[..15]));
    assert!(!stands(&index, "Zk3-canary/5b1F 27+qwX9"));
}

#[test]
fn a_short_password_is_found_whole() {
    let index = index_of(b"hunter2!X");
    assert!(stands(&index, "postgres://u:hunter2!X@db"));
    assert!(stands(&index, &trimtab_compare::encode_base64(b"hunter2!X")));
    assert!(!stands(&index, "hunter2!"));
}

#[test]
fn places_are_named_and_values_are_not() {
    let index = index_of(VALUE.as_bytes());
    let text = format!(
        r#"{{"metadata":{{"annotations":{{"a/b":"{VALUE}"}},"managedFields":[{{"x":"{VALUE}"}}]}},"data":{{"url":"u:{VALUE}@db","plain":"x"}},"spec":{{"containers":[{{"env":[{{"name":"P","value":"{VALUE}"}}]}}]}}}}"#
    );
    let places = look(&index, &config_map(), text.as_bytes(), Side::Live, false);
    let paths: Vec<&str> = places.iter().map(|place| place.path.as_str()).collect();
    assert_eq!(
        paths,
        ["/metadata/annotations/a~1b", "/data/url", "/spec/containers/0/env/0/value"]
    );
    let told = told(&config_map(), &places, Side::Live, "", 1).unwrap();
    let all = format!("{told:?}");
    assert!(all.contains("Secret shop/db, key password"), "{all}");
    assert!(!all.contains("canary"), "{all}");
}

#[test]
fn a_secret_may_hold_what_it_holds_but_not_in_plain_text_in_git() {
    let jwt = format!("eyJ{0}.eyJ{0}.{0}{0}", "aB3dE5gH7jK9mN1pQ2rS4t");
    let data = trimtab_compare::encode_base64(jwt.as_bytes());
    let json = format!(r#"{{"kind":"Secret","data":{{"token":"{data}"}}}}"#);
    let index = Index::new(&[7; 32], [(&secret_key(), json.as_bytes())]);
    let look = |side, in_git| look(&index, &secret_key(), json.as_bytes(), side, in_git);
    assert!(look(Side::Live, true).is_empty());
    assert!(look(Side::Desired, false).is_empty());
    assert_eq!(look(Side::Desired, true).len(), 1);
}

#[test]
fn the_index_is_bounded_and_says_when_it_is_full() {
    let json = format!(r#"{{"stringData":{{"a":"{VALUE}{VALUE}"}}}}"#);
    let key = secret_key();
    let secrets = || [(&key, json.as_bytes())];
    let index = Index::bounded(&[7; 32], secrets(), 20);
    assert!(index.is_full());
    assert_eq!(index.len(), 20);
    assert!(!Index::new(&[7; 32], secrets()).is_full());
}

proptest! {
    #[test]
    fn a_random_value_is_found_in_base64_behind_anything_and_not_in_other_text(
        value in "[A-Za-z0-9+/]{24,64}",
        before in "[ -~]{0,9}",
        other in "[A-Za-z0-9+/]{24,200}",
    ) {
        let index = index_of(value.as_bytes());
        prop_assume!(!index.is_empty());
        let text = trimtab_compare::encode_base64(format!("{before}{value}.").as_bytes());
        prop_assert!(stands(&index, &text));
        let middle = &value[4..22];
        let found = stands(&index, &(before + middle));
        prop_assert!(found || !telling_window(&middle.as_bytes()[..16]));
        prop_assert!(!stands(&index, &other));
    }

    #[test]
    fn no_object_of_any_content_breaks_the_search(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let index = index_of(VALUE.as_bytes());
        let _ = index.find(&bytes);
        let _ = look(&index, &config_map(), &bytes, Side::Desired, true);
        let secret = Index::new(&[1; 32], [(&secret_key(), &bytes[..])]);
        let _ = secret.find(&bytes);
    }
}

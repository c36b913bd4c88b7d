//! Keyed lists and sets of any length: keys with defaults, repeated keys, what we own in them.

mod common;

use common::told;

/// A custom resource with one list, whose elements are given.
fn ship(list: &str, items: &[String]) -> String {
    owned(list, items, "")
}

/// The same as the server stores it, with what we own of the list.
fn owned(list: &str, items: &[String], fields: &str) -> String {
    let items = items.join(",");
    let managed = format!(
        r#""metadata":{{"managedFields":[{{"manager":"trimtab","operation":"Apply","apiVersion":"sea.test/v1","fieldsV1":{{"f:spec":{{"f:{list}":{{{fields}}}}}}}}}]}},"#
    );
    let managed = if fields.is_empty() { "" } else { &managed };
    format!(
        r#"{{"apiVersion":"sea.test/v1","kind":"Ship",{managed}"spec":{{"{list}":[{items}]}}}}"#
    )
}

fn strings(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

/// Lengths on both sides of where elements are scanned and where positions fit into one word.
const LENGTHS: [usize; 8] = [2, 3, 31, 32, 33, 64, 65, 200];

/// `count` elements, each with its number as its key; the first has it by default.
fn buoys(count: usize) -> Vec<String> {
    let stated = (2..=count).map(|id| format!(r#"{{"id":{id},"light":"l{id}"}}"#));
    std::iter::once(r#"{"light":"l1"}"#.to_owned()).chain(stated).collect()
}

#[test]
fn a_default_is_the_key_where_it_is_the_only_one() {
    let rows: &[(&[&str], &[&str], &str)] = &[
        (&[r#"{"light":"red"}"#], &[r#"{"id":1,"light":"red"}"#], ""),
        (&[r#"{"id":1,"light":"red"}"#], &[r#"{"light":"red"}"#], ""),
        (
            &[r#"{"light":"red"}"#],
            &[r#"{"id":2,"light":"red"}"#, r#"{"id":1,"light":"green"}"#],
            "changed /spec/buoys/[id=1]/light\nstray /spec/buoys/[id=2]",
        ),
        (
            &[r#"{"light":"red"}"#],
            &[r#"{"id":"1","light":"red"}"#],
            "missing /spec/buoys/[id=1]\nstray /spec/buoys/[id=1]",
        ),
        (
            &[r#"{"light":"red"}"#, r#"{"id":1}"#],
            &[],
            "duplicate_list_key: /spec/buoys has two elements with the key [id=1]",
        ),
        (
            &[r#"{"light":"red"}"#],
            &[r#"{"light":"green"}"#, r#"{"id":1,"light":"red"}"#],
            "changed /spec/buoys",
        ),
        (
            &[r#"{"id":null,"light":"red"}"#],
            &[r#"{"id":1,"light":"green"}"#],
            "changed /spec/buoys/[id=1]/light",
        ),
    ];
    for (desired, live, expected) in rows {
        let (desired, live) = (strings(desired), strings(live));
        assert_eq!(told(&ship("buoys", &desired), &ship("buoys", &live)), *expected, "{live:?}");
    }
}

#[test]
fn elements_are_found_and_repeated_keys_told_whatever_the_length() {
    for count in LENGTHS {
        let desired = buoys(count);
        let mut live = desired.clone();
        live.reverse();
        let compared = |live: &[String]| told(&ship("buoys", &desired), &ship("buoys", live));
        assert_eq!(compared(&live), "", "{count}");
        // The last of several has effect; live repeats it, so the list has to be replaced.
        let repeated = [r#"{"id":1,"light":"other"}"#.to_owned()];
        assert_eq!(compared(&[&repeated, &live[..]].concat()), "changed /spec/buoys", "{count}");
        let first = "changed /spec/buoys/[id=1]/light\nchanged /spec/buoys";
        assert_eq!(compared(&[&live[..], &repeated].concat()), first, "{count}");
        // Stated and by default is twice.
        assert_eq!(
            told(&ship("buoys", &[&desired[..], &repeated].concat()), &ship("buoys", &live)),
            "duplicate_list_key: /spec/buoys has two elements with the key [id=1]",
            "{count}"
        );
        let lacking = compared(&live[1..]);
        assert_eq!(lacking, format!("missing /spec/buoys/[id={count}]"), "{count}");
    }
}

#[test]
fn what_we_own_in_lists_is_released_whatever_the_length() {
    for count in LENGTHS {
        let live: Vec<String> = (1..=count)
            .map(|id| format!(r#"{{"id":{id},"light":"l{id}","at":["a","b"]}}"#))
            .collect();
        let field = |id| {
            format!(
                r#""k:{{\"id\":{id}}}":{{".":{{}},"f:id":{{}},"f:light":{{}},"f:at":{{"v:\"a\"":{{}},"v:\"b\"":{{}}}}}}"#
            )
        };
        let fields = (1..=count).rev().map(field).collect::<Vec<_>>().join(",");
        let live_text = owned("buoys", &live, &fields);
        assert_eq!(told(&ship("buoys", &live), &live_text), "", "{count}");
        // The first without its key and in another order of members, the second without a place,
        // the last not at all.
        let mut desired = live.clone();
        desired[0] = r#"{"at":["b","a"],"light":"l1"}"#.to_owned();
        desired[1] = r#"{"id":2,"at":["a"]}"#.to_owned();
        let lost = "/spec/buoys/[id=2]/light\nreleased /spec/buoys/[id=2]/at/[=b]";
        let found = told(&ship("buoys", &desired), &live_text);
        assert_eq!(found, format!("released {lost}"), "{count}");
        desired[1].clone_from(&live[1]);
        desired.pop();
        let found = told(&ship("buoys", &desired), &live_text);
        assert_eq!(found, format!("released /spec/buoys/[id={count}]"), "{count}");
    }
}

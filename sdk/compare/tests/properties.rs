//! What holds for all objects, all facts buffers and all sizes.

mod common;

use proptest::prelude::*;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use trimtab_compare::{Facts, Kind, Options, compare, managed_fields, quantity_equal};
use trimtab_json::{Object, Path, Value, parse, write};

const KINDS: [&str; 5] = ["Pod", "Secret", "HorizontalPodAutoscaler", "ConfigMap", "Ship"];
const NAMES: [&str; 24] = [
    "spec",
    "metadata",
    "data",
    "stringData",
    "containers",
    "name",
    "env",
    "ports",
    "protocol",
    "containerPort",
    "labels",
    "annotations",
    "finalizers",
    "managedFields",
    "metrics",
    "type",
    "crew",
    "stops",
    "legs",
    "hold",
    "resources",
    "limits",
    "operation",
    "fieldsV1",
];

fn value() -> impl Strategy<Value = Value<'static>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..100).prop_map(Value::from),
        prop::sample::select(vec![
            "", "1", "1000m", "1Gi", "a", "YQ==", "1h", "1h0m0s", "Apply", "f:spec"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::btree_map(prop::sample::select(NAMES.to_vec()), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// An object of one of the kinds with anything in it.
fn object() -> impl Strategy<Value = Value<'static>> {
    (prop::sample::select(KINDS.to_vec()), value(), value(), value()).prop_map(
        |(kind, spec, data, metadata)| {
            let version = match kind {
                "Ship" => "sea.test/v1",
                "HorizontalPodAutoscaler" => "autoscaling/v2",
                _ => "v1",
            };
            Value::Object(
                Object::new()
                    .with("apiVersion", version)
                    .with("kind", kind)
                    .with("metadata", metadata)
                    .with("spec", spec)
                    .with("data", data),
            )
        },
    )
}

/// Two objects with the same members and list lengths, and scalars of their own: no side leaves out
/// what only the other has, so that nothing but values decides.
fn alike() -> impl Strategy<Value = (Value<'static>, Value<'static>)> {
    let scalar = || {
        prop_oneof![
            (1_i64..3).prop_map(Value::from),
            prop::sample::select(vec!["a", "1", "1.0"]).prop_map(Value::from)
        ]
    };
    let leaf = (scalar(), scalar());
    let tree = leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|pairs| {
                let (one, other) = pairs.into_iter().unzip();
                (Value::Array(one), Value::Array(other))
            }),
            prop::collection::btree_map(prop::sample::select(NAMES.to_vec()), inner, 1..4)
                .prop_map(|members| {
                    let half = |side: fn(&(Value<'static>, Value<'static>)) -> Value<'static>| {
                        Value::Object(
                            members.iter().map(|(name, pair)| (*name, side(pair))).collect(),
                        )
                    };
                    (half(|pair| pair.0.clone()), half(|pair| pair.1.clone()))
                }),
        ]
    });
    tree.prop_map(|(one, other)| {
        let whole = |spec: Value<'static>| {
            Value::Object(Object::new().with("kind", "Ship").with("spec", spec))
        };
        (whole(one), whole(other))
    })
}

/// What server-side apply does where nothing is known of the type.
fn apply(desired: &Value<'static>, live: &Value<'static>) -> Value<'static> {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => {
            let mut merged = live.clone();
            for (name, value) in desired.iter().filter(|(_, value)| !value.is_null()) {
                let value = apply(value, live.get(name).unwrap_or(&Value::Null));
                merged.insert(name.to_owned(), value);
            }
            Value::Object(merged)
        }
        _ => desired.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn an_object_never_differs_from_itself(object in object()) {
        let facts = common::facts_of(&object);
        for facts in [Facts::NONE, Facts::new(&facts)] {
            let options = Options { managers: &["a", ""], ..Options::default() };
            if let Ok(differences) = compare(&object, Some(&object), facts, &options) {
                // Only a Secret's write-only member is not what it reads as.
                prop_assert!(differences.is_empty(), "{differences:?}");
            }
        }
    }

    #[test]
    fn applying_desired_leaves_no_drift(desired in object(), live in object()) {
        if let Ok(differences) = compare(&desired, Some(&live), Facts::NONE, &Options::default()) {
            let applied = apply(&desired, &live);
            let left = compare(&desired, Some(&applied), Facts::NONE, &Options::default()).unwrap();
            let left: Vec<_> = left.iter().filter(|left| left.kind != Kind::Stray).collect();
            prop_assert!(left.is_empty(), "{differences:?} then {left:?}");
        }
    }

    #[test]
    fn nothing_makes_a_comparison_panic(
        desired in object(),
        live in object(),
        cut in any::<prop::sample::Index>(),
        noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
    ) {
        let mut facts = common::facts_of(&desired);
        let options = Options { managers: &["a"], predecessors: &[""], ..Options::default() };
        let _ = compare(&desired, Some(&live), Facts::new(&facts), &options);
        let _ = compare(&desired, None, Facts::new(&facts), &options);
        if !facts.is_empty() {
            for (place, byte) in noise {
                let at = place.index(facts.len());
                facts[at] = byte;
            }
            facts[0] = 1;
            facts.truncate(cut.index(facts.len()).max(1));
            let _ = compare(&desired, Some(&live), Facts::new(&facts), &options);
        }
        let _ = managed_fields::attribute(&live, &[Path::root()]);
    }

    #[test]
    fn any_text_and_any_facts_are_compared_without_panic(
        desired in prop::collection::vec(any::<u8>(), 0..200),
        live in prop::collection::vec(any::<u8>(), 0..200),
        object in object(),
        mut facts in prop::collection::vec(any::<u8>(), 0..400),
        known in any::<bool>(),
    ) {
        // Half of the buffers claim to be of our version.
        if let (true, Some(first)) = (known, facts.first_mut()) {
            *first = trimtab_compare::facts::VERSION;
        }
        let facts = Facts::new(&facts);
        let options = Options { managers: &["a"], predecessors: &[""], ..Options::default() };
        let _ = compare(&object, Some(&object), facts, &options);
        // What is no JSON is never compared; what is, whatever it is, is.
        for bytes in [&desired, &live] {
            if let Ok(value) = parse(bytes) {
                let _ = compare(&value, Some(&object), facts, &options);
                let _ = compare(&object, Some(&value), facts, &options);
                let _ = compare(&value, None, facts, &options);
            }
        }
    }

    #[test]
    fn any_two_values_are_compared_without_panic(
        one in value(),
        other in value(),
        of in object(),
        facts in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let known = common::facts_of(&of);
        for facts in [Facts::NONE, Facts::new(&known), Facts::new(&facts)] {
            let _ = compare(&one, Some(&other), facts, &Options::default());
            let _ = compare(&one, None, facts, &Options::default());
        }
    }

    #[test]
    fn without_a_schema_two_objects_that_state_the_same_members_differ_both_ways_or_not_at_all(
        (one, other) in alike(),
    ) {
        let differs = |desired, live| {
            compare(desired, Some(live), Facts::NONE, &Options::default()).map(|all| !all.is_empty())
        };
        prop_assert_eq!(differs(&one, &other), differs(&other, &one));
    }

    #[test]
    fn what_differs_has_the_path_that_leads_to_it(desired in object(), live in object()) {
        let facts = common::facts_of(&desired);
        let found = compare(&desired, Some(&live), Facts::new(&facts), &Options::default());
        for difference in found.unwrap_or_default() {
            if let Some(value) = difference.live {
                prop_assert_eq!(difference.path.resolve(&live), Some(value));
            }
            let text = difference.path.to_string();
            prop_assert_eq!(Path::parse(&text).unwrap(), difference.path);
        }
    }

    #[test]
    fn quantities_agree_with_whole_number_arithmetic(number in 0_u64..1 << 40, shift in 0_usize..5) {
        let (suffix, factor) = [("", 1_u128), ("k", 1000), ("M", 1_000_000), ("Ki", 1 << 10), ("Mi", 1 << 20)][shift];
        let scaled = u128::from(number) * factor;
        let one = format!("{number}{suffix}");
        prop_assert!(quantity_equal(&one, &scaled.to_string()), "{one}");
        let milli = format!("{}m", scaled * 1000);
        prop_assert!(quantity_equal(&one, &milli), "{one}");
        prop_assert!(!quantity_equal(&one, &(scaled + 1).to_string()), "{one}");
    }
}

/// How long a comparison takes, the best of three.
fn timed(desired: &str, live: &str, expected: usize) -> Duration {
    let desired = parse(desired.as_bytes()).unwrap();
    let live = parse(live.as_bytes()).unwrap();
    let facts = common::facts_of(&desired);
    let options = Options { managers: &["t"], ..Options::default() };
    let once = || {
        let start = Instant::now();
        let found = compare(&desired, Some(&live), Facts::new(&facts), &options).unwrap();
        assert_eq!(found.len(), expected);
        start.elapsed()
    };
    (0..3).map(|_| once()).min().unwrap()
}

/// A list or map of `count` parts in one order and in the other, joined by commas.
fn parts(count: usize, part: impl Fn(usize) -> String) -> (String, String) {
    let parts: Vec<String> = (0..count).map(part).collect();
    let there = parts.join(",");
    let back = parts.iter().rev().cloned().collect::<Vec<_>>().join(",");
    (there, back)
}

/// Ten times the size may take far more than ten times as long on a busy machine, but not what a
/// hundred million steps take.
fn grows_linearly(time: impl Fn(usize) -> Duration) {
    let (small, large) = (time(1_000), time(10_000));
    assert!(large < (small * 40).max(Duration::from_millis(400)), "{small:?} then {large:?}");
}

#[test]
fn ten_thousand_keyed_elements_in_another_order_are_linear() {
    let ship = |crew: &str| {
        format!(r#"{{"apiVersion":"sea.test/v1","kind":"Ship","spec":{{"crew":[{crew}]}}}}"#)
    };
    grows_linearly(|count| {
        let (there, back) = parts(count, |n| format!(r#"{{"name":"sailor-{n}"}}"#));
        timed(&ship(&there), &ship(&back), 0)
    });
}

#[test]
fn ten_thousand_elements_that_we_own_are_linear() {
    let ship = |managed: &str, buoys: &str| {
        format!(
            r#"{{"apiVersion":"sea.test/v1","kind":"Ship",{managed}"spec":{{"buoys":[{buoys}]}}}}"#
        )
    };
    grows_linearly(|count| {
        // The first has its key by default; the server adds a member to each, so none are equal.
        let key = |n: usize| if n == 1 { String::new() } else { format!("\"id\":{n},") };
        let (there, _) = parts(count, |n| format!(r#"{{{}"light":"x"}}"#, key(n + 1)));
        let (_, back) = parts(count, |n| format!(r#"{{"id":{},"at":[],"light":"x"}}"#, n + 1));
        let (fields, _) =
            parts(count, |n| format!(r#""k:{{\"id\":{}}}":{{".":{{}},"f:light":{{}}}}"#, n + 1));
        let managed = format!(
            r#""metadata":{{"managedFields":[{{"manager":"t","operation":"Apply","apiVersion":"sea.test/v1","fieldsV1":{{"f:spec":{{"f:buoys":{{{fields}}}}}}}}}]}},"#
        );
        timed(&ship("", &there), &ship(&managed, &back), 0)
    });
}

#[test]
fn ten_thousand_members_in_another_order_are_linear() {
    let map = |data: &str| format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","data":{{{data}}}}}"#);
    grows_linearly(|count| {
        let (there, back) = parts(count, |n| format!("\"key-{n}\":\"{n}\""));
        timed(&map(&there), &map(&back), 0)
    });
}

#[test]
fn ten_thousand_stray_members_are_attributed_in_linear_time() {
    let with = |data: &str, fields: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"managedFields":[{{"manager":"x","operation":"Update","apiVersion":"v1","fieldsV1":{{"f:data":{{{fields}}}}}}},
            {{"manager":"t","operation":"Apply","apiVersion":"v1","fieldsV1":{{"f:data":{{"f:own":{{}}}}}}}}]}},"data":{{"own":"1"{data}}}}}"#
        )
    };
    let desired = r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"own":"1"}}"#;
    grows_linearly(|count| {
        let (mut data, mut fields) = (String::new(), String::from("\".\":{}"));
        for n in 0..count {
            write!(data, ",\"key-{n}\":\"{n}\"").unwrap();
            write!(fields, ",\"f:key-{n}\":{{}}").unwrap();
        }
        timed(desired, &with(&data, &fields), count)
    });
}

#[test]
fn objects_as_deep_as_the_parser_takes_are_compared() {
    let depth = trimtab_json::MAX_DEPTH - 2;
    let deep = move |leaf: &str| {
        let open = "{\"hold\":".repeat(depth);
        let close = "}".repeat(depth);
        format!(r#"{{"apiVersion":"sea.test/v1","kind":"Ship","spec":{open}{leaf}{close}}}"#)
    };
    let differ = move || {
        let (one, other) = (deep("1"), deep("2"));
        let (one, other) = (parse(one.as_bytes()).unwrap(), parse(other.as_bytes()).unwrap());
        let found = compare(&one, Some(&other), Facts::NONE, &Options::default()).unwrap();
        assert_eq!(found[0].path.steps().len(), depth + 1);
        let mut out = Vec::new();
        write(&one, &mut out);
    };
    // Not the 64 KiB of a guest, whose frames are half as large, but of that order.
    std::thread::Builder::new().stack_size(256 * 1024).spawn(differ).unwrap().join().unwrap();
}

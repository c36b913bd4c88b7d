//! Changes to an object, directed by its schema: meaningful ones and mere respellings.

use super::random::Random;
use super::schema::{Schema, Shape};
use serde_json::{Map, Value, json};

/// One place of an object.
struct Place<'d> {
    pointer: String,
    schema: Option<Schema<'d>>,
}

/// What is changed; what it is called when it is told.
type Change = fn(&mut Value, &Value, &Place<'_>, &mut Random) -> Option<&'static str>;

const ANY: &[(usize, Change)] = &[
    (3, drop_it),
    (3, empty),
    (6, state_empty),
    (3, state_default),
    (3, state_another),
    (6, state_live),
    (10, respell),
    (4, reorder),
    (6, another),
    (3, element),
];
const RESPELLING: &[(usize, Change)] = &[(4, state_live), (8, respell_alike), (3, reorder_alike)];
const MEANINGFUL: &[(usize, Change)] = &[(1, another)];

/// How often a place is looked for that takes a change.
const TRIES: usize = 60;

/// One to three changes of any sort; `live` is what the server has, where defaults are to be seen.
/// Gives what was done and where.
pub(super) fn mutate(
    object: &mut Value,
    live: &Value,
    schema: Schema<'_>,
    random: &mut Random,
) -> Vec<String> {
    let count = 1 + random.below(3).min(random.below(3));
    (0..count).filter_map(|_| one(object, live, schema, ANY, random)).collect()
}

/// One change that the schema's reader may take for none.
pub(super) fn respelled(
    object: &mut Value,
    live: &Value,
    schema: Schema<'_>,
    random: &mut Random,
) -> Option<String> {
    one(object, live, schema, RESPELLING, random)
}

/// Another value of some stated scalar.
pub(super) fn changed(
    object: &mut Value,
    schema: Schema<'_>,
    random: &mut Random,
) -> Option<String> {
    one(object, &Value::Null, schema, MEANINGFUL, random)
}

fn one(
    object: &mut Value,
    live: &Value,
    schema: Schema<'_>,
    changes: &[(usize, Change)],
    random: &mut Random,
) -> Option<String> {
    let places = places(object, schema);
    let total = changes.iter().map(|(weight, _)| weight).sum();
    for _ in 0..TRIES {
        let place = random.pick(&places)?;
        let mut at = random.below(total);
        let (_, change) = changes.iter().find(|(weight, _)| {
            let here = at < *weight;
            at = at.saturating_sub(*weight);
            here
        })?;
        let before = object.clone();
        // As text: another order is another text, and no other value.
        let text = object.to_string();
        if let Some(what) = change(object, live, place, random) {
            let now = object.to_string();
            if now != text {
                return Some(format!("{what} {}", place.pointer));
            }
        }
        *object = before;
    }
    None
}

/// All places but what names the object.
fn places<'d>(object: &Value, schema: Schema<'d>) -> Vec<Place<'d>> {
    let mut found = Vec::new();
    let mut walk = vec![(String::new(), object, Some(schema))];
    while let Some((pointer, value, schema)) = walk.pop() {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let judged = match pointer.as_str() {
                        "" => !matches!(name.as_str(), "apiVersion" | "kind" | "status"),
                        "/metadata" => matches!(name.as_str(), "labels" | "annotations"),
                        _ => true,
                    };
                    if judged {
                        let member = schema.and_then(|schema| schema.member(name));
                        walk.push((format!("{pointer}/{}", escaped(name)), value, member));
                    }
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    walk.push((format!("{pointer}/{index}"), value, schema.and_then(Schema::item)));
                }
            }
            _ => {}
        }
        found.push(Place { pointer, schema });
    }
    found
}

pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn shape(place: &Place<'_>) -> Shape {
    place.schema.map_or(Shape::Any, Schema::shape)
}

/// Leaves a member or an element out.
fn drop_it(
    object: &mut Value,
    _: &Value,
    place: &Place<'_>,
    _: &mut Random,
) -> Option<&'static str> {
    let (parent, last) = place.pointer.rsplit_once('/')?;
    if place.pointer == "/metadata" {
        return None;
    }
    match object.pointer_mut(parent)? {
        Value::Object(members) => {
            drop(members.shift_remove(&last.replace("~1", "/").replace("~0", "~"))?)
        }
        Value::Array(items) => drop(items.remove(last.parse().ok()?)),
        _ => return None,
    }
    Some("drop")
}

/// Makes a value what its type calls empty, or `null`.
fn empty(
    object: &mut Value,
    _: &Value,
    place: &Place<'_>,
    random: &mut Random,
) -> Option<&'static str> {
    if place.pointer.matches('/').count() < 2 {
        return None;
    }
    let value = object.pointer_mut(&place.pointer)?;
    *value = if random.once_in(4) {
        Value::Null
    } else {
        match value {
            Value::String(_) if shape(place) == Shape::Quantity => json!("0"),
            Value::String(_) => json!(""),
            Value::Number(_) => json!(0),
            Value::Bool(_) => json!(false),
            Value::Array(_) => json!([]),
            Value::Object(_) => json!({}),
            Value::Null => json!(""),
        }
    };
    Some("empty")
}

/// A member that is not stated, with a value.
fn state(
    object: &mut Value,
    place: &Place<'_>,
    random: &mut Random,
    value: impl Fn(Schema<'_>, &mut Random) -> Option<Value>,
) -> Option<()> {
    let schema = place.schema?;
    let inner = object.pointer_mut(&place.pointer)?.as_object_mut()?;
    let open = |name: &str| match place.pointer.as_str() {
        "" => !matches!(name, "apiVersion" | "kind" | "metadata" | "status"),
        "/metadata" => matches!(name, "labels" | "annotations" | "finalizers" | "ownerReferences"),
        _ => true,
    };
    let unstated: Vec<_> =
        schema.fields().filter(|(name, _)| open(name) && !inner.contains_key(*name)).collect();
    let (name, field) = *random.pick(&unstated)?;
    inner.insert(name.to_owned(), value(field, random)?);
    Some(())
}

/// States a member as empty, or as `null`.
fn state_empty(
    object: &mut Value,
    _: &Value,
    place: &Place<'_>,
    random: &mut Random,
) -> Option<&'static str> {
    state(object, place, random, |field, random| {
        if random.once_in(5) {
            return Some(Value::Null);
        }
        Some(match field.shape() {
            Shape::Object | Shape::Map => json!({}),
            Shape::Keyed | Shape::Set | Shape::Atomic => json!([]),
            Shape::Text | Shape::Bytes => json!(""),
            Shape::Integer | Shape::Number | Shape::IntOrString => json!(0),
            Shape::Quantity => json!("0"),
            Shape::Boolean => json!(false),
            Shape::Time | Shape::Any => Value::Null,
        })
    })
    .map(|()| "state empty in")
}

/// States a member as the schema defaults it.
fn state_default(
    object: &mut Value,
    _: &Value,
    place: &Place<'_>,
    random: &mut Random,
) -> Option<&'static str> {
    state(object, place, random, |field, _| field.default().cloned()).map(|()| "state default in")
}

/// States a member as something that it hardly was.
fn state_another(
    object: &mut Value,
    _: &Value,
    place: &Place<'_>,
    random: &mut Random,
) -> Option<&'static str> {
    state(object, place, random, |field, random| {
        Some(match field.shape() {
            Shape::Text => random.pick(field.allowed()).cloned().unwrap_or(json!("x")),
            Shape::Integer | Shape::Number | Shape::IntOrString => json!(1 + random.below(3)),
            Shape::Quantity => json!("1Gi"),
            Shape::Boolean => json!(true),
            Shape::Bytes => json!("eA=="),
            Shape::Time => json!("2026-02-01T00:00:00Z"),
            _ => return None,
        })
    })
    .map(|()| "state in")
}

/// States something that only live has, as live has it.
fn state_live(
    object: &mut Value,
    live: &Value,
    place: &Place<'_>,
    random: &mut Random,
) -> Option<&'static str> {
    if place.pointer.is_empty() || place.pointer.starts_with("/metadata") {
        return None;
    }
    let held = live.pointer(&place.pointer)?.as_object()?;
    let inner = object.pointer_mut(&place.pointer)?.as_object_mut()?;
    let unstated: Vec<_> = held.iter().filter(|(name, _)| !inner.contains_key(*name)).collect();
    let (name, value) = random.pick(&unstated)?;
    inner.insert((*name).clone(), (*value).clone());
    Some("state as live in")
}

/// The same in other words.
fn respell(
    object: &mut Value,
    _: &Value,
    place: &Place<'_>,
    random: &mut Random,
) -> Option<&'static str> {
    if place.pointer == "/data" && object["kind"] == "Secret" {
        return plainly(object, random);
    }
    let value = object.pointer_mut(&place.pointer)?;
    let other = match (shape(place), &*value) {
        (Shape::Quantity, value) => quantity(value, random)?,
        (Shape::IntOrString, Value::Number(number)) => number.to_string().into(),
        (Shape::IntOrString, Value::String(text)) => text.parse::<i64>().ok()?.into(),
        (Shape::Bytes, Value::String(text)) => {
            let middle = text.len() / 2;
            format!("{}\n{}", text.get(..middle)?, text.get(middle..)?).into()
        }
        (Shape::Time, Value::String(text)) => time(text, random)?.into(),
        (Shape::Integer | Shape::Number, Value::Number(number)) => number.as_f64()?.into(),
        (Shape::Text, Value::String(text)) => duration(text)?.into(),
        (Shape::Any, Value::Object(members)) => Value::Object(reversed(members)),
        _ => return None,
    };
    *value = other;
    Some("respell")
}

/// The same in other words, but for durations, which are the same only where live is in Go's words.
fn respell_alike(
    object: &mut Value,
    live: &Value,
    place: &Place<'_>,
    random: &mut Random,
) -> Option<&'static str> {
    if shape(place) == Shape::Text { None } else { respell(object, live, place, random) }
}

/// A value of a Secret's `data` in `stringData`.
fn plainly(object: &mut Value, random: &mut Random) -> Option<&'static str> {
    let data = object.get_mut("data")?.as_object_mut()?;
    let names: Vec<String> = data.keys().cloned().collect();
    let name = random.pick(&names)?;
    let bytes = trimtab_compare::decode_base64(data.get(name)?.as_str()?)?;
    let text = String::from_utf8(bytes).ok()?;
    data.shift_remove(name);
    object["stringData"][name] = text.into();
    Some("respell in stringData")
}

fn reversed(members: &Map<String, Value>) -> Map<String, Value> {
    members.iter().rev().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The same amount.
fn quantity(value: &Value, random: &mut Random) -> Option<Value> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let number: i64 = number.parse().ok()?;
    let down = |factor: i64, to: &str| Some(format!("{}{to}", number.checked_mul(factor)?).into());
    let ways: Vec<Option<Value>> = match suffix {
        "" => vec![
            down(1000, "m"),
            Some(number.into()),
            Some(number.to_string().into()),
            Some(format!("{number}.0").into()),
            Some(format!("{number}e0").into()),
            Some(format!("+{number}").into()),
            Some(format!("0{number}").into()),
            (number % 1000 == 0).then(|| format!("{}k", number / 1000).into()),
            (number % 1024 == 0).then(|| format!("{}Ki", number / 1024).into()),
        ],
        "m" => vec![
            down(1000, "u"),
            (number % 1000 == 0).then(|| (number / 1000).into()),
            (number % 100 == 0).then(|| (number as f64 / 1000.0).into()),
            Some(format!("{}.{:03}", number / 1000, number % 1000).into()),
        ],
        "k" => vec![down(1000, ""), Some(format!("{number}e3").into())],
        "M" => vec![down(1000, "k"), Some(format!("{number}E6").into())],
        "G" => vec![down(1000, "M"), Some(format!("{number}e9").into())],
        "T" => vec![down(1000, "G")],
        "Mi" => vec![down(1024, "Ki"), down(1 << 20, "")],
        "Gi" => vec![down(1024, "Mi"), down(1 << 30, ""), Some(format!("{number}.0Gi").into())],
        "Ti" => vec![down(1024, "Gi")],
        _ => vec![],
    };
    let ways: Vec<Value> = ways.into_iter().flatten().collect();
    random.pick(&ways).cloned()
}

/// The same instant.
fn time(text: &str, random: &mut Random) -> Option<String> {
    let bare = text.strip_suffix('Z')?;
    let (date, clock) = bare.split_once('T')?;
    let (hour, rest) = clock.split_once(':')?;
    let hour: u32 = hour.parse().ok()?;
    Some(if random.once_in(2) && hour < 23 {
        format!("{date}T{:02}:{rest}+01:00", hour + 1)
    } else if bare.contains('.') {
        format!("{}Z", bare.trim_end_matches('0').trim_end_matches('.'))
    } else {
        format!("{bare}.000Z")
    })
}

/// The same duration, of a text that is one.
fn duration(text: &str) -> Option<String> {
    let hours = text.strip_suffix('h').and_then(|hours| hours.parse::<u32>().ok());
    let minutes = text.strip_suffix('m').and_then(|minutes| minutes.parse::<u32>().ok());
    let seconds = text.strip_suffix('s').and_then(|seconds| seconds.parse::<u32>().ok());
    hours
        .map(|hours| format!("{hours}h0m0s"))
        .or_else(|| minutes.map(|minutes| format!("{minutes}m0s")))
        .or_else(|| seconds.map(|seconds| format!("{}m{}s", seconds / 60, seconds % 60)))
}

/// Another order where order says nothing: of members, keyed lists and sets; of other lists, where
/// it does.
fn reorder(
    object: &mut Value,
    _: &Value,
    place: &Place<'_>,
    random: &mut Random,
) -> Option<&'static str> {
    match object.pointer_mut(&place.pointer)? {
        Value::Object(members) => {
            let mut all: Vec<_> = std::mem::take(members).into_iter().collect();
            random.shuffle(&mut all);
            members.extend(all);
        }
        Value::Array(items) => random.shuffle(items),
        _ => return None,
    }
    Some("reorder")
}

/// Another order, where order says nothing.
fn reorder_alike(
    object: &mut Value,
    live: &Value,
    place: &Place<'_>,
    random: &mut Random,
) -> Option<&'static str> {
    match shape(place) {
        Shape::Object | Shape::Map | Shape::Keyed | Shape::Set => {
            reorder(object, live, place, random)
        }
        _ => None,
    }
}

/// Another value of a scalar.
fn another(
    object: &mut Value,
    _: &Value,
    place: &Place<'_>,
    random: &mut Random,
) -> Option<&'static str> {
    let value = object.pointer_mut(&place.pointer)?;
    let allowed = place.schema.map_or(&[][..], Schema::allowed);
    *value = match (shape(place), &*value) {
        (_, Value::String(text)) if !allowed.is_empty() => {
            let others: Vec<_> = allowed.iter().filter(|it| *it != text).collect();
            (*random.pick(&others)?).clone()
        }
        (Shape::Quantity, Value::String(text)) => format!("1{text}").into(),
        (Shape::Bytes, Value::String(_)) => "Y2hhbmdlZA==".into(),
        (Shape::Time, Value::String(text)) => text.replacen("2026", "2027", 1).into(),
        (_, Value::String(text)) if text.ends_with('%') => format!("1{text}").into(),
        (_, Value::String(text)) => format!("{text}x").into(),
        (_, Value::Number(number)) => (number.as_i64()? + 1).into(),
        (_, Value::Bool(value)) => (!value).into(),
        _ => return None,
    };
    Some("change")
}

/// One more element: like another, with another key.
fn element(
    object: &mut Value,
    _: &Value,
    place: &Place<'_>,
    random: &mut Random,
) -> Option<&'static str> {
    let items = object.pointer_mut(&place.pointer)?.as_array_mut()?;
    let mut more = random.pick(items)?.clone();
    let other = |value: &mut Value| match value {
        Value::String(text) if text.parse::<std::net::Ipv4Addr>().is_ok() => text.push('7'),
        Value::String(text) => text.push_str("-more"),
        Value::Number(number) => *value = (number.as_i64().unwrap_or_default() + 1000).into(),
        _ => {}
    };
    match &mut more {
        Value::Object(members) => {
            for key in place.schema.into_iter().flat_map(Schema::keys) {
                members.get_mut(key).map(other);
            }
        }
        scalar => other(scalar),
    }
    let at = random.below(items.len() + 1);
    items.insert(at, more);
    Some("one more in")
}

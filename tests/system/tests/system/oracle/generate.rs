//! Objects made up from a schema, for kinds that have no seed: what it requires, some of the rest,
//! and strings that its formats, patterns and bounds have a chance to allow. Whether one is valid
//! is the server's to say.

use super::random::Random;
use super::schema::{Schema, Shape};
use serde_json::{Map, Value, json};

/// How deep optional parts go.
const DEPTH: usize = 7;

/// The members of an object of this kind but for its identity.
pub(super) fn object(schema: Schema<'_>, random: &mut Random) -> Map<String, Value> {
    let mut object = Map::new();
    for (name, field) in schema.fields() {
        if !matches!(name, "apiVersion" | "kind" | "metadata" | "status") {
            object.insert(name.to_owned(), value(field, random, 0));
        }
    }
    object
}

fn value(schema: Schema<'_>, random: &mut Random, depth: usize) -> Value {
    if let Some(allowed) = random.pick(schema.allowed()) {
        return allowed.clone();
    }
    let least = |name: &str| schema.says(name).as_u64().unwrap_or(0) as usize;
    match schema.shape() {
        Shape::Object => {
            let mut members = Map::new();
            for (name, field) in schema.fields() {
                let optional = depth < DEPTH && random.once_in(3 + depth);
                if schema.requires(name) || optional {
                    members.insert(name.to_owned(), value(field, random, depth + 1));
                }
            }
            members.into()
        }
        Shape::Map => match schema.member("a") {
            Some(of) => {
                json!({"a": value(of, random, depth + 1), "b": value(of, random, depth + 1)})
            }
            None => json!({}),
        },
        Shape::Keyed | Shape::Set | Shape::Atomic => {
            let count = least("minItems").max(1);
            let item = |random: &mut Random| {
                schema.item().map_or(Value::Null, |item| value(item, random, depth + 1))
            };
            (0..count).map(|_| item(random)).collect()
        }
        Shape::Integer | Shape::Number => {
            json!(schema.says("minimum").as_i64().unwrap_or(1).max(1))
        }
        Shape::IntOrString => json!(80),
        Shape::Boolean => json!(random.once_in(2)),
        Shape::Quantity => json!("1Gi"),
        Shape::Bytes => json!("eA=="),
        Shape::Time => json!("2026-01-01T00:00:00Z"),
        Shape::Text => text(schema, random),
        Shape::Any => json!({"a": "b"}),
    }
}

/// A string that the pattern may take: some words are tried, since patterns are mostly of names,
/// durations, addresses and sizes. Those that say nothing of it are as good as any.
fn text(schema: Schema<'_>, random: &mut Random) -> Value {
    let words: &[&str] = match schema.says("pattern").as_str() {
        None => &["a", "word"],
        Some(pattern) if pattern.contains("ms") => &["30s", "1h"],
        Some(pattern) if pattern.contains("[KMGTPE]") || pattern.contains("(B|KB") => {
            &["1GB", "10MB"]
        }
        Some(pattern) if pattern.contains("http") => &["https://example.test"],
        Some(pattern) if pattern.contains("\\/[A-Za-z0-9") => &["example.test/controller"],
        Some(pattern) if pattern.starts_with("^[a-zA-Z]") => &["Kind"],
        Some(pattern) if pattern.starts_with("^/") => &["/a"],
        Some(pattern) if pattern.contains("[A-Z]") && !pattern.contains("a-z") => &["A"],
        Some(_) => &["a", "example.test", "1h"],
    };
    random.pick(words).map_or(json!("a"), |word| json!(word))
}

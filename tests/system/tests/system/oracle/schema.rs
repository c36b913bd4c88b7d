//! A kind's schema as the server's OpenAPI document has it: what the generator needs to know where
//! to change what, and how two lists correspond. Read with serde_json, not by the code under test.

use serde_json::{Map, Value};
use std::sync::Arc;
use trimtab_json::{Path, Step};

/// The named schemas of one document.
#[derive(Clone)]
pub(super) struct Document(Arc<Map<String, Value>>);

/// One place of a schema.
#[derive(Clone, Copy)]
pub(super) struct Schema<'d> {
    named: &'d Map<String, Value>,
    /// As it stands at the place, with its default.
    place: &'d Value,
    /// What that refers to.
    kind: &'d Value,
    quantity: bool,
}

/// What stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Object,
    Map,
    Keyed,
    Set,
    Atomic,
    Text,
    Bytes,
    Time,
    Integer,
    Number,
    Boolean,
    Quantity,
    IntOrString,
    Any,
}

impl Document {
    /// Of an OpenAPI v3 document.
    pub(super) fn new(mut document: Value) -> Option<Self> {
        match document.pointer_mut("/components/schemas")?.take() {
            Value::Object(named) => Some(Self(Arc::new(named))),
            _ => None,
        }
    }

    /// The schema of a kind.
    pub(super) fn kind(&self, group: &str, version: &str, kind: &str) -> Option<Schema<'_>> {
        let is = |entry: &Value| {
            entry["group"] == group && entry["version"] == version && entry["kind"] == kind
        };
        let place = self.0.values().find(|schema| {
            let entries = schema["x-kubernetes-group-version-kind"].as_array();
            entries.is_some_and(|entries| entries.iter().any(is))
        })?;
        Some(Schema { named: &self.0, place, kind: place, quantity: false })
    }
}

impl<'d> Schema<'d> {
    fn at(self, place: &'d Value) -> Self {
        let refers = |place: &'d Value| {
            let only = place["allOf"].as_array().filter(|all| all.len() == 1);
            let name = place.get("$ref").or(only.and_then(|all| all[0].get("$ref")))?;
            name.as_str()?.rsplit('/').next()
        };
        let name = refers(place);
        Schema {
            place,
            kind: name.and_then(|name| self.named.get(name)).unwrap_or(place),
            quantity: name.is_some_and(|name| name.ends_with(".resource.Quantity")),
            ..self
        }
    }

    /// A member by name: a field, or a value of a map.
    pub(super) fn member(self, name: &str) -> Option<Self> {
        let field = self.kind["properties"].get(name);
        let value = || self.kind.get("additionalProperties").filter(|it| it.is_object());
        field.or_else(value).map(|place| self.at(place))
    }

    /// The place that a path leads to.
    pub(super) fn follow(self, path: &Path) -> Option<Self> {
        path.steps().iter().try_fold(self, |here, step| match step {
            Step::Field(name) => here.member(name),
            Step::Index(_) | Step::Keyed(_) | Step::Element(_) => here.item(),
        })
    }

    /// All fields with their names.
    pub(super) fn fields(self) -> impl Iterator<Item = (&'d str, Self)> {
        let fields = self.kind["properties"].as_object().into_iter().flatten();
        fields.map(move |(name, place)| (name.as_str(), self.at(place)))
    }

    /// The elements of a list.
    pub(super) fn item(self) -> Option<Self> {
        self.kind.get("items").map(|place| self.at(place))
    }

    /// The key fields of a keyed list.
    pub(super) fn keys(self) -> impl Iterator<Item = &'d str> {
        let keys = self.place["x-kubernetes-list-map-keys"].as_array();
        keys.into_iter().flatten().filter_map(Value::as_str)
    }

    /// What the document says of an unstated value here.
    pub(super) fn default(self) -> Option<&'d Value> {
        self.place.get("default")
    }

    /// Whether the type at this place must have this member.
    pub(super) fn requires(self, name: &str) -> bool {
        self.kind["required"].as_array().is_some_and(|all| all.iter().any(|it| it == name))
    }

    /// A word of the schema.
    pub(super) fn says(self, word: &str) -> &'d Value {
        &self.kind[word]
    }

    /// The values that it allows, if it lists them.
    pub(super) fn allowed(self) -> &'d [Value] {
        self.kind["enum"].as_array().map_or(&[], Vec::as_slice)
    }

    /// What stands here.
    pub(super) fn shape(self) -> Shape {
        let format = self.kind["format"].as_str().unwrap_or_default();
        if self.quantity {
            return Shape::Quantity;
        }
        if format == "int-or-string" || self.kind["x-kubernetes-int-or-string"] == true {
            let pattern = self.kind["pattern"].as_str().unwrap_or_default();
            let quantity = pattern.contains("[KMGTPE]i)|[numkMGTPE]|");
            return if quantity { Shape::Quantity } else { Shape::IntOrString };
        }
        match self.kind["type"].as_str().unwrap_or_default() {
            "object" if self.kind["additionalProperties"].is_object() => Shape::Map,
            "object" => Shape::Object,
            "array" => match self.place["x-kubernetes-list-type"].as_str() {
                Some("map") => Shape::Keyed,
                Some("set") => Shape::Set,
                _ => Shape::Atomic,
            },
            "string" if format == "byte" => Shape::Bytes,
            "string" if format == "date-time" => Shape::Time,
            "string" => Shape::Text,
            "integer" => Shape::Integer,
            "number" => Shape::Number,
            "boolean" => Shape::Boolean,
            _ => Shape::Any,
        }
    }

    /// The keys of an element of this keyed list, absent ones by their default; as text.
    pub(super) fn key_of(self, element: &Value) -> Vec<(String, String)> {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            Value::Number(number) => match number.as_f64() {
                Some(float) if float.fract() == 0.0 => format!("{float:.0}"),
                _ => number.to_string(),
            },
            other => other.to_string(),
        };
        let key = |name: &str| {
            let item = self.item().and_then(|item| item.member(name));
            let value = element.get(name).filter(|value| !value.is_null());
            (
                name.to_owned(),
                value.or(item.and_then(Schema::default)).map(text).unwrap_or_default(),
            )
        };
        self.keys().map(key).collect()
    }
}

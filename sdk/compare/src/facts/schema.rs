//! Reading one JSON schema as Kubernetes writes them into the graph of facts.
//!
//! Two dialects: schemas generated from Go types (OpenAPI documents, names under `io.k8s.api` and
//! its siblings), where `omitempty` and defaulting functions rule, and structural schemas of custom
//! resources, where what is stated is stored.

use super::encode::{Draft, Graph, Slot};
use super::knowledge::{self, Says};
use super::layout::{bits, marks};
use super::pointers;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use trimtab_json::{Object, Value, canonical};

const OBJECT: u32 = 1;
const ARRAY: u32 = 2;

/// Reads schemas into one graph.
pub(super) struct Schemas<'d> {
    named: Option<&'d Object<'d>>,
    /// An index of `named`, which is too long to be scanned for each reference.
    index: BTreeMap<&'d str, &'d Value<'d>>,
    done: BTreeMap<&'d str, usize>,
    graph: Graph,
}

/// Where a schema stands.
#[derive(Clone, Copy)]
struct Place<'p> {
    /// The Go type that has the field; empty in a custom resource.
    owner: &'p str,
    /// The field; empty for items and map values.
    field: &'p str,
}

impl<'d> Schemas<'d> {
    pub(super) fn new(named: Option<&'d Object<'d>>) -> Self {
        let index = named.map(|named| named.iter().collect()).unwrap_or_default();
        Self { named, index, done: BTreeMap::new(), graph: Graph::default() }
    }

    /// The buffer of the schema `name`.
    pub(super) fn encode_named(mut self, name: &'d str) -> Option<Vec<u8>> {
        let node = self.reference(name);
        if go_type(name).is_empty()
            && let Some(draft) = self.graph.draft(node)
        {
            let draft = draft.clone();
            return self.encode_object(draft);
        }
        let root = self.graph.slot(Slot { node, ..Slot::default() });
        self.graph.encode(root)
    }

    /// The buffer of a CRD's schema.
    pub(super) fn encode_custom(
        mut self,
        schema: &'d Value<'d>,
        preserves: bool,
    ) -> Option<Vec<u8>> {
        let mut draft = self.draft(schema, "");
        if preserves {
            draft.bits = (draft.bits | bits::PRESERVES) & !bits::CLOSED;
        }
        self.encode_object(draft)
    }

    /// A custom resource: whatever its schema says of them, the server handles `apiVersion`,
    /// `kind` and `metadata` as Go types.
    fn encode_object(mut self, mut draft: Draft) -> Option<Vec<u8>> {
        let text = self.scalar(3, 0);
        let string = self.graph.slot(Slot { node: text, default: None, marks: marks::GO });
        let map =
            self.graph.node(Draft { bits: OBJECT, additional: Some(string), ..Draft::default() });
        let map = self.graph.slot(Slot {
            node: map,
            default: None,
            marks: marks::GO | marks::DROPS_ZERO,
        });
        let set =
            Draft { bits: ARRAY | 1 << bits::LIST_SHIFT, item: Some(string), ..Draft::default() };
        let set = self.graph.node(set);
        let set = self.graph.slot(Slot {
            node: set,
            default: None,
            marks: marks::GO | marks::DROPS_ZERO,
        });
        let any = self.scalar(0, 0);
        let any = self.graph.slot(Slot { node: any, ..Slot::default() });
        let fields =
            [("labels", map), ("annotations", map), ("finalizers", set), ("ownerReferences", any)];
        let fields = fields.into_iter().map(|(name, slot)| (name.to_owned(), slot)).collect();
        let metadata = self.graph.node(Draft { bits: OBJECT, fields, ..Draft::default() });
        let metadata = self.graph.slot(Slot { node: metadata, ..Slot::default() });
        draft.fields.insert("metadata".to_owned(), metadata);
        for name in ["apiVersion", "kind"] {
            draft.fields.insert(name.to_owned(), string);
        }
        let node = self.graph.node(draft);
        let root = self.graph.slot(Slot { node, ..Slot::default() });
        self.graph.encode(root)
    }

    fn scalar(&mut self, kind: u32, more: u32) -> usize {
        self.graph.node(Draft { bits: kind | more, ..Draft::default() })
    }

    /// The node of a named schema; a name without a schema is a type that nothing is known of.
    fn reference(&mut self, name: &'d str) -> usize {
        if let Some(&node) = self.done.get(name) {
            return node;
        }
        // JSONSchemaProps or a boolean, or a list of them: the first of these is what matters.
        if let Some(one) = name
            .strip_suffix("JSONSchemaPropsOrBool")
            .or(name.strip_suffix("JSONSchemaPropsOrArray"))
            && let Some((&props, _)) =
                self.index.get_key_value(alloc::format!("{one}JSONSchemaProps").as_str())
        {
            let node = self.graph.reserve();
            self.done.insert(name, node);
            let props = self.reference(props);
            // Its fields may not be there yet (it contains itself): it is copied at the end of its own reading.
            let mut draft = self.graph.draft(props).cloned().unwrap_or_default();
            draft.bits &= !(bits::TYPE | bits::CLOSED);
            self.graph.fill(node, draft);
            return node;
        }
        let node = self.graph.reserve();
        self.done.insert(name, node);
        let draft = match self.index.get(name) {
            Some(_) if name.ends_with(".resource.Quantity") => {
                Draft { bits: bits::QUANTITY, ..Draft::default() }
            }
            Some(schema) => self.draft(schema, go_type(name)),
            None => Draft::default(),
        };
        if name.ends_with(".JSONSchemaProps") {
            self.copy_props(name, &draft);
        }
        self.graph.fill(node, draft);
        node
    }

    /// Fills the aliases of JSONSchemaProps that were made while it was being read.
    fn copy_props(&mut self, name: &str, draft: &Draft) {
        let mut alias = draft.clone();
        alias.bits &= !(bits::TYPE | bits::CLOSED);
        for suffix in ["OrBool", "OrArray"] {
            if let Some(&node) = self.done.get(alloc::format!("{name}{suffix}").as_str()) {
                self.graph.fill(node, alias.clone());
            }
        }
    }

    /// The slot of a schema at a place.
    fn slot(&mut self, schema: &'d Value<'d>, place: Place<'_>) -> usize {
        let go = !place.owner.is_empty();
        let node = match referred(schema) {
            Some(name) if self.named.is_some() => self.reference(name),
            _ => {
                let draft = self.draft(schema, place.owner);
                self.graph.node(draft)
            }
        };
        let mut slot = Slot { node, ..Slot::default() };
        if flag(schema, "nullable") {
            slot.marks |= marks::NULLABLE;
        }
        if states_immutable(schema) {
            slot.marks |= marks::IMMUTABLE;
        }
        let default = schema.get("default");
        if go {
            slot.marks |= marks::GO;
            slot.default = default.filter(|value| !is_zero(value)).map(text);
            if !place.field.is_empty() && self.drops_zero(schema, node, default, place) {
                slot.marks |= marks::DROPS_ZERO;
            }
            self.complete(&mut slot, place);
        } else {
            slot.default = default.map(text);
        }
        self.graph.slot(slot)
    }

    /// Whether Go's `omitempty` (or the lack of a pointer) makes zero the same as absent.
    fn drops_zero(
        &self,
        schema: &Value<'_>,
        node: usize,
        default: Option<&Value<'_>>,
        place: Place<'_>,
    ) -> bool {
        // A type that contains itself is not read yet: a struct is there behind a pointer.
        let own = referred(schema).and_then(|name| self.index.get(name));
        if own.is_some_and(|schema| schema.get("properties").is_some()) {
            return default.is_some();
        }
        match self.graph.draft(node) {
            Some(draft) if draft.bits & bits::TYPE == OBJECT => {
                draft.additional.is_some() || default.is_some()
            }
            Some(draft) if draft.bits & bits::TYPE == ARRAY => true,
            _ => !pointers::is_pointer(place.owner, place.field),
        }
    }

    /// What the hand-written tables know of a Go type's field.
    fn complete(&mut self, slot: &mut Slot, place: Place<'_>) {
        for said in knowledge::of(place.owner, place.field) {
            match said {
                Says::Default(text) => slot.default = Some(text.to_owned()),
                Says::ZeroDefault(text) => {
                    slot.default = Some(text.to_owned());
                    slot.marks |= marks::ZERO_IS_DEFAULT;
                }
                Says::ServerSets if pointers::is_pointer(place.owner, place.field) => {
                    slot.marks |= marks::SERVER_SETS;
                }
                Says::ServerSets => slot.marks |= marks::SERVER_SETS | marks::EMPTY_UNSET,
                Says::EmptyUnset => slot.marks |= marks::EMPTY_UNSET,
                Says::Immutable => slot.marks |= marks::IMMUTABLE,
                Says::Multiset => {
                    if let Some(draft) = self.graph.draft(slot.node) {
                        let mut draft = draft.clone();
                        draft.bits = (draft.bits & !bits::LIST) | 3 << bits::LIST_SHIFT;
                        slot.node = self.graph.node(draft);
                    }
                }
            }
        }
    }

    /// The type that a schema describes, its parts included.
    fn draft(&mut self, schema: &'d Value<'d>, owner: &str) -> Draft {
        let mut draft = Draft { bits: type_bits(schema), ..Draft::default() };
        if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
            for (field, schema) in fields.iter() {
                let slot = self.slot(schema, Place { owner, field });
                draft.fields.insert(field.to_owned(), slot);
            }
        }
        let element = Place { owner, field: "" };
        match schema.get("additionalProperties") {
            Some(Value::Bool(true)) => draft.bits |= bits::PRESERVES,
            Some(values @ Value::Object(_)) => draft.additional = Some(self.slot(values, element)),
            _ => {}
        }
        if let Some(items) = schema.get("items").filter(|items| items.as_object().is_some()) {
            draft.item = Some(self.slot(items, element));
        }
        if draft.bits & bits::TYPE == OBJECT {
            let described = !draft.fields.is_empty() || owner.is_empty();
            let open = draft.bits & bits::PRESERVES != 0 || draft.additional.is_some();
            if described && !open {
                draft.bits |= bits::CLOSED;
            }
        }
        // What a Go type says nothing of (RawExtension) is replaced as a whole.
        let bare = draft.fields.is_empty() && draft.additional.is_none();
        if draft.bits & bits::TYPE == OBJECT && bare && !owner.is_empty() {
            draft.bits |= bits::ATOMIC_OBJECT;
        }
        if draft.bits & bits::TYPE == ARRAY {
            self.merge(schema, &mut draft);
        }
        draft
    }

    /// How a list merges: what the schema says for server-side apply, else for strategic merge.
    fn merge(&mut self, schema: &Value<'_>, draft: &mut Draft) {
        let said = |name: &str| schema.get(name).and_then(Value::as_str);
        let mut names: Vec<&str> = Vec::new();
        let kind = match said("x-kubernetes-list-type") {
            Some("map") => {
                let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                names.extend(keys.unwrap_or_default().iter().filter_map(Value::as_str));
                2
            }
            Some("set") => 1,
            Some(_) => 0,
            None if said("x-kubernetes-patch-strategy")
                .is_some_and(|how| how.contains("merge")) =>
            {
                names.extend(said("x-kubernetes-patch-merge-key"));
                if names.is_empty() { 1 } else { 2 }
            }
            None => 0,
        };
        if kind == 2 && names.is_empty() {
            return;
        }
        draft.bits |= kind << bits::LIST_SHIFT;
        draft.keys =
            names.iter().map(|name| ((*name).to_owned(), self.key_default(draft, name))).collect();
    }

    fn key_default(&self, list: &Draft, name: &str) -> Option<String> {
        let item = self.graph.slot_at(list.item?)?;
        let slot = self.graph.draft(item.node)?.fields.get(name)?;
        self.graph.slot_at(*slot)?.default.clone()
    }
}

/// The short name of a Go type (`Container`); empty for other schemas.
fn go_type(name: &str) -> &str {
    const ROOTS: [&str; 4] = [
        "io.k8s.api.",
        "io.k8s.apimachinery.",
        "io.k8s.apiextensions-apiserver.",
        "io.k8s.kube-aggregator.",
    ];
    if ROOTS.iter().any(|root| name.starts_with(root)) {
        name.rsplit('.').next().unwrap_or_default()
    } else {
        ""
    }
}

/// The name that a schema refers to, directly or by a lone `allOf`.
fn referred<'s>(schema: &'s Value<'_>) -> Option<&'s str> {
    let direct = schema.get("$ref").or_else(|| match schema.get("allOf")?.as_array()? {
        [only] => only.get("$ref"),
        _ => None,
    });
    direct?.as_str()?.rsplit('/').next()
}

fn type_bits(schema: &Value<'_>) -> u32 {
    let said = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut found = match said("type") {
        "object" => OBJECT,
        "array" => ARRAY,
        "string" => 3,
        "integer" => 4,
        "number" => 5,
        "boolean" => 6,
        _ => 0,
    };
    if flag(schema, "x-kubernetes-int-or-string") || said("format") == "int-or-string" {
        found = bits::INT_OR_STRING;
        // How controller-gen spells resource.Quantity.
        if said("pattern").contains("[KMGTPE]i)|[numkMGTPE]|") {
            found = bits::QUANTITY;
        }
    }
    found |= match said("format") {
        "byte" => 1 << bits::FORMAT_SHIFT,
        "date-time" => 2 << bits::FORMAT_SHIFT,
        "duration" => 3 << bits::FORMAT_SHIFT,
        _ => 0,
    };
    if said("x-kubernetes-map-type") == "atomic" {
        found |= bits::ATOMIC_OBJECT;
    }
    if flag(schema, "x-kubernetes-preserve-unknown-fields")
        || flag(schema, "x-kubernetes-embedded-resource")
    {
        found |= bits::PRESERVES;
    }
    found
}

/// Whether a CEL rule of the schema says that the value cannot change.
fn states_immutable(schema: &Value<'_>) -> bool {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    rules.unwrap_or_default().iter().filter_map(|rule| rule.str_at(&["rule"])).any(|rule| {
        let mut bare = rule.split_whitespace();
        let words = [bare.next(), bare.next(), bare.next(), bare.next()];
        matches!(
            words,
            [Some("self"), Some("=="), Some("oldSelf"), None]
                | [Some("oldSelf"), Some("=="), Some("self"), None]
        ) || rule == "self==oldSelf"
            || rule == "oldSelf==self"
    })
}

fn flag(schema: &Value<'_>, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool) == Some(true)
}

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(text) | Value::String(text) => text.is_empty() || text == "0",
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.is_empty(),
    }
}

fn text(value: &Value<'_>) -> String {
    let mut out = Vec::new();
    canonical(value, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

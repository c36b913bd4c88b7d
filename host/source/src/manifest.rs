//! Documents to manifests: every document is an object of Kubernetes, or a List of them, or the
//! source is refused. A mistyped `kind` must never look like a removal.
//!
//! Judges only what holds for every kind without asking a cluster: identity, the shapes of names,
//! and maps that are text everywhere. Anything else is for the API server's schema.

use crate::decode::Document;
use crate::error::{Fault, Problem, ProblemCode};
use crate::generator;
use crate::limits::MAX_FILE_PROBLEMS;
use crate::naming::{is_api_version, is_kind, name_fault, namespace_fault};
use std::sync::Arc;
use trimtab_core::identity::Gvk;
use trimtab_core::object::{Manifest, Origin};
use trimtab_json::{Object, Value};

/// The manifests of one file, in its order, Lists expanded.
///
/// # Errors
/// The problems of the file's documents, up to [`MAX_FILE_PROBLEMS`].
pub(crate) fn manifests(
    file: &Arc<str>,
    documents: Vec<Document>,
) -> Result<Vec<Manifest>, Vec<Problem>> {
    let mut reader = Reader { file, manifests: Vec::new(), problems: Vec::new() };
    for document in documents {
        reader.document(document);
    }
    if reader.problems.is_empty() { Ok(reader.manifests) } else { Err(reader.problems) }
}

struct Reader<'f> {
    file: &'f Arc<str>,
    manifests: Vec<Manifest>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn document(&mut self, document: Document) {
        let Document { line, json, item_lines, unquoted } = document;
        let value = match trimtab_json::parse(&json) {
            Ok(value) => value,
            // Only aliases inside deep nesting come here: the text was written by us.
            Err(fault) => {
                let message = format!("cannot be read as JSON: {fault}");
                return self.fault(Fault::new(
                    ProblemCode::TooLarge,
                    line,
                    message,
                    "nest less deeply",
                ));
            }
        };
        // What templates leave behind where they render nothing; kubectl passes over it, too.
        if value.is_null() {
            return;
        }
        if let Some((api_version, item_kind)) = list_of(&value) {
            let (api_version, item_kind) = (api_version.to_owned(), item_kind.to_owned());
            let Value::Object(mut list) = value else { return };
            let items = list.remove("items");
            return self.items(&api_version, &item_kind, items, line, &|position| Place {
                line: item_lines.get(position).copied().unwrap_or(line),
                prefix: format!("/items/{position}"),
                unquoted: &unquoted,
            });
        }
        let place = Place { line, prefix: String::new(), unquoted: &unquoted };
        match judge(&value, &place) {
            Ok(identity) => {
                drop(value);
                self.accept(identity, json, line);
            }
            Err(fault) => self.fault(fault),
        }
    }

    /// The items of a List, with what a typed List leaves out put back.
    fn items<'p>(
        &mut self,
        api_version: &str,
        item_kind: &str,
        items: Option<Value<'_>>,
        line: u32,
        place: &dyn Fn(usize) -> Place<'p>,
    ) {
        let Some(Value::Array(items)) = items else {
            return self.fault(Fault::new(
                ProblemCode::NotAnObject,
                line,
                "a List without a list of items",
                "state items, [] if there are none",
            ));
        };
        for (position, item) in items.into_iter().enumerate() {
            let place = place(position);
            let item =
                if item_kind.is_empty() { item } else { complete(item, api_version, item_kind) };
            if let Some((api_version, item_kind)) = list_of(&item) {
                let (api_version, item_kind) = (api_version.to_owned(), item_kind.to_owned());
                let Value::Object(mut list) = item else { continue };
                let items = list.remove("items");
                // Lines within a List within a List are not kept: the inner List's own is given.
                self.items(&api_version, &item_kind, items, place.line, &|_| Place {
                    line: place.line,
                    prefix: place.prefix.clone(),
                    unquoted: &[],
                });
                continue;
            }
            match judge(&item, &place) {
                Ok(identity) => {
                    let mut json = Vec::new();
                    trimtab_json::write(&item, &mut json);
                    self.accept(identity, json, place.line);
                }
                Err(fault) => self.fault(fault),
            }
        }
    }

    fn accept(&mut self, identity: Identity, json: Vec<u8>, line: u32) {
        let origin = Origin { file: self.file.clone(), line };
        let Identity { gvk, namespace, name } = identity;
        self.manifests.push(Manifest { gvk, namespace, name, json: json.into(), origin });
    }

    fn fault(&mut self, fault: Fault) {
        if self.problems.len() < MAX_FILE_PROBLEMS {
            self.problems.push(fault.in_file(self.file));
        }
    }
}

/// Where an object stands, for messages.
struct Place<'a> {
    line: u32,
    /// Path from the document to the object.
    prefix: String,
    unquoted: &'a [(String, u32)],
}

impl Place<'_> {
    fn fault(&self, code: ProblemCode, message: impl Into<String>, remedy: &str) -> Fault {
        Fault::new(code, self.line, message, remedy)
    }
}

struct Identity {
    gvk: Gvk,
    namespace: Option<Arc<str>>,
    name: Arc<str>,
}

/// If this is a List: its apiVersion and the kind of its items, which is empty for `kind: List`.
///
/// A typed List (`RoleList`) has items and no name; an object with a name is an object, whatever
/// its kind is called.
fn list_of<'v>(value: &'v Value<'_>) -> Option<(&'v str, &'v str)> {
    let item_kind = value.get("kind")?.as_str()?.strip_suffix("List")?;
    let api_version = value.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let typed = || value.get("items").is_some() && value.at(&["metadata", "name"]).is_none();
    (item_kind.is_empty() || typed()).then_some((api_version, item_kind))
}

/// An item of a typed List, which may leave out what the List says for all.
fn complete<'a>(item: Value<'a>, api_version: &str, kind: &str) -> Value<'a> {
    let Value::Object(members) = item else { return item };
    if members.get("apiVersion").is_some() && members.get("kind").is_some() {
        return Value::Object(members);
    }
    let own = |name: &str, default: &str| match members.get(name) {
        Some(value) => value.clone(),
        None => default.to_owned().into(),
    };
    let front =
        [("apiVersion".into(), own("apiVersion", api_version)), ("kind".into(), own("kind", kind))];
    let rest = members.into_iter().filter(|(name, _)| name != "apiVersion" && name != "kind");
    Value::Object(front.into_iter().chain(rest).collect::<Object<'_>>())
}

fn judge(value: &Value<'_>, place: &Place<'_>) -> Result<Identity, Fault> {
    let not_an_object = |message: String| {
        let remedy = "every document must state apiVersion, kind and metadata.name; keep other \
                      files out of the source";
        place.fault(ProblemCode::NotAnObject, message, remedy)
    };
    let Some(object) = value.as_object() else {
        return Err(not_an_object(format!("the document is a {}", value.type_name())));
    };
    let is_encrypted = |object: &Object<'_>| {
        let word = |name: &str| object.get(name).and_then(Value::as_str);
        object.get("sops").is_some()
            && ["apiVersion", "kind"]
                .iter()
                .any(|name| word(name).is_none_or(|text| text.starts_with("ENC[")))
    };
    // Where identity is readable, placing refuses the one object and the rest goes on.
    if is_encrypted(object) {
        let message = "the whole document is encrypted by SOPS, and Trimtab does not decrypt";
        let remedy = "decrypt it where it is rendered, or keep it out of the source";
        return Err(place.fault(ProblemCode::Encrypted, message, remedy));
    }
    let api_version = text(object, "apiVersion").map_err(not_an_object)?;
    let kind = text(object, "kind").map_err(not_an_object)?;
    if !is_api_version(api_version) {
        return Err(not_an_object("apiVersion is neither a version nor group/version".into()));
    }
    if !is_kind(kind) {
        return Err(not_an_object("kind is not the name of a kind".into()));
    }
    let gvk = Gvk::from_api_version(api_version, kind);
    if &*gvk.group == "kustomize.config.k8s.io" {
        return Err(generator::kustomization(place.line));
    }
    let Some(metadata) = object.get("metadata").and_then(Value::as_object) else {
        return Err(not_an_object(format!("the {kind} has no metadata")).at("/metadata"));
    };
    let nameless = match metadata.get("name") {
        None | Some(Value::Null) => true,
        Some(name) => name.as_str() == Some(""),
    };
    let name = match metadata.get("generateName") {
        Some(generated) if nameless && !generated.is_null() => {
            return Err(place
                .fault(
                    ProblemCode::GenerateName,
                    format!("the {kind} has a generateName and no name: it would be another object each time"),
                    "give it a metadata.name",
                )
                .at("/metadata/generateName"));
        }
        _ => text(metadata, "name").map_err(|message| {
            not_an_object(format!("the {kind}: metadata: {message}")).at("/metadata/name")
        })?,
    };
    if let Some(rule) = name_fault(&gvk.group, kind, name) {
        return Err(
            not_an_object(format!("the {kind}'s name {name:?} {rule}")).at("/metadata/name")
        );
    }
    let namespace = match metadata.get("namespace") {
        None | Some(Value::Null) => None,
        Some(Value::String(namespace)) if namespace.is_empty() => None,
        Some(Value::String(namespace)) => match namespace_fault(namespace) {
            None => Some(Arc::from(namespace.as_ref())),
            Some(rule) => {
                let message = format!("the namespace {namespace:?} of {kind} {name} {rule}");
                return Err(not_an_object(message).at("/metadata/namespace"));
            }
        },
        Some(other) => {
            let message = format!("the namespace of {kind} {name} is a {}", other.type_name());
            return Err(not_an_object(message).at("/metadata/namespace"));
        }
    };
    text_maps(object, metadata, &gvk, name, place)?;
    Ok(Identity { gvk, namespace, name: name.into() })
}

/// The text under a name, or what is wrong instead.
fn text<'v>(object: &'v Object<'_>, name: &str) -> Result<&'v str, String> {
    match object.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        Some(Value::String(_)) => Err(format!("{name} is empty")),
        Some(other) => {
            Err(format!("{name} is a {}, not text: write it in quotes", other.type_name()))
        }
        None => {
            let keys: Vec<_> = object.iter().take(8).map(|(key, _)| key).collect();
            Err(format!("there is no {name}, only: {}", keys.join(", ")))
        }
    }
}

/// Maps whose values are text whatever the kind's schema says; a number is not silently quoted.
fn text_maps(
    object: &Object<'_>,
    metadata: &Object<'_>,
    gvk: &Gvk,
    name: &str,
    place: &Place<'_>,
) -> Result<(), Fault> {
    let of_kind: &[&str] = match (&*gvk.group, &*gvk.kind) {
        ("", "ConfigMap") => &["data", "binaryData"],
        ("", "Secret") => &["data", "stringData"],
        _ => &[],
    };
    let maps = ["labels", "annotations"]
        .into_iter()
        .map(|map| (format!("/metadata/{map}"), metadata.get(map)))
        .chain(of_kind.iter().map(|map| (format!("/{map}"), object.get(map))));
    for (path, map) in maps {
        let members = match map {
            None | Some(Value::Null) => continue,
            Some(Value::Object(members)) => members,
            Some(other) => {
                let message = format!(
                    "{} {name}: expected a mapping, found a {}",
                    gvk.kind,
                    other.type_name()
                );
                let remedy = "state keys and values";
                return Err(place.fault(ProblemCode::TypeMismatch, message, remedy).at(path));
            }
        };
        for (key, value) in members.iter() {
            if matches!(value, Value::String(_) | Value::Null) {
                continue;
            }
            let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
            let full = format!("{}{path}", place.prefix);
            let line = place.unquoted.iter().find(|(path, _)| *path == full);
            let message =
                format!("{} {name}: expected text, found a {}", gvk.kind, value.type_name());
            let mut fault = place
                .fault(ProblemCode::TypeMismatch, message, "write the value in quotes")
                .at(path);
            fault.line = line.map(|(_, line)| *line).or(fault.line);
            return Err(fault);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

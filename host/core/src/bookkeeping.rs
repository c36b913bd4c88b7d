//! Bookkeeping metadata: who owns an object, what holds its deletion back, and our own words on it
//! are the host's alone, never a plugin's.
//!
//! Content that a plugin made may carry them only as desired states them; where it leaves them out
//! the host puts desired's in, so that nothing is lost by leaving out either. What a server writes,
//! and what would make the content another object, may not stand in it at all.

use crate::decision::{Finding, Severity};
use crate::grant::Refusal;
use crate::identity::Gvk;
use crate::snapshot::Snapshot;
use trimtab_json::{Object, Value};

/// Reasons of refusals.
pub(crate) const HOST_OWNED: &str = "HostOwnedField";
pub(crate) const ANOTHER_OBJECT: &str = "ContentOfAnotherObject";
pub(crate) const UNREADABLE: &str = "ContentUnreadable";

/// How annotations and labels of ours begin.
const OURS: &str = "trimtab.dev/";

/// What only a server writes, or what would make a name.
const SERVER_OWNED: [&str; 9] = [
    "generateName",
    "managedFields",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
];

/// What says whose the object is and what waits for its end.
const OWNERSHIP: [&str; 2] = ["ownerReferences", "finalizers"];

/// What content is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// The object itself.
    Content,
    /// Its status.
    Status,
}

/// The content as it may be applied, with desired's own bookkeeping.
///
/// # Errors
/// One refusal for each thing that must not stand in it.
pub(crate) fn content(
    content: &[u8],
    usage: Use,
    snapshot: &Snapshot,
) -> Result<Vec<u8>, Vec<Refusal>> {
    let unreadable = |why: String| {
        let message = format!("the content that the plugin made cannot be read: {why}");
        vec![Refusal { reason: UNREADABLE, message }]
    };
    let mut tree = trimtab_json::parse(content).map_err(|error| unreadable(error.to_string()))?;
    let desired = trimtab_json::parse(&snapshot.desired.json);
    let desired = desired.map_err(|error| unreadable(error.to_string()))?;
    let Value::Object(root) = &mut tree else {
        return Err(unreadable("it is not a JSON object".into()));
    };
    let mut refusals = another_object(root, snapshot);
    let mut owned = |path: String| {
        let message =
            format!("the content that the plugin made carries {path}, which is the host's alone");
        refusals.push(Refusal { reason: HOST_OWNED, message });
    };
    match usage {
        Use::Content if root.get("status").is_some() => owned("/status".into()),
        Use::Status => {
            let known = ["apiVersion", "kind", "metadata", "status"];
            for (name, _) in root.iter().filter(|(name, _)| !known.contains(name)) {
                owned(format!("/{name}"));
            }
        }
        Use::Content => {}
    }
    let metadata = root.get("metadata");
    for name in SERVER_OWNED {
        if metadata.and_then(|metadata| metadata.get(name)).is_some() {
            owned(format!("/metadata/{name}"));
        }
    }
    if usage == Use::Status {
        let known = ["name", "namespace"];
        let others = metadata.and_then(Value::as_object).into_iter().flat_map(Object::iter);
        for (name, _) in others.filter(|(name, _)| !known.contains(name)) {
            if !SERVER_OWNED.contains(&name) {
                owned(format!("/metadata/{name}"));
            }
        }
    } else {
        for (path, value) in of_host(&tree) {
            if path.resolve(&desired) != Some(value) {
                owned(path.to_string());
            }
        }
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    if usage == Use::Content {
        for (path, value) in of_host(&desired) {
            if path.resolve(&tree).is_none() && !crate::edit::set(&mut tree, &path, value.clone()) {
                return Err(unreadable(format!("{path} of desired cannot be put into it")));
            }
        }
    }
    let mut bytes = Vec::new();
    trimtab_json::write(&tree, &mut bytes);
    Ok(bytes)
}

/// What a removal would take that is the host's: it may take only what desired does not state and
/// nobody else relies on, which is a word of ours that somebody wrote on the live object.
pub(crate) fn removed(
    before: &Value<'_>,
    after: &Value<'_>,
    desired: &Value<'_>,
) -> Option<Refusal> {
    let (path, _) = of_host(before).into_iter().find(|(path, value)| {
        let kept = path.resolve(after) == Some(*value);
        let ownership = path.steps().len() == 2;
        !kept && (ownership || path.resolve(desired).is_some())
    })?;
    Some(Refusal {
        reason: HOST_OWNED,
        message: format!("{path} was to be removed, which is the host's alone"),
    })
}

/// A finding for a refusal that says that a plugin tried what no plugin should.
pub(crate) fn finding(refusal: &Refusal) -> Finding {
    Finding {
        name: "plugin-overstepped".into(),
        severity: Severity::Critical,
        message: refusal.to_string(),
        path: None,
    }
}

/// Ownership and our own words, where an object has them.
fn of_host<'v, 'a>(object: &'v Value<'a>) -> Vec<(trimtab_json::Path, &'v Value<'a>)> {
    use trimtab_json::{Path, Step};
    let field = |name: &str| Step::Field(name.to_owned());
    let Some(metadata) = object.get("metadata") else { return Vec::new() };
    let mut found = Vec::new();
    for name in OWNERSHIP {
        if let Some(value) = metadata.get(name) {
            found.push((Path::from(vec![field("metadata"), field(name)]), value));
        }
    }
    for map in ["annotations", "labels"] {
        let members = metadata.get(map).and_then(Value::as_object);
        for (name, value) in members.into_iter().flat_map(Object::iter) {
            if is_ours(name) {
                found.push((Path::from(vec![field("metadata"), field(map), field(name)]), value));
            }
        }
    }
    found
}

/// `trimtab.dev/…` and its subdomains.
fn is_ours(name: &str) -> bool {
    name.starts_with(OURS)
        || name.split_once('/').is_some_and(|(prefix, _)| prefix.ends_with(".trimtab.dev"))
}

fn another_object(root: &Object<'_>, snapshot: &Snapshot) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let mut other = |what: String| {
        let message =
            format!("the content that the plugin made {what}, and is to be {}", snapshot.key);
        refusals.push(Refusal { reason: ANOTHER_OBJECT, message });
    };
    let text = |value: Option<&Value<'_>>| {
        value.map(|value| value.as_str().unwrap_or("not text").to_owned())
    };
    let kind = text(root.get("kind"));
    let version = text(root.get("apiVersion"));
    if kind.as_ref().is_some_and(|kind| **kind != *snapshot.gvk.kind) {
        other(format!("is of kind {:?}", kind.unwrap_or_default()));
    }
    let group_version = |text: &str| Gvk::from_api_version(text, &snapshot.gvk.kind);
    if version.as_ref().is_some_and(|version| group_version(version) != snapshot.gvk) {
        other(format!("states apiVersion {:?}", version.unwrap_or_default()));
    }
    match root.get("metadata") {
        None => {}
        Some(Value::Object(metadata)) => {
            let name = text(metadata.get("name"));
            if name.as_ref().is_some_and(|name| **name != *snapshot.key.name) {
                other(format!("is named {:?}", name.unwrap_or_default()));
            }
            let namespace = text(metadata.get("namespace"));
            if namespace.as_ref().is_some_and(|it| **it != *snapshot.key.namespace_str()) {
                other(format!("is in namespace {:?}", namespace.unwrap_or_default()));
            }
        }
        Some(other_type) => other(format!("has metadata of type {}", other_type.type_name())),
    }
    refusals
}

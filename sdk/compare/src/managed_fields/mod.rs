//! Who wrote what: a reader of `metadata.managedFields` (`fieldsV1`), in place.
//!
//! The answer is a hint, not a proof: a manager's name is whatever a client called itself.
//! `tree.rs` follows one manager's field set.

mod tree;

pub(crate) use tree::{Step as TreeStep, Tree, step as tree_step};

use alloc::vec::Vec;
use trimtab_json::{Object, Path, Value};

/// How a manager wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By anything else: create, update, patch.
    Update,
}

impl Operation {
    /// The name as `managedFields` has it.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// One entry of `metadata.managedFields`.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'v> {
    /// The field manager's name.
    pub manager: &'v str,
    /// How it wrote.
    pub operation: Operation,
    /// Through which subresource (`status`, `scale`), if through one.
    pub subresource: Option<&'v str>,
    /// The group and version that the fields are named in.
    pub api_version: &'v str,
    /// When it last wrote, as RFC 3339 text.
    pub time: Option<&'v str>,
    fields: Option<&'v Object<'v>>,
}

impl<'v> Entry<'v> {
    pub(crate) fn tree(&self) -> Tree<'v> {
        Tree::new(self.fields)
    }

    /// Whether the manager owns the value at `path`: the field itself, an atomic value around it,
    /// or something within it.
    pub fn owns(&self, path: &Path) -> bool {
        self.tree().owns(path.steps())
    }
}

/// The entries of a live object, in its order. Entries that say nothing of fields are left out.
pub fn entries<'v>(live: &'v Value<'v>) -> impl Iterator<Item = Entry<'v>> {
    let list = live.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    list.unwrap_or_default().iter().filter_map(|entry| {
        let text = |name: &str| entry.str_at(&[name]);
        Some(Entry {
            manager: text("manager").unwrap_or_default(),
            operation: match text("operation")? {
                "Apply" => Operation::Apply,
                _ => Operation::Update,
            },
            subresource: text("subresource").filter(|name| !name.is_empty()),
            api_version: text("apiVersion").unwrap_or_default(),
            time: text("time"),
            fields: entry.get("fieldsV1").and_then(Value::as_object),
        })
    })
}

/// Who owns the value at `path`, see [`Entry::owns`]; in the object's order.
pub fn managers_of<'v>(live: &'v Value<'v>, path: &Path) -> impl Iterator<Item = Entry<'v>> {
    entries(live).filter(|entry| entry.owns(path))
}

/// [`managers_of`] for many paths at once; an answer for each, in their order. Large field sets are
/// indexed once, so this is linear in paths and fields together.
pub fn attribute<'v>(live: &'v Value<'v>, paths: &[Path]) -> Vec<Vec<Entry<'v>>> {
    let mut answers: Vec<Vec<Entry<'v>>> = paths.iter().map(|_| Vec::new()).collect();
    for entry in entries(live) {
        let tree = entry.tree();
        for (answer, path) in answers.iter_mut().zip(paths) {
            if tree.owns(path.steps()) {
                answer.push(entry);
            }
        }
    }
    answers
}

/// A place that a field set names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Where.
    pub path: Path,
    /// Whether all that live has there is owned; else only that there is something.
    pub whole: bool,
}

/// All that these entries own, parents before children.
pub fn owned<'v>(entries: impl Iterator<Item = Entry<'v>>) -> Vec<Owned> {
    let mut found = Vec::new();
    for entry in entries {
        entry.tree().places(&mut |path, whole| found.push(Owned { path: path.clone(), whole }));
    }
    found
}

/// All that a manager owns by an operation, subresources aside: each field, element and value that
/// is named as such, parents before children.
pub fn owned_paths<'v>(live: &'v Value<'v>, manager: &str, operation: Operation) -> Vec<Path> {
    let mut paths = Vec::new();
    let theirs = entries(live).filter(|entry| {
        entry.manager == manager && entry.operation == operation && entry.subresource.is_none()
    });
    for entry in theirs {
        entry.tree().places(&mut |path, _| paths.push(path.clone()));
    }
    paths
}

/// The entries that name their fields in another version than the live object is read in. Where
/// that version is no longer served, the API server refuses every apply until they are rewritten.
pub fn of_other_versions<'v>(live: &'v Value<'v>) -> impl Iterator<Item = Entry<'v>> {
    let version = live.str_at(&["apiVersion"]).unwrap_or_default();
    entries(live).filter(move |entry| entry.api_version != version)
}

/// Whether a manager's name is one of the control plane's own, whose additions are part of how the
/// cluster works and never stray.
pub fn is_system(manager: &str) -> bool {
    matches!(
        manager,
        "kube-controller-manager"
            | "kube-scheduler"
            | "kube-apiserver"
            | "kubelet"
            | "kube-proxy"
            | "cloud-controller-manager"
            | "cluster-autoscaler"
            | "clusterrole-aggregation-controller"
            | "horizontal-pod-autoscaler"
            | "vpa-admission-controller"
            | "vpa-updater"
            | "cainjector"
            | "cert-manager-cainjector"
            // What the server calls the writers of fields from before it kept records.
            | "before-first-apply"
    )
}

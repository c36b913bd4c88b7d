//! The model: what each commit declares, and which of them may be in force.
//!
//! Made by the test alone: it knows nothing of what the host says but the names of revisions.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use trimtab_system_tests::Id;

/// The sources: folders of one repository.
pub(super) const SOURCES: [&str; 2] = ["a", "b"];
/// The label that has an object's value.
pub(super) const VALUE: &str = "value";
/// What is declared beside namespaces.
pub(super) const KINDS: [&str; 4] = ["ConfigMap", "Secret", "Service", "ServiceAccount"];

/// How an object is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Declared {
    /// In which folder of its source; no part of what it is.
    pub(super) folder: &'static str,
    pub(super) value: usize,
}

/// What one source has in a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) objects: BTreeMap<Id, Declared>,
    /// A file for which all of it is refused: name and text.
    pub(super) spoilt: Option<(&'static str, &'static str)>,
    /// The folder is not there at all.
    pub(super) gone: bool,
}

impl Part {
    fn is_usable(&self) -> bool {
        self.spoilt.is_none() && !self.gone
    }

    /// Its files, by path within the source's folder.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        if self.gone {
            return Vec::new();
        }
        let named = |(id, declared): (&Id, &Declared)| {
            let Declared { folder, .. } = declared;
            let name = format!("{folder}/{}-{}-{}.yaml", id.namespace, id.kind, id.name);
            (name.to_ascii_lowercase(), manifest(id, declared.value).to_string())
        };
        let mut files: Vec<(String, String)> = self.objects.iter().map(named).collect();
        // Git has no empty folders.
        files.push((".gitkeep".into(), String::new()));
        files.extend(self.spoilt.map(|(name, text)| (name.to_owned(), text.to_owned())));
        files
    }
}

fn manifest(id: &Id, value: usize) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": id.kind,
        "metadata": {"name": id.name, "labels": {VALUE: format!("v{value}")}},
    });
    if !id.namespace.is_empty() {
        object["metadata"]["namespace"] = id.namespace.clone().into();
    }
    match &*id.kind {
        "ConfigMap" => object["data"] = json!({VALUE: value.to_string()}),
        "Secret" => object["stringData"] = json!({VALUE: value.to_string()}),
        "Service" => object["spec"] = json!({"ports": [{"port": 1 + value % 60_000}]}),
        _ => {}
    }
    object
}

/// One commit.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    pub(super) id: String,
    pub(super) parent: Option<usize>,
    pub(super) signed: bool,
    /// As [`SOURCES`].
    pub(super) parts: [Part; 2],
}

/// All commits that were ever made, and the branch.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) commits: Vec<Commit>,
    /// Where the branch is.
    pub(super) head: usize,
    /// Steps back that a person allowed: source and commit.
    pub(super) allowed: BTreeSet<(usize, usize)>,
}

impl History {
    pub(super) fn head(&self) -> &Commit {
        &self.commits[self.head]
    }

    pub(super) fn find(&self, id: &str) -> Option<usize> {
        self.commits.iter().position(|commit| commit.id == id)
    }

    /// A commit and all before it.
    pub(super) fn line(&self, commit: usize) -> Vec<usize> {
        std::iter::successors(Some(commit), |at| self.commits[*at].parent).collect()
    }

    fn is_forward(&self, before: Option<usize>, next: usize) -> bool {
        before.is_none_or(|before| self.line(next).contains(&before))
    }

    /// Whether a source has to go there, as soon as it looks. What a person allowed may be used up.
    pub(super) fn must_follow(&self, source: usize, before: Option<usize>, next: usize) -> bool {
        self.is_forward(before, next) && self.may_follow(source, before, next).is_ok()
    }

    /// Whether a source may go from what it had in force to this commit: why not.
    pub(super) fn may_follow(
        &self,
        source: usize,
        before: Option<usize>,
        next: usize,
    ) -> Result<(), String> {
        let id = &self.commits[next].id;
        if before == Some(next) {
            return Ok(());
        }
        if !self.commits[next].parts[source].is_usable() {
            return Err(format!("{id} cannot be used for source {}", SOURCES[source]));
        }
        let known = before.map(|before| self.line(before)).unwrap_or_default();
        let line = self.line(next);
        // Of the first one nobody says how far back is new.
        let new = line.iter().filter(|at| !known.contains(at)).take(match before {
            Some(_) => usize::MAX,
            None => 1,
        });
        if let Some(bad) = new.clone().find(|at| !self.commits[**at].signed) {
            return Err(format!("{id} brings {}, which is unsigned", self.commits[*bad].id));
        }
        let forward = self.is_forward(before, next);
        // What was allowed may have been in force for too short a time to be told.
        let allowed = line.iter().any(|at| self.allowed.contains(&(source, *at)));
        if forward || allowed { Ok(()) } else { Err(format!("{id} is a step back")) }
    }
}

/// Whether so much waits for a person, by the limits that docs/pruning.md names.
pub(super) fn is_mass(going: &BTreeSet<&Id>, made: &BTreeSet<&Id>) -> bool {
    let (count, all) = (going.len(), made.len());
    let of = |set: &BTreeSet<&Id>, kind: &str| set.iter().filter(|id| id.kind == kind).count();
    let whole_kind = |kind: &&str| of(going, kind) >= 3 && of(going, kind) == of(made, kind);
    count > 50
        || count >= 5 && count * 100 > 30 * all
        || KINDS.iter().chain(&["Namespace"]).any(whole_kind)
}

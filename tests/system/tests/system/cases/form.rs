//! The form of a case, and what a verdict is held against.

use super::{PLACE, types};
use anyhow::{Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use trimtab_core::object::Manifest;
use trimtab_core::placing::Scope;
use trimtab_system_tests::Id;

/// Stands for a value beyond what an annotation may have.
const BIG: &str = "$big";
/// One byte more than the API server takes for the annotations of an object.
const BIG_BYTES: usize = 262_145;

/// One case.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// The file's name.
    #[serde(skip)]
    pub(super) kind: String,
    /// What [`PLACE`] stands for.
    #[serde(skip)]
    pub(super) namespace: String,
    /// A sentence.
    pub(super) name: String,
    /// Public reports that it stands for; none: a sibling that no report names.
    #[serde(default)]
    pub(super) reports: Vec<String>,
    /// The manifest file.
    pub(super) desired: String,
    /// What a cluster has, as a manifest file; left out: nothing.
    #[serde(default)]
    pub(super) live: String,
    /// Definitions of the kinds in it.
    #[serde(default)]
    pub(super) schemas: String,
    /// The one plugin that knows; left out: every one of ours that claims the kind.
    pub(super) plugin: Option<String>,
    /// What should come of it.
    pub(super) expect: Expect,
    /// Why it is known to fail without a cluster.
    pub(super) known: Option<String>,
    /// How an API server shows it, or why it cannot. Left out: in the usual way.
    #[serde(default)]
    pub(super) server: OnServer,
}

/// What should come of a comparison.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    /// `in-sync`, `drift`, `missing`, `extra`, `refused`, or `unreadable`: the file itself is
    /// refused. Several words with `+` where objects differ.
    pub(super) verdict: String,
    /// Every path that differs; left out: not looked at.
    pub(super) paths: Option<BTreeSet<String>>,
    /// What desired has at some of them.
    #[serde(default)]
    pub(super) desired: BTreeMap<String, Value>,
    /// A part of the reason.
    #[serde(default)]
    pub(super) reason: String,
    /// The line of the file that the reason names.
    pub(super) line: Option<u32>,
    /// How many objects the file declares.
    pub(super) objects: Option<usize>,
    /// Texts that no output may have.
    #[serde(default)]
    pub(super) hides: Vec<String>,
}

/// How an API server shows it.
#[derive(Debug, serde::Deserialize)]
#[serde(untagged)]
pub(super) enum OnServer {
    /// It cannot: the reason.
    No(String),
    /// In this way.
    Yes(Box<Way>),
}

impl Default for OnServer {
    fn default() -> Self {
        Self::Yes(Box::default())
    }
}

/// What happens on the server. Everything may be left out.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Way {
    /// What is done before there is a host.
    #[serde(default)]
    pub(super) before: Vec<Step>,
    /// What is declared first, and converges. Left out: desired; where it is refused: live.
    pub(super) first: Option<String>,
    /// What is done when it has converged. Left out, where it drifts: someone puts live there.
    pub(super) steps: Option<Vec<Step>>,
    /// What a server shows, where that is something else.
    pub(super) expect: Option<Expect>,
    /// The verdict is read from the host's passes: only a plugin knows, and `diff` asks none.
    #[serde(default)]
    pub(super) by_host: bool,
    /// Values of the first object when all is over, by JSON pointer; null: it is not there.
    #[serde(default)]
    pub(super) then: BTreeMap<String, Value>,
    /// Where the server is right and a report's expectation is not, or what else is to be known.
    #[serde(default)]
    pub(super) note: String,
    /// Why it is known to fail on a server.
    pub(super) known: Option<String>,
}

/// One request of a real client; `by` is its user and its field manager.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Step {
    pub(super) by: String,
    /// Server-side apply of this object.
    pub(super) apply: Option<Value>,
    /// Server-side apply of this object over other managers.
    pub(super) force: Option<Value>,
    /// What `kubectl apply` does: a patch, and the annotation with the whole object.
    pub(super) client_side_apply: Option<Value>,
    /// Makes this object.
    pub(super) create: Option<Value>,
    /// Replaces everything but the metadata of this object.
    pub(super) put: Option<Value>,
    /// Merge patch of the case's first object, or of `of`.
    pub(super) patch: Option<Value>,
    /// JSON patch of it.
    pub(super) json_patch: Option<Value>,
    /// Replicas, through the subresource `scale`.
    pub(super) scale: Option<u32>,
    /// Merge patch of the subresource `status`.
    pub(super) status: Option<Value>,
    /// Deletes it.
    #[serde(default)]
    pub(super) delete: bool,
    /// Rehearses to make this object, until `has` is so.
    pub(super) rehearse: Option<Value>,
    /// Values that the rehearsal has, by JSON pointer.
    #[serde(default)]
    pub(super) has: BTreeMap<String, Value>,
    /// Another object than the case's first: apiVersion, kind, name.
    pub(super) of: Option<[String; 3]>,
}

/// What was answered, by whichever way.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) verdict: String,
    pub(super) paths: BTreeSet<String>,
    pub(super) desired: BTreeMap<String, Value>,
    pub(super) reason: String,
}

impl Expect {
    /// Holds an answer against it.
    pub(super) fn check(&self, found: &Found) -> Result<()> {
        ensure!(
            found.verdict == self.verdict,
            "{} instead of {}, at {:?}: {}",
            found.verdict,
            self.verdict,
            found.paths,
            found.reason
        );
        if let Some(paths) = &self.paths {
            ensure!(found.paths == *paths, "the paths are {:?}", found.paths);
        }
        for (path, value) in &self.desired {
            let shown = found.desired.get(path).unwrap_or(&Value::Null);
            ensure!(shown == value, "{path} should be {value} and is shown as {shown}");
        }
        ensure!(
            found.reason.contains(&self.reason),
            "the reason does not say {}: {}",
            self.reason,
            found.reason
        );
        Ok(())
    }

    /// No output has what is to be hidden.
    pub(super) fn check_hidden(&self, outputs: &[&str]) -> Result<()> {
        for hidden in &self.hides {
            for output in outputs {
                ensure!(!output.contains(hidden), "{hidden} is shown: {output}");
            }
        }
        Ok(())
    }
}

impl Found {
    /// From `trimtab diff -o json`: what it says of these objects, or of all.
    pub(super) fn in_answer(answer: &Value, of: Option<&[Id]>) -> Self {
        let mut found = Self::default();
        let mut verdicts = BTreeSet::new();
        for error in answer["errors"].as_array().into_iter().flatten() {
            verdicts.insert("unreadable");
            found.reason += error["message"].as_str().unwrap_or_default();
        }
        for judged in answer["objects"].as_array().into_iter().flatten() {
            if of.is_some_and(|of| !of.iter().any(|id| is(judged, id))) {
                continue;
            }
            let verdict = judged["verdict"].as_str().unwrap_or_default();
            if verdict != "in-sync" {
                verdicts.insert(verdict);
            }
            found.reason += judged["reason"].as_str().unwrap_or_default();
            for difference in judged["differences"].as_array().into_iter().flatten() {
                let path = difference["path"].as_str().unwrap_or_default().to_owned();
                found.desired.insert(path.clone(), difference["desired"].clone());
                found.paths.insert(path);
            }
        }
        let words: Vec<&str> = verdicts.into_iter().collect();
        found.verdict = if words.is_empty() { "in-sync".into() } else { words.join("+") };
        found
    }
}

fn is(judged: &Value, id: &Id) -> bool {
    let object = &judged["object"];
    object["apiVersion"] == *id.api_version
        && object["kind"] == *id.kind
        && object["name"] == *id.name
        && (object["namespace"] == *id.namespace || object["namespace"] == "")
}

/// Puts the case's namespace into every text.
pub(super) fn fill(value: &mut Value, namespace: &str) {
    match value {
        Value::String(text) => {
            *text = text.replace(PLACE, namespace);
            if text.contains(BIG) {
                *text = text.replace(BIG, &"a".repeat(BIG_BYTES));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, namespace)),
        Value::Object(members) => {
            let mut filled = serde_json::Map::new();
            for (name, mut member) in std::mem::take(members) {
                fill(&mut member, namespace);
                filled.insert(name.replace(PLACE, namespace), member);
            }
            *members = filled;
        }
        _ => {}
    }
}

/// The objects of a manifest file, by the reader of the host.
pub(super) fn manifests(text: &str) -> Result<Vec<Manifest>> {
    Ok(trimtab_source::read_documents("case.yaml", text.as_bytes(), "default")?)
}

/// The name under which a cluster has it.
pub(super) fn id(manifest: &Manifest, definitions: &[Manifest]) -> Id {
    let namespace = match types::scope(&manifest.gvk, definitions) {
        Scope::Namespaced => manifest.namespace.as_deref().unwrap_or("default"),
        Scope::Cluster => "",
    };
    Id::new(&manifest.gvk.api_version(), &manifest.gvk.kind, namespace, &manifest.name)
}

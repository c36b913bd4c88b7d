//! Asking a plugin again: the same build, which has to give the same answers bit for bit, or another
//! one, whose answers are held against them.

use super::answers;
use super::inputs::{Answer, Inputs, Read};
use anyhow::Context as _;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use trimtab_core::decision::{Comparison, Difference, DifferenceKind};
use trimtab_core::identity::{Digest, GroupKind, Gvk, ObjectKey};
use trimtab_core::object::{Desired, Live, LiveObject, Origin};
use trimtab_core::plugin::PluginIdentity;
use trimtab_core::snapshot::Snapshot;
use trimtab_wasm::{LookupError, Lookups, Plugin};

/// What came of it.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Replayed {
    /// The answer to `compare`, recorded and now.
    pub(crate) comparison: Pair,
    /// The answer to `decide`, where either was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<Pair>,
    /// Reads that the recorded pass did not make: they were answered as unavailable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) other_reads: Vec<String>,
}

/// Two answers; nothing where it was not asked.
#[derive(Debug, PartialEq, serde::Serialize)]
pub(crate) struct Pair {
    pub(crate) recorded: Value,
    pub(crate) now: Value,
}

impl Pair {
    pub(crate) fn is_same(&self) -> bool {
        self.recorded == self.now
    }
}

impl Replayed {
    /// Whether every answer is the recorded one.
    pub(crate) fn is_same(&self) -> bool {
        self.comparison.is_same() && self.decision.as_ref().is_none_or(Pair::is_same)
    }
}

/// Asks this plugin what was asked then. Decided is about the differences that the API server left
/// then; where the comparison is another now, about all of its own.
///
/// # Errors
/// The inputs are damaged, or the plugin misbehaves.
pub(crate) fn replay(inputs: &Inputs, plugin: &Plugin) -> anyhow::Result<Replayed> {
    let snapshot = snapshot(inputs)?;
    let reads = Arc::new(Again {
        left: Mutex::new(inputs.reads.iter().cloned().map(Some).collect()),
        others: Mutex::default(),
    });
    let lookups: Arc<dyn Lookups> = reads.clone();
    // One instance for both, as in the pass.
    let mut compared = None;
    let mut about = Err(anyhow::anyhow!("not asked"));
    let verdict = plugin
        .judge(&snapshot, &lookups, |comparison| {
            let now = answers::comparison(&comparison);
            about = match (&inputs.decision, comparison) {
                (Some(decided), _) if now == inputs.comparison => {
                    decided.about.iter().map(difference).collect()
                }
                (None, _) if now == inputs.comparison => Ok(Vec::new()),
                (_, Comparison::Different(own)) => Ok(own),
                _ => Ok(Vec::new()),
            };
            compared = Some(now);
            about.as_ref().map(Clone::clone).unwrap_or_default()
        })
        .with_context(|| format!("plugin {}", plugin.identity().name))?;
    about?;
    let decided = verdict.as_ref().map(answers::verdict);
    let recorded = inputs.decision.as_ref().map(|decided| decided.answer.clone());
    let decision = (decided.is_some() || recorded.is_some())
        .then(|| Pair { recorded: recorded.unwrap_or_default(), now: decided.unwrap_or_default() });
    let comparison = Pair {
        recorded: inputs.comparison.clone(),
        now: compared.context("the plugin was not asked")?,
    };
    let other_reads = std::mem::take(&mut *locked(&reads.others));
    Ok(Replayed { comparison, decision, other_reads })
}

fn snapshot(inputs: &Inputs) -> anyhow::Result<Snapshot> {
    let object = &inputs.object;
    let kind = GroupKind::new(&object.group, &object.kind);
    let key = ObjectKey::new(kind, &object.namespace, &object.name);
    let gvk = Gvk {
        group: object.group.as_str().into(),
        version: object.version.as_str().into(),
        kind: object.kind.as_str().into(),
    };
    let json: Arc<[u8]> = inputs.desired.as_bytes().into();
    let live = match &inputs.live {
        None => Live::Absent,
        Some(text) => Live::Present(
            LiveObject::read(text.as_bytes().into()).context("`live` has no UID or version")?,
        ),
    };
    Ok(Snapshot {
        desired: Arc::new(Desired {
            key: key.clone(),
            gvk: gvk.clone(),
            digest: Digest::of(&json),
            json,
            source: "replay".into(),
            revision: "".into(),
            origin: Origin { file: "".into(), line: 0 },
            ignore: Default::default(),
            terms: Arc::default(),
        }),
        key,
        gvk,
        live,
        applied_uid: None,
        facts: BASE64_STANDARD.decode(&inputs.facts).context("`facts` is no base64")?.into(),
        now_ms: inputs.now_ms,
        retries: inputs.retries,
        standoff: None,
    })
}

/// A difference as [`answers::differences`] wrote it.
fn difference(value: &Value) -> anyhow::Result<Difference> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let kind = text("kind").and_then(DifferenceKind::parse);
    Ok(Difference {
        path: text("path").context("a difference without a path")?.to_owned(),
        kind: kind.context("a difference of no known kind")?,
        desired: text("desired").map(|json| json.as_bytes().to_vec()),
        live: text("live").map(|json| json.as_bytes().to_vec()),
        immutable: text("immutable").map(str::to_owned),
        managers: Vec::new(),
    })
}

/// The recorded answers: the first one for a query that was not given yet, or else its last.
struct Again {
    left: Mutex<Vec<Option<Read>>>,
    others: Mutex<Vec<String>>,
}

impl Again {
    fn answer(
        &self,
        kind: &GroupKind,
        namespace: &str,
        name: Option<&str>,
    ) -> Result<Vec<Arc<[u8]>>, LookupError> {
        let mut left = locked(&self.left);
        let asked = |read: &Option<Read>| {
            read.as_ref().is_some_and(|read| {
                (&*read.group, &*read.kind) == (&*kind.group, &*kind.kind)
                    && read.namespace == namespace
                    && read.name.as_deref() == name
            })
        };
        let places: Vec<usize> = (0..left.len()).filter(|at| asked(&left[*at])).collect();
        let read = match places[..] {
            [] => None,
            [last] => left[last].clone(),
            [first, ..] => left[first].take(),
        };
        match read.map(|read| read.answer) {
            Some(Answer::Found(found)) => {
                Ok(found.into_iter().map(|json| json.into_bytes().into()).collect())
            }
            Some(Answer::Denied) => Err(LookupError::Denied),
            Some(Answer::Unavailable(why)) => Err(LookupError::Unavailable(why)),
            None => {
                let name = name.unwrap_or("*");
                let text = format!("{kind} {namespace}/{name}");
                let mut others = locked(&self.others);
                if !others.contains(&text) {
                    others.push(text);
                }
                Err(LookupError::Unavailable("it was not read in the recorded pass".into()))
            }
        }
    }
}

impl Lookups for Again {
    fn get(
        &self,
        _: &PluginIdentity,
        kind: &GroupKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<[u8]>>, LookupError> {
        Ok(self.answer(kind, namespace, Some(name))?.into_iter().next())
    }

    fn find(
        &self,
        _: &PluginIdentity,
        kind: &GroupKind,
        namespace: &str,
    ) -> Result<Vec<Arc<[u8]>>, LookupError> {
        self.answer(kind, namespace, None)
    }
}

fn locked<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

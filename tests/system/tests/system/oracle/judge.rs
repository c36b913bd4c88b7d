//! The two judges: our comparison, and what a dry run of server-side apply changes.

use super::schema::{Schema, Shape};
use anyhow::{Result, ensure};
use serde_json::Value;
use std::sync::Arc;
use trimtab_compare::{Facts, Kind, Options, compare, managed_fields};
use trimtab_core::decision::Comparison;
use trimtab_core::identity::{Digest, GroupKind, Gvk, ObjectKey};
use trimtab_core::object::{Desired, Live, LiveObject, Origin};
use trimtab_core::snapshot::Snapshot;
use trimtab_json::{Path, Step};
use trimtab_wasm::{Lookups, NoLookups, Plugin};

/// Our field manager.
pub(super) const MANAGER: &str = "trimtab";

/// One difference that we see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) kind: Kind,
    pub(super) path: Path,
    /// Of a released value: somebody else states it too, so that no apply removes it.
    pub(super) held: bool,
}

/// What we say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ours {
    Differences(Vec<Seen>),
    Invalid(String),
}

/// What the comparison says, run natively.
pub(super) fn ours(desired: &Value, live: &Value, facts: &[u8]) -> Result<Ours> {
    let (desired, live) = (serde_json::to_vec(desired)?, serde_json::to_vec(live)?);
    let read = |bytes| trimtab_json::parse(bytes).map_err(|error| anyhow::anyhow!("{error}"));
    let (desired, live) = (read(&desired)?, read(&live)?);
    let options = Options { managers: &[MANAGER], ..Options::default() };
    Ok(match compare(&desired, Some(&live), Facts::new(facts), &options) {
        Err(error) => Ours::Invalid(error.to_string()),
        Ok(found) => {
            let seen = |found: &trimtab_compare::Difference<'_>| Seen {
                kind: found.kind,
                path: found.path.clone(),
                held: managed_fields::managers_of(&live, &found.path)
                    .any(|entry| entry.manager != MANAGER),
            };
            Ours::Differences(found.iter().map(seen).collect())
        }
    })
}

/// The same through the sandbox; it must say exactly the same.
pub(super) fn same_in_the_sandbox(
    plugin: &Plugin,
    desired: &Value,
    live: &Value,
    facts: &Arc<[u8]>,
    ours: &Ours,
) -> Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let gvk = Gvk::from_api_version(&text(&live["apiVersion"]), &text(&live["kind"]));
    let metadata = &live["metadata"];
    let key = ObjectKey::new(
        GroupKind::new(&gvk.group, &gvk.kind),
        &text(&metadata["namespace"]),
        &text(&metadata["name"]),
    );
    let json: Arc<[u8]> = serde_json::to_vec(desired)?.into();
    let snapshot = Snapshot {
        key: key.clone(),
        gvk: gvk.clone(),
        standoff: None,
        desired: Arc::new(Desired {
            ignore: Default::default(),
            terms: Default::default(),
            key,
            gvk,
            digest: Digest::of(&json),
            json,
            source: "oracle".into(),
            revision: "1".into(),
            origin: Origin { file: "seed.yaml".into(), line: 1 },
        }),
        live: Live::Present(LiveObject {
            json: serde_json::to_vec(live)?.into(),
            uid: text(&metadata["uid"]).into(),
            resource_version: text(&metadata["resourceVersion"]).into(),
            deleting: false,
        }),
        facts: facts.clone(),
        applied_uid: None,
        now_ms: 0,
        retries: 0,
    };
    let lookups: Arc<dyn Lookups> = Arc::new(NoLookups);
    let answer = plugin.compare(&snapshot, &lookups).map_err(|fault| anyhow::anyhow!("{fault}"))?;
    let native = match ours {
        Ours::Invalid(what) => format!("invalid {}", sentence(what)),
        Ours::Differences(seen) => seen
            .iter()
            .fold(String::new(), |told, seen| told + &format!("{} {}\n", seen.kind, seen.path)),
    };
    let guest = match &answer {
        Comparison::InSync => String::new(),
        Comparison::Invalid(what) => format!("invalid {}", sentence(what)),
        Comparison::Unknown(why) => format!("unknown {why}"),
        Comparison::Different(all) => all.iter().fold(String::new(), |told, one| {
            told + &format!("{} {}\n", one.kind.as_str(), one.path)
        }),
    };
    ensure!(native == guest, "the sandbox says:\n{guest}\nnatively:\n{native}");
    Ok(())
}

/// Where the server's answer is not what live was, as far as anyone could declare it.
pub(super) fn changes(live: &Value, answer: &Value, schema: Schema<'_>) -> Vec<Path> {
    let mut found = Vec::new();
    let names = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    let mut all = names(live);
    all.extend(names(answer));
    all.sort();
    all.dedup();
    for name in all {
        let at = Path::root().join(Step::Field(name.clone()));
        match name.as_str() {
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                for part in ["labels", "annotations", "finalizers", "ownerReferences"] {
                    let member = schema.member(&name).and_then(|schema| schema.member(part));
                    let (before, after) = (&live[&name][part], &answer[&name][part]);
                    differ(before, after, member, &at.join(Step::Field(part.into())), &mut found);
                }
            }
            _ => differ(&live[&name], &answer[&name], schema.member(&name), &at, &mut found),
        }
    }
    found
}

fn differ(
    before: &Value,
    after: &Value,
    schema: Option<Schema<'_>>,
    at: &Path,
    found: &mut Vec<Path>,
) {
    if before == after || is_metrics(at) && same_in_any_order(before, after) {
        return;
    }
    let shape = schema.map_or(Shape::Any, Schema::shape);
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let gone = before.iter().filter(|(name, _)| !after.contains_key(*name));
            for (name, value) in after.iter().chain(gone.map(|(name, _)| (name, &Value::Null))) {
                let member = schema.and_then(|schema| schema.member(name));
                let before = before.get(name).unwrap_or(&Value::Null);
                differ(before, value, member, &at.join(Step::Field(name.clone())), found);
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            let item = schema.and_then(Schema::item);
            let key = |element: &Value| match (shape, schema) {
                (Shape::Keyed, Some(schema)) => Step::Keyed(schema.key_of(element)),
                _ => Step::Element(scalar(element)),
            };
            match shape {
                Shape::Keyed | Shape::Set => {
                    let in_list = |list: &[Value], step: &Step| {
                        list.iter().find(|element| key(element) == *step).cloned()
                    };
                    let mut steps: Vec<Step> = before.iter().chain(after).map(key).collect();
                    let mut seen: Vec<Step> = Vec::new();
                    steps.retain(|step| {
                        let new = !seen.contains(step);
                        seen.push(step.clone());
                        new
                    });
                    for step in steps {
                        let one = in_list(before, &step).unwrap_or_default();
                        let other = in_list(after, &step).unwrap_or_default();
                        differ(&one, &other, item, &at.join(step), found);
                    }
                }
                _ if before.len() == after.len() => {
                    for (index, (before, after)) in before.iter().zip(after).enumerate() {
                        differ(before, after, item, &at.join(Step::Index(index)), found);
                    }
                }
                _ => found.push(at.clone()),
            }
        }
        _ => found.push(at.clone()),
    }
}

/// Which of an autoscaler's metrics is which is told by no position: a place within them is the list.
pub(super) fn place(kind: &str, path: &Path) -> Path {
    let list: Path = path.steps().iter().take(2).cloned().collect();
    if kind == "HorizontalPodAutoscaler" && is_metrics(&list) { list } else { path.clone() }
}

/// An autoscaler's metrics, whose order its controller changes: an exception by itself, see
/// `exceptions.rs`.
fn is_metrics(at: &Path) -> bool {
    at.steps() == [Step::Field("spec".into()), Step::Field("metrics".into())]
}

fn same_in_any_order(one: &Value, other: &Value) -> bool {
    let texts = |value: &Value| {
        let mut all: Vec<String> =
            value.as_array().into_iter().flatten().map(Value::to_string).collect();
        all.sort();
        all
    };
    texts(one) == texts(other)
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The value at a path, a keyed element being found whatever defaults its keys take.
pub(super) fn at<'v>(
    value: &'v Value,
    path: &Path,
    schema: Option<Schema<'_>>,
) -> Option<&'v Value> {
    let (mut value, mut schema) = (value, schema);
    for step in path.steps() {
        (value, schema) = match (step, value) {
            (Step::Field(name), Value::Object(members)) => {
                (members.get(name)?, schema.and_then(|schema| schema.member(name)))
            }
            (Step::Index(index), Value::Array(items)) => {
                (items.get(*index)?, schema.and_then(Schema::item))
            }
            (Step::Keyed(keys), Value::Array(items)) => {
                let schema = schema?;
                let is = |element: &&Value| schema.key_of(element) == *keys;
                (items.iter().find(is)?, schema.item())
            }
            (Step::Element(text), Value::Array(items)) => {
                (items.iter().find(|item| scalar(item) == *text)?, None)
            }
            _ => return None,
        };
    }
    Some(value)
}

/// Whether one path is the other or lies within it.
pub(super) fn touch(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Whether we are the manager of the place, by apply.
pub(super) fn is_ours(live: &Value, path: &Path) -> bool {
    let bytes = live.to_string().into_bytes();
    let Ok(live) = trimtab_json::parse(&bytes) else { return false };
    managed_fields::managers_of(&live, path).any(|entry| {
        entry.manager == MANAGER && entry.operation == managed_fields::Operation::Apply
    })
}

/// Without the word that scripts branch on, which the SDK puts before a sentence.
fn sentence(text: &str) -> &str {
    match text.split_once(": ") {
        Some((word, rest)) if word.contains('_') && !word.contains(' ') => rest,
        _ => text,
    }
}

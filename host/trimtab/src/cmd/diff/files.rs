//! Judging files: the comparison alone, without a cluster.

use super::answer::{Answer, Judged, Named, Verdict};
use crate::config::SourceConfig;
use crate::generic;
use crate::schemas::Schemas;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use trimtab_core::decision::{Comparison, Difference, DifferenceKind};
use trimtab_core::identity::{GroupKind, ObjectKey};
use trimtab_core::ignore::{self, Shown};
use trimtab_core::object::{Desired, Manifest, Revision};
use trimtab_core::placing::{self, PlacingError};
use trimtab_core::redact::Redactor;

/// Compares the objects of one file with those of another.
///
/// # Errors
/// A file that cannot be read at all; what is wrong in one is part of the answer.
pub(super) fn judge(
    source: &SourceConfig,
    desired: &Path,
    live: &Path,
    schemas: &[PathBuf],
    redactor: &Redactor,
) -> anyhow::Result<Answer> {
    let mut answer = Answer::with_rules(source);
    let namespace = &*source.namespace;
    let mut take = |path: &Path| -> anyhow::Result<Vec<Manifest>> {
        let (name, bytes) = read(path)?;
        Ok(trimtab_source::read_documents(&name, &bytes, namespace).unwrap_or_else(|error| {
            answer.errors.extend(Answer::refused(&error).errors);
            Vec::new()
        }))
    };
    let (desired, live) = (take(desired)?, take(live)?);
    let mut definitions = Vec::new();
    for file in schemas {
        definitions.extend(take(file)?);
    }
    let schemas = Schemas::of(definitions.iter().chain(&desired).chain(&live));
    let live: BTreeMap<ObjectKey, Manifest> =
        live.into_iter().map(|manifest| (key(&manifest, &schemas, namespace), manifest)).collect();
    let revision = Revision { source: "file".into(), id: "file".into(), manifests: desired };
    let mut seen = Vec::new();
    for manifest in &revision.manifests {
        let scope = schemas.scope(&manifest.gvk, manifest.namespace.is_some());
        match placing::place(&revision, manifest, scope, namespace) {
            Ok(mut desired) => {
                desired.ignore.extend(&source.ignore, &desired.key);
                let found = live.get(&desired.key);
                let judged = match compare(&desired, found, &schemas) {
                    Ok((comparison, shown)) => {
                        answer.ignored(&shown.matched);
                        judged(&desired, found, comparison, redactor)
                    }
                    Err(problem) => Judged::of(manifest, Verdict::Refused, problem),
                };
                answer.objects.push(judged);
                seen.push(desired.key);
            }
            Err(PlacingError::Invalid { message, .. }) => {
                answer.objects.push(Judged::of(manifest, Verdict::Refused, message));
            }
            Err(error) => answer.errors.push((&error).into()),
        }
    }
    let extra = live.iter().filter(|(key, _)| !seen.contains(key));
    answer.objects.extend(extra.map(|(key, manifest)| {
        let object = Named::new(&manifest.gvk, key.namespace_str(), &key.name);
        Judged::new(object, Verdict::Extra, "it is not declared".into())
    }));
    Ok(answer)
}

/// Both sides as the rules show them, compared.
fn compare(
    desired: &Desired,
    live: Option<&Manifest>,
    schemas: &Schemas,
) -> Result<(Comparison, Shown), String> {
    let facts = schemas.facts(&desired.gvk);
    let live = live.map(|manifest| &*manifest.json);
    let shown = ignore::shown(desired, live, &facts)?;
    let wanted = shown.desired.as_ref().unwrap_or(&desired.json);
    let comparison = generic::compare(wanted, shown.live.as_deref().or(live), &facts);
    Ok((comparison, shown))
}

fn key(manifest: &Manifest, schemas: &Schemas, namespace: &str) -> ObjectKey {
    let namespaced =
        schemas.scope(&manifest.gvk, manifest.namespace.is_some()) == placing::Scope::Namespaced;
    let namespace = manifest.namespace.as_deref().unwrap_or(namespace);
    let namespace = if namespaced { namespace } else { "" };
    ObjectKey::new(manifest.gvk.group_kind(), namespace, &manifest.name)
}

fn read(path: &Path) -> anyhow::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes).context("cannot read stdin")?;
        return Ok(("stdin".into(), bytes));
    }
    let name = path.display().to_string();
    bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    Ok((name, bytes))
}

fn judged(
    desired: &Desired,
    live: Option<&Manifest>,
    comparison: Comparison,
    redactor: &Redactor,
) -> Judged {
    let kind = &desired.key.group_kind;
    let (verdict, reason, differences) = match comparison {
        Comparison::InSync => (Verdict::InSync, String::new(), vec![]),
        Comparison::Different(_) if live.is_none() => (Verdict::Missing, String::new(), vec![]),
        Comparison::Different(differences) => {
            let (verdict, reason) = match refusal(kind, &differences) {
                Some(reason) => (Verdict::Refused, reason),
                None => (Verdict::Drift, String::new()),
            };
            (verdict, reason, redactor.differences(kind, &differences))
        }
        Comparison::Invalid(what) => (Verdict::Refused, what, vec![]),
        Comparison::Unknown(why) => (Verdict::Unknown, redactor.text(kind, why), vec![]),
    };
    Judged {
        object: Named::new(&desired.gvk, desired.key.namespace_str(), &desired.key.name),
        verdict,
        reason,
        differences,
        desired: Some(desired.json.clone()),
        live: live.map(|live| live.json.clone()),
    }
}

/// Why the API server would refuse to apply this, if the differences tell.
fn refusal(kind: &GroupKind, differences: &[Difference]) -> Option<String> {
    let unknown = differences.iter().find(|each| each.kind == DifferenceKind::Pruned);
    if let Some(difference) = unknown {
        return Some(format!(
            "unknown_field: the type's schema has no {}; correct its spelling or remove it",
            difference.path
        ));
    }
    let frozen = differences.iter().find_map(|each| each.immutable.as_ref())?;
    let word = if is_stateful(kind) { "immutable_field_stateful" } else { "immutable_field" };
    Some(format!(
        "{word}: {frozen} cannot be changed once the object exists; state its old value, or delete the object by hand to have it made anew"
    ))
}

/// Kinds whose recreation loses data, or everything in them.
fn is_stateful(kind: &GroupKind) -> bool {
    matches!(
        (&*kind.group, &*kind.kind),
        ("", "PersistentVolumeClaim" | "PersistentVolume" | "Namespace")
            | ("apps", "StatefulSet")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
    )
}

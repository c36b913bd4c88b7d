//! Judging files: the comparison alone, without a cluster.

use super::answer::{Answer, Judged, Named, Verdict};
use crate::config::SourceConfig;
use crate::generic;
use crate::schemas::Schemas;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use trimtab_core::decision::Comparison;
use trimtab_core::identity::{GroupKind, ObjectKey};
use trimtab_core::ignore::{self, Shown};
use trimtab_core::object::{Desired, Manifest, Revision};
use trimtab_core::placing::{self, PlacingError};
use trimtab_core::reason;
use trimtab_core::redact::Redactor;

/// Compares the objects of one file with those of another. The redactor that comes with the answer
/// is aware of the Secrets among them.
///
/// # Errors
/// A file that cannot be read at all; what is wrong in one is part of the answer.
pub(super) fn judge(
    source: &SourceConfig,
    desired: &Path,
    live: &Path,
    schemas: &[PathBuf],
    redactor: &Redactor,
) -> anyhow::Result<(Answer, Redactor)> {
    let mut answer = Answer::with_rules(source.ignore.iter());
    let namespace = &*source.namespace;
    let mut take = |path: &Path| -> anyhow::Result<Vec<Manifest>> {
        let (name, bytes) = read(path)?;
        Ok(trimtab_source::read_documents(&name, &bytes, namespace).unwrap_or_else(|error| {
            answer.refused(&error);
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
    let revision = Revision {
        source: "file".into(),
        id: "file".into(),
        manifests: desired,
        provenance: Default::default(),
    };
    let all = live.values().chain(&revision.manifests);
    let all: Vec<(GroupKind, &[u8])> =
        all.map(|manifest| (manifest.gvk.group_kind(), &*manifest.json)).collect();
    let redactor = redactor.aware_of(all.iter().map(|(kind, json)| (kind, *json)));
    let mut seen = Vec::new();
    let mut placed = Vec::new();
    for manifest in &revision.manifests {
        let scope = schemas.scope(&manifest.gvk, manifest.namespace.is_some());
        match placing::place(&revision, manifest, scope, namespace) {
            Ok(mut desired) => {
                desired.ignore.extend(&source.ignore, &desired.key);
                let found = live.get(&desired.key);
                let judged = match compare(&desired, found, &schemas) {
                    Ok((comparison, shown)) => {
                        answer.ignored(&shown.matched);
                        judged(&desired, found, comparison, &redactor)
                    }
                    Err(problem) => Judged::of(manifest, Verdict::Refused, problem),
                };
                answer.objects.push(judged);
                seen.push(desired.key.clone());
                placed.push(desired);
            }
            Err(PlacingError::Invalid { message, .. }) => {
                let key = key(manifest, &schemas, namespace);
                let object = Named::new(&manifest.gvk, key.namespace_str(), &key.name);
                answer.objects.push(Judged::new(object, Verdict::Refused, message));
                seen.push(key);
            }
            Err(error) => answer.errors.push((&error).into()),
        }
    }
    if let Err(errors) = placing::unique(placed) {
        answer.objects.clear();
        answer.errors.extend(errors.iter().map(Into::into));
        return Ok((answer, redactor));
    }
    let extra = live.iter().filter(|(key, _)| !seen.contains(key));
    answer.objects.extend(extra.map(|(key, manifest)| {
        let object = Named::new(&manifest.gvk, key.namespace_str(), &key.name);
        Judged::new(object, Verdict::Extra, "it is not declared".into())
    }));
    Ok((answer, redactor))
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
        Comparison::Different(differences) if live.is_none() => {
            match reason::unknown_field(&differences) {
                Some(reason) => (Verdict::Refused, reason, vec![]),
                None => (Verdict::Missing, String::new(), vec![]),
            }
        }
        Comparison::Different(differences) => {
            let (verdict, reason) = match reason::of_differences(kind, &differences) {
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

//! `trimtab diff`: what differs between desired and live, by meaning. Writes nothing.
//!
//! Against a cluster it is a pass of every object that may not write; on files it is the
//! comparison alone, with the schemas that come with the files.

use crate::cli::{ClusterArgs, OutputArgs, runtime};
use crate::schemas::Schemas;
use crate::{generic, output, round};
use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use trimtab_core::decision::{Comparison, Difference};
use trimtab_core::identity::{Gvk, ObjectKey};
use trimtab_core::object::{Manifest, Revision};
use trimtab_core::placing::{self, PlacingError};
use trimtab_core::reason;
use trimtab_core::record::{Outcome, Record};
use trimtab_core::redact::{Redactor, is_sensitive};

/// Show what differs between desired and live, by meaning. Writes nothing.
///
/// Exit status: 0 nothing differs, 1 there are differences, 2 something could not be read or
/// judged.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// Where desired state comes from: a directory, or one file. Live is the cluster.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["desired", "live"])]
    source: Option<PathBuf>,
    /// Desired state as a file (- for stdin), compared without a cluster.
    #[arg(long, value_name = "FILE", requires = "live", required_unless_present = "source")]
    desired: Option<PathBuf>,
    /// Live state as a file (- for stdin).
    #[arg(long, value_name = "FILE", requires = "desired")]
    live: Option<PathBuf>,
    /// Files with CustomResourceDefinitions, for comparisons without a cluster.
    #[arg(long, value_name = "FILE", requires = "desired")]
    schemas: Vec<PathBuf>,
    /// Namespace of namespaced objects that name none.
    #[arg(short, long, default_value = "default")]
    namespace: String,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// What `diff` answers; the form is part of the command line's contract.
#[derive(Debug, Default, Serialize)]
struct Answer {
    objects: Vec<Judged>,
    errors: Vec<Problem>,
}

#[derive(Debug, Serialize)]
struct Judged {
    object: Named,
    verdict: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    differences: Vec<Shown>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
}

#[derive(Debug, Serialize)]
struct Shown {
    path: String,
    kind: &'static str,
    desired: Option<serde_json::Value>,
    live: Option<serde_json::Value>,
    managers: Vec<crate::journal::ManagerLine>,
}

#[derive(Debug, Serialize)]
struct Problem {
    r#where: String,
    message: String,
}

impl Diff {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let mut answer = match (&self.source, &self.desired, &self.live) {
            (Some(source), _, _) => runtime()?.block_on(self.against_cluster(source))?,
            (None, Some(desired), Some(live)) => self.on_files(desired, live)?,
            _ => anyhow::bail!("give --source, or --desired and --live"),
        };
        answer.objects.sort_by(|a, b| a.object.cmp(&b.object));
        output::print(self.output.output, &answer, || table(&answer))?;
        let differs = answer.objects.iter().any(|judged| judged.verdict != "in-sync");
        Ok(match (answer.errors.is_empty(), differs) {
            (false, _) => 2,
            (true, differs) => u8::from(differs),
        })
    }

    async fn against_cluster(&self, source: &Path) -> anyhow::Result<Answer> {
        let source = trimtab_source::Directory::new("source", source, &self.namespace);
        let revision = match trimtab_source::Source::read(&source) {
            Ok(revision) => revision,
            Err(error) => return Ok(refused(&error)),
        };
        let server = super::connect(&self.cluster).await?;
        let round = round::observe(server, revision, &self.namespace).await?;
        let mut answer = Answer::default();
        answer.errors.extend(round.errors.iter().map(placing_problem));
        answer.objects.extend(round.unplaced.iter().map(|(manifest, reason)| Judged {
            object: named(
                &manifest.gvk,
                manifest.namespace.as_deref().unwrap_or_default(),
                &manifest.name,
            ),
            verdict: "unknown",
            reason: reason.clone(),
            differences: vec![],
        }));
        answer.objects.extend(round.records.iter().map(from_record));
        Ok(answer)
    }

    fn on_files(&self, desired: &Path, live: &Path) -> anyhow::Result<Answer> {
        let mut answer = Answer::default();
        let mut take = |path: &Path| -> anyhow::Result<Vec<Manifest>> {
            let (name, bytes) = read(path)?;
            Ok(trimtab_source::read_documents(&name, &bytes, &self.namespace).unwrap_or_else(
                |error| {
                    answer.errors.extend(refused(&error).errors);
                    Vec::new()
                },
            ))
        };
        let (desired, live) = (take(desired)?, take(live)?);
        let mut definitions = Vec::new();
        for file in &self.schemas {
            definitions.extend(take(file)?);
        }
        let schemas = Schemas::of(definitions.iter().chain(&desired).chain(&live));
        let live: BTreeMap<ObjectKey, Manifest> =
            live.into_iter().map(|manifest| (self.key(&manifest, &schemas), manifest)).collect();
        let revision = Revision { source: "file".into(), id: "file".into(), manifests: desired };
        let secrets = live.values().chain(&revision.manifests);
        let secrets = secrets.filter(|manifest| is_sensitive(&manifest.gvk.group_kind()));
        let redactor =
            Redactor::new(random_key()?).aware_of(secrets.map(|manifest| &*manifest.json));
        let mut seen = Vec::new();
        let mut placed = Vec::new();
        for manifest in &revision.manifests {
            let scope = schemas.scope(&manifest.gvk, manifest.namespace.is_some());
            match placing::place(&revision, manifest, scope, &self.namespace) {
                Ok(desired) => {
                    let found = live.get(&desired.key);
                    let comparison = generic::compare(
                        &desired.json,
                        found.map(|manifest| &*manifest.json),
                        &schemas.facts(&desired.gvk),
                    );
                    answer.objects.push(from_comparison(&desired, found, comparison, &redactor));
                    seen.push(desired.key.clone());
                    placed.push(desired);
                }
                Err(PlacingError::Invalid { message, .. }) => {
                    let key = self.key(manifest, &schemas);
                    answer.objects.push(Judged {
                        object: named(&manifest.gvk, key.namespace_str(), &manifest.name),
                        verdict: "refused",
                        reason: message,
                        differences: vec![],
                    });
                    seen.push(key);
                }
                Err(error) => answer.errors.push(placing_problem(&error)),
            }
        }
        if let Err(errors) = placing::unique(placed) {
            answer.objects.clear();
            answer.errors.extend(errors.iter().map(placing_problem));
            return Ok(answer);
        }
        let extra = live.iter().filter(|(key, _)| !seen.contains(key));
        answer.objects.extend(extra.map(|(key, manifest)| Judged {
            object: named(&manifest.gvk, key.namespace_str(), &key.name),
            verdict: "extra",
            reason: "it is not declared".into(),
            differences: vec![],
        }));
        Ok(answer)
    }

    fn key(&self, manifest: &Manifest, schemas: &Schemas) -> ObjectKey {
        let namespaced = schemas.scope(&manifest.gvk, manifest.namespace.is_some())
            == placing::Scope::Namespaced;
        let namespace = manifest.namespace.as_deref().unwrap_or(&self.namespace);
        let namespace = if namespaced { namespace } else { "" };
        ObjectKey::new(manifest.gvk.group_kind(), namespace, &manifest.name)
    }
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

/// A key for one command's fingerprints.
pub(crate) fn random_key() -> anyhow::Result<[u8; 32]> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(key)
}

fn refused(error: &trimtab_source::SourceError) -> Answer {
    let problem = |problem: &trimtab_source::Problem| Problem {
        r#where: match problem.line {
            Some(line) => format!("{}:{line}", problem.file),
            None => problem.file.to_string(),
        },
        message: problem.to_string(),
    };
    Answer { objects: vec![], errors: error.problems().iter().map(problem).collect() }
}

fn placing_problem(error: &PlacingError) -> Problem {
    let place = match error {
        PlacingError::Duplicate { second, .. } => second,
        PlacingError::Invalid { origin, .. } => origin,
    };
    Problem { r#where: place.to_string(), message: error.to_string() }
}

fn named(gvk: &Gvk, namespace: &str, name: &str) -> Named {
    Named {
        api_version: gvk.api_version(),
        kind: gvk.kind.to_string(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

fn from_comparison(
    desired: &trimtab_core::object::Desired,
    live: Option<&Manifest>,
    comparison: Comparison,
    redactor: &Redactor,
) -> Judged {
    let kind = &desired.key.group_kind;
    let (verdict, reason, differences) = match comparison {
        Comparison::InSync => ("in-sync", String::new(), vec![]),
        Comparison::Different(differences) if live.is_none() => {
            match reason::unknown_field(&differences) {
                Some(reason) => ("refused", reason, vec![]),
                None => ("missing", String::new(), vec![]),
            }
        }
        Comparison::Different(differences) => {
            let (verdict, reason) = match reason::of_differences(kind, &differences) {
                Some(reason) => ("refused", reason),
                None => ("drift", String::new()),
            };
            (verdict, reason, redactor.differences(kind, &differences))
        }
        Comparison::Invalid(what) => ("refused", what, vec![]),
        Comparison::Unknown(why) => ("unknown", redactor.text(kind, why), vec![]),
    };
    Judged {
        object: named(&desired.gvk, desired.key.namespace_str(), &desired.key.name),
        verdict,
        reason,
        differences: differences.iter().map(shown).collect(),
    }
}

fn from_record(record: &Record) -> Judged {
    let missing = record.live_uid.is_none();
    // What is not there is not rehearsed: the schema tells what the server would refuse.
    let unknown = reason::unknown_field(&record.differences).filter(|_| missing);
    let verdict = match &record.outcome {
        _ if unknown.is_some() => "refused",
        outcome if outcome.converged() => "in-sync",
        Outcome::Observed | Outcome::Left(_) | Outcome::Refused if missing => "missing",
        Outcome::Observed | Outcome::Left(_) | Outcome::Refused => "drift",
        Outcome::Rejected(_) | Outcome::Conflict(_) => "refused",
        _ => "unknown",
    };
    let differences = if missing { &[][..] } else { &record.differences };
    Judged {
        object: named(&record.gvk, record.key.namespace_str(), &record.key.name),
        verdict,
        reason: unknown.unwrap_or_else(|| record.outcome.message()),
        differences: differences.iter().map(shown).collect(),
    }
}

fn shown(difference: &Difference) -> Shown {
    let value = |json: &Option<Vec<u8>>| serde_json::from_slice(json.as_deref()?).ok();
    Shown {
        path: difference.path.clone(),
        kind: difference.kind.as_str(),
        desired: value(&difference.desired),
        live: value(&difference.live),
        managers: difference.managers.iter().map(Into::into).collect(),
    }
}

fn table(answer: &Answer) -> String {
    let mut text = String::new();
    for judged in answer.objects.iter().filter(|judged| judged.verdict != "in-sync") {
        let object = &judged.object;
        let colon = if judged.reason.is_empty() { "" } else { ": " };
        let slash = if object.namespace.is_empty() { "" } else { "/" };
        text.push_str(&format!(
            "{} {} {}{slash}{}{colon}{}\n",
            judged.verdict, object.kind, object.namespace, object.name, judged.reason
        ));
        for difference in &judged.differences {
            let side = |value: &Option<serde_json::Value>| {
                value.as_ref().map_or("absent".to_owned(), ToString::to_string)
            };
            text.push_str(&format!(
                "  {} {}\n    - live     {}\n    + desired  {}\n",
                difference.path,
                difference.kind,
                side(&difference.live),
                side(&difference.desired)
            ));
            for manager in &difference.managers {
                text.push_str(&format!(
                    "    written by {} ({}) {}\n",
                    manager.name, manager.operation, manager.time
                ));
            }
        }
    }
    for error in &answer.errors {
        text.push_str(&format!("error {}\n", error.message));
    }
    let count = |verdict: &str| answer.objects.iter().filter(|j| j.verdict == verdict).count();
    text.push_str(&format!(
        "{} objects: {} in sync, {} drifted, {} missing, {} other\n",
        answer.objects.len(),
        count("in-sync"),
        count("drift"),
        count("missing"),
        answer.objects.len() - count("in-sync") - count("drift") - count("missing"),
    ));
    text
}

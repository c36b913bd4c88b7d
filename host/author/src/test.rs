//! Runs an author's cases through the very sandbox that production uses.

use crate::build::build_bytes;
use crate::cases::{self, Any, Case};
use crate::{Error, reviews, verify};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trimtab_core::decision::Comparison;
use trimtab_core::identity::{Digest, GroupKind, Gvk, ObjectKey};
use trimtab_core::object::{Desired, Live, LiveObject, Origin};
use trimtab_core::plugin::PluginIdentity;
use trimtab_core::snapshot::Snapshot;
use trimtab_wasm::{LookupError, Lookups, Plugin, Sandbox, SandboxOptions};

/// The pass's time in cases, in milliseconds since the Unix epoch: 2026-01-01T00:00:00Z.
const NOW_MS: u64 = 1_767_225_600_000;

/// What the schema says of a type, in the compact form of `trimtab-compare`; empty where nothing
/// is known.
pub type FactsFor<'f> = &'f dyn Fn(&Gvk) -> Arc<[u8]>;

/// What came of one case.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// The case's file.
    pub file: PathBuf,
    /// Its name.
    pub name: String,
    /// What is not as expected; empty: it passed.
    pub failures: Vec<String>,
}

/// What came of all cases.
#[derive(Clone, Debug)]
pub struct TestReport {
    /// The plugin that was tested.
    pub plugin: PluginIdentity,
    /// Each case, in the order in which they ran.
    pub cases: Vec<CaseResult>,
}

impl TestReport {
    /// How many cases failed.
    pub fn failed(&self) -> usize {
        self.cases.iter().filter(|case| !case.failures.is_empty()).count()
    }

    /// Whether every case passed.
    pub fn passed(&self) -> bool {
        self.failed() == 0
    }
}

/// Builds the crate in `dir` and runs `cases/*.yaml` in the sandbox; writes a line for each case
/// and a total to `out`.
///
/// Between `compare` and `decide` a host asks the API server for a dry run; here every difference
/// goes on to `decide`.
///
/// # Errors
/// The crate does not build, or a case cannot be read. A case that fails is no error: see
/// [`TestReport::passed`].
pub fn test(dir: &Path, facts_for: FactsFor<'_>, out: &mut dyn Write) -> Result<TestReport, Error> {
    let cases = cases::read(dir)?;
    let (_, bytes, _) = build_bytes(dir)?;
    let sandbox = Sandbox::new(SandboxOptions::default())?;
    let plugin = Plugin::load(&bytes, &sandbox)?;
    let mut report = TestReport { plugin: plugin.identity().clone(), cases: Vec::new() };
    for (file, case) in cases {
        let (name, ran) = match case {
            Any::Pass(case) => {
                let ran = run(&plugin, &case, facts_for);
                (case.name, ran)
            }
            Any::Review(case) => {
                let ran = reviews::run(&plugin, &case, NOW_MS);
                (case.name, ran)
            }
        };
        let failures = match ran {
            Ok(failures) => failures,
            Err(message) => return Err(Error::Case { path: file, message }),
        };
        let word = if failures.is_empty() { "ok  " } else { "FAIL" };
        say(out, &format!("{word}  {name}"))?;
        for failure in &failures {
            say(out, &format!("      {}", failure.replace('\n', "\n      ")))?;
        }
        report.cases.push(CaseResult { file, name, failures });
    }
    let (all, failed) = (report.cases.len(), report.failed());
    say(out, &format!("{all} cases, {} passed, {failed} failed", all - failed))?;
    Ok(report)
}

fn say(out: &mut dyn Write, line: &str) -> Result<(), Error> {
    writeln!(out, "{line}").map_err(Error::file(Path::new("standard output")))
}

/// Runs one case; gives what is not as expected, or what is wrong with the case itself.
fn run(plugin: &Plugin, case: &Case, facts_for: FactsFor<'_>) -> Result<Vec<String>, String> {
    if !plugin.inspection().reconciles() {
        return Err("the plugin exports no reconciler: a case of a policy has an object in place of desired".into());
    }
    let snapshot = snapshot(case, facts_for)?;
    if plugin.manifest().claim_for(&snapshot.key.group_kind).is_none() {
        return Err(format!("the plugin does not claim {}", snapshot.key.group_kind));
    }
    let related = case.related.iter().map(related).collect::<Result<_, _>>()?;
    let lookups: Arc<dyn Lookups> = Arc::new(Related(related));
    let comparison = match plugin.compare(&snapshot, &lookups) {
        Ok(comparison) => comparison,
        Err(fault) => return Ok(vec![format!("compare {fault}")]),
    };
    let mut failures = verify::comparison(&case.expect, &comparison);
    if let Comparison::Different(differences) = &comparison {
        match (plugin.decide(&snapshot, differences, &lookups), &case.expect.decision) {
            (Err(fault), _) => failures.push(format!("decide {fault}")),
            (Ok(verdict), Some(expect)) => failures.extend(verify::verdict(expect, &verdict)),
            (Ok(_), None) => {}
        }
    }
    Ok(failures)
}

fn snapshot(case: &Case, facts_for: FactsFor<'_>) -> Result<Snapshot, String> {
    let (gvk, key) = identity("desired", &case.desired)?;
    let json: Arc<[u8]> = bytes(&case.desired)?;
    let live = match &case.live {
        None => Live::Absent,
        Some(live) => {
            let (live_gvk, live_key) = identity("live", live)?;
            if (&live_gvk, &live_key) != (&gvk, &key) {
                return Err(format!(
                    "desired is {gvk} {key} and live is {live_gvk} {live_key}: they are one object"
                ));
            }
            let text = |name: &str| live["metadata"][name].as_str().unwrap_or_default();
            Live::Present(LiveObject {
                json: bytes(live)?,
                uid: text("uid").into(),
                resource_version: text("resourceVersion").into(),
                deleting: live["metadata"]["deletionTimestamp"].is_string(),
            })
        }
    };
    let facts = facts_for(&gvk);
    Ok(Snapshot {
        key: key.clone(),
        gvk: gvk.clone(),
        desired: Arc::new(Desired {
            key,
            gvk,
            digest: Digest::of(&json),
            json,
            source: "case".into(),
            revision: "case".into(),
            origin: Origin { file: "case".into(), line: 1 },
            ignore: Default::default(),
            terms: Arc::default(),
        }),
        live,
        facts,
        applied_uid: None,
        now_ms: NOW_MS,
        retries: case.retries,
        standoff: None,
    })
}

pub(crate) fn identity(what: &str, object: &Value) -> Result<(Gvk, ObjectKey), String> {
    let text = |value: &Value, name: &str| {
        value.as_str().filter(|text| !text.is_empty()).map(str::to_owned).ok_or_else(|| {
            format!("{what} has no {name}: write whole objects, as kubectl shows them")
        })
    };
    let gvk = Gvk::from_api_version(
        &text(&object["apiVersion"], "apiVersion")?,
        &text(&object["kind"], "kind")?,
    );
    let metadata = &object["metadata"];
    let namespace = metadata["namespace"].as_str().unwrap_or_default();
    let key =
        ObjectKey::new(gvk.group_kind(), namespace, &text(&metadata["name"], "metadata.name")?);
    Ok((gvk, key))
}

pub(crate) fn bytes(value: &Value) -> Result<Arc<[u8]>, String> {
    serde_json::to_vec(value).map(Into::into).map_err(|error| error.to_string())
}

fn related(object: &Value) -> Result<(ObjectKey, Arc<[u8]>), String> {
    Ok((identity("a related object", object)?.1, bytes(object)?))
}

/// Answers `lookup` from a case's related objects.
struct Related(Vec<(ObjectKey, Arc<[u8]>)>);

impl Lookups for Related {
    fn get(
        &self,
        _: &PluginIdentity,
        kind: &GroupKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<[u8]>>, LookupError> {
        let wanted = ObjectKey::new(kind.clone(), namespace, name);
        Ok(self.0.iter().find(|(key, _)| *key == wanted).map(|(_, json)| json.clone()))
    }

    fn find(
        &self,
        _: &PluginIdentity,
        kind: &GroupKind,
        namespace: &str,
    ) -> Result<Vec<Arc<[u8]>>, LookupError> {
        let of_it = |key: &ObjectKey| key.group_kind == *kind && key.namespace_str() == namespace;
        let mut found: Vec<_> = self.0.iter().filter(|(key, _)| of_it(key)).collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found.into_iter().map(|(_, json)| json.clone()).collect())
    }
}

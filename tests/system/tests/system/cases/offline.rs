//! The cases without a cluster: through `trimtab diff` on files, and through our plugins in the
//! sandbox that production uses.

use super::form::{Case, Found, manifests};
use super::{Tally, all, types};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use trimtab_core::decision::{Action, Comparison, DifferenceKind, Verdict};
use trimtab_core::object::{Live, LiveObject, Manifest, Revision};
use trimtab_core::placing::{Scope, place, unique};
use trimtab_core::snapshot::Snapshot;
use trimtab_system_tests::Built;
use trimtab_wasm::{Lookups, NoLookups, Plugin, Sandbox, SandboxOptions};

/// The passes' time in milliseconds since the Unix epoch: 2026-01-01T00:00:00Z.
const NOW_MS: u64 = 1_767_225_600_000;

#[test]
fn each_case_gets_its_verdict_from_diff_on_files() -> Result<()> {
    let built = Built::find()?;
    let mut tally = Tally::default();
    for case in all()?.iter().filter(|case| case.plugin.is_none()) {
        tally.take(case, case.known.as_deref(), by_diff(&built, case));
    }
    tally.end("diff on files")
}

#[test]
fn each_case_gets_its_verdict_from_our_plugins_in_the_sandbox() -> Result<()> {
    let built = Built::find()?;
    let sandbox = Sandbox::new(SandboxOptions::default())?;
    let plugins = [
        Plugin::load(&built.plugin_bytes("generic")?, &sandbox)?,
        Plugin::load(&built.plugin_bytes("workloads")?, &sandbox)?,
    ];
    let mut tally = Tally::default();
    for case in &all()? {
        tally.take(case, case.known.as_deref(), by_plugins(&plugins, case));
    }
    tally.end("our plugins in the sandbox")
}

fn by_diff(built: &Built, case: &Case) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let run = |form: &str| -> Result<(Option<i32>, Vec<u8>, String)> {
        let mut command = Command::new(&built.trimtab);
        command.arg("diff").args(["-o", form]).env_remove("KUBECONFIG");
        let mut files =
            vec![("--desired", "desired.yaml", &case.desired), ("--live", "live.yaml", &case.live)];
        if !case.schemas.is_empty() {
            files.push(("--schemas", "schemas.yaml", &case.schemas));
        }
        for (option, name, text) in files {
            let path: PathBuf = dir.path().join(name);
            std::fs::write(&path, text)?;
            command.arg(option).arg(path);
        }
        let output = command.output()?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((output.status.code(), output.stdout, stderr))
    };
    let (status, stdout, stderr) = run("json")?;
    let answer: Value =
        serde_json::from_slice(&stdout).with_context(|| format!("stdout is no JSON: {stderr}"))?;
    let found = Found::in_answer(&answer, None);
    let expect = &case.expect;
    expect.check(&found)?;
    let right = match &*expect.verdict {
        "in-sync" => 0,
        verdict if verdict.contains("unreadable") => 2,
        _ => 1,
    };
    ensure!(status == Some(right), "the exit status is {status:?} instead of {right}");
    if let Some(line) = expect.line {
        let mut errors = answer["errors"].as_array().into_iter().flatten();
        let place = format!("desired.yaml:{line}");
        let named =
            errors.any(|error| error["where"].as_str().is_some_and(|it| it.ends_with(&place)));
        ensure!(named, "{place} is not named: {answer}");
    }
    if let Some(objects) = expect.objects {
        let declared = answer["objects"].as_array().map_or(0, Vec::len);
        ensure!(declared == objects, "{declared} objects are read");
    }
    if !expect.hides.is_empty() {
        let (_, table, more) = run("table")?;
        let (json, table) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&table));
        expect.check_hidden(&[&json, &stderr, &table, &more])?;
    }
    Ok(())
}

/// Every plugin that claims the kind must say the same, unless the case names one.
fn by_plugins(plugins: &[Plugin], case: &Case) -> Result<()> {
    let mut found = Found::default();
    let mut verdicts = BTreeSet::new();
    let read = (|| {
        let live = manifests(&case.live)?;
        let schemas = manifests(&case.schemas)?;
        Ok::<_, anyhow::Error>((manifests(&case.desired)?, live, schemas))
    })();
    let (desired, live, schemas) = match read {
        Ok(read) => read,
        Err(error) => {
            found.verdict = "unreadable".into();
            found.reason = format!("{error:#}");
            let mut expect = case.expect.clone();
            expect.verdict = expect.verdict.replace("extra+unreadable", "unreadable");
            return expect.check(&found);
        }
    };
    let revision = Revision {
        source: "case".into(),
        id: "case".into(),
        manifests: desired.clone(),
        provenance: Default::default(),
    };
    let definitions: Vec<Manifest> = schemas.into_iter().chain(desired.iter().cloned()).collect();
    let mut placed = Vec::new();
    for manifest in &desired {
        let scope = types::scope(&manifest.gvk, &definitions);
        let desired = match place(&revision, manifest, scope, "default") {
            Ok(desired) => {
                placed.push(desired.clone());
                Arc::new(desired)
            }
            Err(error) => {
                verdicts.insert("refused");
                found.reason += &error.to_string();
                continue;
            }
        };
        let same = |other: &&Manifest| {
            let namespace = other.namespace.as_deref().unwrap_or("default");
            other.gvk.group_kind() == desired.key.group_kind
                && other.name == desired.key.name
                && (scope == Scope::Cluster || namespace == desired.key.namespace_str())
        };
        let live = live.iter().find(same);
        let snapshot = Snapshot {
            key: desired.key.clone(),
            gvk: desired.gvk.clone(),
            facts: types::facts(&desired.gvk, &definitions)?,
            live: live.map_or(Live::Absent, |live| {
                Live::Present(LiveObject {
                    json: live.json.clone(),
                    uid: "uid".into(),
                    resource_version: "1".into(),
                    deleting: false,
                })
            }),
            desired,
            applied_uid: None,
            now_ms: NOW_MS,
            standoff: None,
            retries: 0,
        };
        let mut first: Option<(&str, BTreeSet<String>)> = None;
        for plugin in plugins {
            let name = &plugin.identity().name;
            let claims = plugin.manifest().claim_for(&snapshot.key.group_kind).is_some();
            if !claims || case.plugin.as_ref().is_some_and(|only| only != name) {
                continue;
            }
            let (verdict, paths, reason) = judge(plugin, &snapshot)?;
            if let Some(first) = &first {
                ensure!(
                    *first == (verdict, paths.clone()),
                    "generic says {first:?} and {name} says {verdict} at {paths:?}"
                );
            }
            found.reason += &reason;
            first = Some((verdict, paths));
        }
        let (verdict, paths) = first.context("no plugin of ours claims the kind")?;
        if verdict != "in-sync" {
            verdicts.insert(verdict);
        }
        if verdict != "missing" {
            found.paths.extend(paths);
        }
    }
    if let Err(errors) = unique(placed) {
        verdicts = ["unreadable"].into();
        found.reason = errors.iter().map(ToString::to_string).collect();
    }
    let words: Vec<&str> = verdicts.into_iter().collect();
    found.verdict = if words.is_empty() { "in-sync".into() } else { words.join("+") };
    let mut expect = case.expect.clone();
    // What is live and not declared is nothing that a plugin is asked about, and the host shows
    // values; the sandbox sees them.
    if expect.verdict == "extra" {
        return Ok(());
    }
    expect.desired.clear();
    if let Some(declared) = expect.verdict.strip_suffix("+extra") {
        expect.verdict = declared.to_owned();
    }
    expect.check(&found)
}

/// What a plugin says, in the words of `diff`.
fn judge(plugin: &Plugin, snapshot: &Snapshot) -> Result<(&'static str, BTreeSet<String>, String)> {
    let lookups: Arc<dyn Lookups> = Arc::new(NoLookups);
    let differences = match plugin.compare(snapshot, &lookups)? {
        Comparison::InSync => return Ok(("in-sync", BTreeSet::new(), String::new())),
        Comparison::Invalid(reason) => return Ok(("refused", BTreeSet::new(), reason)),
        Comparison::Unknown(reason) => return Ok(("unknown", BTreeSet::new(), reason)),
        Comparison::Different(differences) => differences,
    };
    let paths = differences.iter().map(|difference| difference.path.clone()).collect();
    let decision = match plugin.decide(snapshot, &differences, &lookups)? {
        Verdict::Decided(decision) => decision,
        other => bail!("a plugin that sees differences decides {other:?}"),
    };
    // A field that the schema does not know is the host's to refuse.
    let unknown = differences.iter().find(|each| each.kind == DifferenceKind::Pruned);
    if let Some(unknown) = unknown {
        return Ok(("refused", paths, format!("unknown_field: {}", unknown.path)));
    }
    if snapshot.live_object().is_none() {
        ensure!(!decision.actions.is_empty(), "an absent object is not made");
        return Ok(("missing", paths, String::new()));
    }
    let frozen = differences.iter().find_map(|each| each.immutable.as_ref());
    if let Some(frozen) = frozen {
        // The deployment plugin applies, and the server says no.
        return Ok(("refused", paths, format!("immutable_field_stateful: {frozen}")));
    }
    let acts = decision.actions.iter().any(|action| !matches!(action, Action::Leave(_)));
    ensure!(acts, "a drift is left: {decision:?}");
    Ok(("drift", paths, String::new()))
}

//! Comparison cases: what should come of two objects, told as data in `tests/system/cases/*.yaml`
//! and shown twice, without a cluster (`offline.rs`) and on a real API server (`server.rs`;
//! `refused.rs` for what refuses a whole source).
//!
//! One file for each kind of case. The form is in `tests/system/cases/README.md`, with a table of
//! the public reports that the cases stand for (`table.rs` holds it against the cases). Unknown keys
//! are refused, so that a misspelt expectation never passes.
//!
//! A case that is `known` to fail must fail: when it passes, its test says that the word can go.

mod form;
mod offline;
mod server;

mod refused;
mod steps;
mod table;
mod types;

use anyhow::{Context as _, Result, ensure};
use form::Case;
use std::collections::BTreeSet;
use std::path::PathBuf;
use trimtab_system_tests::workspace;

/// Stands for the case's namespace in every text of a case: a name that no other case has.
const PLACE: &str = "$ns";

/// So much of one failure is shown: some hold the whole answer.
const TOLD_CHARS: usize = 600;

fn folder() -> PathBuf {
    workspace().join("tests/system/cases")
}

/// Every case of every file, in order.
fn all() -> Result<Vec<Case>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let kind = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let kind = kind.unwrap_or_default();
        let text = std::fs::read_to_string(&path)?;
        let read = || path.display().to_string();
        let plain: Vec<serde_json::Value> = serde_saphyr::from_str(&text).with_context(read)?;
        for (index, mut value) in plain.into_iter().enumerate() {
            let namespace = format!("{kind}-{}", index + 1);
            form::fill(&mut value, &namespace);
            let name = value["name"].as_str().unwrap_or("a case without a name").to_owned();
            let mut case: Case =
                serde_json::from_value(value).with_context(|| format!("{kind}: {name}"))?;
            case.kind.clone_from(&kind);
            case.namespace = namespace;
            cases.push(case);
        }
    }
    let names: BTreeSet<&str> = cases.iter().map(|case| &*case.name).collect();
    ensure!(names.len() == cases.len(), "two cases have one name");
    ensure!(cases.len() > 100, "only {} cases were found", cases.len());
    Ok(cases)
}

/// What came of the cases: how many there were, and what is wrong, each with its case.
#[derive(Default)]
struct Tally {
    judged: usize,
    known: usize,
    wrong: Vec<String>,
}

impl Tally {
    /// Takes one case's result; `known` says that it is known to fail.
    fn take(&mut self, case: &Case, known: Option<&str>, result: Result<()>) {
        self.judged += 1;
        let told = match (known, result) {
            (None, Ok(())) => return,
            (None, Err(error)) => format!("{error:#}"),
            (Some(_), Err(_)) => {
                self.known += 1;
                return;
            }
            (Some(why), Ok(())) => {
                format!("passes, and is said to be known to fail ({why}): take `known` out")
            }
        };
        let told: String = told.chars().take(TOLD_CHARS).collect();
        self.wrong.push(format!("{} ({}): {told}", case.name, case.namespace));
    }

    fn end(self, what: &str) -> Result<()> {
        let Self { judged, known, wrong } = self;
        ensure!(wrong.is_empty(), "{} of {judged} are wrong:\n{}", wrong.len(), wrong.join("\n"));
        crate::world::say(&format!("{what}: {judged} cases are right, {known} known to fail"));
        Ok(())
    }
}

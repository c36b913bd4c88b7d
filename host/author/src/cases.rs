//! An author's cases: one YAML file each, `cases/*.yaml`. Unknown keys are refused, so that a
//! misspelt expectation never passes.

use crate::Error;
use crate::reviews::{self, ReviewCase};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of a crate's cases.
pub(crate) const FOLDER: &str = "cases";

/// One case.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// A sentence.
    pub(crate) name: String,
    /// The object as declared.
    pub(crate) desired: Value,
    /// The object as the API server has it; left out: it is absent.
    pub(crate) live: Option<Value>,
    /// Objects that `lookup` finds; every other is absent.
    #[serde(default)]
    pub(crate) related: Vec<Value>,
    /// How many passes failed in a row before.
    #[serde(default)]
    pub(crate) retries: u32,
    /// What should come of it.
    pub(crate) expect: Expect,
}

/// What should come of a case.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// What `compare` answers.
    pub(crate) verdict: Verdict,
    /// Part of the reason, for `invalid` and `unknown`.
    pub(crate) reason: Option<String>,
    /// All differences, in any order; left out: not checked.
    pub(crate) differences: Option<Vec<Difference>>,
    /// What `decide` answers; left out: not checked.
    pub(crate) decision: Option<Decision>,
}

/// What `compare` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    InSync,
    Different,
    Invalid,
    Unknown,
}

/// One difference; what is left out is not checked.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Difference {
    pub(crate) path: String,
    pub(crate) kind: Option<String>,
    pub(crate) desired: Option<Value>,
    pub(crate) live: Option<Value>,
}

/// What `decide` answers; what is left out is not checked.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decision {
    /// In order: `apply-desired`, `apply-desired without PATH…`, `remove-fields PATH…`,
    /// `recreate`, `delete`, `adopt`, `leave`, `apply-content`, `patch-status`.
    pub(crate) actions: Option<Vec<String>>,
    /// Names, in any order.
    pub(crate) findings: Option<Vec<String>>,
    /// Part of the reason why not now.
    pub(crate) defer: Option<String>,
    /// Part of the reason why there is no telling.
    pub(crate) unknown: Option<String>,
}

/// One case of either sort.
#[derive(Debug)]
pub(crate) enum Any {
    /// Of a reconciler.
    Pass(Box<Case>),
    /// Of a policy.
    Review(Box<ReviewCase>),
}

/// The crate's cases, in the order of their files' names.
pub(crate) fn read(dir: &Path) -> Result<Vec<(PathBuf, Any)>, Error> {
    let folder = dir.join(FOLDER);
    let mut files = Vec::new();
    if folder.is_dir() {
        for entry in fs::read_dir(&folder).map_err(Error::file(&folder))? {
            let path = entry.map_err(Error::file(&folder))?.path();
            if path.extension().is_some_and(|name| name == "yaml" || name == "yml") {
                files.push(path);
            }
        }
    }
    if files.is_empty() {
        return Err(Error::NoCases(folder));
    }
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
            match any(&text) {
                Ok(case) => Ok((path, case)),
                Err(message) => Err(Error::Case { path, message }),
            }
        })
        .collect()
}

fn any(text: &str) -> Result<Any, String> {
    let value: Value =
        serde_saphyr::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    match reviews::is_one(&value) {
        true => reviews::parse(text).map(Box::new).map(Any::Review),
        false => parse(text).map(Box::new).map(Any::Pass),
    }
}

fn parse(text: &str) -> Result<Case, String> {
    let case: Case =
        serde_saphyr::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    let expect = &case.expect;
    let different = expect.verdict == Verdict::Different;
    if !different && (expect.differences.is_some() || expect.decision.is_some()) {
        return Err("expect: differences and decision go with verdict: different".into());
    }
    if expect.reason.is_some() && !matches!(expect.verdict, Verdict::Invalid | Verdict::Unknown) {
        return Err("expect: reason goes with verdict: invalid and verdict: unknown".into());
    }
    if let Some(Decision { actions, findings, defer, unknown }) = &expect.decision {
        let decided = actions.is_some() || findings.is_some();
        if usize::from(decided) + usize::from(defer.is_some()) + usize::from(unknown.is_some()) > 1
        {
            return Err("expect: a decision has actions and findings, or defer, or unknown".into());
        }
    }
    Ok(case)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "
name: a sentence
desired: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '1'}}
live: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '2'}}
expect:
  verdict: different
  differences: [{path: /data/a, kind: changed, desired: '1', live: '2'}]
  decision: {actions: [apply-desired], findings: []}
";

    #[test]
    fn a_good_case_reads() {
        let case = parse(GOOD).unwrap();
        assert_eq!(case.expect.verdict, Verdict::Different);
        assert_eq!(case.desired["data"]["a"], "1");
    }

    #[test]
    fn a_misspelt_key_is_refused_wherever_it_stands() {
        for (from, to) in [
            ("live:", "life:"),
            ("differences:", "diferences:"),
            ("kind: changed", "kinds: changed"),
            ("actions:", "action:"),
            ("different\n", "differs\n"),
        ] {
            assert!(GOOD.contains(from));
            assert!(parse(&GOOD.replacen(from, to, 1)).is_err(), "{to}");
        }
    }

    #[test]
    fn an_expectation_that_contradicts_itself_is_refused() {
        let message = parse(&GOOD.replace("verdict: different", "verdict: in-sync")).unwrap_err();
        assert!(message.contains("go with verdict: different"), "{message}");
        assert!(parse(&GOOD.replace("findings: []", "defer: later")).is_err());
    }
}

//! What `diff` answers. The form of its JSON is part of the command line's contract.

use crate::engine::Refused;
use crate::journal::ManagerLine;
use crate::round::Looked;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;
use trimtab_core::decision::Difference;
use trimtab_core::identity::Gvk;
use trimtab_core::ignore::{Matched, Scoped};
use trimtab_core::object::Manifest;
use trimtab_core::placing::PlacingError;
use trimtab_core::reason;
use trimtab_core::record::Outcome;

#[derive(Debug, Default, Serialize)]
pub(super) struct Answer {
    pub(super) objects: Vec<Judged>,
    pub(super) errors: Vec<Problem>,
    /// Ignore rules, each with the number of places that it led to.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    ignored: BTreeMap<String, usize>,
}

#[derive(Debug, Serialize)]
pub(super) struct Judged {
    pub(super) object: Named,
    pub(super) verdict: Verdict,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    #[serde(serialize_with = "shown")]
    pub(super) differences: Vec<Difference>,
    /// Both sides whole, for views that show what is around a difference. Not redacted.
    #[serde(skip)]
    pub(super) desired: Option<Arc<[u8]>>,
    #[serde(skip)]
    pub(super) live: Option<Arc<[u8]>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    InSync,
    Drift,
    Missing,
    Extra,
    Unknown,
    Refused,
}

impl Verdict {
    /// The word used in output.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::InSync => "in-sync",
            Self::Drift => "drift",
            Self::Missing => "missing",
            Self::Extra => "extra",
            Self::Unknown => "unknown",
            Self::Refused => "refused",
        }
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Named {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

#[derive(Debug, Serialize)]
struct Shown<'a> {
    path: &'a str,
    kind: &'static str,
    desired: Option<serde_json::Value>,
    live: Option<serde_json::Value>,
    managers: Vec<ManagerLine>,
}

#[derive(Debug, Serialize)]
pub(super) struct Problem {
    r#where: String,
    pub(super) message: String,
}

impl Answer {
    /// Nothing found yet, under these rules.
    pub(super) fn with_rules<'r>(rules: impl Iterator<Item = &'r Scoped>) -> Self {
        let ignored = rules.map(|scoped| (scoped.rule.to_string(), 0)).collect();
        Self { ignored, ..Self::default() }
    }

    /// A source cannot be read.
    pub(super) fn refused(&mut self, error: &trimtab_source::SourceError) {
        let problem = |problem: &trimtab_source::Problem| Problem {
            r#where: match problem.line {
                Some(line) => format!("{}:{line}", problem.file),
                None => problem.file.to_string(),
            },
            message: problem.to_string(),
        };
        self.errors.extend(error.problems().iter().map(problem));
    }

    /// Counts what the rules led to in one object.
    pub(super) fn ignored(&mut self, matched: &[Matched]) {
        for Matched { rule, places } in matched {
            *self.ignored.entry(rule.to_string()).or_default() += places;
        }
    }

    /// The rules that led nowhere.
    pub(super) fn idle_rules(&self) -> impl Iterator<Item = &str> {
        self.ignored.iter().filter(|(_, places)| **places == 0).map(|(rule, _)| rule.as_str())
    }

    /// How many objects have this verdict.
    pub(super) fn count(&self, verdict: Verdict) -> usize {
        self.objects.iter().filter(|judged| judged.verdict == verdict).count()
    }
}

impl Named {
    pub(super) fn new(gvk: &Gvk, namespace: &str, name: &str) -> Self {
        Self {
            api_version: gvk.api_version(),
            kind: gvk.kind.to_string(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// As `apps/v1/Deployment/shop/web`.
    pub(super) fn path(&self) -> String {
        let parts = [&self.api_version, &self.kind, &self.namespace, &self.name];
        let parts: Vec<&str> =
            parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        parts.join("/")
    }
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        write!(f, "{} {}{slash}{}", self.kind, self.namespace, self.name)
    }
}

impl Judged {
    /// An object of which no differences are known.
    pub(super) fn of(manifest: &Manifest, verdict: Verdict, reason: String) -> Self {
        let namespace = manifest.namespace.as_deref().unwrap_or_default();
        Self::new(Named::new(&manifest.gvk, namespace, &manifest.name), verdict, reason)
    }

    pub(super) fn new(object: Named, verdict: Verdict, reason: String) -> Self {
        Self { object, verdict, reason, differences: vec![], desired: None, live: None }
    }
}

impl From<Looked> for Judged {
    fn from(Looked { record, desired, live }: Looked) -> Self {
        let missing = record.live_uid.is_none();
        // What is not there is not rehearsed: the schema tells what the server would refuse.
        let unknown = reason::unknown_field(&record.differences).filter(|_| missing);
        let verdict = match &record.outcome {
            _ if unknown.is_some() => Verdict::Refused,
            outcome if outcome.converged() => Verdict::InSync,
            Outcome::Observed | Outcome::Left(_) | Outcome::Refused if missing => Verdict::Missing,
            Outcome::Observed | Outcome::Left(_) | Outcome::Refused | Outcome::NotKept(_) => {
                Verdict::Drift
            }
            Outcome::Rejected(_) | Outcome::Conflict(_) => Verdict::Refused,
            _ => Verdict::Unknown,
        };
        Self {
            object: Named::new(&record.gvk, record.key.namespace_str(), &record.key.name),
            verdict,
            reason: unknown.unwrap_or_else(|| record.outcome.message()),
            differences: if missing { vec![] } else { record.differences },
            desired: Some(desired.json.clone()),
            live,
        }
    }
}

impl From<&PlacingError> for Problem {
    fn from(error: &PlacingError) -> Self {
        let place = match error {
            PlacingError::Duplicate { second, .. } => second,
            PlacingError::Invalid { origin, .. } | PlacingError::Outside { origin, .. } => origin,
        };
        Self { r#where: place.to_string(), message: error.to_string() }
    }
}

impl From<&Refused> for Problem {
    fn from(refused: &Refused) -> Self {
        let Refused { source, object, origin, reason } = refused;
        let message = format!("source {source}: {object} ({origin}): {reason}");
        Self { r#where: origin.clone(), message }
    }
}

fn shown<S: Serializer>(differences: &[Difference], serializer: S) -> Result<S::Ok, S::Error> {
    let value = |json: &Option<Vec<u8>>| serde_json::from_slice(json.as_deref()?).ok();
    serializer.collect_seq(differences.iter().map(|difference| Shown {
        path: &difference.path,
        kind: difference.kind.as_str(),
        desired: value(&difference.desired),
        live: value(&difference.live),
        managers: difference.managers.iter().map(Into::into).collect(),
    }))
}

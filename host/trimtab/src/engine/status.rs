//! What `trimtab source list` shows: written by the running host into its state directory.

use super::Engine;
use super::desired::Refused;
use super::settled::SourceLine;
use super::sources::{Entry, Problem};
use crate::timestamp::rfc3339;
use serde::{Deserialize, Serialize};
use std::path::Path;
use trimtab_core::inventory::Inventory;

/// Name of the file within the state directory.
const FILE: &str = "sources.json";

/// Every source of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// In the order of their names.
    pub(crate) sources: Vec<SourceStatus>,
    /// Why the newest configuration is not in use, and since when; the last good one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config_problem: Option<Told>,
}

/// One source, as the host sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceStatus {
    /// Its name.
    pub(crate) name: String,
    /// Where it is, without credentials.
    pub(crate) location: String,
    /// `observe`, `enforce` or `suspended`.
    pub(crate) mode: String,
    /// How often it is looked at without any hint, in seconds.
    pub(crate) interval_seconds: u64,
    /// What is in force of it; absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<String>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<String>,
    /// It was in force before the host started, and the source could not be read since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) from_before: bool,
    /// Who wrote the revision, as its source says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) author: Option<String>,
    /// Whose signature was verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signer: Option<String>,
    /// Objects that it declares.
    pub(crate) objects: usize,
    /// Those of them that are not taken, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refused: Vec<Refused>,
    /// Why its newest content is not in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<Told>,
    /// Why its objects are not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) suspension: Option<String>,
    /// The one namespace that it reaches; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target_namespace: Option<String>,
    /// Whom its writes are made as; absent: the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) service_account: Option<String>,
    /// Whether what it declares no more may be deleted.
    pub(crate) prune: bool,
    /// Objects that were made for it, by the inventory.
    #[serde(default)]
    pub(crate) made: usize,
    /// Deletions that wait for a person, and how to allow them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) held: Vec<String>,
    /// Sources that come before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) depends_on: Vec<String>,
}

/// A reason, and since when it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told {
    /// The reason.
    pub(crate) message: String,
    /// Since when, in RFC 3339.
    pub(crate) since: String,
}

impl From<&Problem> for Told {
    fn from(problem: &Problem) -> Self {
        Self { message: problem.text.clone(), since: rfc3339(problem.since_ms) }
    }
}

impl Engine {
    /// Writes how sources stand, if that is other than it was.
    pub(super) fn tell_sources(&mut self) {
        if !std::mem::take(&mut self.sources.untold) {
            return;
        }
        let refused = |name: &str| -> Vec<Refused> {
            self.desired.refused.iter().filter(|it| it.source == name).cloned().collect()
        };
        let status = Status {
            sources: self
                .sources
                .iter()
                .map(|entry| {
                    let name = &entry.config.name;
                    SourceStatus {
                        refused: refused(name),
                        made: self.made.of(name).map_or(0, Inventory::len),
                        held: self.held_of(name),
                        ..of(entry)
                    }
                })
                .collect(),
            config_problem: self.sources.config_problem.as_ref().map(Told::from),
        };
        if let Err(error) = write(&self.options.state, &status) {
            tracing::warn!("the list of sources cannot be written: {error:#}");
        }
    }
}

fn of(entry: &Entry) -> SourceStatus {
    let (config, in_force) = (&entry.config, entry.in_force.as_ref());
    let suspension = entry.suspension();
    let mode = match suspension {
        Some(_) => "suspended",
        None => config.terms.mode.as_str(),
    };
    let provenance = in_force.map(|in_force| &in_force.revision.provenance);
    SourceStatus {
        name: config.name.clone(),
        location: config.location(),
        mode: mode.into(),
        interval_seconds: config.interval.as_secs(),
        revision: in_force.map(|in_force| in_force.revision.id.to_string()),
        since: in_force.map(|in_force| rfc3339(in_force.since_ms)),
        from_before: in_force.is_some_and(|in_force| in_force.from_before),
        author: provenance.and_then(|it| it.author.as_deref()).map(str::to_owned),
        signer: provenance.and_then(|it| it.signer.as_ref()).map(|it| it.principal.to_string()),
        objects: in_force.map_or(0, |in_force| in_force.placed.len()),
        refused: Vec::new(),
        problem: entry.problem.as_ref().map(Told::from),
        suspension,
        target_namespace: config.terms.confined_to.as_deref().map(str::to_owned),
        service_account: config.terms.acts_as.as_ref().map(ToString::to_string),
        prune: config.terms.prune,
        made: 0,
        held: Vec::new(),
        depends_on: config.depends_on.clone(),
    }
}

/// The source as the summary of a round has it.
pub(super) fn summary_line(entry: &Entry) -> SourceLine {
    SourceLine {
        name: entry.config.name.clone(),
        revision: entry.in_force.as_ref().map(|in_force| in_force.revision.id.to_string()),
        problem: entry.problem.as_ref().map(|problem| problem.text.clone()),
        problem_since: entry.problem.as_ref().map(|problem| rfc3339(problem.since_ms)),
    }
}

/// Replaces the file at once.
fn write(state: &Path, status: &Status) -> anyhow::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(state)?;
    serde_json::to_writer_pretty(&mut file, status)?;
    file.persist(state.join(FILE))?;
    Ok(())
}

/// What the host of this state directory last wrote.
///
/// # Errors
/// There is no such file, or it cannot be read.
pub(crate) fn read(state: &Path) -> anyhow::Result<Status> {
    use anyhow::Context as _;
    let path = state.join(FILE);
    let text = std::fs::read(&path).with_context(|| {
        format!("no list of sources at {}: give the --state of a host that ran", path.display())
    })?;
    serde_json::from_slice(&text).with_context(|| format!("{} is not readable", path.display()))
}

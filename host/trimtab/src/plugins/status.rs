//! What `trimtab plugin list` shows: written by the running host into its state directory.

use super::Registry;
use crate::journal::{IdentityLine, PluginLine};
use serde::{Deserialize, Serialize};
use std::path::Path;
use trimtab_core::grant::Mode;

/// Name of the file within the state directory.
const FILE: &str = "plugins.json";

/// Every file of the plugin directory, as the host sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// One entry for each file, by name.
    pub(crate) plugins: Vec<FileStatus>,
    /// Why the newest grants are not in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) grants_problem: Option<String>,
}

/// One file of the plugin directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileStatus {
    /// Name of the file.
    pub(crate) file: String,
    /// `loaded`, `observing`, `enforcing`, `quarantined` or `refused`.
    pub(crate) state: String,
    /// Name that its manifest gives; empty for a file that could not be read.
    pub(crate) name: String,
    /// Version that its manifest gives.
    pub(crate) version: String,
    /// SHA-256 of the file in service.
    pub(crate) digest: String,
    /// Who vouches for the file in service, where signatures are required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signer: Option<String>,
    /// As a policy: `observing` or `enforcing`; none: it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<String>,
    /// Kinds that it claims.
    pub(crate) claims: Vec<String>,
    /// Where its grant is; empty without one.
    pub(crate) grant: String,
    /// Why it is refused or quarantined, or why a newer form of the file is refused.
    pub(crate) reason: String,
    /// When its state began.
    #[serde(default)]
    pub(crate) since: String,
    /// Passes in which it was asked.
    #[serde(default)]
    pub(crate) passes: u64,
    /// Its faults, by sort.
    #[serde(default)]
    pub(crate) faults: FaultCounts,
    /// The last one, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_fault: Option<String>,
}

/// Faults of one build since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FaultCounts {
    pub(crate) traps: u64,
    pub(crate) deadlines: u64,
    pub(crate) limits: u64,
    pub(crate) invalid: u64,
    pub(crate) impure: u64,
}

impl FaultCounts {
    /// All together.
    pub(crate) fn sum(&self) -> u64 {
        self.traps + self.deadlines + self.limits + self.invalid + self.impure
    }
}

impl FileStatus {
    /// Without what is counted.
    fn lasting(&self) -> Self {
        Self {
            since: String::new(),
            passes: 0,
            faults: FaultCounts::default(),
            last_fault: None,
            ..self.clone()
        }
    }
}

impl Status {
    /// What is other in `next`, as the journal tells it.
    pub(crate) fn changes(&self, next: &Self) -> Vec<PluginLine> {
        let told = |plugin: &FileStatus, event: &str| PluginLine {
            file: plugin.file.clone(),
            event: event.to_owned(),
            plugin: (!plugin.name.is_empty()).then(|| IdentityLine {
                name: plugin.name.clone(),
                version: plugin.version.clone(),
                digest: plugin.digest.clone(),
            }),
            signer: plugin.signer.clone(),
            message: plugin.reason.clone(),
        };
        let known =
            |plugin: &FileStatus| self.plugins.iter().any(|old| old.lasting() == plugin.lasting());
        let changed = next.plugins.iter().filter(|plugin| !known(plugin));
        let gone = self
            .plugins
            .iter()
            .filter(|old| !next.plugins.iter().any(|plugin| plugin.file == old.file));
        changed
            .map(|plugin| told(plugin, &plugin.state))
            .chain(gone.map(|plugin| told(plugin, "removed")))
            .collect()
    }

    pub(super) fn of(registry: &Registry) -> Self {
        let mut plugins: Vec<FileStatus> = registry
            .served()
            .iter()
            .map(|served| {
                let grant = served.power.grant.as_ref();
                let word = |mode: Option<Mode>| match mode {
                    Some(Mode::Enforce) => "enforcing".to_owned(),
                    _ => "observing".to_owned(),
                };
                let inspection = served.plugin.inspection();
                let terms = grant.and_then(|grant| grant.terms.policy.as_ref());
                let policy = inspection.reviews().then(|| word(terms.map(|it| it.mode)));
                let state = match &policy {
                    Some(policy) if !inspection.reconciles() => policy.clone(),
                    _ => word(grant.map(|grant| grant.mode)),
                };
                FileStatus {
                    file: served.file.clone(),
                    state,
                    policy,
                    name: served.power.plugin.name.clone(),
                    version: served.power.plugin.version.clone(),
                    digest: served.power.plugin.digest.to_string(),
                    signer: served.signer.clone(),
                    claims: served.power.manifest.claims.iter().map(ToString::to_string).collect(),
                    grant: grant.map(|grant| grant.origin.clone()).unwrap_or_default(),
                    reason: registry
                        .refused
                        .get(&served.file)
                        .map(|reason| format!("the older file is in service: {reason}"))
                        .unwrap_or_default(),
                    ..FileStatus::default()
                }
            })
            .collect();
        for (file, reason) in &registry.refused {
            if !plugins.iter().any(|plugin| plugin.file == *file) {
                plugins.push(FileStatus {
                    file: file.clone(),
                    state: "refused".into(),
                    reason: reason.clone(),
                    ..FileStatus::default()
                });
            }
        }
        plugins.sort_by(|a, b| a.file.cmp(&b.file));
        Self { plugins, grants_problem: registry.grants_problem.clone() }
    }
}

/// Replaces the file at once.
pub(crate) fn write(state: &Path, status: &Status) -> anyhow::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(state)?;
    serde_json::to_writer_pretty(&mut file, status)?;
    file.persist(state.join(FILE))?;
    Ok(())
}

/// What the host of this state directory last wrote.
pub(crate) fn read(state: &Path) -> anyhow::Result<Status> {
    use anyhow::Context as _;
    let path = state.join(FILE);
    let text = std::fs::read(&path).with_context(|| {
        format!("no plugin list at {}: give the --state of a host that ran", path.display())
    })?;
    serde_json::from_slice(&text).with_context(|| format!("{} is not readable", path.display()))
}

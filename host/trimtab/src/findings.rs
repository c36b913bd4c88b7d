//! Findings as files and people see them: `findings.json` in the state directory, written by the
//! running host and read by `trimtab findings`, and what signals remember over a restart.
//!
//! docs/findings.md is the contract with programs that read it.

use crate::journal::ObjectLine;
use crate::timestamp::rfc3339;
use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use trimtab_core::decision::Severity;
use trimtab_core::identity::{Gvk, ObjectKey};
use trimtab_core::signals::{Finding, Findings, Id, Name, Subject, witness};

/// Version of both files.
pub(crate) const VERSION: u32 = 1;
/// Names of the files within the state directory.
const FILE: &str = "findings.json";
const MEMORY: &str = "signals.json";

/// What `findings.json` holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FindingsFile {
    pub(crate) v: u32,
    /// The newest first.
    pub(crate) findings: Vec<FindingLine>,
    /// Observations since the host started: what metrics would count.
    pub(crate) counts: Vec<CountLine>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FindingLine {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) severity: String,
    /// What it is about: one of these four.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<ObjectLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plugin: Option<String>,
    /// The kind whose watch it is: `apps/v1 Deployment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) watch: Option<String>,
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) evidence: BTreeMap<String, String>,
    pub(crate) first: String,
    pub(crate) last: String,
    pub(crate) count: u64,
    /// When what it tells was over, for what lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<String>,
}

/// How often something was observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CountLine {
    pub(crate) name: String,
    pub(crate) severity: String,
    pub(crate) count: u64,
}

/// What signals count over a restart: times by 32 hexadecimal digits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Memory {
    pub(crate) v: u32,
    pub(crate) recreations: Vec<(String, Vec<u64>)>,
    pub(crate) returns: Vec<(String, Vec<u64>)>,
}

impl From<&Finding> for FindingLine {
    fn from(finding: &Finding) -> Self {
        let (mut object, mut source, mut plugin, mut watch) = (None, None, None, None);
        match &finding.subject {
            Subject::Object(key) => object = Some(key.into()),
            Subject::Source(name) => source = Some(name.to_string()),
            Subject::Plugin(name) => plugin = Some(name.to_string()),
            Subject::Watch(gvk) => watch = Some(gvk.to_string()),
        }
        Self {
            id: finding.id.clone(),
            name: finding.name.as_str().into(),
            severity: finding.severity.as_str().into(),
            object,
            source,
            plugin,
            watch,
            message: finding.message.clone(),
            evidence: finding.evidence.iter().cloned().collect(),
            first: rfc3339(finding.first_ms),
            last: rfc3339(finding.last_ms),
            count: finding.count,
            ended: finding.ended_ms.map(rfc3339),
        }
    }
}

impl FindingLine {
    /// As the core has it; `None`: it is not understood.
    fn finding(self) -> Option<Finding> {
        let subject = match (&self.object, self.source, self.plugin, self.watch) {
            (Some(object), ..) => Subject::Object(ObjectKey::from(object)),
            (_, Some(source), ..) => Subject::Source(source.into()),
            (_, _, Some(plugin), _) => Subject::Plugin(plugin.into()),
            (.., Some(watch)) => {
                let (api_version, kind) = watch.split_once(' ')?;
                Subject::Watch(Gvk::from_api_version(api_version, kind))
            }
            _ => return None,
        };
        let ended_ms = match &self.ended {
            Some(ended) => Some(witness::ms_of(ended)?),
            None => None,
        };
        Some(Finding {
            id: self.id,
            name: Name::parse(&self.name)?,
            severity: severity(&self.severity)?,
            subject,
            message: self.message,
            evidence: self.evidence.into_iter().collect(),
            first_ms: witness::ms_of(&self.first)?,
            last_ms: witness::ms_of(&self.last)?,
            count: self.count,
            ended_ms,
        })
    }

    /// What it is about, in a word or two.
    pub(crate) fn subject(&self) -> String {
        match (&self.object, &self.source, &self.plugin, &self.watch) {
            (Some(object), ..) => ObjectKey::from(object).to_string(),
            (_, Some(source), ..) => format!("source {source}"),
            (_, _, Some(plugin), _) => format!("plugin {plugin}"),
            (.., Some(watch)) => format!("watch of {watch}"),
            _ => String::new(),
        }
    }

    /// For people: its own line, evidence indented.
    pub(crate) fn told(&self) -> String {
        let times = if self.count == 1 { String::new() } else { format!(", {} times", self.count) };
        let mut text =
            format!("finding {} ({}{times}): {}\n", self.name, self.severity, self.message);
        for (name, value) in &self.evidence {
            text.push_str(&format!("    {name}: {value}\n"));
        }
        text
    }
}

/// The severity with this word.
pub(crate) fn severity(word: &str) -> Option<Severity> {
    [Severity::Info, Severity::Warning, Severity::Critical]
        .into_iter()
        .find(|it| it.as_str() == word)
}

/// Replaces the file at once.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write(state: &Path, findings: &Findings) -> anyhow::Result<()> {
    let count = |((name, severity), count): (&(Name, Severity), &u64)| CountLine {
        name: name.as_str().into(),
        severity: severity.as_str().into(),
        count: *count,
    };
    let file = FindingsFile {
        v: VERSION,
        findings: findings.all().into_iter().map(Into::into).collect(),
        counts: findings.counts().iter().map(count).collect(),
    };
    put(state, FILE, &file)
}

/// What the host of this state directory last wrote.
///
/// # Errors
/// There is no such file, or it cannot be read.
pub(crate) fn read(state: &Path) -> anyhow::Result<FindingsFile> {
    let path = state.join(FILE);
    let text = std::fs::read(&path).with_context(|| {
        format!("no findings at {}: give the --state of a host that ran", path.display())
    })?;
    let file: FindingsFile = serde_json::from_slice(&text)
        .with_context(|| format!("{} is not readable", path.display()))?;
    anyhow::ensure!(
        file.v == VERSION,
        "{} has version {}, and this trimtab reads {VERSION}",
        path.display(),
        file.v
    );
    Ok(file)
}

/// Findings of before this run. What cannot be read is said, and begun anew: a finding is no reason
/// not to start.
pub(crate) fn resume(state: &Path, now_ms: u64) -> Findings {
    if !state.join(FILE).exists() {
        return Findings::default();
    }
    match read(state) {
        Ok(file) => {
            let all = file.findings.into_iter().filter_map(FindingLine::finding).collect();
            Findings::restore(all, now_ms)
        }
        Err(error) => {
            tracing::warn!("findings of before are lost: {error:#}");
            Findings::default()
        }
    }
}

/// What signals counted before this run.
pub(crate) fn resume_memory(state: &Path) -> Memory {
    let path = state.join(MEMORY);
    let Ok(text) = std::fs::read(&path) else { return Memory::default() };
    match serde_json::from_slice::<Memory>(&text) {
        Ok(memory) if memory.v == VERSION => memory,
        Ok(_) => Memory::default(),
        Err(error) => {
            tracing::warn!("{} is not readable, signals count anew: {error}", path.display());
            Memory::default()
        }
    }
}

/// Replaces what signals count over a restart.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write_memory(state: &Path, memory: &Memory) -> anyhow::Result<()> {
    put(state, MEMORY, memory)
}

fn put<T: Serialize>(state: &Path, name: &str, value: &T) -> anyhow::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(state)?;
    serde_json::to_writer(&mut file, value)?;
    file.persist(state.join(name))?;
    Ok(())
}

/// Ids as text.
pub(crate) fn as_text(all: Vec<(Id, Vec<u64>)>) -> Vec<(String, Vec<u64>)> {
    let hex = |id: &Id| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    all.into_iter().map(|(id, times)| (hex(&id), times)).collect()
}

/// Ids from text; what is none is left out.
pub(crate) fn from_text(all: Vec<(String, Vec<u64>)>) -> Vec<(Id, Vec<u64>)> {
    let read = |text: &str| -> Option<Id> {
        let mut id = Id::default();
        if text.len() != 2 * id.len() {
            return None;
        }
        for (at, byte) in id.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(id)
    };
    all.into_iter().filter_map(|(text, times)| Some((read(&text)?, times))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_core::identity::GroupKind;
    use trimtab_core::signals::Observation;

    #[test]
    fn findings_of_every_subject_are_the_same_after_a_restart() {
        let state = tempfile::tempdir().unwrap();
        let mut findings = Findings::default();
        let key = ObjectKey::new(GroupKind::new("apps", "Deployment"), "shop", "web");
        for subject in [
            Subject::Object(key),
            Subject::Source("s".into()),
            Subject::Plugin("p".into()),
            Subject::Watch(Gvk::from_api_version("apps/v1", "Deployment")),
        ] {
            let seen = Observation::new(
                Name::Stale,
                Severity::Warning,
                subject,
                "it is silent",
                1_767_323_045_678,
            );
            findings.take(seen.with("why", "refused"));
        }
        findings.ended(Name::Stale, &Subject::Source("s".into()), 1_767_323_045_999);
        write(state.path(), &findings).unwrap();
        let again = resume(state.path(), 1_767_323_046_000);
        assert_eq!(again.all(), findings.all());
        assert_eq!(read(state.path()).unwrap().counts[0].count, 4);
    }

    #[test]
    fn a_file_that_is_damaged_is_an_error_to_people_and_none_to_a_host_that_starts() {
        let state = tempfile::tempdir().unwrap();
        assert!(read(state.path()).is_err());
        std::fs::write(state.path().join(FILE), "{").unwrap();
        assert!(read(state.path()).is_err());
        assert!(resume(state.path(), 1).all().is_empty());
        std::fs::write(state.path().join(FILE), r#"{"v":9,"findings":[],"counts":[]}"#).unwrap();
        assert!(read(state.path()).unwrap_err().to_string().contains("version 9"));
    }

    #[test]
    fn ids_are_the_same_as_text() {
        let all = vec![([7; 16], vec![1, 2]), ([255; 16], vec![])];
        assert_eq!(from_text(as_text(all.clone())), all);
        assert!(from_text(vec![("zz".into(), vec![1]), ("é".repeat(16), vec![])]).is_empty());
    }
}

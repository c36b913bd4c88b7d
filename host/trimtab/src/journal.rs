//! The journal: `journal.jsonl` in the state directory, one JSON line for each thing that a pass
//! found or did, and an intent line on disk before each write.
//!
//! Append-only. A line torn by a crash is closed and marked at the next start, and nothing
//! before it is touched. The lines' keys are documented in docs/journal.md and versioned by `v`.
//! Values arrive here already redacted.

use crate::timestamp::{now_ms, rfc3339};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use trimtab_core::decision::{Difference, Manager};
use trimtab_core::gate::Planned;
use trimtab_core::identity::{GroupKind, ObjectKey};
use trimtab_core::plugin::PluginIdentity;
use trimtab_core::ports::{Journal, JournalError};
use trimtab_core::record::{Intent, Record};

/// Version of the lines' keys.
pub(crate) const VERSION: u32 = 1;
/// Name of the file within the state directory.
pub(crate) const FILE: &str = "journal.jsonl";

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    pub(crate) v: u32,
    pub(crate) time: String,
    #[serde(flatten)]
    pub(crate) event: Event,
}

/// What a line tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(crate) enum Event {
    /// A write is about to begin.
    Intent(IntentLine),
    /// A pass ended.
    Pass(Box<PassLine>),
    /// The host started, stopped, or repaired the journal.
    Host(HostLine),
    /// A source gave a revision or failed.
    Source(SourceLine),
    /// A plugin was loaded, replaced, removed or refused.
    Plugin(PluginLine),
    /// What becomes of an object that its source declares no more.
    Prune(PruneLine),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IntentLine {
    pub(crate) object: ObjectLine,
    pub(crate) plugin: IdentityLine,
    pub(crate) action: PlannedLine,
    pub(crate) revision: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PassLine {
    pub(crate) object: ObjectLine,
    pub(crate) outcome: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    pub(crate) trigger: String,
    pub(crate) mode: String,
    pub(crate) plugin: IdentityLine,
    pub(crate) source: String,
    pub(crate) revision: String,
    pub(crate) origin: String,
    pub(crate) desired_digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) live_uid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) live_resource_version: Option<String>,
    /// UID of the object that the pass wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) written_uid: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) differences: Vec<DifferenceLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) actions: Vec<PlannedLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refusals: Vec<RefusalLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) findings: Vec<FindingLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<ConditionLine>,
    /// Milliseconds from the event that caused the pass to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) since_event_ms: Option<f64>,
    pub(crate) timings_ms: TimingsLine,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectLine {
    pub(crate) group: String,
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    pub(crate) name: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct IdentityLine {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) digest: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DifferenceLine {
    pub(crate) path: String,
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) desired: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) live: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) managers: Vec<ManagerLine>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ManagerLine {
    pub(crate) name: String,
    pub(crate) operation: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) subresource: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) time: String,
    /// Whether it is Trimtab itself, by an earlier write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ours: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PlannedLine {
    pub(crate) action: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) creates: bool,
    /// What a deletion takes with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) takes: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RefusalLine {
    pub(crate) reason: String,
    pub(crate) message: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FindingLine {
    pub(crate) name: String,
    pub(crate) severity: String,
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ConditionLine {
    #[serde(rename = "type")]
    pub(crate) type_: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TimingsLine {
    pub(crate) compare: f64,
    pub(crate) confirm: f64,
    pub(crate) decide: f64,
    pub(crate) write: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostLine {
    pub(crate) event: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceLine {
    pub(crate) source: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) revision: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) problems: Vec<String>,
    /// Objects that are not taken, while the rest of the revision is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refused: Vec<String>,
    /// It was in force before this run, and the source could not be read since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) from_before: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PruneLine {
    pub(crate) object: ObjectLine,
    pub(crate) step: PruneStep,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    pub(crate) source: String,
    /// What is in force of the source: it does not declare the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) revision: String,
    /// UID by the inventory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) uid: Option<String>,
}

/// What happens to an object that is to be pruned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PruneStep {
    /// The intent: its deletion is about to be asked for.
    Deleting,
    /// It is gone.
    Deleted,
    /// Its deletion goes on.
    Going,
    /// Others go first.
    Waiting,
    /// It waits for a person.
    Held,
    /// It stays, and in the inventory too.
    Kept,
    /// It left the inventory.
    Forgotten,
    /// Its deletion was refused, and is tried again.
    Failed,
    /// The source is only observed.
    WouldDelete,
}

impl PruneStep {
    /// The word used in output.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Deleting => "deleting",
            Self::Deleted => "deleted",
            Self::Going => "going",
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Kept => "kept",
            Self::Forgotten => "forgotten",
            Self::Failed => "failed",
            Self::WouldDelete => "would-delete",
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PluginLine {
    pub(crate) file: String,
    pub(crate) event: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plugin: Option<IdentityLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signer: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
}

/// The open journal of a running host.
#[derive(Debug)]
pub(crate) struct JournalFile {
    path: PathBuf,
    file: Mutex<File>,
}

impl JournalFile {
    /// Opens or makes the journal of this state directory, and mends a torn last line.
    ///
    /// # Errors
    /// The file cannot be opened or written: the host must not start.
    pub(crate) fn open(state: &Path) -> anyhow::Result<Self> {
        use anyhow::Context as _;
        let path = state.join(FILE);
        let file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("cannot open the journal {}", path.display()))?;
        let journal = Self { path, file: Mutex::new(file) };
        if journal.close_torn_line()? {
            journal.host("journal-mended", "the last line was torn by a crash and was closed")?;
        }
        Ok(journal)
    }

    /// A line about the host itself.
    pub(crate) fn host(&self, event: &str, message: &str) -> Result<(), JournalError> {
        self.append(Event::Host(HostLine { event: event.into(), message: message.into() }), true)
    }

    /// A line about a source.
    pub(crate) fn source(&self, line: SourceLine) -> Result<(), JournalError> {
        self.append(Event::Source(line), false)
    }

    /// A line about a plugin.
    pub(crate) fn plugin(&self, line: PluginLine) -> Result<(), JournalError> {
        self.append(Event::Plugin(line), false)
    }

    /// What becomes of an object that is to be pruned; an intent is on disk when this returns.
    pub(crate) fn prune(&self, line: PruneLine) -> Result<(), JournalError> {
        let durable = line.step == PruneStep::Deleting;
        self.append(Event::Prune(line), durable)
    }

    /// A pass, with the time since the event that caused it.
    pub(crate) fn pass(
        &self,
        record: &Record,
        since_event_ms: Option<f64>,
    ) -> Result<(), JournalError> {
        let line = PassLine { since_event_ms, ..PassLine::from(record) };
        self.append(Event::Pass(Box::new(line)), false)
    }

    fn append(&self, event: Event, durable: bool) -> Result<(), JournalError> {
        let failed = |error: &dyn std::fmt::Display| {
            JournalError(format!("{}: {error}", self.path.display()))
        };
        let line = Line { v: VERSION, time: rfc3339(now_ms()), event };
        let mut bytes = serde_json::to_vec(&line).map_err(|error| failed(&error))?;
        bytes.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&bytes).map_err(|error| failed(&error))?;
        if durable {
            file.sync_data().map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    fn close_torn_line(&self) -> anyhow::Result<bool> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.seek(SeekFrom::End(0))? == 0 {
            return Ok(false);
        }
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last == *b"\n" {
            return Ok(false);
        }
        file.write_all(b"\n")?;
        Ok(true)
    }
}

impl Journal for JournalFile {
    fn intent(&self, intent: &Intent<'_>) -> Result<(), JournalError> {
        let line = IntentLine {
            object: intent.key.into(),
            plugin: intent.plugin.into(),
            action: intent.planned.into(),
            revision: intent.revision.into(),
        };
        self.append(Event::Intent(line), true)
    }
}

/// Reads the lines of a state directory, oldest first. A line that does not parse is given as
/// text, with its number: it is shown, never skipped.
pub(crate) fn read(state: &Path) -> anyhow::Result<Vec<Result<Line, (usize, String)>>> {
    use anyhow::Context as _;
    let path = state.join(FILE);
    let text = std::fs::read(&path).with_context(|| {
        format!("no journal at {}: give the --state of the host that ran", path.display())
    })?;
    let lines = text.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
    Ok(lines
        .map(|(index, line)| {
            serde_json::from_slice(line).map_err(|error| (index + 1, error.to_string()))
        })
        .collect())
}

/// The UID under which each object was last written, by the journal of this state directory: a
/// host's memory of what is its own. Nothing where there is no journal.
pub(crate) fn written_uids(state: &Path) -> HashMap<ObjectKey, Arc<str>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wrote {
        object: ObjectLine,
        written_uid: String,
    }
    let Ok(text) = std::fs::read(state.join(FILE)) else { return HashMap::new() };
    text.split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Wrote>(line).ok())
        .map(|wrote| (ObjectKey::from(&wrote.object), wrote.written_uid.into()))
        .collect()
}

impl From<&ObjectLine> for ObjectKey {
    fn from(line: &ObjectLine) -> Self {
        Self::new(GroupKind::new(&line.group, &line.kind), &line.namespace, &line.name)
    }
}

impl From<&ObjectKey> for ObjectLine {
    fn from(key: &ObjectKey) -> Self {
        Self {
            group: key.group_kind.group.to_string(),
            kind: key.group_kind.kind.to_string(),
            namespace: key.namespace_str().to_owned(),
            name: key.name.to_string(),
        }
    }
}

impl From<&PluginIdentity> for IdentityLine {
    fn from(plugin: &PluginIdentity) -> Self {
        Self {
            name: plugin.name.clone(),
            version: plugin.version.clone(),
            digest: plugin.digest.to_string(),
        }
    }
}

impl From<&Planned> for PlannedLine {
    fn from(planned: &Planned) -> Self {
        Self {
            action: planned.action.to_string(),
            paths: planned.paths.clone(),
            creates: planned.creates,
            takes: planned.takes.clone(),
        }
    }
}

impl From<&Manager> for ManagerLine {
    fn from(manager: &Manager) -> Self {
        Self {
            name: manager.name.clone(),
            operation: manager.operation.clone(),
            subresource: manager.subresource.clone(),
            time: manager.time.clone(),
            ours: manager.is_ours(),
        }
    }
}

impl ManagerLine {
    /// Who wrote, on one line for people.
    pub(crate) fn told(&self) -> String {
        let us = if self.ours { "us, as " } else { "" };
        let mut text = format!("written by {us}{} ({}", self.name, self.operation);
        if !self.subresource.is_empty() {
            text.push_str(", subresource ");
            text.push_str(&self.subresource);
        }
        text.push(')');
        if !self.time.is_empty() {
            text.push_str(" at ");
            text.push_str(&self.time);
        }
        text.push_str(", according to managedFields");
        text
    }
}

impl From<&Difference> for DifferenceLine {
    fn from(difference: &Difference) -> Self {
        let raw = |json: &Option<Vec<u8>>| serde_json::from_slice(json.as_deref()?).ok();
        Self {
            path: difference.path.clone(),
            kind: difference.kind.as_str().into(),
            desired: raw(&difference.desired),
            live: raw(&difference.live),
            managers: difference.managers.iter().map(Into::into).collect(),
        }
    }
}

impl From<&Record> for PassLine {
    fn from(record: &Record) -> Self {
        let ms = |time: std::time::Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        Self {
            object: (&record.key).into(),
            outcome: record.outcome.as_str().into(),
            message: record.outcome.message(),
            trigger: record.trigger.as_str().into(),
            mode: record.mode.as_str().into(),
            plugin: (&record.plugin).into(),
            source: record.source.to_string(),
            revision: record.revision.to_string(),
            origin: record.origin.to_string(),
            desired_digest: record.desired_digest.to_string(),
            live_uid: record.live_uid.as_deref().map(Into::into),
            live_resource_version: record.live_resource_version.as_deref().map(Into::into),
            written_uid: record.written().map(|object| object.uid.to_string()),
            differences: record.differences.iter().map(Into::into).collect(),
            actions: record.planned.iter().map(Into::into).collect(),
            refusals: record
                .refusals
                .iter()
                .map(|r| RefusalLine { reason: r.reason.into(), message: r.message.clone() })
                .collect(),
            findings: record
                .findings
                .iter()
                .map(|f| FindingLine {
                    name: f.name.clone(),
                    severity: f.severity.as_str().into(),
                    message: f.message.clone(),
                    path: f.path.clone(),
                })
                .collect(),
            conditions: record
                .conditions
                .iter()
                .map(|c| ConditionLine {
                    type_: c.type_.clone(),
                    status: c.status.as_str().into(),
                    reason: c.reason.clone(),
                    message: c.message.clone(),
                })
                .collect(),
            since_event_ms: None,
            timings_ms: TimingsLine {
                compare: ms(record.timings.compare),
                confirm: ms(record.timings.confirm),
                decide: ms(record.timings.decide),
                write: ms(record.timings.write),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_torn_by_a_crash_is_closed_and_what_came_before_stays() {
        let dir = tempfile::tempdir().unwrap();
        JournalFile::open(dir.path()).unwrap().host("started", "").unwrap();
        let path = dir.path().join(FILE);
        let mut torn = std::fs::read(&path).unwrap();
        torn.extend_from_slice(b"{\"v\":1,\"time");
        std::fs::write(&path, &torn).unwrap();
        JournalFile::open(dir.path()).unwrap().host("started", "").unwrap();

        let lines = read(dir.path()).unwrap();
        assert_eq!(lines.len(), 4, "started, torn, mended, started");
        assert_eq!(lines[1].as_ref().unwrap_err().0, 2, "the torn line is shown with its number");
        let mended = matches!(&lines[2], Ok(Line { event: Event::Host(host), .. }) if host.event == "journal-mended");
        assert!(mended);
    }

    #[test]
    fn reading_without_a_journal_says_where_it_looked() {
        let error = read(Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/journal.jsonl"), "{error}");
    }
}

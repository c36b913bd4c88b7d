//! The lines of the journal: what each event tells, and how a pass's record becomes one.
//!
//! Keys are documented in docs/journal.md and versioned by `v`. Values arrive here already redacted.

use serde::{Deserialize, Serialize};
use trimtab_core::decision::{Difference, Manager};
use trimtab_core::gate::Planned;
use trimtab_core::identity::{GroupKind, ObjectKey};
use trimtab_core::plugin::PluginIdentity;
use trimtab_core::policy::{Opinion, Said};
use trimtab_core::record::{Intent, Record};

/// Version of the lines' keys.
pub(crate) const VERSION: u32 = 2;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    pub(crate) v: u32,
    /// Its number, counted from 0 over all files of the log.
    pub(crate) seq: u64,
    /// SHA-256 of the line before it, its end of line left out; empty for the first of all.
    pub(crate) prev: String,
    pub(crate) time: String,
    #[serde(flatten)]
    pub(crate) event: Event,
}

/// What a line tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(crate) enum Event {
    /// The log begins.
    Log(LogLine),
    /// Every line before this one, vouched for.
    Checkpoint(CheckpointLine),
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
    /// What policies said of an object that entered desired state, or was kept out of it.
    Review(Box<ReviewLine>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LogLine {
    /// Random, so that no two logs are taken for one.
    pub(crate) log: String,
    /// The host's public key, by which its checkpoints are verified.
    pub(crate) key: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CheckpointLine {
    pub(crate) log: String,
    pub(crate) key: String,
    /// Ed25519, in base64, over what `checkpoint.rs` says.
    pub(crate) signature: String,
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
    /// What policies said of what was to be written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reviews: Vec<OpinionLine>,
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

/// What one policy said.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OpinionLine {
    pub(crate) policy: IdentityLine,
    pub(crate) mode: String,
    pub(crate) point: String,
    /// `allow`, `warn`, `deny` or `failed`.
    pub(crate) verdict: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reasons: Vec<ReasonLine>,
    /// How it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) fault: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReasonLine {
    pub(crate) control: String,
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReviewLine {
    pub(crate) object: ObjectLine,
    /// `denied`, `warned`, or `allowed` after it was denied.
    pub(crate) outcome: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    pub(crate) source: String,
    pub(crate) revision: String,
    pub(crate) origin: String,
    pub(crate) desired_digest: String,
    /// Who the commit says its author is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) author: Option<String>,
    /// Whose verified signatures vouch for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) signers: Vec<String>,
    pub(crate) reviews: Vec<OpinionLine>,
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
    /// What policies said of its deletion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reviews: Vec<OpinionLine>,
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

impl From<&Intent<'_>> for IntentLine {
    fn from(intent: &Intent<'_>) -> Self {
        Self {
            object: intent.key.into(),
            plugin: intent.plugin.into(),
            action: intent.planned.into(),
            revision: intent.revision.into(),
        }
    }
}

impl From<&Opinion> for OpinionLine {
    fn from(opinion: &Opinion) -> Self {
        Self {
            policy: (&opinion.policy).into(),
            mode: opinion.mode.as_str().into(),
            point: opinion.point.as_str().into(),
            verdict: opinion.word().into(),
            reasons: opinion
                .reasons()
                .iter()
                .map(|reason| ReasonLine {
                    control: reason.control.clone(),
                    message: reason.message.clone(),
                    path: reason.path.clone(),
                })
                .collect(),
            fault: match &opinion.said {
                Said::Failed { fault, .. } => fault.clone(),
                Said::Verdict(_) => String::new(),
            },
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
            reviews: record.reviews.iter().map(Into::into).collect(),
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

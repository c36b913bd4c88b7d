//! The record: how every pass ends, refusals and faults included.
//!
//! A [`Record`] is plain data, already redacted: whoever holds it may print it. An [`Intent`]
//! goes to the journal before a write begins, so that a crash leaves a trace.

use crate::decision::{Condition, Difference, Finding, Manager};
use crate::gate::Planned;
use crate::grant::{Mode, Refusal};
use crate::identity::{Digest, Gvk, ObjectKey};
use crate::ignore::Matched;
use crate::object::Origin;
use crate::plugin::PluginIdentity;
use crate::policy::Opinion;
use std::sync::Arc;
use std::time::Duration;

/// What made the host look at the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The host started, or the object appeared in the source.
    Start,
    /// The desired state changed.
    Source,
    /// The live object changed.
    Watch,
    /// An object that the plugin had read changed, came or went.
    Related,
    /// The plugin or its grant changed.
    Plugin,
    /// A failed pass is tried again, or a plugin asked to look again.
    Retry,
    /// A person or a command asked.
    Request,
}

impl Trigger {
    /// The word used in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Source => "source",
            Self::Watch => "watch",
            Self::Related => "related",
            Self::Plugin => "plugin",
            Self::Retry => "retry",
            Self::Request => "request",
        }
    }
}

/// How a pass ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Live is what desired asks.
    InSync,
    /// The plugin saw differences that the API server itself reads as equal, or that it would
    /// not keep: applying would change nothing.
    InSyncByServer,
    /// The object was made.
    Created,
    /// Differences were corrected.
    Corrected,
    /// The plugin observes: this is what it would do. Nothing was written.
    Observed,
    /// It is suspended, and why: it is not looked at.
    Suspended(String),
    /// The plugin decided to leave the object as it is.
    Left(String),
    /// The plugin asked to be asked later.
    Deferred {
        /// Why.
        reason: String,
        /// When.
        after: Duration,
    },
    /// The host or the plugin cannot tell. Never counted as in sync.
    Unknown(String),
    /// The gate let nothing through.
    Refused,
    /// Other managers own fields that we state, and the object is not ours.
    Conflict(Vec<Manager>),
    /// The API server, or an admission webhook, refuses the content.
    Rejected(String),
    /// Something that the object needs is not there yet.
    Waiting(String),
    /// The object moved while we looked: look again at once.
    Stale,
    /// It failed, and is tried again.
    Failed {
        /// What happened.
        message: String,
        /// When the server asks to be called again.
        retry_after: Option<Duration>,
    },
    /// The plugin misbehaved; it costs this pass.
    Fault(String),
    /// Differences are left that an apply does not remove: the API server or an admission webhook
    /// puts its own value there. Nothing was written.
    NotKept(String),
    /// The plugin has written as much as its grant lets it in a minute: the object waits.
    OverBudget {
        /// Which budget.
        reason: String,
        /// How long it waits.
        after: Duration,
    },
    /// It is decided and within the power, and waits for a person to approve it.
    AwaitingApproval {
        /// Why it waits.
        reason: String,
        /// The change, by [`crate::approval::digest`].
        change: Digest,
    },
    /// A policy stops what would be written.
    Denied {
        /// Which policy, by which control, and why.
        reason: String,
        /// Only failures of policies stop it, so that it is tried again.
        failed: bool,
    },
    /// Somebody undoes our correction again and again: it is not written for a while.
    Contested {
        /// Who and what.
        reason: String,
        /// How long it is left alone.
        after: Duration,
    },
}

/// What the scheduler does after a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing until something changes.
    Settle,
    /// Look again after this time.
    After(Duration),
    /// Look again with growing pauses; at least this long.
    Retry(Option<Duration>),
    /// Look again at once: what we saw was old.
    Again,
}

impl Outcome {
    /// The word used in output.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::InSync => "in-sync",
            Self::InSyncByServer => "in-sync-by-server",
            Self::Created => "created",
            Self::Corrected => "corrected",
            Self::Observed => "observed",
            Self::Suspended(_) => "suspended",
            Self::Left(_) => "left",
            Self::Deferred { .. } => "deferred",
            Self::Unknown(_) => "unknown",
            Self::Refused => "refused",
            Self::Conflict(_) => "conflict",
            Self::Rejected(_) => "rejected",
            Self::Waiting(_) => "waiting",
            Self::Stale => "stale",
            Self::Failed { .. } => "failed",
            Self::Fault(_) => "plugin-fault",
            Self::NotKept(_) => "not-kept",
            Self::OverBudget { .. } => "over-budget",
            Self::Contested { .. } => "contested",
            Self::AwaitingApproval { .. } => "awaiting-approval",
            Self::Denied { .. } => "denied",
        }
    }

    /// Whether the object is now what desired asks.
    pub fn converged(&self) -> bool {
        matches!(self, Self::InSync | Self::InSyncByServer | Self::Created | Self::Corrected)
    }

    /// The text that goes with it, for people; empty where the word says all.
    pub fn message(&self) -> String {
        match self {
            Self::Left(text)
            | Self::Suspended(text)
            | Self::Unknown(text)
            | Self::Rejected(text)
            | Self::Waiting(text)
            | Self::Fault(text)
            | Self::NotKept(text)
            | Self::OverBudget { reason: text, .. }
            | Self::Contested { reason: text, .. }
            | Self::AwaitingApproval { reason: text, .. }
            | Self::Denied { reason: text, .. }
            | Self::Failed { message: text, .. }
            | Self::Deferred { reason: text, .. } => text.clone(),
            Self::Conflict(managers) => {
                let names: Vec<&str> = managers.iter().map(|m| m.name.as_str()).collect();
                format!("owned by {}; left alone until the grant allows adopt", names.join(", "))
            }
            Self::InSync
            | Self::InSyncByServer
            | Self::Created
            | Self::Corrected
            | Self::Observed
            | Self::Refused
            | Self::Stale => String::new(),
        }
    }

    /// What the scheduler does next.
    pub fn next(&self) -> Next {
        match self {
            Self::InSync
            | Self::InSyncByServer
            | Self::Created
            | Self::Corrected
            | Self::Observed
            | Self::Left(_)
            | Self::Suspended(_)
            | Self::Refused
            | Self::AwaitingApproval { .. }
            | Self::Denied { failed: false, .. }
            // Whoever owns the fields has to let go of them, which is an event.
            | Self::Conflict(_) => Next::Settle,
            Self::Deferred { after, .. }
            | Self::OverBudget { after, .. }
            | Self::Contested { after, .. } => Next::After(*after),
            Self::Stale => Next::Again,
            Self::Failed { retry_after, .. } => Next::Retry(*retry_after),
            Self::Denied { failed: true, .. }
            | Self::Unknown(_)
            | Self::Rejected(_)
            | Self::Waiting(_)
            | Self::Fault(_)
            // A webhook that goes is no event of the object.
            | Self::NotKept(_) => Next::Retry(None),
        }
    }
}

/// How long each stage took; zero for a stage that was not reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// The plugin's comparison.
    pub compare: Duration,
    /// The rehearsal on the API server.
    pub confirm: Duration,
    /// The plugin's decision.
    pub decide: Duration,
    /// Writing, all changes together.
    pub write: Duration,
}

/// One pass, from snapshot to outcome. Redacted.
#[derive(Clone, Debug)]
pub struct Record {
    /// The snapshot's time, milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Which object.
    pub key: ObjectKey,
    /// The version in which it was compared.
    pub gvk: Gvk,
    /// What made the host look.
    pub trigger: Trigger,
    /// Which code judged.
    pub plugin: PluginIdentity,
    /// Whether it could write.
    pub mode: Mode,
    /// Name of the source.
    pub source: Arc<str>,
    /// Its revision.
    pub revision: Arc<str>,
    /// Where the object is declared.
    pub origin: Origin,
    /// Digest of the desired bytes.
    pub desired_digest: Digest,
    /// UID of the live object that was seen.
    pub live_uid: Option<Arc<str>>,
    /// resourceVersion of the live object that was seen.
    pub live_resource_version: Option<Arc<str>>,
    /// What each ignore rule of the object led to. Not part of the journal.
    pub ignored: Vec<Matched>,
    /// What differed, attributed and redacted.
    pub differences: Vec<Difference>,
    /// What was to be done, after the gate.
    pub planned: Vec<Planned>,
    /// What the gate refused.
    pub refusals: Vec<Refusal>,
    /// What the policies said of what was to be done.
    pub reviews: Vec<Opinion>,
    /// What a person should see.
    pub findings: Vec<Finding>,
    /// Conditions that the plugin gave.
    pub conditions: Vec<Condition>,
    /// When the plugin wants to look again.
    pub look_again: Option<Duration>,
    /// How it ended.
    pub outcome: Outcome,
    /// The live object after the pass's writes, if it wrote. Not part of the journal.
    pub after: Option<crate::ports::Written>,
    /// How long the stages took.
    pub timings: Timings,
}

impl Record {
    /// The object that this pass left behind, if it wrote one.
    pub fn written(&self) -> Option<crate::object::LiveObject> {
        match &self.after {
            Some(crate::ports::Written::Object(json)) => {
                crate::object::LiveObject::read(json.clone())
            }
            _ => None,
        }
    }

    /// Whether the pass found or did something that is worth a line in the journal.
    pub fn is_notable(&self) -> bool {
        self.outcome != Outcome::InSync || !self.findings.is_empty()
    }
}

/// A write that is about to begin.
#[derive(Clone, Debug)]
pub struct Intent<'a> {
    /// The pass's time, milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Which object.
    pub key: &'a ObjectKey,
    /// Which code decided it.
    pub plugin: &'a PluginIdentity,
    /// What is about to be done.
    pub planned: &'a Planned,
    /// The source's revision.
    pub revision: &'a str,
}

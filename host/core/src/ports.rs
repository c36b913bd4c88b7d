//! The ports: what the pass needs of the world, as traits that the adapters implement.
//!
//! Guarantees asked of every implementation: a failed read is an error, never an empty answer;
//! an error says whether trying again can help.

use crate::decision::{Comparison, Difference, Verdict};
use crate::gate::{Change, Probe, Target};
use crate::record::Intent;
use crate::snapshot::Snapshot;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A plugin's fault: it costs this pass, and is never the host's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginFault {
    /// The guest trapped: a panic, an out-of-bounds access, an exhausted stack.
    #[error("trapped: {0}")]
    Trap(String),
    /// The guest ran into its deadline.
    #[error("ran past its deadline of {0:?}")]
    Deadline(Duration),
    /// The guest asked for more than a limit allows.
    #[error("exceeded a limit: {0}")]
    Limit(String),
    /// The guest's answer is not valid.
    #[error("gave an invalid answer: {0}")]
    Invalid(String),
    /// The guest answered the same question in two ways.
    #[error("is not pure: {0}")]
    Impure(String),
    /// It is not asked at present, and why: it misbehaved before.
    #[error("{0}")]
    Held(String),
    /// The host could not run it now: no instance was free in time.
    #[error("could not be run: {0}")]
    Unavailable(String),
}

/// Judgement about a snapshot: a plugin in its sandbox, or the same code native in tests.
pub trait Judge {
    /// Where does live differ from desired?
    fn compare(
        &self,
        snapshot: &Snapshot,
    ) -> impl Future<Output = Result<Comparison, PluginFault>> + Send;

    /// What should be done about these differences?
    fn decide(
        &self,
        snapshot: &Snapshot,
        differences: &[Difference],
    ) -> impl Future<Output = Result<Verdict, PluginFault>> + Send;

    /// The Secrets that the plugin read so far in this pass, as JSON text; none for a judge that
    /// reads nothing. From then on its words are withheld.
    fn secrets_read(&self) -> Vec<Arc<[u8]>> {
        Vec::new()
    }
}

/// One field that another manager owns, as the API server names it in a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedField {
    /// The manager's name.
    pub manager: String,
    /// The field, in the server's spelling (`.spec.replicas`).
    pub field: String,
}

/// Why a write, or its rehearsal, did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own fields that we state.
    #[error("{}", conflict_text(.0))]
    Conflict(Vec<OwnedField>),
    /// The object is not the one that we saw: another resourceVersion or UID. Look again.
    #[error("the object changed since it was read: {0}")]
    Stale(String),
    /// Something that the object needs is not there yet: its namespace or its kind.
    #[error("waiting: {0}")]
    NotYet(String),
    /// Our credentials may not do this.
    #[error("forbidden: {0}")]
    Forbidden(String),
    /// The API server refuses the change, and only because fields cannot change once the object
    /// exists: as an object of its own the content would do.
    #[error("the API server refuses it: {message}")]
    Immutable {
        /// The server's words.
        message: String,
        /// The fields, in the server's spelling (`spec.selector`).
        fields: Vec<String>,
    },
    /// The API server or an admission webhook refuses the content.
    #[error("the API server refuses it: {0}")]
    Rejected(String),
    /// The change cannot be rehearsed: an admission webhook supports no dry run.
    #[error("no dry run is possible: {0}")]
    NoDryRun(String),
    /// managedFields of the live object name fields in a version in which the server cannot read
    /// it: one that it no longer serves, or whose schema lacks a field that the object has. It
    /// refuses every apply until they are rewritten.
    #[error("{message}")]
    ManagedInUnserved {
        /// The server's words.
        message: String,
        /// The version, as `group/version`, where the server says which.
        api_version: Option<String>,
    },
    /// The server is busy, unreachable, or answered with an error of its own; the delay is the
    /// server's `Retry-After`.
    #[error("{message}")]
    Unavailable {
        /// What happened.
        message: String,
        /// When the server asks to be called again.
        retry_after: Option<Duration>,
    },
}

fn conflict_text(fields: &[OwnedField]) -> String {
    let list: Vec<String> =
        fields.iter().map(|f| format!("{} owns {}", f.manager, f.field)).collect();
    format!("conflict with other field managers: {}", list.join(", "))
}

/// What the API server answered to a write or its rehearsal.
#[derive(Clone, Debug)]
pub enum Written {
    /// The object after the write (JSON text).
    Object(Arc<[u8]>),
    /// The object is gone.
    Deleted,
}

/// The cluster: rehearse and write.
pub trait Cluster {
    /// A server-side dry run of applying desired: what the object would become. Writes nothing.
    fn rehearse(&self, probe: &Probe)
    -> impl Future<Output = Result<Arc<[u8]>, ApplyError>> + Send;

    /// Does what the gate let through. Takes a [`Change`], which only the gate makes.
    fn write(&self, change: &Change) -> impl Future<Output = Result<Written, ApplyError>> + Send;

    /// Which admission webhooks and policies may change what is applied on its way in: candidates
    /// by their rules, selectors and conditions, for people.
    ///
    /// # Errors
    /// They cannot be listed, and why.
    fn suspects(&self, probe: &Probe) -> impl Future<Output = Result<Vec<String>, String>> + Send {
        let _ = probe;
        async { Ok(Vec::new()) }
    }

    /// What a deletion of this object would take with it, as far as can be seen: one text for
    /// each thing, for people. What cannot be seen is said too.
    fn dependents(&self, target: &Target, live: &[u8]) -> impl Future<Output = Vec<String>> + Send {
        let _ = (target, live);
        async { Vec::new() }
    }
}

/// The journal could not take a line: nothing may be written to the cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal cannot be written: {0}")]
pub struct JournalError(pub String);

/// Where an intent is on disk before its write begins. What a pass found is the caller's to record.
pub trait Journal {
    /// A write is about to begin.
    ///
    /// # Errors
    /// The write must not begin.
    fn intent(&self, intent: &Intent<'_>) -> impl Future<Output = Result<(), JournalError>> + Send;
}

/// Time for measurements; the pass's own time is in the snapshot.
pub trait Clock {
    /// Time since some fixed moment; never goes back.
    fn elapsed(&self) -> Duration;
}

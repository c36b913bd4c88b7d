//! The gate: the only maker of a [`Change`].
//!
//! Takes a decision and answers what may be written: effective power (manifest ∩ grant) on the
//! canonical identity, action by action. Writes nothing itself. In observe mode it makes no
//! `Change` at all, only [`Planned`] lines, so that an observing plugin cannot write by any path.

use crate::decision::{Action, ActionKind, Decision};
use crate::grant::{Mode, Power, Refusal};
use crate::identity::{Gvk, ObjectKey};
use crate::ownership;
use crate::snapshot::Snapshot;
use std::sync::Arc;
use trimtab_json::{Object, Path, Value};

/// One thing that the host may write. Fields are private: only this module makes one.
#[derive(Clone, Debug)]
pub struct Change {
    target: Target,
    effect: Effect,
    planned: Planned,
}

impl Change {
    /// The object to write.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What to write.
    pub fn effect(&self) -> &Effect {
        &self.effect
    }

    /// The same for people and records, without content.
    pub fn planned(&self) -> &Planned {
        &self.planned
    }
}

/// A rehearsal of applying desired. Never written.
#[derive(Clone, Debug)]
pub struct Probe {
    target: Target,
    body: Arc<[u8]>,
    force: bool,
}

impl Probe {
    /// The object that is rehearsed.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// JSON text of the apply configuration.
    pub fn body(&self) -> &Arc<[u8]> {
        &self.body
    }

    /// Whether conflicts with other managers are overridden.
    pub fn force(&self) -> bool {
        self.force
    }
}

/// Which object a request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Identity.
    pub key: ObjectKey,
    /// The version to speak.
    pub gvk: Gvk,
}

/// What is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Server-side apply of this JSON text. For an object that was seen, the text carries its
    /// UID and resourceVersion, so that the server refuses it if the object moved.
    Apply {
        /// The apply configuration.
        body: Arc<[u8]>,
        /// Whether conflicts with other managers are overridden.
        force: bool,
    },
    /// JSON Patch (RFC 6902) whose `test` operations hold the UID and the values that were seen.
    Patch {
        /// The patch.
        body: Arc<[u8]>,
    },
    /// Delete exactly the object that was seen.
    Delete {
        /// Its UID, as a precondition.
        uid: Arc<str>,
        /// Its resourceVersion, as a precondition.
        resource_version: Arc<str>,
    },
    /// Server-side apply of this JSON text as the status subresource.
    ApplyStatus {
        /// The apply configuration.
        body: Arc<[u8]>,
    },
}

/// One action for people and records: what, and where, without values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// What is done.
    pub action: ActionKind,
    /// Paths that it is limited to or leaves out, as the action says.
    pub paths: Vec<String>,
    /// Whether the object is made by it.
    pub creates: bool,
}

/// What the gate answers.
#[derive(Clone, Debug, Default)]
pub struct Gated {
    /// To be written, in order. Empty in observe mode.
    pub changes: Vec<Change>,
    /// What was decided and is inside the power, whether or not it is written.
    pub planned: Vec<Planned>,
    /// What was decided and is not inside the power.
    pub refusals: Vec<Refusal>,
    /// Why the plugin leaves the object, if it does.
    pub left: Option<String>,
}

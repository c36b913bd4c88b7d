//! The memo: the same inputs have the same answer, and need no call.
//!
//! A plugin is a pure function of its snapshot, and a grant and a schema are values. So a pass
//! whose inputs are those of the last one is already answered.

use crate::identity::Digest;
use crate::object::{Desired, Live};
use std::sync::Arc;

/// All that an answer depends on, but for the pass's time (a plugin that asks to be asked again
/// says so, and is) and for what the plugin read beside its snapshot ([`crate::reads`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memo {
    desired: Digest,
    /// resourceVersion of live; `None`: absent.
    live: Option<Arc<str>>,
    judge: Digest,
}

impl Memo {
    /// The inputs of a pass. `judge` stands for the plugin's code and its grant. `None` where
    /// live is unknown: nothing answers that.
    pub fn of(desired: &Desired, live: &Live, judge: Digest) -> Option<Self> {
        let live = match live {
            Live::Present(object) => Some(object.resource_version.clone()),
            Live::Absent => None,
            Live::Unknown(_) => return None,
        };
        Some(Self { desired: desired.digest, live, judge })
    }

    /// The inputs that a pass left behind: live as it is after its writes.
    pub fn after(record: &crate::record::Record, judge: Digest) -> Self {
        let live = match (&record.after, record.written()) {
            (Some(_), written) => written.map(|object| object.resource_version),
            (None, _) => record.live_resource_version.clone(),
        };
        Self { desired: record.desired_digest, live, judge }
    }
}

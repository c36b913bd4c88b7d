//! The snapshot: all that one pass knows, and all that a plugin ever sees.

use crate::fight::Standoff;
use crate::identity::{Gvk, ObjectKey};
use crate::object::{Desired, Live, LiveObject};
use std::sync::Arc;

/// Desired and live of one key at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Which object.
    pub key: ObjectKey,
    /// The version in which both sides are compared.
    pub gvk: Gvk,
    /// As declared.
    pub desired: Arc<Desired>,
    /// As the API server has it.
    pub live: Live,
    /// UID of the object that we wrote last under this key: our own memory of whose it is, for
    /// when others took over every field.
    pub applied_uid: Option<Arc<str>>,
    /// What the schema says of the type, in the compact form of `trimtab-compare`; empty when
    /// the host knows nothing about the type.
    pub facts: Arc<[u8]>,
    /// The pass's time, in milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// How many passes of this object failed in a row before.
    pub retries: u32,
    /// A fight over this object that is going on, and until when we stay out of it.
    pub standoff: Option<Standoff>,
}

impl Snapshot {
    /// The live object, if it is known to be there.
    pub fn live_object(&self) -> Option<&LiveObject> {
        self.live.object()
    }
}

//! The snapshot: all that a plugin ever sees.

use crate::{Facts, Unknown, Value, json};

/// Which object a pass is about, as the host's discovery names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ObjectId<'a> {
    /// API group; the empty string for the core group.
    pub group: &'a str,
    /// API version within the group, such as `v1`.
    pub version: &'a str,
    /// Kind, such as `Deployment`.
    pub kind: &'a str,
    /// Namespace; the empty string for a cluster-scoped object.
    pub namespace: &'a str,
    /// `metadata.name`.
    pub name: &'a str,
}

/// One object at one moment: as declared and as the API server has it.
#[derive(Clone, Debug)]
pub struct Snapshot<'a> {
    id: ObjectId<'a>,
    desired: Option<Value<'a>>,
    live: Option<Value<'a>>,
    facts: Facts<'a>,
    now_ms: u64,
    field_manager: &'a str,
    retries: u32,
}

/// What a snapshot is made of, as it crosses the edge.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parts<'a> {
    pub(crate) id: ObjectId<'a>,
    pub(crate) desired: Option<&'a [u8]>,
    pub(crate) live: Option<&'a [u8]>,
    pub(crate) facts: &'a [u8],
    pub(crate) now_ms: u64,
    pub(crate) field_manager: &'a str,
    pub(crate) retries: u32,
}

impl<'a> Snapshot<'a> {
    /// Reads both objects.
    pub(crate) fn read(parts: Parts<'a>) -> Result<Self, Unknown> {
        let object = |side: &str, bytes: Option<&'a [u8]>| match bytes.map(json::parse) {
            None => Ok(None),
            Some(Ok(value @ Value::Object(_))) => Ok(Some(value)),
            Some(Ok(value)) => Err(Unknown::new(format!(
                "the {side} object is not an object but: {}",
                value.type_name()
            ))),
            Some(Err(error)) => {
                Err(Unknown::new(format!("the {side} object cannot be read: {error}")))
            }
        };
        Ok(Self {
            id: parts.id,
            desired: object("desired", parts.desired)?,
            live: object("live", parts.live)?,
            facts: Facts::new(parts.facts),
            now_ms: parts.now_ms,
            field_manager: parts.field_manager,
            retries: parts.retries,
        })
    }

    /// Which object it is.
    pub fn id(&self) -> &ObjectId<'a> {
        &self.id
    }

    /// The object as the source declares it; `None`: no source declares it.
    pub fn desired(&self) -> Option<&Value<'a>> {
        self.desired.as_ref()
    }

    /// The object as the API server has it; `None`: it is known to be absent.
    pub fn live(&self) -> Option<&Value<'a>> {
        self.live.as_ref()
    }

    /// What the cluster's schema says of the type; says nothing where the host knows nothing.
    pub fn facts(&self) -> Facts<'a> {
        self.facts
    }

    /// The pass's time, in milliseconds since 1970-01-01T00:00:00Z: the only clock there is.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The field manager under which the host applies: tells the host's own earlier writes apart
    /// in `metadata.managedFields`.
    pub fn field_manager(&self) -> &'a str {
        self.field_manager
    }

    /// How many passes of this object failed in a row before this one.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// Whether the live object has been deleted and waits for its finalizers.
    pub fn is_being_deleted(&self) -> bool {
        self.live()
            .and_then(|live| live.at(&["metadata", "deletionTimestamp"]))
            .is_some_and(|stamp| !stamp.is_null())
    }
}

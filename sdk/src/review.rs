//! The request of a review: all that a policy ever sees.

use crate::{ObjectId, Reason, Value, json};

/// Where on an object's way a policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Point {
    /// Desired state enters: there is [`Review::desired`], and neither live nor change.
    #[default]
    Enters,
    /// One change is about to be written: there is [`Review::change`].
    BeforeWrite,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// Server-side apply desired.
    Apply,
    /// Server-side apply content that a plugin made.
    ApplyContent,
    /// Remove fields of live.
    RemoveFields,
    /// Delete the live object and create the desired one.
    Recreate,
    /// Delete the live object.
    Delete,
    /// Server-side apply the status.
    PatchStatus,
    /// Apply desired even where other managers own desired fields.
    Adopt,
}

/// One change that the host's gate let through so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned<'a> {
    /// What is to be done.
    pub action: ActionKind,
    /// What it would touch, as far as that is known, written as paths are; the empty text alone: all
    /// of the object.
    pub paths: Vec<&'a str>,
    /// Whether there is no live object yet.
    pub creates: bool,
}

/// Where an object comes from, as the host knows it. What is not known is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Provenance<'a> {
    /// The source's name in the host's configuration.
    pub source: &'a str,
    /// A commit's id, or a digest of a directory's content.
    pub revision: Option<&'a str>,
    /// The manifest's file, relative to the source.
    pub file: Option<&'a str>,
    /// The line in it at which the object begins, from 1.
    pub line: Option<u32>,
    /// Who the revision's commit says its author is. Nobody verified it.
    pub author: Option<&'a str>,
    /// Who vouches for it by verified signatures: names of allowed signers, the head commit's first,
    /// without duplicates. Empty: nobody does, or the source verifies nothing.
    pub signers: Vec<&'a str>,
}

/// What a policy is asked about.
#[derive(Clone, Debug)]
pub struct Review<'a> {
    point: Point,
    id: ObjectId<'a>,
    desired: Option<Value<'a>>,
    live: Option<Value<'a>>,
    content: Option<Value<'a>>,
    change: Option<Planned<'a>>,
    provenance: Provenance<'a>,
    configuration: Value<'a>,
    now_ms: u64,
}

/// What a review is made of, as it crosses the edge. A change goes with its content.
#[derive(Clone, Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) point: Point,
    pub(crate) id: ObjectId<'a>,
    pub(crate) desired: Option<&'a [u8]>,
    pub(crate) live: Option<&'a [u8]>,
    pub(crate) change: Option<(Planned<'a>, Option<&'a [u8]>)>,
    pub(crate) provenance: Provenance<'a>,
    pub(crate) configuration: &'a [u8],
    pub(crate) now_ms: u64,
}

/// The control of what cannot be read, and is denied for that.
const UNREADABLE: &str = "unreadable-request";

impl<'a> Review<'a> {
    /// Reads objects and configuration; what cannot be read is a reason to deny.
    pub(crate) fn read(parts: Parts<'a>) -> Result<Self, Reason> {
        let object = |what: &str, bytes: Option<&'a [u8]>| match bytes.map(json::parse) {
            None => Ok(None),
            Some(Ok(value @ Value::Object(_))) => Ok(Some(value)),
            Some(Ok(value)) => Err(Reason::new(
                UNREADABLE,
                format!("the {what} is not an object but: {}", value.type_name()),
            )),
            Some(Err(error)) => {
                Err(Reason::new(UNREADABLE, format!("the {what} cannot be read: {error}")))
            }
        };
        let (change, content) = parts.change.unzip();
        Ok(Self {
            point: parts.point,
            id: parts.id,
            desired: object("desired object", parts.desired)?,
            live: object("live object", parts.live)?,
            content: object("content", content.flatten())?,
            change,
            provenance: parts.provenance,
            configuration: json::parse(parts.configuration).map_err(|error| {
                Reason::new(UNREADABLE, format!("the configuration cannot be read: {error}"))
            })?,
            now_ms: parts.now_ms,
        })
    }

    /// Where on the object's way this is.
    pub fn point(&self) -> Point {
        self.point
    }

    /// Which object it is.
    pub fn id(&self) -> &ObjectId<'a> {
        &self.id
    }

    /// What is to be judged: the content that would be applied where a plugin made it, else desired,
    /// else live (of an object that is pruned).
    pub fn object(&self) -> Option<&Value<'a>> {
        self.content.as_ref().or(self.desired.as_ref()).or(self.live.as_ref())
    }

    /// The object as the source declares it; `None`: no source declares it.
    pub fn desired(&self) -> Option<&Value<'a>> {
        self.desired.as_ref()
    }

    /// The object as the API server has it; `None`: it is absent, or the point is
    /// [`Point::Enters`].
    pub fn live(&self) -> Option<&Value<'a>> {
        self.live.as_ref()
    }

    /// What would be applied, where that is content that a plugin made rather than desired.
    pub fn content(&self) -> Option<&Value<'a>> {
        self.content.as_ref()
    }

    /// The change that is about to be written; `None` at [`Point::Enters`].
    pub fn change(&self) -> Option<&Planned<'a>> {
        self.change.as_ref()
    }

    /// Where the object comes from.
    pub fn provenance(&self) -> &Provenance<'a> {
        &self.provenance
    }

    /// What the grant gives the policy as `config`; `null` where it gives none. Unknown keys are
    /// best denied by name: a misspelt key of a policy protects nothing.
    pub fn configuration(&self) -> &Value<'a> {
        &self.configuration
    }

    /// The time, in milliseconds since 1970-01-01T00:00:00Z.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }
}

//! Objects of a repository as bytes whose hash was checked.

use super::commit::{self, CommitText, TagText};
use super::{Reason, TIME_AT_MOST};
use crate::limits::{MAX_COMMIT_BYTES, MAX_TREE_BYTES};
use gix::ObjectId;
use gix::objs::Kind;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::str::FromStr;
use std::time::Instant;

/// The id of a commit (of a tag object, where that is said).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Commit(ObjectId);

impl Commit {
    /// As Git's library has it.
    pub fn id(self) -> ObjectId {
        self.0
    }
}

impl From<ObjectId> for Commit {
    fn from(id: ObjectId) -> Self {
        Self(id)
    }
}

impl FromStr for Commit {
    type Err = NoCommit;

    /// From 40 hexadecimal digits: an abbreviation would mean another commit one day.
    fn from_str(text: &str) -> Result<Self, NoCommit> {
        if text.len() != 40 {
            return Err(NoCommit);
        }
        ObjectId::from_hex(text.as_bytes()).map(Self).map_err(|_| NoCommit)
    }
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text that is no whole id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a commit is named by all its 40 hexadecimal digits")]
pub struct NoCommit;

/// Where objects are. Nothing that it says is believed before it was hashed.
pub trait Objects {
    /// Kind and size of an object, without inflating it; `None`: it is not there.
    ///
    /// # Errors
    /// The store's words.
    fn header(&self, id: ObjectId) -> Result<Option<(Kind, u64)>, String>;

    /// The object's bytes.
    ///
    /// # Errors
    /// The store's words.
    fn bytes(&self, id: ObjectId) -> Result<Vec<u8>, String>;
}

impl Objects for gix::Repository {
    fn header(&self, id: ObjectId) -> Result<Option<(Kind, u64)>, String> {
        let found = self.try_find_header(id).map_err(|error| error.to_string())?;
        Ok(found.map(|header| (header.kind(), header.size())))
    }

    fn bytes(&self, id: ObjectId) -> Result<Vec<u8>, String> {
        self.find_object(id).map(|object| object.detach().data).map_err(|error| error.to_string())
    }
}

/// Reads, checks and remembers objects for one verification.
pub(super) struct Reader<'o> {
    objects: &'o dyn Objects,
    commits: RefCell<HashMap<ObjectId, Rc<CommitText>>>,
    started: Instant,
}

impl<'o> Reader<'o> {
    pub(super) fn new(objects: &'o dyn Objects) -> Self {
        Self { objects, commits: RefCell::default(), started: Instant::now() }
    }

    /// Whether it is there; what cannot be asked for is not.
    pub(super) fn has(&self, id: Commit) -> bool {
        matches!(self.objects.header(id.0), Ok(Some(_)))
    }

    pub(super) fn commit(&self, id: Commit) -> Result<Rc<CommitText>, Reason> {
        if let Some(known) = self.commits.borrow().get(&id.0) {
            return Ok(known.clone());
        }
        let bytes = self.object(id.0, Kind::Commit)?;
        let commit = Rc::new(commit::parse(&bytes).map_err(Reason::Damaged)?);
        self.commits.borrow_mut().insert(id.0, commit.clone());
        Ok(commit)
    }

    pub(super) fn tag(&self, id: Commit) -> Result<TagText, Reason> {
        commit::parse_tag(&self.object(id.0, Kind::Tag)?).map_err(Reason::Damaged)
    }

    /// For a better word in a refusal; what cannot be read is not signed.
    pub(super) fn tag_is_signed(&self, id: Commit) -> bool {
        self.tag(id).is_ok_and(|tag| matches!(tag.signed, commit::Signed::Yes { .. }))
    }

    pub(super) fn tree(&self, id: ObjectId) -> Result<Vec<u8>, Reason> {
        if id == ObjectId::empty_tree(gix::hash::Kind::Sha1) {
            return Ok(Vec::new());
        }
        self.object(id, Kind::Tree)
    }

    /// The bytes of an object, of this kind and with this hash, or nothing.
    fn object(&self, id: ObjectId, kind: Kind) -> Result<Vec<u8>, Reason> {
        if self.started.elapsed() > TIME_AT_MOST {
            return Err(Reason::TooMany("seconds", TIME_AT_MOST.as_secs() as usize));
        }
        let store = |what: String| Reason::Unreadable(format!("{kind} {id}: {what}"));
        let (found, size) =
            self.objects.header(id).map_err(store)?.ok_or(Reason::Missing(id.into()))?;
        if found != kind {
            return Err(store(format!("it is a {found}")));
        }
        let most = if kind == Kind::Tree { MAX_TREE_BYTES } else { MAX_COMMIT_BYTES };
        if size > most {
            return Err(Reason::TooMany("bytes of one commit, tag or tree", most as usize));
        }
        let bytes = self.objects.bytes(id).map_err(store)?;
        let hash = gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, &bytes)
            .map_err(|error| store(error.to_string()))?;
        if hash == id { Ok(bytes) } else { Err(Reason::Tampered(id.into())) }
    }
}

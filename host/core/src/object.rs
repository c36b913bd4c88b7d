//! Objects as bytes: what a source declares and what the API server has.
//!
//! Both keep the JSON text they were received as, with a small index beside it. Nothing here
//! holds a parsed tree: trees live for one stage and are dropped.

use crate::identity::{Digest, Gvk, ObjectKey};
use crate::ignore::Rules;
use crate::terms::SourceTerms;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Where in a source an object was declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Path of the file, relative to the source's root.
    pub file: Arc<str>,
    /// Line of the document's first key, counted from 1.
    pub line: u32,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One object as a source declares it, before the cluster's discovery has placed it.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// As the manifest states it.
    pub gvk: Gvk,
    /// `metadata.namespace` as the manifest states it.
    pub namespace: Option<Arc<str>>,
    /// `metadata.name`.
    pub name: Arc<str>,
    /// The object as JSON text.
    pub json: Arc<[u8]>,
    /// Where it was declared.
    pub origin: Origin,
}

/// All that a source declares at one moment.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The source's name.
    pub source: Arc<str>,
    /// What identifies this content: a commit, or a digest over the files.
    pub id: Arc<str>,
    /// The objects, no two of which claim one identity within the file's own words.
    pub manifests: Vec<Manifest>,
    /// Who made it, where the source knows; empty for a directory.
    pub provenance: Provenance,
}

/// Who made a revision and when, as far as its source says so. All of it is for people to read:
/// only `signer` is proven, the rest is what a commit's maker wrote into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// `Name <mail>` of whoever wrote the change.
    pub author: Option<Arc<str>>,
    /// `Name <mail>` of whoever made the commit.
    pub committer: Option<Arc<str>>,
    /// When the commit was made: seconds of Unix time.
    pub committed_at: Option<i64>,
    /// The first line of the commit's message.
    pub message_subject: Option<Arc<str>>,
    /// Whose signature was verified, where the source asks for one.
    pub signer: Option<Signer>,
    /// By file: whose verified signatures the commits since the last accepted revision have that
    /// changed it. Empty where not every commit is verified.
    pub touched: Arc<BTreeMap<Arc<str>, Vec<Arc<str>>>>,
}

/// Whoever signed a revision, by a key that is allowed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// What the list of allowed signers calls the key's holder, never what a commit says.
    pub principal: Arc<str>,
    /// The key: `SHA256:…` of an SSH key, the fingerprint in hex of an OpenPGP key.
    pub fingerprint: Arc<str>,
}

/// One object as declared, placed in the cluster and cleaned of what a server owns.
#[derive(Clone, Debug)]
pub struct Desired {
    /// Its canonical identity.
    pub key: ObjectKey,
    /// The version that it is declared in, and compared in.
    pub gvk: Gvk,
    /// JSON text: what is applied, byte for byte.
    pub json: Arc<[u8]>,
    /// Digest of `json`.
    pub digest: Digest,
    /// Name of the source that declares it.
    pub source: Arc<str>,
    /// The source's revision.
    pub revision: Arc<str>,
    /// Where in the source.
    pub origin: Origin,
    /// What of it is somebody else's to set.
    pub ignore: Rules,
    /// What its source is held to.
    pub terms: Arc<SourceTerms>,
}

/// One object as the API server has it.
#[derive(Clone, Debug)]
pub struct LiveObject {
    /// JSON text as received, `apiVersion` and `kind` included.
    pub json: Arc<[u8]>,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`.
    pub resource_version: Arc<str>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
}

impl LiveObject {
    /// Reads the index from an object's JSON text; `None` if it has no UID or resourceVersion.
    pub fn read(json: Arc<[u8]>) -> Option<Self> {
        let (uid, resource_version, deleting) = {
            let object = trimtab_json::parse(&json).ok()?;
            let text = |name| object.str_at(&["metadata", name]).map(Arc::<str>::from);
            let deleting = object.at(&["metadata", "deletionTimestamp"]).is_some();
            (text("uid")?, text("resourceVersion")?, deleting)
        };
        Some(Self { json, uid, resource_version, deleting })
    }
}

/// What the host knows of an object in the cluster. *Unknown* is never *absent*.
#[derive(Clone, Debug)]
pub enum Live {
    /// The API server has it.
    Present(LiveObject),
    /// The API server is known not to have it.
    Absent,
    /// The host cannot say, and why: a forbidden list, a watch not yet synced, an object that
    /// does not decode.
    Unknown(Arc<str>),
}

impl Live {
    /// The object, if it is known to be there.
    pub fn object(&self) -> Option<&LiveObject> {
        match self {
            Live::Present(object) => Some(object),
            Live::Absent | Live::Unknown(_) => None,
        }
    }
}

//! Sources: where desired state comes from. Files in, one whole [`Revision`] out, or an error that
//! names every file and line to mend.
//!
//! - [`Source`] is the port: [`Directory`] implements it, and [`git::Git`].
//! - [`parse_location`] says which of the two a text names.
//! - [`read_documents`] reads one text, such as standard input.
//! - [`watch()`] keeps reading a source and tells what changed.
//!
//! Invariants: a source is read whole or not at all; what cannot be read as an object of Kubernetes
//! is an error, never left out; nothing outside a source's root is opened; no content of a file
//! stands in an error beyond keys, names and single words. Nothing here writes, and nothing asks a
//! cluster.
//!
//! Start reading at `directory.rs`, then `decode.rs` (bytes to JSON) and `manifest.rs`.

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod decode;
mod directory;
mod error;
mod generator;
pub mod git;
mod identity;
mod json_text;
mod kept;
mod keys;
pub mod limits;
mod manifest;
mod naming;
mod scalar;
mod tree;
mod walk;
mod watch;
mod writer;
mod yaml;

pub use directory::{Directory, read_documents};
pub use error::{Problem, ProblemCode, SourceError};
pub use git::location::{Location, LocationError, parse_location};
pub use kept::Kept;
pub use watch::{SourceUpdate, WatchOptions, watch, watch_asked};

use sha2::Digest as _;
use std::path::PathBuf;
use trimtab_core::object::Revision;

/// Where desired state comes from.
///
/// # Guarantees
/// [`Source::read`] gives everything that the source declares at one moment, or an error. The same
/// content gives the same revision id.
///
/// # Assumptions
/// Both methods may block: call them where that is allowed.
pub trait Source: Send + Sync {
    /// The source's name, as records show it.
    fn name(&self) -> &str;

    /// A cheap token of the content's state: while it stays, the content has stayed.
    ///
    /// # Errors
    /// As [`Source::read`], which would fail alike.
    fn fingerprint(&self) -> Result<Fingerprint, SourceError>;

    /// Reads it all.
    ///
    /// # Errors
    /// [`SourceError`], with all problems that were found.
    fn read(&self) -> Result<Revision, SourceError>;

    /// Local paths where a change hints that reading again is worth while; none if there are none.
    fn watched_paths(&self) -> Vec<PathBuf>;

    /// What somebody else remembers as accepted last, such as the cluster's inventory: a state
    /// directory that was lost or is old lets nobody step back behind it. Said before the first
    /// read. A directory has no history.
    fn remembered_elsewhere(&self, revision: &str) {
        let _ = revision;
    }

    /// What was accepted before this process began, if the source remembers it: what is in force
    /// while the source cannot be read. A directory remembers nothing.
    fn last_good(&self) -> Option<Revision> {
        None
    }

    /// Notes that this revision, as [`Source::read`] gave it, is in force from now on: what comes
    /// next is judged by it, also after a restart. Called before the revision is used.
    ///
    /// # Errors
    /// [`SourceError::State`] if it could not be noted; the revision must not be used then.
    fn accept(&self, revision: &Revision) -> Result<(), SourceError> {
        let _ = revision;
        Ok(())
    }
}

/// A token of a source's state, see [`Source::fingerprint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    digest: [u8; 32],
    settled: bool,
}

impl Fingerprint {
    /// A token of this state. `settled` says whether an equal token later proves that nothing
    /// changed; false while a change could have left no mark yet.
    pub fn new(state: &[u8], settled: bool) -> Self {
        Self { digest: sha2::Sha256::digest(state).into(), settled }
    }

    /// Whether content that was read under this token is still what `now` stands for.
    pub fn still_holds(&self, now: &Fingerprint) -> bool {
        self.settled && self.digest == now.digest
    }
}

//! [`Git`]: from the options to a revision, by way of the mirror.

use super::fetch::{self, Trouble};
use super::files::{self, ObjectFault, TreeFiles};
use super::judge::{self, Before, Judged, Signed};
use super::link::Cause;
use super::mirror::{self, Lock, Mirror, MirrorFault};
use super::trust::{self, Memory};
use super::{GitOptions, Reference, content, location};
use crate::directory::unique;
use crate::error::SourceError;
use crate::limits::{MAX_COMMIT_BYTES, MAX_TAG_HOPS};
use crate::{Fingerprint, Source};
use gix::actor::SignatureRef;
use gix::bstr::ByteSlice as _;
use gix::objs::{CommitRef, Kind, TagRef};
use gix::{ObjectId, Repository};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use trimtab_core::object::{Provenance, Revision};

/// A folder of a repository, at one of its commits.
///
/// # Guarantees
/// A [`Revision`]'s id is the commit's. Its manifests are those of that commit's own tree, whatever
/// the server does meanwhile. A revision that is refused leaves what was accepted in the mirror.
///
/// # Assumptions
/// Nobody else writes to the source's folder in the state directory. Another process of the host
/// that uses it waits.
///
/// # Caveats
/// The first fetch brings the reference's whole history: descent and signatures are judged by it.
#[derive(Debug)]
pub struct Git {
    name: Arc<str>,
    options: GitOptions,
    default_namespace: Arc<str>,
    mirror: Mirror,
    /// Which source, where, and which of its states, for errors.
    place: Arc<str>,
    decoded: Mutex<content::Decoded>,
    memory: Memory,
    /// What the cluster knows of what was accepted.
    elsewhere: Mutex<Option<trust::Commit>>,
}

impl Git {
    /// The source `name`, which keeps its mirror and what it accepted in `STATE/sources/NAME`.
    /// Objects without a namespace count as in `default_namespace` where two declarations are
    /// compared. Nothing is asked or made yet.
    ///
    /// # Errors
    /// [`SourceError::Misconfigured`]
    pub fn open(
        name: &str,
        mut options: GitOptions,
        state_dir: &Path,
        default_namespace: &str,
    ) -> Result<Self, SourceError> {
        let place = place(name, &options);
        let refuse = |reason: String| {
            Err(SourceError::Misconfigured { place: place.clone(), reason: reason.into() })
        };
        let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-_.".contains(sign);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
            return refuse(
                "its name is that of a folder: use letters, digits and -, _ or .".into(),
            );
        }
        match location::folder(&options.path) {
            Ok(path) => options.path = path,
            Err(reason) => return refuse(reason),
        }
        let folder = state_dir.join("sources").join(name);
        Ok(Self {
            name: name.into(),
            options,
            default_namespace: default_namespace.into(),
            mirror: Mirror::new(folder.clone()),
            place,
            decoded: Mutex::default(),
            memory: Memory::new(folder),
            elsewhere: Mutex::default(),
        })
    }

    /// What somebody else remembers as accepted last, such as the cluster's inventory: a state
    /// directory that was lost or is old lets nobody step back behind it.
    pub fn remembered_elsewhere(&self, commit: trust::Commit) {
        *self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner) = Some(commit);
    }

    /// The source's own folder, `STATE/sources/NAME`.
    pub fn folder(&self) -> PathBuf {
        self.mirror.folder().to_owned()
    }
}

/// What it was that could not be read.
fn place(name: &str, options: &GitOptions) -> Arc<str> {
    let reference = match &options.reference {
        Reference::Branch(name) => format!("branch {name}"),
        Reference::Tag(name) => format!("tag {name}"),
        Reference::Commit(id) => format!("commit {id}"),
        Reference::Default => "default branch".to_owned(),
    };
    format!("the source {name} ({}, {reference})", options.url).into()
}

impl Source for Git {
    fn name(&self) -> &str {
        &self.name
    }

    fn remembered_elsewhere(&self, revision: &str) {
        // What is no commit is of another source that had this name.
        if let Ok(commit) = revision.parse() {
            Git::remembered_elsewhere(self, commit);
        }
    }

    fn fingerprint(&self) -> Result<Fingerprint, SourceError> {
        let _lock = self.lock()?;
        let repo = match self.mirror.open(&self.options) {
            Ok(repo) => repo,
            // Nothing is read of it now; the reading mends it.
            Err(MirrorFault::Broken(_)) => return Ok(Fingerprint::new(b"", false)),
            Err(fault) => return Err(self.fault(fault)),
        };
        let tip = fetch::tip(&repo, &self.options).map_err(|trouble| self.trouble(trouble))?;
        // Keys that are taken away or added make another verdict of the same commit.
        let keys = self.options.verify.as_ref().map(trust::Verification::state);
        let state = [tip.as_bytes(), keys.as_ref().map_or(&[][..], |keys| keys)].concat();
        Ok(Fingerprint::new(&state, true))
    }

    fn read(&self) -> Result<Revision, SourceError> {
        let _lock = self.lock()?;
        let (repo, tip) = self.fetched()?;
        match self.judged(&repo, tip) {
            Ok(revision) => revision,
            Err(reason) => {
                tracing::warn!(source = &*self.name, reason, "the mirror is broken: made anew");
                let (repo, tip) = self.fetched_anew()?;
                self.judged(&repo, tip).unwrap_or_else(|reason| Err(self.corrupt(reason)))
            }
        }
    }

    fn watched_paths(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn last_good(&self) -> Option<Revision> {
        let read = || -> Result<Option<Revision>, SourceError> {
            let _lock = self.lock()?;
            let repo = self.mirror.open(&self.options).map_err(|fault| self.fault(fault))?;
            let accepted = mirror::named(&repo, mirror::ACCEPTED);
            let Some(tip) = accepted.map_err(|fault| self.fault(fault))? else { return Ok(None) };
            let commit = commit(&repo, tip).map_err(|reason| self.corrupt(reason))?;
            let revision = self.revision(&repo, commit, Signed::default());
            revision.unwrap_or_else(|reason| Err(self.corrupt(reason))).map(Some)
        };
        read().unwrap_or_else(|error| {
            tracing::warn!(source = &*self.name, %error, "what was accepted before cannot be read");
            None
        })
    }

    fn accept(&self, revision: &Revision) -> Result<(), SourceError> {
        let _lock = self.lock()?;
        let state = |reason: String| SourceError::State {
            place: self.place.clone(),
            folder: self.mirror.folder().to_string_lossy().into(),
            reason: reason.into(),
        };
        let id = ObjectId::from_hex(revision.id.as_bytes())
            .map_err(|_| state(format!("{} is no commit", revision.id)))?;
        let repo = self.mirror.open(&self.options).map_err(|fault| self.fault(fault))?;
        judge::accept(&repo, id, &self.options, &self.memory)
            .map_err(|judged| self.not_taken(judged).unwrap_or_else(|reason| self.corrupt(reason)))
    }
}

impl Git {
    fn lock(&self) -> Result<Lock, SourceError> {
        self.mirror.lock().map_err(|error| self.fault(error.into()))
    }

    /// The mirror with all that the server has under the reference.
    fn fetched(&self) -> Result<(Repository, ObjectId), SourceError> {
        let repo = match self.mirror.open(&self.options) {
            Ok(repo) if mirror::is_scattered(&repo) => return self.fetched_anew(),
            Ok(repo) => repo,
            Err(MirrorFault::Broken(reason)) => {
                tracing::warn!(source = &*self.name, reason, "the mirror is broken: made anew");
                return self.fetched_anew();
            }
            Err(fault) => return Err(self.fault(fault)),
        };
        match fetch::receive(&repo, &self.options).map(|tip| kept(&repo, tip)) {
            Ok(Ok(tip)) => Ok((repo, tip)),
            // What the server sent and what the mirror holds do not fit: one of the two is broken.
            Err(Trouble::Unclear(_)) | Ok(Err(_)) => self.fetched_anew(),
            Err(trouble) => Err(self.trouble(trouble)),
        }
    }

    /// A new mirror in the old one's place. What was accepted goes with it if it still can be had.
    fn fetched_anew(&self) -> Result<(Repository, ObjectId), SourceError> {
        let accepted = self.mirror.accepted();
        let fault = |fault| self.fault(fault);
        let repo = self.mirror.fresh(&self.options).map_err(fault)?;
        let tip = fetch::receive(&repo, &self.options).map_err(|trouble| self.trouble(trouble))?;
        let tip = kept(&repo, tip).map_err(|reason| self.unreachable(reason))?;
        if let Some(id) = accepted {
            let held = repo.has_object(id)
                || fetch::receive_commit(&repo, &self.options, id)
                    .is_ok_and(|id| repo.has_object(id));
            if !held {
                let source = &*self.name;
                tracing::warn!(source, commit = %id, "what was accepted last cannot be had any more");
            }
            // Its name stays in any case: what comes next is judged by it.
            mirror::name(&repo, mirror::ACCEPTED, id).map_err(fault)?;
        }
        drop(repo);
        Ok((self.mirror.replace(&self.options).map_err(fault)?, tip))
    }

    /// The revision at a tip, if it may be taken. The outer error is a broken mirror's.
    fn judged(
        &self,
        repo: &Repository,
        tip: ObjectId,
    ) -> Result<Result<Revision, SourceError>, String> {
        let commit = commit(repo, tip)?;
        let elsewhere = *self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        let before = Before { memory: &self.memory, elsewhere };
        match judge::judge(repo, tip, commit, &self.options, &before) {
            Ok(signed) => self.revision(repo, commit, signed),
            Err(judged) => self.not_taken(judged).map(Err),
        }
    }

    /// As whoever reads the source is told. The error is a broken mirror's.
    fn not_taken(&self, judged: Judged) -> Result<SourceError, String> {
        let place = self.place.clone();
        match judged {
            Judged::Broken(reason) => Err(reason),
            Judged::Forgotten(error) => Ok(SourceError::State {
                place,
                folder: self.mirror.folder().to_string_lossy().into(),
                reason: error.to_string().into(),
            }),
            Judged::Unverified(refused) => Ok(SourceError::Unverified {
                place,
                commit: refused.commit.to_string().into(),
                reason: format!("{} [{}]", refused.reason, refused.reason.code()).into(),
                remedy: refused.remedy.into(),
            }),
            Judged::SteppedBack(refused) => {
                let commit: Arc<str> = refused.commit.to_string().into();
                let remedy = match refused.reason {
                    trust::Reason::SteppedBack { .. } => {
                        format!("if that is meant: trimtab source allow {} {commit}", self.name)
                    }
                    _ => refused.remedy,
                };
                let reason = refused.reason.to_string().into();
                Ok(SourceError::SteppedBack { place, commit, reason, remedy: remedy.into() })
            }
        }
    }

    /// What a commit declares. The outer error is a broken mirror's.
    fn revision(
        &self,
        repo: &Repository,
        commit: ObjectId,
        signed: Signed,
    ) -> Result<Result<Revision, SourceError>, String> {
        let bytes = files::object(repo, commit, Kind::Commit, MAX_COMMIT_BYTES).map_err(words)?;
        let parsed = CommitRef::from_bytes(&bytes, commit.kind())
            .map_err(|error| format!("the commit {commit} cannot be read: {error}"))?;
        let sizes = HashMap::new();
        let folder = TreeFiles::new(repo, parsed.tree(), &sizes).folder(&self.options.path);
        let Some(root) = folder.map_err(words)? else {
            return Ok(Err(SourceError::PathMissing {
                place: self.place.clone(),
                path: self.options.path.as_str().into(),
                commit: commit.to_string().into(),
            }));
        };
        let mut decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        let content = content::read(repo, root, &mut decoded)?;
        tracing::debug!(
            source = &*self.name, %commit, decoded = content.decoded,
            manifests = content.manifests.len(), "read"
        );
        let manifests = unique(content.manifests, content.problems, &self.default_namespace);
        Ok(manifests.map(|manifests| Revision {
            source: self.name.clone(),
            id: commit.to_string().into(),
            manifests,
            provenance: provenance(&parsed, signed),
        }))
    }

    fn corrupt(&self, reason: String) -> SourceError {
        SourceError::Corrupt { place: self.place.clone(), reason: reason.into() }
    }

    fn unreachable(&self, reason: String) -> SourceError {
        SourceError::Unreachable { place: self.place.clone(), reason: reason.into() }
    }

    fn fault(&self, fault: MirrorFault) -> SourceError {
        match fault {
            MirrorFault::Broken(reason) => self.corrupt(reason),
            MirrorFault::System(error) => SourceError::State {
                place: self.place.clone(),
                folder: self.mirror.folder().to_string_lossy().into(),
                reason: error.to_string().into(),
            },
        }
    }

    fn trouble(&self, trouble: Trouble) -> SourceError {
        let place = self.place.clone();
        match trouble {
            Trouble::NoSuchReference => {
                let hint = match &self.options.reference {
                    Reference::Branch(name) => format!(" (a tag is written refs/tags/{name})"),
                    Reference::Tag(name) => format!(" (a branch is written refs/heads/{name})"),
                    Reference::Commit(_) => {
                        " (a server gives away commits that a branch or tag leads to)".into()
                    }
                    Reference::Default => " (the repository is empty)".into(),
                };
                SourceError::ReferenceMissing { place, hint: hint.into() }
            }
            Trouble::Told(Cause::Refused(words)) => {
                SourceError::AuthRefused { place, reason: words.into() }
            }
            Trouble::Told(Cause::TooMuch(words)) => {
                SourceError::OverLimit { place, what: words.into() }
            }
            Trouble::Told(Cause::Options(words)) => {
                SourceError::Misconfigured { place, reason: words.into() }
            }
            Trouble::Told(Cause::Other(words)) => self.unreachable(words),
            Trouble::Unclear(words) => self.unreachable(words),
        }
    }
}

/// Names what was fetched, so that the next fetch builds on it.
fn kept(repo: &Repository, tip: ObjectId) -> Result<ObjectId, String> {
    if !repo.has_object(tip) {
        return Err("the reference moved while it was fetched".into());
    }
    match mirror::name(repo, mirror::FETCHED, tip) {
        Ok(()) => Ok(tip),
        Err(MirrorFault::Broken(reason)) => Err(reason),
        Err(MirrorFault::System(error)) => Err(error.to_string()),
    }
}

/// The commit that a tip is, or that a tag leads to.
fn commit(repo: &Repository, tip: ObjectId) -> Result<ObjectId, String> {
    let mut id = tip;
    for _ in 0..=MAX_TAG_HOPS {
        let header = repo.try_find_header(id).map_err(|error| error.to_string())?;
        match header.map(|header| header.kind()) {
            Some(Kind::Commit) => return Ok(id),
            Some(Kind::Tag) => {
                let bytes = files::object(repo, id, Kind::Tag, MAX_COMMIT_BYTES).map_err(words)?;
                let tag = TagRef::from_bytes(&bytes, id.kind())
                    .map_err(|error| format!("the tag {id} cannot be read: {error}"))?;
                id = tag.target();
            }
            Some(kind) => return Err(format!("the reference leads to a {kind}, not to a commit")),
            None => return Err(format!("the object {id} is missing")),
        }
    }
    Err("the reference leads through too many tags".into())
}

fn words(fault: ObjectFault) -> String {
    match fault {
        ObjectFault::Broken(words) | ObjectFault::TooLarge(words) => words,
    }
}

/// What the commit says of itself.
fn provenance(commit: &CommitRef<'_>, Signed { signer, touched }: Signed) -> Provenance {
    let shown = |words: &[u8]| super::words::shown(&String::from_utf8_lossy(words), &[]).into();
    let person = |who: &SignatureRef<'_>| {
        shown(&[who.name.as_bytes(), b" <", who.email.as_bytes(), b">"].concat())
    };
    let committer = commit.committer().ok();
    Provenance {
        author: commit.author().ok().as_ref().map(person),
        committed_at: committer.as_ref().and_then(|who| who.time().ok()).map(|time| time.seconds),
        committer: committer.as_ref().map(person),
        message_subject: Some(shown(&commit.message().summary())),
        signer,
        touched,
    }
}

//! What a source says when it cannot be read: problems with a place and a remedy, never half a
//! revision.
//!
//! A [`Fault`] is a problem whose file is not known yet; decoding and judging give those. The
//! source adds the file and hands out [`Problem`]s inside a [`SourceError`].

use crate::limits::MAX_PROBLEMS;
use std::fmt;
use std::sync::Arc;

/// Why a source gave no revision. Nothing of it may be used, and nothing may be pruned for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The path is not there. An empty directory is not this: it is a revision without manifests.
    /// Retryable: it may be mounted later.
    #[error("the source {path} does not exist: create it, or correct the path")]
    Missing {
        /// The path as configured.
        path: Arc<str>,
    },
    /// The operating system refused. Retryable.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// What was being read.
        path: Arc<str>,
        /// The operating system's words.
        reason: Arc<str>,
    },
    /// The files changed each time that they were read. Retryable.
    #[error(
        "the files of {path} keep changing while they are read: replace them in one step (write beside, then rename)"
    )]
    Unsettled {
        /// The source's path.
        path: Arc<str>,
    },
    /// The content is refused, sorted by file and line. Terminal until the content changes.
    #[error("{}", list(.0))]
    Refused(Arc<[Problem]>),
    /// Whoever keeps the source did not answer, or not as it should. Retryable.
    #[error("{place} cannot be reached: {reason}")]
    Unreachable {
        /// Which source, where, and which of its states.
        place: Arc<str>,
        /// What happened, in the server's words where it has some.
        reason: Arc<str>,
    },
    /// Whoever keeps the source does not let us in. Retryable: credentials are read anew each time.
    #[error(
        "{place} lets nobody in with these credentials: {reason}; put valid ones that may read it where the source's configuration says"
    )]
    AuthRefused {
        /// Which source, where, and which of its states.
        place: Arc<str>,
        /// The server's words.
        reason: Arc<str>,
    },
    /// The repository has no such branch, tag or commit. Retryable: it may be pushed later.
    #[error("{place} is not there: push it, or correct the source's branch, tag or commit{hint}")]
    ReferenceMissing {
        /// Which source, where, and which of its states.
        place: Arc<str>,
        /// What it may be instead, if anything; begins with a blank.
        hint: Arc<str>,
    },
    /// The commit's tree has no such folder. What was read before stays; nothing is pruned for it.
    #[error(
        "{place} has no folder {path} in commit {commit}: correct the source's path, or put the folder back (an empty one holds a .gitkeep)"
    )]
    PathMissing {
        /// Which source, where, and which of its states.
        place: Arc<str>,
        /// The folder as configured.
        path: Arc<str>,
        /// The commit that was looked at.
        commit: Arc<str>,
    },
    /// More than the source's limits allow would have to be received or held.
    #[error("{place} is over a limit: {what}")]
    OverLimit {
        /// Which source, where, and which of its states.
        place: Arc<str>,
        /// Which limit, and what to do.
        what: Arc<str>,
    },
    /// A commit is not signed by somebody who may. Retryable: keys may be added.
    #[error("{place}: commit {commit} is not taken: {reason}; {remedy}")]
    Unverified {
        /// Which source, where, and which of its states.
        place: Arc<str>,
        /// The commit that is not acceptable.
        commit: Arc<str>,
        /// What is wrong with its signature.
        reason: Arc<str>,
        /// What to do.
        remedy: Arc<str>,
    },
    /// The new revision does not descend from the one that was accepted. Retryable: a person may
    /// allow it.
    #[error("{place}: commit {commit} is not taken: {reason}; {remedy}")]
    SteppedBack {
        /// Which source, where, and which of its states.
        place: Arc<str>,
        /// The commit that is not taken.
        commit: Arc<str>,
        /// How it relates to the one that was accepted.
        reason: Arc<str>,
        /// What to do.
        remedy: Arc<str>,
    },
    /// What was received does not hang together, and a fresh copy did not either.
    #[error("{place} is broken: {reason}; run git fsck where it is kept")]
    Corrupt {
        /// Which source, where, and which of its states.
        place: Arc<str>,
        /// What is broken.
        reason: Arc<str>,
    },
    /// The source's own folder in the state directory cannot be used. Retryable.
    #[error("the state of {place} cannot be kept: {reason}; see to the folder {folder}")]
    State {
        /// Which source, where, and which of its states.
        place: Arc<str>,
        /// The folder.
        folder: Arc<str>,
        /// The operating system's words.
        reason: Arc<str>,
    },
    /// The options contradict each other, or what they name is no use. Terminal.
    #[error("{place} cannot be read: {reason}")]
    Misconfigured {
        /// Which source, where, and which of its states.
        place: Arc<str>,
        /// What is wrong, and what to do.
        reason: Arc<str>,
    },
}

impl SourceError {
    /// The problems, sorted by file and line. Those that are not about content have no line, and
    /// the source itself for a file.
    pub fn problems(&self) -> Vec<Problem> {
        let (place, code, remedy) = match self {
            SourceError::Refused(problems) => return problems.to_vec(),
            SourceError::Missing { path } => {
                (path, ProblemCode::Missing, "create it, or correct the path")
            }
            SourceError::Unreadable { path, .. } => {
                (path, ProblemCode::Unreadable, "let the host's user read it")
            }
            SourceError::Unsettled { path } => {
                (path, ProblemCode::Unsettled, "replace the files in one step")
            }
            SourceError::Unreachable { place, .. } => {
                (place, ProblemCode::Unreachable, "see to the server, or to the way there")
            }
            SourceError::AuthRefused { place, .. } => {
                (place, ProblemCode::AuthRefused, "put valid credentials in their file")
            }
            SourceError::ReferenceMissing { place, .. } => {
                (place, ProblemCode::ReferenceMissing, "push it, or correct the configuration")
            }
            SourceError::PathMissing { place, .. } => {
                (place, ProblemCode::PathMissing, "put the folder back, or correct the path")
            }
            SourceError::OverLimit { place, .. } => {
                (place, ProblemCode::TooLarge, "make it smaller, or raise the limit")
            }
            SourceError::Unverified { place, remedy, .. } => {
                (place, ProblemCode::Unverified, &**remedy)
            }
            SourceError::SteppedBack { place, remedy, .. } => {
                (place, ProblemCode::SteppedBack, &**remedy)
            }
            SourceError::Corrupt { place, .. } => {
                (place, ProblemCode::Corrupt, "run git fsck where it is kept")
            }
            SourceError::State { folder, .. } => {
                (folder, ProblemCode::Unreadable, "let the host's user read and write it")
            }
            SourceError::Misconfigured { place, .. } => {
                (place, ProblemCode::Misconfigured, "correct the configuration")
            }
        };
        vec![Problem {
            code,
            file: place.clone(),
            line: None,
            path: None,
            message: self.to_string(),
            remedy: remedy.to_owned(),
        }]
    }

    /// Whether the same content gives the same error again: only another one mends it. All else may
    /// pass by itself, or with a change that is none of the content.
    pub fn is_of_content(&self) -> bool {
        matches!(self, SourceError::Refused(_) | SourceError::PathMissing { .. })
    }

    /// From problems in any order; the same problems always give the same error.
    pub(crate) fn refused(mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|a, b| (&a.file, a.line, &a.message).cmp(&(&b.file, b.line, &b.message)));
        problems.dedup();
        problems.truncate(MAX_PROBLEMS);
        SourceError::Refused(problems.into())
    }
}

fn list(problems: &[Problem]) -> String {
    let lines: Vec<_> = problems.iter().map(Problem::to_string).collect();
    lines.join("\n")
}

/// One thing that is wrong, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of thing is wrong; scripts may rely on it.
    pub code: ProblemCode,
    /// The file, relative to the source's root.
    pub file: Arc<str>,
    /// The line, counted from 1; `None` where the problem is the whole file's.
    pub line: Option<u32>,
    /// The field within the document, such as `/spec/containers/[name=a]/args/1`.
    pub path: Option<String>,
    /// What is wrong. Never holds the content of a file beyond a key, a name or a single word.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Problem {
    /// `shop.yaml:12: /spec/replicas: what is wrong [code]; what to do`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        if let Some(path) = &self.path {
            write!(f, " {path}:")?;
        }
        write!(f, " {} [{}]; {}", self.message, self.code, self.remedy)
    }
}

/// The kinds of [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemCode {
    /// The path is not there.
    Missing,
    /// The operating system refused to read it.
    Unreadable,
    /// It changed at each reading.
    Unsettled,
    /// Not UTF-8, or not YAML, or not JSON.
    Syntax,
    /// One mapping states a key twice.
    DuplicateKey,
    /// YAML readers disagree on what an unquoted word, key or merge means.
    AmbiguousScalar,
    /// A YAML tag that Kubernetes manifests do not have.
    UnsupportedTag,
    /// A limit of this crate (see [`crate::limits`]).
    TooLarge,
    /// Not an object of Kubernetes: `apiVersion`, `kind` or `metadata.name` is absent or malformed.
    NotAnObject,
    /// `metadata.generateName` without a name.
    GenerateName,
    /// A value of another type than the field has in every kind.
    TypeMismatch,
    /// Two manifests declare one object.
    DuplicateIdentity,
    /// A file that asks for a renderer (kustomize, Helm).
    NotRendered,
    /// A link, or a file name, that leaves the source's root.
    SymlinkEscape,
    /// A name that is no UTF-8, a device, a link to nothing.
    NotAFile,
    /// A name that another file system takes for another one.
    UnsafeName,
    /// What stands for content that is kept elsewhere: a submodule, a pointer of Git LFS.
    NotFollowed,
    /// A document that was encrypted as a whole.
    Encrypted,
    /// The server did not answer as it should.
    Unreachable,
    /// The server does not let us in.
    AuthRefused,
    /// There is no such branch, tag or commit.
    ReferenceMissing,
    /// The commit has no such folder.
    PathMissing,
    /// A commit that nobody who may has signed.
    Unverified,
    /// A commit that does not descend from the accepted one.
    SteppedBack,
    /// Objects that are missing or altered.
    Corrupt,
    /// Options that contradict each other.
    Misconfigured,
}

impl ProblemCode {
    /// The code as scripts see it, in snake case.
    pub fn as_str(self) -> &'static str {
        match self {
            ProblemCode::Missing => "source_missing",
            ProblemCode::Unreadable => "source_unreadable",
            ProblemCode::Unsettled => "source_unsettled",
            ProblemCode::Syntax => "syntax",
            ProblemCode::DuplicateKey => "yaml_duplicate_key",
            ProblemCode::AmbiguousScalar => "yaml_ambiguous_scalar",
            ProblemCode::UnsupportedTag => "yaml_unsupported_tag",
            ProblemCode::TooLarge => "too_large",
            ProblemCode::NotAnObject => "not_a_kubernetes_object",
            ProblemCode::GenerateName => "generate_name_unsupported",
            ProblemCode::TypeMismatch => "type_mismatch",
            ProblemCode::DuplicateIdentity => "duplicate_identity",
            ProblemCode::NotRendered => "not_rendered",
            ProblemCode::SymlinkEscape => "symlink_escape",
            ProblemCode::NotAFile => "not_a_file",
            ProblemCode::UnsafeName => "unsafe_name",
            ProblemCode::NotFollowed => "not_followed",
            ProblemCode::Encrypted => "secret_encrypted_not_decrypted",
            ProblemCode::Unreachable => "source_unreachable",
            ProblemCode::AuthRefused => "source_auth_refused",
            ProblemCode::ReferenceMissing => "source_reference_missing",
            ProblemCode::PathMissing => "source_path_missing",
            ProblemCode::Unverified => "source_unverified",
            ProblemCode::SteppedBack => "source_stepped_back",
            ProblemCode::Corrupt => "source_corrupt",
            ProblemCode::Misconfigured => "source_misconfigured",
        }
    }
}

impl fmt::Display for ProblemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A [`Problem`] before its file is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: ProblemCode,
    pub(crate) line: Option<u32>,
    pub(crate) path: Option<String>,
    pub(crate) message: String,
    pub(crate) remedy: String,
}

impl Fault {
    pub(crate) fn new(
        code: ProblemCode,
        line: u32,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { code, line: Some(line), path: None, message: message.into(), remedy: remedy.into() }
    }

    /// With the field that it is about; an empty path is the document itself.
    pub(crate) fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into()).filter(|path| !path.is_empty());
        self
    }

    /// About the file as a whole.
    pub(crate) fn whole_file(mut self) -> Self {
        self.line = None;
        self
    }

    pub(crate) fn in_file(self, file: &Arc<str>) -> Problem {
        Problem {
            code: self.code,
            file: file.clone(),
            line: self.line,
            path: self.path,
            message: self.message,
            remedy: self.remedy,
        }
    }
}

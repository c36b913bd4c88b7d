//! What a source says when it cannot be read: problems with a place and a remedy, never half a
//! revision.
//!
//! A [`Fault`] is a problem whose file is not known yet; decoding and judging give those. The
//! source adds the file and hands out [`Problem`]s inside a [`SourceError`].

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
}

impl SourceError {
    /// The problems, sorted by file and line. Those that are not about content have no line.
    pub fn problems(&self) -> Vec<Problem> {
        let whole = |path: &Arc<str>, code, remedy: &str| {
            vec![Problem {
                code,
                file: path.clone(),
                line: None,
                path: None,
                message: self.to_string(),
                remedy: remedy.to_owned(),
            }]
        };
        match self {
            SourceError::Missing { path } => {
                whole(path, ProblemCode::Missing, "create it, or correct the path")
            }
            SourceError::Unreadable { path, .. } => {
                whole(path, ProblemCode::Unreadable, "let the host's user read it")
            }
            SourceError::Unsettled { path } => {
                whole(path, ProblemCode::Unsettled, "replace the files in one step")
            }
            SourceError::Refused(problems) => problems.to_vec(),
        }
    }

    /// From problems in any order; the same problems always give the same error.
    pub(crate) fn refused(mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|a, b| (&a.file, a.line, &a.message).cmp(&(&b.file, b.line, &b.message)));
        problems.dedup();
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

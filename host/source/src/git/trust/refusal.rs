//! Why a revision is not taken, each reason told apart, with what to do.

use super::Commit;
use trimtab_signature::Fault;

/// A revision that is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("commit {commit}: {reason} [{}]; {remedy}", .reason.code())]
pub struct Refused {
    /// The commit (or tag object) that the reason is about; it may be older than the revision.
    pub commit: Commit,
    /// Why.
    pub reason: Reason,
    /// What to do.
    pub remedy: String,
}

impl Refused {
    pub(super) fn new(commit: Commit, reason: Reason) -> Self {
        let remedy = reason.remedy();
        Self { commit, reason, remedy }
    }
}

/// The reasons. [`Reason::code`] is what scripts may rely on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// It carries no signature.
    #[error("it is not signed")]
    Unsigned,
    /// A merge that carries the signed tag of what was merged.
    #[error("what it merges may be signed, and the merge itself is not")]
    OnlyWhatWasMergedIsSigned,
    /// The tag is signed, and tags do not count here.
    #[error("tag {0} is signed and its commit is not, and a tag's signature does not count here")]
    OnlyTheTagIsSigned(String),
    /// A tag without an object of its own cannot be signed, and its commit is not.
    #[error("tag {0} is a mere name (not annotated), and its commit is not signed")]
    TagIsNotAnnotated(String),
    /// A tag object that was made under one name stands under another.
    #[error("the tag object says that it is {says:?} and stands under the name {is:?}")]
    TagHasAnotherName {
        /// The signed name.
        says: String,
        /// Where it stands.
        is: String,
    },
    /// Signatures in a way that could be read in two ways.
    #[error("{0}")]
    Ambiguous(&'static str),
    /// There is one signature, and it does not count.
    #[error("{0}")]
    Signature(Fault),
    /// By a signer who may not change what it changes.
    #[error("{signer} may not change {path:?}")]
    OutsidePaths {
        /// The signer's principal.
        signer: String,
        /// One path that it changes.
        path: String,
    },
    /// A signer with limits cannot vouch for a whole tree.
    #[error(
        "{signer} may change some paths alone, and with nothing accepted before would vouch for all, {path:?} too"
    )]
    VouchesForAll {
        /// The signer's principal.
        signer: String,
        /// One path outside their limits.
        path: String,
    },
    /// It does not descend from what was accepted.
    #[error(
        "it does not descend from {last}, which was accepted before (a force-push, or an older revision)"
    )]
    SteppedBack {
        /// What was accepted.
        last: Commit,
    },
    /// The configured beginning is not among its ancestors.
    #[error("the configured beginning {0} is not among its ancestors")]
    SinceIsElsewhere(Commit),
    /// Keys or limits cannot be read.
    #[error("the allowed signers cannot be read: {0}")]
    Signers(String),
    /// An object is not there.
    #[error("object {0} is missing in the mirror")]
    Missing(Commit),
    /// An object's bytes are not those that its id stands for.
    #[error(
        "the bytes of object {0} are not those that its id stands for: somebody changed the mirror"
    )]
    Tampered(Commit),
    /// The mirror does not give an object as it should.
    #[error("{0}")]
    Unreadable(String),
    /// An object that is what its id says, and no commit, tag or tree as Git makes them.
    #[error("it cannot be understood: {0}")]
    Damaged(String),
    /// A limit.
    #[error("more than {1} {0}")]
    TooMany(&'static str, usize),
}

impl Reason {
    /// As scripts see it, in snake case.
    pub fn code(&self) -> &'static str {
        match self {
            Reason::Unsigned | Reason::OnlyWhatWasMergedIsSigned => "signature_missing",
            Reason::OnlyTheTagIsSigned(_) => "signature_of_tag_only",
            Reason::TagIsNotAnnotated(_) => "tag_not_annotated",
            Reason::TagHasAnotherName { .. } => "tag_under_another_name",
            Reason::Ambiguous(_) => "signature_ambiguous",
            Reason::Signature(fault) => fault.code(),
            Reason::OutsidePaths { .. } | Reason::VouchesForAll { .. } => "signer_outside_paths",
            Reason::SteppedBack { .. } => "history_stepped_back",
            Reason::SinceIsElsewhere(_) => "since_not_in_history",
            Reason::Signers(_) => "signers_unreadable",
            Reason::Missing(_) => "object_missing",
            Reason::Tampered(_) => "object_tampered",
            Reason::Unreadable(_) => "object_unreadable",
            Reason::Damaged(_) => "object_damaged",
            Reason::TooMany(..) => "trust_limit",
        }
    }

    /// Whether it is the mirror that is wrong, and not what the server has.
    pub(crate) fn is_the_mirrors(&self) -> bool {
        matches!(self, Reason::Missing(_) | Reason::Tampered(_) | Reason::Unreadable(_))
    }

    fn remedy(&self) -> String {
        match self {
            Reason::Unsigned | Reason::OnlyWhatWasMergedIsSigned => "sign it (`git commit -S --amend`, `git rebase --exec`), or have an allowed signer sign what follows where the head alone is checked",
            Reason::OnlyTheTagIsSigned(_) => "sign the commit, or let tags count (`tags: true`)",
            Reason::TagIsNotAnnotated(_) => "make a signed tag (`git tag -s`), or sign the commit",
            Reason::TagHasAnotherName { .. } => "find out who moved it; tag anew under the right name",
            Reason::Ambiguous(_) => "sign it again, with Git itself",
            Reason::Signature(fault) => fault.remedy(),
            Reason::OutsidePaths { .. } => "have somebody sign it who may, or widen the signer's paths",
            Reason::VouchesForAll { .. } => "let the first revision be signed by somebody without limits",
            Reason::SteppedBack { .. } => "if that is meant: `trimtab source allow NAME REVISION` (40 digits)",
            Reason::SinceIsElsewhere(_) => "correct `since`",
            Reason::Signers(_) => "mend the file; what was accepted stays in force",
            Reason::Missing(_) | Reason::Tampered(_) | Reason::Unreadable(_) => "have the mirror made anew (remove its folder); if it comes back, look at the server",
            Reason::Damaged(_) => "find out who made it, with what; make it anew with Git",
            Reason::TooMany(..) => "take a newer beginning (`since`), or accept a step in between",
        }
        .to_owned()
    }
}

//! May this commit come after the one that is in force? Descent here, signatures in `trust/`.

use super::mirror::{self, MirrorFault};
use super::{GitOptions, trust};
use gix::{ObjectId, Repository};
use trimtab_core::object::Signer;

/// Why a commit is not taken.
#[derive(Debug)]
pub(crate) enum Judged {
    /// The mirror is broken: nothing can be said.
    Broken(String),
    /// A signature is asked for, and not there or no good.
    Unverified { commit: String, reason: String, remedy: String },
    /// It does not descend from the last accepted commit.
    SteppedBack { commit: String, reason: String, remedy: String },
}

/// Judges a commit that was fetched.
///
/// # Errors
/// [`Judged`]
pub(crate) fn judge(
    repo: &Repository,
    commit: ObjectId,
    options: &GitOptions,
) -> Result<Option<Signer>, Judged> {
    if options.history == trust::HistoryPolicy::ForwardOnly {
        step(repo, commit)?;
    }
    match options.verify {
        None => Ok(None),
        Some(_) => Err(Judged::Unverified {
            commit: commit.to_string(),
            reason: "signatures are asked for, and this build verifies none".into(),
            remedy: "use a build that does".into(),
        }),
    }
}

fn step(repo: &Repository, commit: ObjectId) -> Result<(), Judged> {
    let accepted = mirror::named(repo, mirror::ACCEPTED).map_err(|fault| match fault {
        MirrorFault::Broken(reason) => Judged::Broken(reason),
        MirrorFault::System(error) => Judged::Broken(error.to_string()),
    })?;
    let Some(accepted) = accepted.filter(|accepted| *accepted != commit) else { return Ok(()) };
    let refused = |reason: String| Judged::SteppedBack {
        commit: commit.to_string(),
        reason,
        remedy: "push a commit on top of that one".into(),
    };
    if !repo.has_object(accepted) {
        return Err(refused(format!(
            "{accepted} was accepted last, and the server does not have it any more"
        )));
    }
    let base = repo.merge_base(accepted, commit).map_err(|error| Judged::Broken(error.to_string()));
    if base?.is_some_and(|base| base == accepted) {
        return Ok(());
    }
    Err(refused(format!("it does not descend from {accepted}, which was accepted last")))
}

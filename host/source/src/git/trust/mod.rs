//! Who may change desired state: signatures of commits and tags, and steps in history.
//!
//! **Flow**: the mirror has a new commit. [`judge_step`] says whether it goes forward from what was
//! accepted last; [`verify`] says whether keys that are allowed vouch for it, and for every commit
//! since, if that is asked. Whoever took it calls [`Memory::remember`].
//!
//! **Guarantees**: the bytes that are judged are hashed again, collision attacks included, so an
//! object that somebody changed in the mirror, or put in another's place, is refused. Names and
//! dates in a commit are its author's words and decide nothing but which of two old commits is
//! looked at first. An answer that cannot be had is a refusal.
//!
//! **Start reading** at [`verify`], below; `commit.rs` says what is signed, `range.rs` which
//! commits are new, `limits.rs` whether a signer kept to their paths.

mod changes;
mod commit;
mod limits;
mod memory;
mod object;
mod range;
mod refusal;
mod signers;
#[cfg(test)]
mod tests;
mod touched;

pub use limits::Limit;
pub use memory::{Memory, MemoryError, Remembered};
pub use object::{Commit, NoCommit, Objects};
pub use refusal::{Reason, Refused};
pub use signers::{Format, Signer, SignerSource};

use commit::Signed;
use object::Reader;
use signers::Signers;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// Commits that one verification checks: a refusal above, since each costs a signature.
pub const COMMITS_VERIFIED_AT_MOST: usize = 10_000;

/// Commits that are looked at to see what is new.
pub const COMMITS_WALKED_AT_MOST: usize = 100_000;

/// Entries of trees that are compared for signers with limits.
pub const ENTRIES_COMPARED_AT_MOST: usize = 1_000_000;

/// Time that one verification may take.
pub const TIME_AT_MOST: Duration = Duration::from_secs(60);

/// What has to be signed, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// Which commits.
    pub mode: Mode,
    /// Where the keys are that may sign; read anew at each verification.
    pub signers: Vec<SignerSource>,
    /// Signers that may change some paths alone; everyone else may change all.
    pub limits: Vec<Limit>,
    /// Whether the signature of an annotated tag counts for the commit that it names.
    pub tags: bool,
    /// With [`Mode::Every`] and nothing accepted yet: the commit after which all are checked.
    /// Without it, the first one accepted is checked alone and vouches for all before it.
    pub since: Option<Commit>,
}

impl Verification {
    /// A digest over all that it says and the bytes of its key files: while it stays, so does every
    /// verdict, but for keys that expire. A file that cannot be read has a digest too.
    pub fn state(&self) -> [u8; 32] {
        signers::state(self)
    }
}

/// Which commits have to be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The one that is applied: who signs it vouches for all that it brings.
    Head,
    /// Each one since the last that was accepted, those that merges bring included.
    Every,
}

/// What becomes of a revision that does not descend from the last one that was accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistoryPolicy {
    /// Refused until a person allows that one revision.
    #[default]
    ForwardOnly,
    /// Taken as any other.
    Any,
}

/// What was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The commit whose tree would be applied.
    pub commit: Commit,
    /// The tag by which it was found.
    pub tag: Tag,
}

/// How a target was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tag {
    /// By a branch or its own id.
    None,
    /// By a tag that is a mere name for the commit.
    Light {
        /// The tag's name without `refs/tags/`.
        name: String,
    },
    /// By a tag that is an object of its own, which may be signed.
    Annotated {
        /// The tag's name without `refs/tags/`.
        name: String,
        /// The tag object's id, 40 hexadecimal digits in [`Commit`]'s form.
        object: Commit,
    },
}

/// A target that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Who vouches for it.
    pub signer: Signer,
    /// Whether it was the tag that was signed, and not the commit.
    pub by_tag: bool,
    /// Commits that were checked.
    pub checked: usize,
    /// With [`Mode::Every`], by path: signers of the checked commits that made the file what it is.
    pub touched: BTreeMap<String, Vec<String>>,
}

/// Whether keys that are allowed vouch for this target, and for what it brings.
///
/// `last` is what was accepted before; only the local memory counts here, not what others remember.
///
/// # Errors
/// [`Refused`] with the commit, why, and what to do: for everything that is not plainly good.
pub fn verify(
    objects: &dyn Objects,
    new: &Target,
    last: Option<Commit>,
    verification: &Verification,
    now: SystemTime,
) -> Result<Accepted, Refused> {
    let refused = |reason| Refused::new(new.commit, reason);
    let signers = Signers::read(verification, now).map_err(refused)?;
    let reader = Reader::new(objects);
    let by_tag = if verification.tags { tag_signer(&reader, new, &signers)? } else { None };
    let start = last.or(verification.since);
    let range = match verification.mode {
        Mode::Head => vec![],
        Mode::Every => {
            let since = start.map(|since| range::since(&reader, since, new.commit)).transpose();
            let range = since.map_err(refused)?.unwrap_or_default();
            match verification.since {
                Some(since) if last.is_none() && !range.descends => {
                    return Err(refused(Reason::SinceIsElsewhere(since)));
                }
                _ => range.commits,
            }
        }
    };
    if range.len() > COMMITS_VERIFIED_AT_MOST {
        return Err(refused(Reason::TooMany("commits to check", COMMITS_VERIFIED_AT_MOST)));
    }
    let signer = match &by_tag {
        Some(signer) => signer.clone(),
        None => {
            let parsed = reader.commit(new.commit).map_err(refused)?;
            signer_of(&parsed.signed, &signers).map_err(|reason| {
                refused(match (&new.tag, reason) {
                    (Tag::Light { name }, Reason::Unsigned) if verification.tags => {
                        Reason::TagIsNotAnnotated(name.clone())
                    }
                    (Tag::Annotated { name, object }, Reason::Unsigned)
                        if !verification.tags && reader.tag_is_signed(*object) =>
                    {
                        Reason::OnlyTheTagIsSigned(name.clone())
                    }
                    (_, reason) => reason,
                })
            })?
        }
    };
    let mut signed = Vec::new();
    match verification.mode {
        // Nothing but the head is looked at: its signer answers for all the difference that it makes.
        Mode::Head => limits::keeps_all(&reader, &signer, last, new.commit).map_err(refused)?,
        // Without a beginning nobody answers for the parents.
        Mode::Every if start.is_none() => {
            limits::keeps_all(&reader, &signer, None, new.commit).map_err(refused)?;
        }
        Mode::Every => {
            for commit in &range {
                let refused = |reason| Refused::new(*commit, reason);
                let parsed = reader.commit(*commit).map_err(refused)?;
                let signer = if *commit == new.commit {
                    signer.clone()
                } else {
                    signer_of(&parsed.signed, &signers).map_err(refused)?
                };
                limits::keeps(&reader, &signer, &parsed).map_err(refused)?;
                signed.push((*commit, signer.shown.principal));
            }
        }
    }
    let checked = range.len().max(1);
    let touched = touched::by_file(&reader, new.commit, &signed).map_err(refused)?;
    Ok(Accepted { signer: signer.shown, by_tag: by_tag.is_some(), checked, touched })
}

/// Who signed the tag. `None`: nobody did, so that the commit's signature has to be there.
fn tag_signer(
    reader: &Reader<'_>,
    new: &Target,
    signers: &Signers,
) -> Result<Option<signers::Found>, Refused> {
    let Tag::Annotated { name, object } = &new.tag else { return Ok(None) };
    let refused = |reason| Refused::new(*object, reason);
    let tag = reader.tag(*object).map_err(refused)?;
    if tag.name != *name {
        return Err(refused(Reason::TagHasAnotherName { says: tag.name, is: name.clone() }));
    }
    if tag.target != new.commit {
        return Err(refused(Reason::Damaged("the tag names another commit".into())));
    }
    match signer_of(&tag.signed, signers) {
        Ok(signer) => Ok(Some(signer)),
        Err(Reason::Unsigned) => Ok(None),
        Err(reason) => Err(refused(reason)),
    }
}

fn signer_of(signed: &Signed, signers: &Signers) -> Result<signers::Found, Reason> {
    match signed {
        Signed::No => Err(Reason::Unsigned),
        Signed::NotThis => Err(Reason::OnlyWhatWasMergedIsSigned),
        Signed::Wrongly(what) => Err(Reason::Ambiguous(what)),
        Signed::Yes { payload, signature } => signers.who(payload, signature),
    }
}

/// How a new revision stands to what was accepted before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing was accepted before.
    First,
    /// It is the same.
    Same,
    /// It descends from all that was accepted before.
    Forward,
    /// It does not, and a person allowed this one: [`Memory::remember`] uses that up.
    Allowed,
    /// It does not, or it cannot be said.
    Refused(Refused),
}

/// Judges a step in history.
///
/// `accepted` is what the local memory and others (the cluster's inventory) remember: the new
/// revision has to descend from each, so that no memory that is old or lost lets one go back.
pub fn judge_step(
    objects: &dyn Objects,
    accepted: &[Commit],
    new: Commit,
    allowed: Option<Commit>,
) -> Step {
    if accepted.is_empty() {
        return Step::First;
    }
    if accepted.iter().all(|last| *last == new) {
        return Step::Same;
    }
    if allowed == Some(new) {
        return Step::Allowed;
    }
    let reader = Reader::new(objects);
    for last in accepted.iter().filter(|last| **last != new) {
        let reason = match range::since(&reader, *last, new) {
            Ok(range) if range.descends => continue,
            Ok(_) => Reason::SteppedBack { last: *last },
            Err(reason) => reason,
        };
        return Step::Refused(Refused::new(new, reason));
    }
    Step::Forward
}

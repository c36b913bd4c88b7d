//! May this commit come after the one that is in force, and does somebody vouch for it who may? The
//! rules are `trust/`'s; here they get what they ask for.

use super::mirror::{self, MirrorFault};
use super::trust::{self, Commit, HistoryPolicy, Memory, MemoryError, Refused, Step, Tag, Target};
use super::{GitOptions, Reference};
use gix::{ObjectId, Repository};
use sha2::Digest as _;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use trimtab_core::object::Signer;

/// Why a commit is not taken.
#[derive(Debug)]
pub(crate) enum Judged {
    /// The mirror is broken: nothing can be said.
    Broken(String),
    /// What was accepted before cannot be said.
    Forgotten(MemoryError),
    /// A signature is asked for, and not there or no good.
    Unverified(Refused),
    /// It does not descend from the last accepted commit.
    SteppedBack(Refused),
}

/// Who vouches for a commit that may be taken.
#[derive(Debug, Default)]
pub(crate) struct Signed {
    /// Whoever signed it; `None` where nothing is verified.
    pub(crate) signer: Option<Signer>,
    /// By file, relative to the source's folder: who made it what it is.
    pub(crate) touched: Arc<BTreeMap<Arc<str>, Vec<Arc<str>>>>,
}

/// What a judgement rests on beside the mirror.
pub(crate) struct Before<'m> {
    /// What this host accepted.
    pub(crate) memory: &'m Memory,
    /// What others know of it, such as the cluster's inventory.
    pub(crate) elsewhere: Option<Commit>,
}

/// Judges a commit that was fetched; `tip` is what the reference stands for, a tag or the commit.
///
/// # Errors
/// [`Judged`]
pub(crate) fn judge(
    repo: &Repository,
    tip: ObjectId,
    commit: ObjectId,
    options: &GitOptions,
    before: &Before<'_>,
) -> Result<Signed, Judged> {
    let new = Commit::from(commit);
    let own = before.memory.accepted().map_err(Judged::Forgotten)?.map(|it| it.commit);
    let pinned = mirror::named(repo, mirror::ACCEPTED).map_err(|fault| match fault {
        MirrorFault::Broken(reason) => Judged::Broken(reason),
        MirrorFault::System(error) => Judged::Broken(error.to_string()),
    })?;
    let pinned = pinned.map(Commit::from);
    // Whoever names a commit by all its digits says which one; nobody else can move it.
    let may_move = !matches!(options.reference, Reference::Commit(_));
    if options.history == HistoryPolicy::ForwardOnly && may_move {
        let mut accepted: Vec<Commit> =
            [own, pinned, before.elsewhere].into_iter().flatten().collect();
        accepted.dedup();
        let allowed = before.memory.allowed().map_err(Judged::Forgotten)?;
        if let Step::Refused(refused) = trust::judge_step(repo, &accepted, new, allowed) {
            return Err(judged(refused, Judged::SteppedBack));
        }
    }
    let Some(verification) = &options.verify else {
        return Ok(Signed::default());
    };
    let target = Target { commit: new, tag: tag(options, tip, commit) };
    let accepted = trust::verify(repo, &target, own.or(pinned), verification, SystemTime::now())
        .map_err(|refused| judged(refused, Judged::Unverified))?;
    let trust::Signer { principal, fingerprint, .. } = accepted.signer;
    let signer = Signer { principal: principal.into(), fingerprint: fingerprint.into() };
    let folder = options.path.trim_matches('/');
    let within = |path: &str| -> Option<Arc<str>> {
        match folder {
            "" | "." => Some(path.into()),
            folder => path.strip_prefix(folder)?.strip_prefix('/').map(Into::into),
        }
    };
    let touched = accepted.touched.into_iter().filter_map(|(path, signers)| {
        Some((within(&path)?, signers.into_iter().map(Into::into).collect()))
    });
    Ok(Signed { signer: Some(signer), touched: Arc::new(touched.collect()) })
}

fn judged(refused: Refused, otherwise: fn(Refused) -> Judged) -> Judged {
    if refused.reason.is_the_mirrors() {
        Judged::Broken(refused.to_string())
    } else {
        otherwise(refused)
    }
}

fn tag(options: &GitOptions, tip: ObjectId, commit: ObjectId) -> Tag {
    match &options.reference {
        Reference::Tag(name) if tip == commit => Tag::Light { name: name.clone() },
        Reference::Tag(name) => Tag::Annotated { name: name.clone(), object: tip.into() },
        _ => Tag::None,
    }
}

/// Remembers a commit that is in force from now on, in both places.
///
/// # Errors
/// [`Judged::Forgotten`] or [`Judged::Broken`]: it must not be used then.
pub(crate) fn accept(
    repo: &Repository,
    commit: ObjectId,
    options: &GitOptions,
    memory: &Memory,
) -> Result<(), Judged> {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let what = (&options.url, &options.reference, &options.path, &options.history, &options.verify);
    let digest = sha2::Sha256::digest(format!("{what:?}"));
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let configuration = format!("sha256:{hex}");
    memory
        .remember(&trust::Remembered { commit: commit.into(), at, configuration })
        .map_err(Judged::Forgotten)?;
    mirror::name(repo, mirror::ACCEPTED, commit).map_err(|fault| match fault {
        MirrorFault::Broken(reason) => Judged::Broken(reason),
        MirrorFault::System(error) => Judged::Broken(error.to_string()),
    })
}

//! The trait that a plugin implements.

use crate::{Comparison, Difference, NoComparison, Snapshot, Verdict};

/// Judgement about the resource types that the plugin claims.
///
/// # Flow
/// The host calls [`Reconciler::compare`]. If there are differences it asks the API server which
/// of them it reads as equal (a dry run), takes those out, and calls [`Reconciler::decide`] with
/// the rest. Each pass runs in a fresh instance: nothing is remembered from one to the next, and the
/// second call of a pass may run in a fresh one too.
///
/// # Guarantees
/// `desired` or `live` is there. A live object that is not there is *known* to be absent: where
/// the host does not know, it does not call.
///
/// # Caveats
/// A panic costs the pass, which is tried again later with a growing delay. Prefer
/// [`Verdict::Unknown`], which says why.
pub trait Reconciler {
    /// Where does live differ from desired, by meaning? No difference: in sync, and `decide` is
    /// not called.
    ///
    /// By default this is [`crate::compare`], which knows what the cluster's schema says of the
    /// type. Override it to add what only the plugin knows, or to judge a type in its own way.
    ///
    /// # Errors
    /// [`NoComparison`]: desired is wrong in itself, or the plugin cannot tell. Never counted as in
    /// sync; nothing is written.
    fn compare<'s>(snapshot: &'s Snapshot<'_>) -> Result<Comparison<'s>, NoComparison> {
        crate::compare(snapshot)
    }

    /// What should be done about the differences? There is at least one.
    ///
    /// By default this is [`crate::decide`]; its parts stand in [`crate::usual`].
    fn decide(snapshot: &Snapshot<'_>, differences: &[Difference<'_>]) -> Verdict {
        crate::decide(snapshot, differences)
    }
}

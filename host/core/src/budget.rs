//! Budgets: how much a plugin may write, in one pass and in a minute, and delete in an hour.
//!
//! A pass takes what it is going to write before it writes any of it, so that nothing is deleted
//! that could not be made again. Who gives out allowances sees to the time: the core has no clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long an object waits that found no budget left.
pub const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// How long one waits that is to be deleted: an hour's budget comes back slowly.
pub const LOOK_AGAIN_FOR_DELETES: Duration = Duration::from_secs(60);

/// Writes of one plugin in any minute, unless its grant says otherwise: more than an API server
/// takes of one client (some ten milliseconds each), so that a first convergence is not held back,
/// and an end to a storm that goes on for ever.
pub const WRITES_PER_MINUTE: u32 = 6_000;

/// Deletions of one plugin in any hour, unless its grant says otherwise, those of objects that are
/// made anew included: more than a release recreates, and fewer than a namespace of some size holds.
/// More than that is for a person to allow.
pub const DELETES_PER_HOUR: u32 = 50;

/// What a grant says of amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Writes in any minute, over all objects.
    pub writes_per_minute: u32,
    /// Deletions in any hour, over all objects.
    pub deletes_per_hour: u32,
    /// Deletions in one pass.
    pub deletes_per_pass: u32,
    /// Actions in one pass.
    pub actions_per_pass: u32,
}

impl Default for Budgets {
    /// One object is deleted once in a pass, and corrected in a handful of steps.
    fn default() -> Self {
        Self {
            writes_per_minute: WRITES_PER_MINUTE,
            deletes_per_hour: DELETES_PER_HOUR,
            deletes_per_pass: 1,
            actions_per_pass: 16,
        }
    }
}

/// So many writes, deletions among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Requests that change something.
    pub writes: u32,
    /// Those of them that delete.
    pub deletes: u32,
}

/// Which budget has too little left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The minute's writes.
    Writes,
    /// The hour's deletions.
    Deletes,
}

/// What is left, shared by the passes of one plugin.
#[derive(Clone, Debug, Default)]
pub struct Left {
    /// Of a minute's writes.
    pub writes: Arc<AtomicU32>,
    /// Of an hour's deletions.
    pub deletes: Arc<AtomicU32>,
}

/// What one pass may write.
#[derive(Clone, Debug, Default)]
pub struct Allowance {
    left: Option<Left>,
    taken: Left,
}

impl Allowance {
    /// For one pass, out of what is left for all.
    pub fn of(left: Left) -> Self {
        Self { left: Some(left), taken: Left::default() }
    }

    /// Takes this much, all or none.
    ///
    /// # Errors
    /// The budget that has less.
    pub(crate) fn take(&self, amount: Amount) -> Result<(), Over> {
        if let Some(left) = &self.left {
            if !take(&left.deletes, amount.deletes) {
                return Err(Over::Deletes);
            }
            if !take(&left.writes, amount.writes) {
                left.deletes.fetch_add(amount.deletes, Ordering::AcqRel);
                return Err(Over::Writes);
            }
        }
        self.taken.writes.fetch_add(amount.writes, Ordering::AcqRel);
        self.taken.deletes.fetch_add(amount.deletes, Ordering::AcqRel);
        Ok(())
    }

    /// How much the pass took.
    pub fn taken(&self) -> Amount {
        Amount {
            writes: self.taken.writes.load(Ordering::Acquire),
            deletes: self.taken.deletes.load(Ordering::Acquire),
        }
    }
}

fn take(left: &AtomicU32, amount: u32) -> bool {
    let less = |left: u32| left.checked_sub(amount);
    left.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(writes: u32, deletes: u32) -> Left {
        Left { writes: Arc::new(writes.into()), deletes: Arc::new(deletes.into()) }
    }

    fn writes(writes: u32) -> Amount {
        Amount { writes, deletes: 0 }
    }

    #[test]
    fn passes_of_one_plugin_share_what_is_left_and_take_all_or_nothing() {
        let left = left(3, 0);
        let (first, second) = (Allowance::of(left.clone()), Allowance::of(left.clone()));
        assert_eq!(first.take(writes(2)), Ok(()));
        assert_eq!(second.take(writes(2)), Err(Over::Writes));
        assert_eq!(second.take(writes(1)), Ok(()));
        assert_eq!(first.take(writes(1)), Err(Over::Writes));
        assert_eq!((first.taken(), second.taken()), (writes(2), writes(1)));
        assert_eq!(Allowance::default().take(writes(1000)), Ok(()), "no budget, no end");
    }

    #[test]
    fn a_deletion_counts_for_the_hour_too_and_comes_back_where_the_minute_has_no_writes_left() {
        let left = left(3, 1);
        let pass = Allowance::of(left.clone());
        assert_eq!(pass.take(Amount { writes: 4, deletes: 1 }), Err(Over::Writes));
        assert_eq!(pass.take(Amount { writes: 2, deletes: 1 }), Ok(()));
        assert_eq!(pass.take(Amount { writes: 1, deletes: 1 }), Err(Over::Deletes));
        assert_eq!(pass.taken(), Amount { writes: 2, deletes: 1 });
        assert_eq!(left.writes.load(Ordering::Acquire), 1);
    }
}

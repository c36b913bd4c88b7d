//! Budgets: how much a plugin may write, in one pass and in a minute.
//!
//! A pass takes what it is going to write before it writes any of it, so that nothing is deleted
//! that could not be made again. Who gives out allowances sees to the minutes: the core has no clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long an object waits that found no budget left.
pub const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Writes of one plugin in any minute, unless its grant says otherwise: more than an API server
/// takes of one client (some ten milliseconds each), so that a first convergence is not held back,
/// and an end to a storm that goes on for ever.
pub const WRITES_PER_MINUTE: u32 = 6_000;

/// What a grant says of amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Writes in any minute, over all objects.
    pub writes_per_minute: u32,
    /// Deletions in one pass.
    pub deletes_per_pass: u32,
    /// Actions in one pass.
    pub actions_per_pass: u32,
}

impl Default for Budgets {
    /// One object is deleted once in a pass, and corrected in a handful of steps.
    fn default() -> Self {
        Self { writes_per_minute: WRITES_PER_MINUTE, deletes_per_pass: 1, actions_per_pass: 16 }
    }
}

/// What is left of a minute's writes, shared by the passes of one plugin.
#[derive(Clone, Debug, Default)]
pub struct Allowance {
    left: Option<Arc<AtomicU32>>,
    taken: Arc<AtomicU32>,
}

impl Allowance {
    /// For one pass, out of what is left for all.
    pub fn of(left: Arc<AtomicU32>) -> Self {
        Self { left: Some(left), taken: Arc::default() }
    }

    /// Takes this many writes, all or none.
    pub(crate) fn take(&self, writes: u32) -> bool {
        let taken = self.left.as_ref().is_none_or(|left| {
            let less = |left: u32| left.checked_sub(writes);
            left.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).is_ok()
        });
        if taken {
            self.taken.fetch_add(writes, Ordering::AcqRel);
        }
        taken
    }

    /// How many writes the pass took.
    pub fn taken(&self) -> u32 {
        self.taken.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_of_one_plugin_share_what_is_left_and_take_all_or_nothing() {
        let left = Arc::new(AtomicU32::new(3));
        let (first, second) = (Allowance::of(left.clone()), Allowance::of(left.clone()));
        assert!(first.take(2) && !second.take(2) && second.take(1) && !first.take(1));
        assert_eq!((first.taken(), second.taken()), (2, 1));
        assert!(Allowance::default().take(1000), "no budget, no end");
    }
}

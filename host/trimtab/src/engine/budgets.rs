//! Writes a minute and deletions an hour: what is left for each plugin.
//!
//! A pass takes from numbers that all passes of its plugin share, and what it took comes back a
//! minute, or an hour, after it ended. So in no minute there are more writes than the grant says.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use trimtab_core::budget::{Allowance, Amount, Budgets, Left};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// Two windows for each plugin.
#[derive(Default)]
pub(super) struct Windows {
    windows: HashMap<String, Both>,
}

struct Both {
    writes: Window,
    deletes: Window,
}

struct Window {
    limit: u32,
    left: Arc<AtomicU32>,
    /// What comes back, and when.
    spent: VecDeque<(Instant, u32)>,
}

impl Windows {
    /// What a pass of this plugin may write now.
    pub(super) fn allowance(&mut self, plugin: &str, budgets: &Budgets, now: Instant) -> Allowance {
        let (writes, deletes) = (budgets.writes_per_minute, budgets.deletes_per_hour);
        let both = self
            .windows
            .entry(plugin.to_owned())
            .or_insert_with(|| Both { writes: Window::of(writes), deletes: Window::of(deletes) });
        both.writes.refill(writes, now);
        both.deletes.refill(deletes, now);
        let left = Left { writes: both.writes.left.clone(), deletes: both.deletes.left.clone() };
        Allowance::of(left)
    }

    /// A pass ended that took this much.
    pub(super) fn spent(&mut self, plugin: &str, amount: Amount, now: Instant) {
        if let Some(both) = self.windows.get_mut(plugin) {
            both.writes.spent(now + MINUTE, amount.writes);
            both.deletes.spent(now + HOUR, amount.deletes);
        }
    }
}

impl Window {
    fn of(limit: u32) -> Self {
        Self { limit, left: Arc::new(AtomicU32::new(limit)), spent: VecDeque::new() }
    }

    fn spent(&mut self, back_at: Instant, amount: u32) {
        if amount > 0 {
            self.spent.push_back((back_at, amount));
        }
    }

    fn refill(&mut self, limit: u32, now: Instant) {
        while let Some((_, writes)) = self.spent.pop_front_if(|(at, _)| *at <= now) {
            self.give(writes);
        }
        if limit > self.limit {
            self.give(limit - self.limit);
        } else {
            self.take(self.limit - limit);
        }
        self.limit = limit;
    }

    fn give(&self, writes: u32) {
        let more = |left: u32| Some(left.saturating_add(writes));
        let _ = self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
    }

    /// A grant that is narrowed takes what is left first; the rest is missing from what comes back.
    fn take(&mut self, writes: u32) {
        let less = |left: u32| Some(left.saturating_sub(writes));
        let before = self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        let mut missing = writes.saturating_sub(before.unwrap_or_default());
        for (_, back) in &mut self.spent {
            let less = missing.min(*back);
            *back -= less;
            missing -= less;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(windows: &mut Windows, limit: u32, now: Instant) -> u32 {
        let budgets = Budgets { writes_per_minute: limit, ..Budgets::default() };
        windows.allowance("p", &budgets, now);
        windows.windows["p"].writes.left.load(Ordering::Acquire)
    }

    fn take(windows: &mut Windows, writes: u32, now: Instant) {
        windows.windows["p"].writes.left.fetch_sub(writes, Ordering::AcqRel);
        windows.spent("p", Amount { writes, deletes: 0 }, now);
    }

    #[test]
    fn what_a_pass_took_comes_back_a_minute_after_it_ended() {
        let (mut windows, start) = (Windows::default(), Instant::now());
        assert_eq!(left(&mut windows, 3, start), 3);
        take(&mut windows, 2, start);
        assert_eq!(left(&mut windows, 3, start + MINUTE / 2), 1);
        assert_eq!(left(&mut windows, 3, start + MINUTE), 3);
    }

    #[test]
    fn a_deletion_comes_back_an_hour_after_it() {
        let (mut windows, start) = (Windows::default(), Instant::now());
        let budgets = Budgets { deletes_per_hour: 1, ..Budgets::default() };
        let mut left = |now: Instant| {
            windows.allowance("p", &budgets, now);
            let deletes = &windows.windows["p"].deletes;
            let left = deletes.left.swap(0, Ordering::AcqRel);
            windows.spent("p", Amount { writes: 0, deletes: left }, now);
            left
        };
        assert_eq!(left(start), 1);
        assert_eq!(left(start + MINUTE), 0);
        assert_eq!(left(start + HOUR), 1);
    }

    #[test]
    fn a_grant_that_changes_keeps_what_was_spent() {
        let (mut windows, start) = (Windows::default(), Instant::now());
        left(&mut windows, 4, start);
        take(&mut windows, 3, start);
        assert_eq!(left(&mut windows, 2, start), 0, "one was left, two are fewer");
        assert_eq!(left(&mut windows, 2, start + MINUTE), 2);
        assert_eq!(left(&mut windows, 5, start + MINUTE), 5);
    }
}

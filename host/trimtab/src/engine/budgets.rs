//! Writes a minute: what is left for each plugin.
//!
//! A pass takes from a number that all passes of its plugin share, and what it took comes back a
//! minute after it ended. So in no minute there are more writes than the grant says.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use trimtab_core::budget::Allowance;

const MINUTE: Duration = Duration::from_secs(60);

/// One window for each plugin.
#[derive(Default)]
pub(super) struct Windows {
    windows: HashMap<String, Window>,
}

struct Window {
    limit: u32,
    left: Arc<AtomicU32>,
    /// What comes back, and when.
    spent: VecDeque<(Instant, u32)>,
}

impl Windows {
    /// What a pass of this plugin may write now.
    pub(super) fn allowance(&mut self, plugin: &str, limit: u32, now: Instant) -> Allowance {
        let window = self.windows.entry(plugin.to_owned()).or_insert_with(|| Window {
            limit,
            left: Arc::new(AtomicU32::new(limit)),
            spent: VecDeque::new(),
        });
        window.refill(limit, now);
        Allowance::of(window.left.clone())
    }

    /// A pass ended that took this many.
    pub(super) fn spent(&mut self, plugin: &str, writes: u32, now: Instant) {
        if let Some(window) = self.windows.get_mut(plugin).filter(|_| writes > 0) {
            window.spent.push_back((now + MINUTE, writes));
        }
    }
}

impl Window {
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
        windows.allowance("p", limit, now);
        windows.windows["p"].left.load(Ordering::Acquire)
    }

    #[test]
    fn what_a_pass_took_comes_back_a_minute_after_it_ended() {
        let (mut windows, start) = (Windows::default(), Instant::now());
        assert_eq!(left(&mut windows, 3, start), 3);
        windows.windows["p"].left.fetch_sub(2, Ordering::AcqRel);
        windows.spent("p", 2, start);
        assert_eq!(left(&mut windows, 3, start + MINUTE / 2), 1);
        assert_eq!(left(&mut windows, 3, start + MINUTE), 3);
    }

    #[test]
    fn a_grant_that_changes_keeps_what_was_spent() {
        let (mut windows, start) = (Windows::default(), Instant::now());
        left(&mut windows, 4, start);
        windows.windows["p"].left.fetch_sub(3, Ordering::AcqRel);
        windows.spent("p", 3, start);
        assert_eq!(left(&mut windows, 2, start), 0, "one was left, two are fewer");
        assert_eq!(left(&mut windows, 2, start + MINUTE), 2);
        assert_eq!(left(&mut windows, 5, start + MINUTE), 5);
    }
}

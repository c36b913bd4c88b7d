//! The keyed queue: which key is looked at next.
//!
//! Guarantees: never two passes of one key at once; any number of events during a pass mean one
//! more pass after it; a failing key waits with growing pauses that only its own deadline, or a
//! reset, ends, and never for ever; lanes take turns, so that a noisy kind starves no other.
//! Takes the time as an argument and holds no clock.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

/// First pause of a failing key.
pub const BACKOFF_FIRST: Duration = Duration::from_millis(200);
/// Longest pause of a failing key: a repaired cause is noticed within this time.
pub const BACKOFF_LONGEST: Duration = Duration::from_secs(300);

/// A keyed queue with lanes. Times are durations since a fixed moment of the caller's.
#[derive(Debug)]
pub struct Queue<K, L> {
    keys: HashMap<K, Entry<L>>,
    lanes: BTreeMap<L, VecDeque<K>>,
    turn: VecDeque<L>,
    due: BTreeSet<(Duration, u64)>,
    by_ticket: HashMap<u64, K>,
    tickets: u64,
}

#[derive(Debug)]
struct Entry<L> {
    lane: L,
    state: State,
    failures: u32,
    /// Set while the key waits for a deadline.
    ticket: Option<(Duration, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing to do.
    Idle,
    /// In its lane.
    Ready,
    /// A pass is under way.
    Running,
    /// A pass is under way and something happened since it began.
    RunningDirty,
    /// Waiting for its deadline after a failure: events do not shorten it.
    BackingOff,
    /// Waiting for a deadline that an event may overtake.
    Later,
}

impl<K: Clone + Eq + Hash, L: Clone + Ord> Default for Queue<K, L> {
    fn default() -> Self {
        Self {
            keys: HashMap::new(),
            lanes: BTreeMap::new(),
            turn: VecDeque::new(),
            due: BTreeSet::new(),
            by_ticket: HashMap::new(),
            tickets: 0,
        }
    }
}

impl<K: Clone + Eq + Hash, L: Clone + Ord> Queue<K, L> {
    /// Something happened to this key.
    pub fn add(&mut self, key: &K, lane: &L) {
        match self.entry(key, lane).state {
            State::Idle | State::Later => self.make_ready(key),
            State::Running => self.set_state(key, State::RunningDirty),
            State::Ready | State::RunningDirty | State::BackingOff => {}
        }
    }

    /// Its cause changed (new desired state, new plugin): forget failures and look at once.
    pub fn reset(&mut self, key: &K, lane: &L) {
        let entry = self.entry(key, lane);
        entry.failures = 0;
        match entry.state {
            State::BackingOff => self.make_ready(key),
            _ => self.add(key, lane),
        }
    }

    /// The next key to look at; it counts as running until [`Queue::done`].
    pub fn next(&mut self, now: Duration) -> Option<K> {
        self.release_due(now);
        let lane = self.turn.pop_front()?;
        let keys = self.lanes.get_mut(&lane)?;
        let key = keys.pop_front()?;
        if keys.is_empty() {
            self.lanes.remove(&lane);
        } else {
            self.turn.push_back(lane);
        }
        self.set_state(&key, State::Running);
        Some(key)
    }

    /// The pass of this key ended well; look again after this time, if given.
    pub fn done(&mut self, key: &K, now: Duration, again_after: Option<Duration>) {
        let Some(entry) = self.keys.get_mut(key) else {
            return;
        };
        entry.failures = 0;
        match (entry.state, again_after) {
            (State::RunningDirty, _) => self.make_ready(key),
            (_, Some(after)) => self.wait(key, now + after, State::Later),
            (_, None) => self.set_state(key, State::Idle),
        }
    }

    /// The pass saw something old: look again at once, without counting a failure.
    pub fn again(&mut self, key: &K) {
        if self.keys.contains_key(key) {
            self.make_ready(key);
        }
    }

    /// The pass of this key failed: wait at least `at_least`, with growing pauses. Returns the
    /// pause. `spread` (0 to 1) moves it within ±20 %, so that many keys do not come at once.
    pub fn failed(
        &mut self,
        key: &K,
        now: Duration,
        at_least: Option<Duration>,
        spread: f64,
    ) -> Duration {
        let Some(entry) = self.keys.get_mut(key) else {
            return Duration::ZERO;
        };
        let doubled = BACKOFF_FIRST.saturating_mul(1 << entry.failures.min(16));
        entry.failures = entry.failures.saturating_add(1);
        let pause = doubled.min(BACKOFF_LONGEST).mul_f64(0.8 + 0.4 * spread.clamp(0.0, 1.0));
        let pause = pause.max(at_least.unwrap_or_default());
        self.wait(key, now + pause, State::BackingOff);
        pause
    }

    /// The key is of no interest any more. A pass under way ends without effect here.
    pub fn remove(&mut self, key: &K) {
        if let Some(entry) = self.keys.remove(key) {
            if let Some(ticket) = entry.ticket {
                self.due.remove(&ticket);
                self.by_ticket.remove(&ticket.1);
            }
            if let Some(keys) = self.lanes.get_mut(&entry.lane) {
                keys.retain(|k| k != key);
                if keys.is_empty() {
                    self.lanes.remove(&entry.lane);
                    self.turn.retain(|lane| *lane != entry.lane);
                }
            }
        }
    }

    /// When [`Queue::next`] may have something new although nothing was added.
    pub fn next_due(&self) -> Option<Duration> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Failures in a row of this key.
    pub fn failures(&self, key: &K) -> u32 {
        self.keys.get(key).map_or(0, |entry| entry.failures)
    }

    /// Keys that are ready and not yet taken.
    pub fn depth(&self) -> usize {
        self.lanes.values().map(VecDeque::len).sum()
    }

    /// Keys whose pass is under way.
    pub fn running(&self) -> usize {
        let running = |e: &&Entry<L>| matches!(e.state, State::Running | State::RunningDirty);
        self.keys.values().filter(running).count()
    }

    fn entry(&mut self, key: &K, lane: &L) -> &mut Entry<L> {
        self.keys.entry(key.clone()).or_insert_with(|| Entry {
            lane: lane.clone(),
            state: State::Idle,
            failures: 0,
            ticket: None,
        })
    }

    fn set_state(&mut self, key: &K, state: State) {
        if let Some(entry) = self.keys.get_mut(key) {
            entry.state = state;
            if let Some(ticket) = entry.ticket.take() {
                self.due.remove(&ticket);
                self.by_ticket.remove(&ticket.1);
            }
        }
    }

    fn make_ready(&mut self, key: &K) {
        self.set_state(key, State::Ready);
        let Some(entry) = self.keys.get(key) else {
            return;
        };
        let lane = self.lanes.entry(entry.lane.clone()).or_default();
        if lane.is_empty() {
            self.turn.push_back(entry.lane.clone());
        }
        lane.push_back(key.clone());
    }

    fn wait(&mut self, key: &K, at: Duration, state: State) {
        self.set_state(key, state);
        self.tickets += 1;
        let ticket = (at, self.tickets);
        if let Some(entry) = self.keys.get_mut(key) {
            entry.ticket = Some(ticket);
            self.due.insert(ticket);
            self.by_ticket.insert(ticket.1, key.clone());
        }
    }

    fn release_due(&mut self, now: Duration) {
        while let Some(&(at, ticket)) = self.due.first() {
            if at > now {
                return;
            }
            let Some(key) = self.by_ticket.get(&ticket).cloned() else {
                self.due.pop_first();
                continue;
            };
            self.make_ready(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn queue(keys: &[(&'static str, u8)]) -> Queue<&'static str, u8> {
        let mut queue = Queue::default();
        for (key, lane) in keys {
            queue.add(key, lane);
        }
        queue
    }

    #[test]
    fn never_runs_two_passes_of_one_key_and_events_during_a_pass_mean_one_more() {
        let mut queue = queue(&[("a", 0)]);
        assert_eq!(queue.next(MS(0)), Some("a"));
        for _ in 0..5 {
            queue.add(&"a", &0);
        }
        assert_eq!(queue.next(MS(0)), None, "it is running");
        queue.done(&"a", MS(1), None);
        assert_eq!(queue.next(MS(1)), Some("a"), "once more");
        queue.done(&"a", MS(2), None);
        assert_eq!(queue.next(MS(2)), None);
    }

    #[test]
    fn lanes_take_turns_however_long_one_is() {
        let mut queue = queue(&[("a1", 0), ("a2", 0), ("a3", 0), ("b1", 1)]);
        let order: Vec<_> = std::iter::from_fn(|| queue.next(MS(0))).collect();
        assert_eq!(order, ["a1", "b1", "a2", "a3"]);
    }

    #[test]
    fn a_failing_key_waits_longer_each_time_and_events_do_not_shorten_it() {
        let mut queue = queue(&[("a", 0)]);
        let mut now = MS(0);
        for expected in [200, 400, 800] {
            assert_eq!(queue.next(now), Some("a"));
            assert_eq!(queue.failed(&"a", now, None, 0.5), MS(expected));
            queue.add(&"a", &0);
            assert_eq!(queue.next(now), None, "an event does not overtake the pause");
            now += MS(expected);
        }
        assert_eq!(queue.next(now), Some("a"));
        queue.done(&"a", now, None);
        queue.add(&"a", &0);
        queue.next(now);
        assert_eq!(queue.failed(&"a", now, None, 0.5), MS(200), "success forgets failures");
    }

    #[test]
    fn a_new_cause_ends_the_pause() {
        let mut queue = queue(&[("a", 0)]);
        queue.next(MS(0));
        queue.failed(&"a", MS(0), Some(MS(60_000)), 0.5);
        queue.reset(&"a", &0);
        assert_eq!(queue.next(MS(0)), Some("a"));
        assert_eq!(queue.failures(&"a"), 0);
    }

    #[test]
    fn the_servers_wish_to_be_left_alone_is_honoured() {
        let mut queue = queue(&[("a", 0)]);
        queue.next(MS(0));
        assert_eq!(queue.failed(&"a", MS(0), Some(MS(5_000)), 0.5), MS(5_000));
        assert_eq!(queue.next(MS(4_999)), None);
        assert_eq!(queue.next_due(), Some(MS(5_000)));
        assert_eq!(queue.next(MS(5_000)), Some("a"));
    }

    #[test]
    fn an_event_overtakes_a_wish_to_look_again_later() {
        let mut queue = queue(&[("a", 0)]);
        queue.next(MS(0));
        queue.done(&"a", MS(0), Some(MS(1_000)));
        queue.add(&"a", &0);
        assert_eq!(queue.next(MS(1)), Some("a"));
        queue.done(&"a", MS(1), None);
        assert_eq!(queue.next(MS(2_000)), None, "the old deadline is gone");
    }

    #[test]
    fn a_removed_key_is_not_looked_at_again() {
        let mut queue = queue(&[("a", 0), ("b", 0), ("c", 0)]);
        queue.next(MS(0));
        queue.remove(&"a");
        queue.remove(&"b");
        queue.done(&"a", MS(0), Some(MS(1)));
        assert_eq!(queue.next(MS(10)), Some("c"));
        assert_eq!(queue.next(MS(10)), None);
    }

    #[test]
    fn the_pause_has_a_longest_length() {
        let mut queue = queue(&[("a", 0)]);
        let mut now = MS(0);
        for _ in 0..40 {
            queue.next(now);
            now += queue.failed(&"a", now, None, 1.0);
        }
        queue.next(now);
        assert_eq!(queue.failed(&"a", now, None, 0.5), BACKOFF_LONGEST);
    }
}

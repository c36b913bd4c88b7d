//! Maps that never grow past a number: the one that was used longest ago makes room.

use crate::identity::Digest;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;

/// Stands for an object, or for an object and something of it: 16 bytes whatever it is called.
pub type Id = [u8; 16];

/// The id of these parts, in this order.
pub fn id_of(parts: &[&str]) -> Id {
    let mut text = Vec::new();
    for part in parts {
        text.extend_from_slice(&(part.len() as u64).to_le_bytes());
        text.extend_from_slice(part.as_bytes());
    }
    let mut id = [0; 16];
    id.copy_from_slice(&Digest::of(&text).bytes()[..16]);
    id
}

/// At most so many entries.
#[derive(Clone, Debug)]
pub(super) struct Bounded<K, V> {
    at_most: usize,
    entries: HashMap<K, (V, u64)>,
    /// By when they were used last.
    order: BTreeMap<u64, K>,
    tick: u64,
}

impl<K: Eq + Hash + Clone, V> Bounded<K, V> {
    pub(super) fn new(at_most: usize) -> Self {
        Self { at_most, entries: HashMap::new(), order: BTreeMap::new(), tick: 0 }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(value, _)| value)
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let (value, tick) = self.entries.remove(key)?;
        self.order.remove(&tick);
        Some(value)
    }

    /// Sets it; what was used longest ago goes where there are too many.
    pub(super) fn set(&mut self, key: K, value: V) {
        self.remove(&key);
        self.tick += 1;
        self.order.insert(self.tick, key.clone());
        self.entries.insert(key, (value, self.tick));
        while self.entries.len() > self.at_most {
            let Some((_, oldest)) = self.order.pop_first() else { return };
            self.entries.remove(&oldest);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, (value, _))| (key, value))
    }
}

/// How often something happened within a time, for at most so many things.
#[derive(Clone, Debug)]
pub struct Rings {
    entries: Bounded<Id, VecDeque<u64>>,
    within_ms: u64,
    times: usize,
}

impl Rings {
    /// Of at most `at_most` things the last `times` times, each for `within_ms` milliseconds.
    pub fn new(at_most: usize, times: usize, within_ms: u64) -> Self {
        Self { entries: Bounded::new(at_most), within_ms, times }
    }

    /// It happened at this time (milliseconds since the epoch): how often within the time, this one
    /// included, and when it was first.
    pub fn note(&mut self, id: Id, at_ms: u64) -> (usize, u64) {
        let mut ring = self.entries.remove(&id).unwrap_or_default();
        ring.push_back(at_ms);
        while ring.len() > self.times
            || ring.front().is_some_and(|first| first + self.within_ms < at_ms)
        {
            ring.pop_front();
        }
        let told = (ring.len(), ring.front().copied().unwrap_or(at_ms));
        self.entries.set(id, ring);
        told
    }

    /// Everything, to be kept over a restart.
    pub fn dump(&self) -> Vec<(Id, Vec<u64>)> {
        let mut all: Vec<(Id, Vec<u64>)> =
            self.entries.iter().map(|(id, ring)| (*id, ring.iter().copied().collect())).collect();
        all.sort_by_key(|(id, times)| (times.last().copied(), *id));
        all
    }

    /// Goes on from what was kept; what is over by `now_ms` is left out.
    pub fn restore(&mut self, kept: Vec<(Id, Vec<u64>)>, now_ms: u64) {
        for (id, times) in kept {
            let within = |at: &u64| *at <= now_ms && at + self.within_ms >= now_ms;
            let mut ring: VecDeque<u64> = times.into_iter().filter(within).collect();
            while ring.len() > self.times {
                ring.pop_front();
            }
            if !ring.is_empty() {
                self.entries.set(id, ring);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_used_longest_ago_makes_room() {
        let mut map = Bounded::new(2);
        map.set("a", 1);
        map.set("b", 2);
        map.set("a", 3);
        map.set("c", 4);
        assert_eq!((map.get(&"a"), map.get(&"b"), map.get(&"c")), (Some(&3), None, Some(&4)));
        assert_eq!(map.remove(&"a"), Some(3));
        assert_eq!((map.len(), map.order.len()), (1, 1));
    }

    #[test]
    fn what_happened_is_counted_within_the_time_and_over_a_restart() {
        let mut rings = Rings::new(10, 4, 100);
        assert_eq!(rings.note([1; 16], 1000), (1, 1000));
        assert_eq!(rings.note([1; 16], 1050), (2, 1000));
        let mut next = Rings::new(10, 4, 100);
        next.restore(rings.dump(), 1120);
        assert_eq!(next.note([1; 16], 1120), (2, 1050));
        assert_eq!(next.note([1; 16], 5000), (1, 5000));
    }

    #[test]
    fn two_ways_to_part_a_text_are_two_ids() {
        assert_ne!(id_of(&["a", "bc"]), id_of(&["ab", "c"]));
    }

    proptest! {
        #[test]
        fn memory_stays_bounded_whatever_happens_to_however_many(
            seen in prop::collection::vec((0u16..500, 0u64..10_000), 1..600),
        ) {
            let mut rings = Rings::new(50, 8, 1_000);
            for (thing, at) in seen {
                rings.note(id_of(&[&thing.to_string()]), at);
                prop_assert!(rings.len() <= 50);
                prop_assert!(rings.entries.order.len() == rings.len());
                prop_assert!(rings.dump().iter().all(|(_, times)| times.len() <= 8));
            }
        }
    }
}

//! From the watches to the engine: what changed, without ever growing past what is watched.
//!
//! Watches put in, one reader takes out. A queue that a slow reader lets grow would be memory
//! without end, and a bounded channel would either stall a watch (and with it its kind) or drop.
//! So this is a set with an order: an object that is already waiting is not queued again, and the
//! size is at most the objects of interest plus the kinds. Nothing is lost by it, because an event
//! says *look again*, and the reader looks at the store, which has the latest.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;
use trimtab_core::identity::{Gvk, ObjectKey};

/// Something that the engine should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An object of interest may have changed, appeared, gone, or become unknown. The time is when
    /// the first change since the last such event arrived here.
    Changed(ObjectKey, Instant),
    /// The list of a kind (or of one namespace of it) has been read: its objects are known. Comes
    /// again after the kind was unknown for a while.
    Synced(Gvk),
    /// The watch of a kind is broken. What the store says is its last known state, or unknown.
    Degraded {
        /// Which kind.
        gvk: Gvk,
        /// What happened, for people.
        reason: Arc<str>,
    },
    /// The watch of a kind works again.
    Recovered(Gvk),
    /// The server serves other kinds than before.
    KindsChanged,
}

/// The reading end. There is one.
#[derive(Debug)]
pub struct Events {
    queue: Arc<Queue>,
}

impl Events {
    /// The next event, oldest first; `None` once the store is gone.
    ///
    /// Safe to drop before it is ready: nothing is lost.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            let notified = self.queue.wake.notified();
            if let Some(event) = self.queue.lock().pop() {
                return Some(event);
            }
            if self.queue.lock().closed {
                return None;
            }
            notified.await;
        }
    }

    /// The next event, if one is waiting.
    pub fn try_next(&mut self) -> Option<Event> {
        self.queue.lock().pop()
    }
}

/// The writing end.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    order: VecDeque<Slot>,
    changed: HashMap<ObjectKey, Instant>,
    synced: HashSet<Gvk>,
    health: HashMap<Gvk, Result<(), Arc<str>>>,
    kinds: bool,
    closed: bool,
}

#[derive(Debug)]
enum Slot {
    Changed(ObjectKey),
    Synced(Gvk),
    Health(Gvk),
    Kinds,
}

impl Queue {
    /// Both ends.
    pub(crate) fn new() -> (Arc<Self>, Events) {
        let queue = Arc::new(Self::default());
        (queue.clone(), Events { queue })
    }

    /// An object may have changed; `at` is when that arrived here.
    pub(crate) fn changed(&self, key: &ObjectKey, at: Instant) {
        self.put(|waiting| {
            if !waiting.changed.contains_key(key) {
                waiting.changed.insert(key.clone(), at);
                waiting.order.push_back(Slot::Changed(key.clone()));
            }
        });
    }

    /// A kind's list has been read.
    pub(crate) fn synced(&self, gvk: &Gvk) {
        self.put(|waiting| {
            if waiting.synced.insert(gvk.clone()) {
                waiting.order.push_back(Slot::Synced(gvk.clone()));
            }
        });
    }

    /// A kind's watch works (`Ok`) or is broken. Of several that wait only the last is told.
    pub(crate) fn health(&self, gvk: &Gvk, health: Result<(), Arc<str>>) {
        self.put(|waiting| {
            if waiting.health.insert(gvk.clone(), health).is_none() {
                waiting.order.push_back(Slot::Health(gvk.clone()));
            }
        });
    }

    /// Discovery answers differently from before.
    pub(crate) fn kinds_changed(&self) {
        self.put(|waiting| {
            if !std::mem::replace(&mut waiting.kinds, true) {
                waiting.order.push_back(Slot::Kinds);
            }
        });
    }

    /// Nothing will come any more.
    pub(crate) fn close(&self) {
        self.put(|waiting| waiting.closed = true);
    }

    fn put(&self, change: impl FnOnce(&mut Waiting)) {
        change(&mut self.lock());
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Every change leaves the value whole, so a panic elsewhere does not spoil it.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn pop(&mut self) -> Option<Event> {
        Some(match self.order.pop_front()? {
            Slot::Changed(key) => {
                let at = self.changed.remove(&key).unwrap_or_else(Instant::now);
                Event::Changed(key, at)
            }
            Slot::Synced(gvk) => {
                self.synced.remove(&gvk);
                Event::Synced(gvk)
            }
            Slot::Health(gvk) => match self.health.remove(&gvk) {
                Some(Err(reason)) => Event::Degraded { gvk, reason },
                _ => Event::Recovered(gvk),
            },
            Slot::Kinds => {
                self.kinds = false;
                Event::KindsChanged
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_core::identity::GroupKind;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new(GroupKind::new("", "Pod"), "s", name)
    }

    #[test]
    fn a_slow_reader_finds_each_object_once_in_order_with_the_first_time() {
        let (queue, mut events) = Queue::new();
        let first = Instant::now();
        for round in 0..1000 {
            queue.changed(&key("a"), first + std::time::Duration::from_secs(round));
            queue.changed(&key("b"), first);
        }
        assert_eq!(events.try_next(), Some(Event::Changed(key("a"), first)));
        assert_eq!(events.try_next(), Some(Event::Changed(key("b"), first)));
        assert_eq!(events.try_next(), None);
        queue.changed(&key("a"), first);
        assert_eq!(events.try_next(), Some(Event::Changed(key("a"), first)));
    }

    #[test]
    fn of_a_kinds_health_only_the_latest_is_told() {
        let (queue, mut events) = Queue::new();
        let gvk = Gvk::from_api_version("v1", "Pod");
        queue.health(&gvk, Err("down".into()));
        queue.synced(&gvk);
        queue.health(&gvk, Ok(()));
        queue.kinds_changed();
        queue.kinds_changed();
        let all: Vec<Event> = std::iter::from_fn(|| events.try_next()).collect();
        assert_eq!(all, [Event::Recovered(gvk.clone()), Event::Synced(gvk), Event::KindsChanged]);
    }

    #[tokio::test]
    async fn the_reader_wakes_for_an_event_and_for_the_end() {
        let (queue, mut events) = Queue::new();
        let reader = tokio::spawn(async move { (events.next().await, events.next().await) });
        tokio::task::yield_now().await;
        queue.kinds_changed();
        tokio::task::yield_now().await;
        queue.close();
        assert_eq!(reader.await.unwrap(), (Some(Event::KindsChanged), None));
    }
}

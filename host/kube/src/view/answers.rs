//! Answers about one object: reads of it alone, and our own writes.
//!
//! A write of ours holds back the events of its object until its answer is here, so that an echo
//! that overtakes the answer is recognised as one.

use super::{View, Writing};
use crate::decode::meta;
use crate::entry::Entry;
use std::sync::Arc;
use std::time::Instant;
use trimtab_core::identity::ObjectKey;
use trimtab_core::object::Live;

impl View {
    /// What is known of it now, for [`View::read`] later.
    pub(crate) fn asked(&self, key: &ObjectKey) -> Option<Arc<str>> {
        let state = self.lock();
        state.entry(key.namespace_str(), &key.name)?.at().cloned()
    }

    /// Whether it still waits for its first answer.
    pub(crate) fn is_pending(&self, key: &ObjectKey) -> bool {
        let state = self.lock();
        state.entry(key.namespace_str(), &key.name).is_some_and(Entry::is_pending)
    }

    /// The answer to a read of this object; `None`: it is not there.
    pub(crate) fn read(&self, key: &ObjectKey, answer: Option<&[u8]>, asked: Option<&Arc<str>>) {
        let mut state = self.lock();
        let lists = state.lists;
        let sight = match answer {
            None => None,
            Some(object) => match self.look(&mut state, object, meta(object)) {
                (_, Some(sight)) => Some(sight),
                _ => return,
            },
        };
        let (namespace, name) = (key.namespace_str(), &key.name);
        if state.change(namespace, name, |entry| entry.read(sight, asked, lists)) {
            self.emit(&mut state, namespace, name, Instant::now());
        }
    }

    /// A read of this object failed.
    pub(crate) fn read_failed(&self, key: &ObjectKey, reason: &Arc<str>) {
        let mut state = self.lock();
        let (namespace, name) = (key.namespace_str(), &key.name);
        if state.change(namespace, name, |entry| entry.read_failed(reason.clone())) {
            self.emit(&mut state, namespace, name, Instant::now());
        }
    }

    /// A write of ours begins: hold events of this object back.
    pub(crate) fn write_begins(&self, key: &ObjectKey) {
        self.lock().writing.entry(key.clone()).or_default().count += 1;
    }

    /// The answer to our write: the object as it is now.
    pub(crate) fn written(&self, key: &ObjectKey, object: &[u8]) {
        let mut state = self.lock();
        let Ok(meta) = meta(object) else { return };
        let live = meta.live(&self.gvk, object);
        let version = live.resource_version.clone();
        state.change(key.namespace_str(), &key.name, |entry| {
            entry.written(live);
            false
        });
        let same =
            state.entry(key.namespace_str(), &key.name).and_then(Entry::at) == Some(&version);
        if same && let Some(writing) = state.writing.get_mut(key) {
            writing.held = None;
        }
    }

    /// The answer to our delete, or to anything that says that this UID is gone.
    pub(crate) fn gone(&self, key: &ObjectKey, uid: &Arc<str>) {
        let mut state = self.lock();
        let lists = state.lists;
        state.change(key.namespace_str(), &key.name, |entry| {
            entry.deleted_by_us(uid, lists);
            false
        });
        let absent = state
            .entry(key.namespace_str(), &key.name)
            .is_some_and(|entry| matches!(entry.live(), Live::Absent));
        if absent && let Some(writing) = state.writing.get_mut(key) {
            writing.held = None;
        }
    }

    /// A write of ours ended, however it did: let events through.
    pub(crate) fn write_ends(&self, key: &ObjectKey) {
        let mut state = self.lock();
        let Some(writing) = state.writing.get_mut(key) else { return };
        writing.count -= 1;
        if writing.count == 0
            && let Some(Writing { held: Some(at), .. }) = state.writing.remove(key)
        {
            self.queue.changed(key, at);
        }
    }
}

//! Answers a plugin's reads from the store, within its grant, and remembers what was read.

use std::sync::{Arc, Mutex, PoisonError};
use trimtab_core::grant::Power;
use trimtab_core::identity::{GroupKind, Gvk, ObjectKey};
use trimtab_core::object::{Live, LiveObject};
use trimtab_core::plugin::PluginIdentity;
use trimtab_core::reads::{Read, Reads, Seen};
use trimtab_kube::{Lookup, Store};
use trimtab_wasm::{LookupError, Lookups};

/// Reads what the store already holds: objects that a source declares, and kinds that are watched
/// because a plugin's manifest names them. Made for one pass.
pub(crate) struct FromStore {
    store: Store,
    power: Arc<Power>,
    reads: Mutex<Reads>,
}

impl FromStore {
    pub(crate) fn new(store: Store, power: Arc<Power>) -> Self {
        Self { store, power, reads: Mutex::default() }
    }

    /// What was read, once the pass is over.
    pub(super) fn take_reads(&self) -> Reads {
        std::mem::take(&mut *self.reads.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, read: Read, seen: Seen) {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner).add(read, seen);
    }

    fn check(&self, key: &ObjectKey) -> Result<(), LookupError> {
        if self.power.may_read(key) { Ok(()) } else { Err(LookupError::Denied) }
    }
}

impl Lookups for FromStore {
    fn get(
        &self,
        _: &PluginIdentity,
        kind: &GroupKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<[u8]>>, LookupError> {
        let key = ObjectKey::new(kind.clone(), namespace, name);
        self.check(&key)?;
        let live = object(&self.store, &key);
        self.note(Read::Object(key), Seen::of(&live));
        match live {
            Live::Present(object) => Ok(Some(object.json)),
            Live::Absent => Ok(None),
            Live::Unknown(reason) => Err(LookupError::Unavailable(reason.to_string())),
        }
    }

    fn find(
        &self,
        _: &PluginIdentity,
        kind: &GroupKind,
        namespace: &str,
    ) -> Result<Vec<Arc<[u8]>>, LookupError> {
        self.check(&ObjectKey::new(kind.clone(), namespace, ""))?;
        let found = all(&self.store, kind, namespace);
        self.note(Read::All(kind.clone(), namespace.into()), Seen::of_all(found.as_deref()));
        match found {
            Ok(objects) => Ok(objects.into_iter().map(|object| object.json).collect()),
            Err(reason) => Err(LookupError::Unavailable(format!("{kind}: {reason}"))),
        }
    }
}

/// What is known now of something that a plugin read.
pub(super) fn seen(store: &Store, read: &Read) -> Seen {
    match read {
        Read::Object(key) => Seen::of(&object(store, key)),
        Read::All(kind, namespace) => Seen::of_all(all(store, kind, namespace).as_deref()),
    }
}

fn object(store: &Store, key: &ObjectKey) -> Live {
    match served(store, &key.group_kind) {
        Ok(gvk) => store.live(key, &gvk),
        Err(reason) => Live::Unknown(reason),
    }
}

fn all(store: &Store, kind: &GroupKind, namespace: &str) -> Result<Vec<LiveObject>, Arc<str>> {
    store.all(&served(store, kind)?, namespace)
}

/// The version in which a kind is read.
fn served(store: &Store, kind: &GroupKind) -> Result<Gvk, Arc<str>> {
    match store.kinds().as_ref().map(|kinds| kinds.preferred(kind)) {
        Some(Lookup::Found(served)) => Ok(served.gvk.clone()),
        _ => Err(format!("the API server serves no {kind} now").into()),
    }
}

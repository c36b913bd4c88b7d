//! Answers a plugin's reads from the store, within its grant.

use std::sync::Arc;
use trimtab_core::grant::Power;
use trimtab_core::identity::{GroupKind, ObjectKey};
use trimtab_core::object::Live;
use trimtab_core::plugin::PluginIdentity;
use trimtab_kube::{Lookup, Store};
use trimtab_wasm::{LookupError, Lookups};

/// Reads what the store already holds: kinds that a source declares.
pub(super) struct FromStore {
    store: Store,
    power: Arc<Power>,
}

impl FromStore {
    pub(super) fn new(store: Store, power: Arc<Power>) -> Self {
        Self { store, power }
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
        if !self.power.may_read(&key) {
            return Err(LookupError::Denied);
        }
        let kinds = self.store.kinds();
        let served = kinds.as_ref().map(|kinds| kinds.preferred(kind));
        let Some(Lookup::Found(served)) = served else {
            return Err(LookupError::Unavailable(format!("the API server serves no {kind} now")));
        };
        match self.store.live(&key, &served.gvk) {
            Live::Present(object) => Ok(Some(object.json)),
            Live::Absent => Ok(None),
            Live::Unknown(reason) => Err(LookupError::Unavailable(reason.to_string())),
        }
    }
}

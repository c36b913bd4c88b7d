//! What the cluster's schema says of each kind, in the form that plugins read: made once for a
//! kind, and again when a definition changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use trimtab_core::identity::Gvk;
use trimtab_kube::Store;

/// How long "the server has no schema for this kind" is believed: a CRD's schema is published
/// some time after the kind is served.
const ABSENCE_BELIEVED: Duration = Duration::from_secs(3);

/// Facts, and when they were made.
type Known = HashMap<Gvk, (Arc<[u8]>, Instant)>;

/// Facts by kind.
pub(crate) struct FactsCache {
    store: Store,
    known: Mutex<Known>,
    /// One document is fetched and read at a time, whoever needs it.
    making: tokio::sync::Mutex<()>,
}

impl FactsCache {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, known: Mutex::default(), making: tokio::sync::Mutex::default() }
    }

    /// The facts; empty where the server gives none, which plugins read as "nothing is known".
    pub(crate) async fn get(&self, gvk: &Gvk) -> Arc<[u8]> {
        if let Some(facts) = self.current(gvk) {
            return facts;
        }
        let _making = self.making.lock().await;
        if let Some(facts) = self.current(gvk) {
            return facts;
        }
        let facts = self.make(gvk).await.unwrap_or_else(|reason| {
            tracing::debug!("no schema facts for {gvk}: {reason}");
            Arc::default()
        });
        self.lock().insert(gvk.clone(), (facts.clone(), Instant::now()));
        facts
    }

    fn current(&self, gvk: &Gvk) -> Option<Arc<[u8]>> {
        let known = self.lock();
        let (facts, at) = known.get(gvk)?;
        (!facts.is_empty() || at.elapsed() < ABSENCE_BELIEVED).then(|| facts.clone())
    }

    /// A definition changed: everything is asked again.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    async fn make(&self, gvk: &Gvk) -> Result<Arc<[u8]>, String> {
        let server = self.store.server();
        let index = server.schema_index().await.map_err(|error| error.to_string())?;
        let address = index.address(gvk).ok_or("the server has no schema document for it")?;
        let document = server.schema(address).await.map_err(|error| error.to_string())?;
        let document = trimtab_json::parse(&document).map_err(|error| error.to_string())?;
        trimtab_compare::facts::build(&document, &gvk.group, &gvk.version, &gvk.kind)
            .map(Into::into)
            .map_err(|error| error.to_string())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What the cluster's schema says of each kind, in the form that plugins read: made once for a
//! kind, and again when the server's own description of it changed, whoever changed it.
//!
//! The server's index of schema documents has a hash for each group-version. It is looked at every
//! [`LOOK_EVERY`], and oftener while a definition is known to be changing; only a document whose
//! hash is another is read again. What cannot be read leaves the facts as they are.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use trimtab_core::identity::Gvk;
use trimtab_json::Value;
use trimtab_kube::Store;

/// How often the index is looked at: some 10 KB, and a CRD's schema is in force in the API server
/// a second after it was changed.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How often, and how long, after a definition or what the server serves has changed.
const LOOK_SOON: Duration = Duration::from_millis(500);
const SOON_LASTS: Duration = Duration::from_secs(10);
/// How often when the index could not be read.
const LOOK_AFTER_FAILURE: Duration = Duration::from_secs(30);

/// What is known of one kind.
struct Known {
    facts: Arc<[u8]>,
    /// Of the document that they are made of; `None`: there was none, or it could not be read.
    address: Option<String>,
}

/// Facts by kind.
pub(crate) struct FactsCache {
    store: Store,
    known: Mutex<HashMap<Gvk, Known>>,
    /// One document is fetched and read at a time, whoever needs it.
    making: tokio::sync::Mutex<()>,
    changing: Notify,
}

impl FactsCache {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            known: Mutex::default(),
            making: tokio::sync::Mutex::default(),
            changing: Notify::new(),
        }
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
        let made = match self.store.server().schema_index().await {
            Ok(index) => match index.address(gvk) {
                Some(address) => self.make(address, std::slice::from_ref(gvk)).await,
                None => Err("the server has no schema document for it".to_owned()),
            },
            Err(error) => Err(error.to_string()),
        };
        if let Err(reason) = made {
            tracing::debug!("no schema facts for {gvk}: {reason}");
            let none = Known { facts: Arc::default(), address: None };
            self.lock().entry(gvk.clone()).or_insert(none);
        }
        self.current(gvk).unwrap_or_default()
    }

    /// A definition is changing: the index is looked at soon, and again for a while.
    pub(crate) fn changing(&self) {
        self.changing.notify_one();
    }

    /// Looks for changed documents until nobody listens; tells the kinds that they describe, once
    /// their facts are made anew.
    pub(super) fn follow(self: &Arc<Self>) -> mpsc::Receiver<Vec<Gvk>> {
        let (tell, told) = mpsc::channel(16);
        let facts = self.clone();
        tokio::spawn(async move {
            let mut soon_until = Instant::now();
            let mut pause = LOOK_EVERY;
            loop {
                tokio::select! {
                    () = tell.closed() => return,
                    () = facts.changing.notified() => {
                        soon_until = Instant::now() + SOON_LASTS;
                        pause = LOOK_SOON;
                        continue;
                    }
                    () = tokio::time::sleep(pause) => {}
                }
                pause = if Instant::now() < soon_until { LOOK_SOON } else { LOOK_EVERY };
                match facts.refresh().await {
                    Ok(changed) if changed.is_empty() => {}
                    Ok(changed) => {
                        if tell.send(changed).await.is_err() {
                            return;
                        }
                    }
                    Err(reason) => {
                        tracing::debug!("schemas cannot be looked at, facts stay: {reason}");
                        pause = LOOK_AFTER_FAILURE;
                    }
                }
            }
        });
        told
    }

    /// Makes the facts of every known kind anew whose document is another now. The kinds whose
    /// document changed; other kinds are not touched.
    async fn refresh(&self) -> Result<Vec<Gvk>, String> {
        if self.lock().is_empty() {
            return Ok(Vec::new());
        }
        let index = self.store.server().schema_index().await.map_err(|it| it.to_string())?;
        let mut outdated: BTreeMap<String, Vec<Gvk>> = BTreeMap::new();
        for (gvk, known) in self.lock().iter() {
            // A document that is not listed now says nothing: its kinds keep what is known.
            let Some(address) = index.address(gvk) else { continue };
            if known.address.as_deref() != Some(address) {
                outdated.entry(address.to_owned()).or_default().push(gvk.clone());
            }
        }
        let mut changed = Vec::new();
        for (address, kinds) in outdated {
            let _making = self.making.lock().await;
            match self.make(&address, &kinds).await {
                Ok(()) => changed.extend(kinds),
                Err(reason) => tracing::debug!("{address} cannot be read, facts stay: {reason}"),
            }
        }
        Ok(changed)
    }

    /// Reads one document and makes the facts of these kinds, all of its group-version.
    async fn make(&self, address: &str, kinds: &[Gvk]) -> Result<(), String> {
        let document =
            self.store.server().schema(address).await.map_err(|error| error.to_string())?;
        let document = trimtab_json::parse(&document).map_err(|error| error.to_string())?;
        let made = kinds.iter().map(|gvk| (gvk.clone(), build(&document, gvk))).collect::<Vec<_>>();
        let mut known = self.lock();
        for (gvk, facts) in made {
            known.insert(gvk, Known { facts, address: Some(address.to_owned()) });
        }
        Ok(())
    }

    fn current(&self, gvk: &Gvk) -> Option<Arc<[u8]>> {
        self.lock().get(gvk).map(|known| known.facts.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Gvk, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn build(document: &Value<'_>, gvk: &Gvk) -> Arc<[u8]> {
    match trimtab_compare::facts::build(document, &gvk.group, &gvk.version, &gvk.kind) {
        Ok(facts) => facts.into(),
        Err(error) => {
            tracing::debug!("no schema facts for {gvk}: {error}");
            Arc::default()
        }
    }
}

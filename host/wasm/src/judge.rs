//! The core's port `Judge`, served by a plugin in its sandbox.
//!
//! A call runs on a blocking thread, so that a guest that uses up its time never holds a runtime
//! worker; a turn is taken first, so that the pool is never exhausted. A cancelled call ends by
//! itself at its deadline and keeps its turn until then.

use crate::instance::Instance;
use crate::limits::TURN_WAIT;
use crate::{LookupError, Lookups, Plugin};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use trimtab_core::decision::{Comparison, Difference, Verdict};
use trimtab_core::identity::GroupKind;
use trimtab_core::plugin::PluginIdentity;
use trimtab_core::ports::{Judge, PluginFault};
use trimtab_core::redact::is_sensitive;
use trimtab_core::snapshot::Snapshot;

/// A plugin together with what its reads are answered from: for one pass over one snapshot.
#[derive(Clone)]
pub struct Judgement {
    plugin: Plugin,
    lookups: Arc<dyn Lookups>,
    witness: Arc<Witness>,
    /// The instance that compared, until it decides or the pass ends.
    kept: Arc<Mutex<Option<Instance>>>,
}

/// Stands between the plugin and its reads, and remembers which Secrets were handed over.
struct Witness {
    inner: Arc<dyn Lookups>,
    secrets: Mutex<Vec<Arc<[u8]>>>,
}

impl Lookups for Witness {
    fn get(
        &self,
        plugin: &PluginIdentity,
        kind: &GroupKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<[u8]>>, LookupError> {
        let found = self.inner.get(plugin, kind, namespace, name)?;
        if let (true, Some(json)) = (is_sensitive(kind), &found) {
            self.secrets.lock().unwrap_or_else(PoisonError::into_inner).push(json.clone());
        }
        Ok(found)
    }

    fn find(
        &self,
        plugin: &PluginIdentity,
        kind: &GroupKind,
        namespace: &str,
    ) -> Result<Vec<Arc<[u8]>>, LookupError> {
        let found = self.inner.find(plugin, kind, namespace)?;
        if is_sensitive(kind) {
            let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
            secrets.extend(found.iter().cloned());
        }
        Ok(found)
    }
}

impl Judgement {
    pub(crate) fn new(plugin: Plugin, lookups: Arc<dyn Lookups>) -> Self {
        let witness = Arc::new(Witness { inner: lookups, secrets: Mutex::default() });
        Self { plugin, lookups: witness.clone(), witness, kept: Arc::default() }
    }

    /// The plugin that answers.
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    async fn on_a_blocking_thread<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Plugin, &Arc<dyn Lookups>) -> Result<T, PluginFault> + Send + 'static,
    ) -> Result<T, PluginFault> {
        let Self { plugin, lookups, .. } = self.clone();
        on_a_blocking_thread(&self.plugin, move || run(&plugin, &lookups)).await
    }
}

/// Runs a call of this plugin in its turn.
pub(crate) async fn on_a_blocking_thread<T: Send + 'static>(
    plugin: &Plugin,
    run: impl FnOnce() -> Result<T, PluginFault> + Send + 'static,
) -> Result<T, PluginFault> {
    let (own, all) = plugin.turns();
    let turns = (turn(own).await?, turn(all).await?);
    let answer = tokio::task::spawn_blocking(move || {
        let _turns = turns;
        run()
    });
    answer.await.map_err(|error| {
        PluginFault::Unavailable(if error.is_panic() {
            "the host failed while it ran the plugin; please report this with the host's log".into()
        } else {
            "the host is shutting down".into()
        })
    })?
}

impl Judge for Judgement {
    async fn compare(&self, snapshot: &Snapshot) -> Result<Comparison, PluginFault> {
        let (snapshot, place) = (snapshot.clone(), self.kept.clone());
        self.on_a_blocking_thread(move |plugin, lookups| {
            let (comparison, kept) = plugin.begin(&snapshot, lookups)?;
            *place.lock().unwrap_or_else(PoisonError::into_inner) = kept;
            Ok(comparison)
        })
        .await
    }

    async fn decide(
        &self,
        snapshot: &Snapshot,
        differences: &[Difference],
    ) -> Result<Verdict, PluginFault> {
        let (snapshot, differences) = (snapshot.clone(), differences.to_vec());
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.on_a_blocking_thread(move |plugin, lookups| {
            plugin.end(kept, &snapshot, &differences, lookups)
        })
        .await
    }

    fn secrets_read(&self) -> Vec<Arc<[u8]>> {
        self.witness.secrets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl std::fmt::Debug for Judgement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Judgement").field(&self.plugin).finish()
    }
}

async fn turn(turns: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, PluginFault> {
    match tokio::time::timeout(TURN_WAIT, turns.clone().acquire_owned()).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_)) => Err(PluginFault::Unavailable("the host is shutting down".into())),
        Err(_) => Err(PluginFault::Unavailable(format!(
            "no turn came free within {TURN_WAIT:?}: other calls use up their time"
        ))),
    }
}

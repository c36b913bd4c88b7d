//! Inventories in the cluster: reading all of them, and writing the shards that changed.
//!
//! Used by the running host (`engine/made.rs`) and by `trimtab source remove`. Every write is a
//! `Change` of the gate's and carries the version that was read, so that two who write do not
//! overwrite each other.

use std::collections::BTreeMap;
use std::sync::Arc;
use trimtab_core::gate;
use trimtab_core::inventory::{self, Inventory, Place};
use trimtab_core::object::LiveObject;
use trimtab_core::ports::{ApplyError, Cluster as _, Written};
use trimtab_kube::{ShardObject, Store, Writer};

/// The namespace of inventories where nothing else is said.
pub(crate) const NAMESPACE: &str = "trimtab-system";

/// One source's inventory, and where its shards lie.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) inventory: Inventory,
    /// By shard: its ConfigMap as last read or written.
    pub(crate) lies: BTreeMap<usize, LiveObject>,
    /// Why it cannot be used.
    pub(crate) corrupt: Option<String>,
}

impl Kept {
    pub(crate) fn new(source: &Arc<str>) -> Self {
        Self { inventory: Inventory::new(source), lies: BTreeMap::new(), corrupt: None }
    }
}

/// Inventories by source.
pub(crate) type Inventories = BTreeMap<Arc<str>, Kept>;

/// Reads every inventory in this namespace.
///
/// # Errors
/// They could not be listed. One that is not understood is among the answers, and says so.
pub(crate) async fn read(store: &Store, namespace: &str) -> Result<Inventories, String> {
    let shards = store.shards(namespace).await.map_err(|why| {
        format!(
            "the inventory in namespace {namespace} cannot be read: {why}; RBAC has to allow there: apiGroups: [\"\"], resources: [configmaps], verbs: [create, get, list, patch]"
        )
    })?;
    Ok(sorted(namespace, shards))
}

fn sorted(namespace: &str, shards: Vec<ShardObject>) -> Inventories {
    let namespace: Arc<str> = namespace.into();
    let mut by_source: BTreeMap<Arc<str>, Vec<(usize, ShardObject)>> = BTreeMap::new();
    for shard in shards {
        match inventory::heading(&shard.text) {
            Ok((source, index)) if Place::of(&namespace, &source, index).name == shard.name => {
                by_source.entry(source).or_default().push((index, shard));
            }
            Ok((source, index)) => tracing::warn!(
                "ConfigMap {namespace}/{} says that it is shard {index} of source {source}, and that has another name: it is left aside",
                shard.name
            ),
            Err(error) => {
                tracing::error!("ConfigMap {namespace}/{}: {error}", shard.name);
                // Whose it is, its name says; what it says is lost.
                if let Some((source, index)) = by_name(&shard.name) {
                    by_source.entry(source).or_default().push((index, shard));
                }
            }
        }
    }
    by_source.into_iter().map(|(source, shards)| (source.clone(), kept(&source, shards))).collect()
}

fn kept(source: &Arc<str>, shards: Vec<(usize, ShardObject)>) -> Kept {
    let texts: Vec<(usize, &[u8])> =
        shards.iter().map(|(index, shard)| (*index, &*shard.text)).collect();
    let read = Inventory::read(source, &texts);
    let lies = shards.iter().map(|(index, shard)| (*index, shard.live.clone())).collect();
    match read {
        Ok(inventory) => Kept { inventory, lies, corrupt: None },
        Err(error) => {
            Kept { inventory: Inventory::new(source), lies, corrupt: Some(error.to_string()) }
        }
    }
}

fn by_name(name: &str) -> Option<(Arc<str>, usize)> {
    let (source, index) = name.strip_prefix("trimtab-inventory-")?.rsplit_once('-')?;
    Some((source.into(), index.parse().ok()?))
}

/// A shard that is to be written.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) source: Arc<str>,
    pub(crate) index: usize,
    pub(crate) text: Vec<u8>,
    pub(crate) seen: Option<LiveObject>,
}

/// Why a shard was not written.
#[derive(Clone, Debug)]
pub(crate) enum NotWritten {
    /// Somebody else wrote it meanwhile: it has to be read again.
    Moved,
    /// The server refused it, or could not be asked.
    Failed(String),
}

/// Writes one shard, and makes the namespace where that is missing.
pub(crate) async fn write(
    writer: &Writer,
    namespace: &Arc<str>,
    shard: &Shard,
) -> Result<LiveObject, NotWritten> {
    let place = Place::of(namespace, &shard.source, shard.index);
    let change = gate::keep(&place, &shard.text, shard.seen.as_ref());
    let written = match writer.write(&change).await {
        Err(ApplyError::NotYet(_)) => {
            home(writer, namespace).await?;
            writer.write(&change).await
        }
        other => other,
    };
    match written {
        Ok(Written::Object(json)) => LiveObject::read(json)
            .ok_or_else(|| NotWritten::Failed("the API server's answer does not decode".into())),
        Ok(Written::Deleted) => Err(NotWritten::Failed("it was deleted".into())),
        Err(ApplyError::Stale(_)) => Err(NotWritten::Moved),
        Err(error) => Err(NotWritten::Failed(format!(
            "the inventory {} cannot be written: {error}",
            place.key()
        ))),
    }
}

async fn home(writer: &Writer, namespace: &str) -> Result<(), NotWritten> {
    match writer.write(&gate::home(namespace)).await {
        // Somebody else made it.
        Ok(_) | Err(ApplyError::Stale(_)) => Ok(()),
        Err(error) => Err(NotWritten::Failed(format!(
            "namespace {namespace}, where the inventory is kept, is not there and cannot be made: {error}; make it, or name another with --inventory-namespace"
        ))),
    }
}

/// Takes away all ConfigMaps of a source.
///
/// # Errors
/// One could not be deleted.
pub(crate) async fn discard(
    writer: &Writer,
    namespace: &Arc<str>,
    source: &str,
    kept: &Kept,
) -> anyhow::Result<()> {
    // The first shard counts the others: it goes last.
    for (index, live) in kept.lies.iter().rev() {
        let place = Place::of(namespace, source, *index);
        match writer.write(&gate::discard(&place, live)).await {
            Ok(_) => {}
            Err(error) => anyhow::bail!("{} cannot be deleted: {error}", place.key()),
        }
    }
    Ok(())
}

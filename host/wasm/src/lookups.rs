//! The port behind the import `lookup`: reads of related objects, served by the host.

use std::sync::Arc;
use trimtab_core::identity::GroupKind;
use trimtab_core::plugin::PluginIdentity;

/// Why a read gave no answer. Never the same as an absent object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The grant does not allow this read.
    #[error("the grant does not allow this read")]
    Denied,
    /// The host cannot say at present, and why: the kind is not synced, or its list is forbidden.
    #[error("{0}")]
    Unavailable(String),
}

/// Answers a plugin's reads from what the host already holds.
///
/// # Guarantees
/// Asked only for kinds that the plugin's manifest declares, and only within the call's limits.
///
/// # Assumptions
/// Answers at once, from memory: a guest's deadline does not interrupt a host call.
pub trait Lookups: Send + Sync {
    /// The object as JSON text; `None`: it is known to be absent. The namespace is empty for a
    /// cluster-scoped object.
    ///
    /// # Errors
    /// The read is not granted, or the host does not know.
    fn get(
        &self,
        plugin: &PluginIdentity,
        kind: &GroupKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<[u8]>>, LookupError>;

    /// Every object of this kind in this namespace (empty for a cluster-scoped kind) as JSON text,
    /// in the order of their names.
    ///
    /// # Errors
    /// The read is not granted, or the host does not know all of them.
    fn find(
        &self,
        plugin: &PluginIdentity,
        kind: &GroupKind,
        namespace: &str,
    ) -> Result<Vec<Arc<[u8]>>, LookupError>;
}

/// Knows nothing and says so: where nothing is granted.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLookups;

impl Lookups for NoLookups {
    fn get(
        &self,
        _: &PluginIdentity,
        _: &GroupKind,
        _: &str,
        _: &str,
    ) -> Result<Option<Arc<[u8]>>, LookupError> {
        Err(LookupError::Denied)
    }

    fn find(
        &self,
        _: &PluginIdentity,
        _: &GroupKind,
        _: &str,
    ) -> Result<Vec<Arc<[u8]>>, LookupError> {
        Err(LookupError::Denied)
    }
}

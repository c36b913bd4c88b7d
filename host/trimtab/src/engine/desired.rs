//! What is desired now: the last good revision of the source, placed by discovery.

use crate::config::SourceConfig;
use std::collections::HashMap;
use std::sync::Arc;
use trimtab_core::denial::{self, Accounts};
use trimtab_core::identity::{GroupKind, Gvk, ObjectKey};
use trimtab_core::object::{Desired, Manifest, Revision};
use trimtab_core::placing::{self, PlacingError, Scope};
use trimtab_kube::{Kinds, Lookup};

/// Objects by identity, and those whose kind the API server does not serve (yet).
#[derive(Default)]
pub(crate) struct DesiredState {
    pub(crate) objects: HashMap<ObjectKey, Arc<Desired>>,
    pub(crate) unplaced: Vec<Unplaced>,
    /// Service accounts among the objects.
    pub(crate) accounts: Arc<Accounts>,
}

/// A manifest that waits for its kind.
#[derive(Clone)]
pub(crate) struct Unplaced {
    pub(crate) manifest: Manifest,
    pub(crate) reason: String,
}

/// What changed from one state to the next.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Objects that are new or state something else.
    pub(crate) changed: Vec<ObjectKey>,
    /// Objects that the source does not declare any more.
    pub(crate) gone: Vec<ObjectKey>,
}

/// Places a revision.
///
/// # Errors
/// Every object that cannot be placed, or is declared twice: the revision is refused whole.
pub(crate) fn place(
    revision: &Revision,
    kinds: &Kinds,
    source: &SourceConfig,
) -> Result<DesiredState, Vec<PlacingError>> {
    let mut placed = Vec::with_capacity(revision.manifests.len());
    let mut unplaced = Vec::new();
    let mut errors = Vec::new();
    for manifest in &revision.manifests {
        match kinds.lookup(&manifest.gvk) {
            Lookup::Found(kind) => {
                let scope = if kind.namespaced { Scope::Namespaced } else { Scope::Cluster };
                match placing::place(revision, manifest, scope, &source.namespace) {
                    Ok(mut desired) => {
                        desired.ignore.extend(&source.ignore, &desired.key);
                        placed.push(desired);
                    }
                    Err(error) => errors.push(error),
                }
            }
            Lookup::NotServed => unplaced
                .push(Unplaced { manifest: manifest.clone(), reason: not_served(&manifest.gvk) }),
            Lookup::Unknown(reason) => {
                unplaced.push(Unplaced { manifest: manifest.clone(), reason: reason.into() });
            }
        }
    }
    match placing::unique(placed) {
        Ok(objects) if errors.is_empty() => {
            let account = GroupKind::new("", "ServiceAccount");
            let accounts = objects.keys().filter(|key| key.group_kind == account).cloned();
            Ok(DesiredState { accounts: Arc::new(accounts.collect()), objects, unplaced })
        }
        Ok(_) => Err(errors),
        Err(more) => {
            errors.extend(more);
            Err(errors)
        }
    }
}

impl DesiredState {
    /// What is different in `next`.
    pub(crate) fn changes(&self, next: &Self) -> Changes {
        // Whose account is foreign depends on which are declared.
        let accounts = self.accounts != next.accounts;
        let differs = |(key, desired): &(&ObjectKey, &Arc<Desired>)| {
            accounts && denial::runs_pods(&key.group_kind)
                || self.objects.get(*key).is_none_or(|old| old.digest != desired.digest)
        };
        let mut changed: Vec<ObjectKey> =
            next.objects.iter().filter(differs).map(|(key, _)| key.clone()).collect();
        changed.sort();
        let gone = |key: &&ObjectKey| !next.objects.contains_key(*key);
        let mut gone: Vec<ObjectKey> = self.objects.keys().filter(gone).cloned().collect();
        gone.sort();
        Changes { changed, gone }
    }
}

fn not_served(gvk: &Gvk) -> String {
    format!(
        "the API server serves no {gvk}: apply its CustomResourceDefinition, or correct apiVersion and kind"
    )
}

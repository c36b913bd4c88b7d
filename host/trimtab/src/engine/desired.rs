//! What is desired now: the last good revision of the source, placed by discovery.

use std::collections::HashMap;
use std::sync::Arc;
use trimtab_core::identity::{Gvk, ObjectKey};
use trimtab_core::object::{Desired, Manifest, Revision};
use trimtab_core::placing::{self, PlacingError};
use trimtab_kube::{Kinds, Lookup};

/// Objects by identity, and those whose kind the API server does not serve (yet).
#[derive(Default)]
pub(super) struct DesiredState {
    pub(super) objects: HashMap<ObjectKey, Arc<Desired>>,
    pub(super) unplaced: Vec<Unplaced>,
}

/// A manifest that waits for its kind.
#[derive(Clone)]
pub(super) struct Unplaced {
    pub(super) manifest: Manifest,
    pub(super) reason: String,
}

/// What changed from one state to the next.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Objects that are new or state something else.
    pub(super) changed: Vec<ObjectKey>,
    /// Objects that the source does not declare any more.
    pub(super) gone: Vec<ObjectKey>,
}

impl DesiredState {
    /// Places a revision.
    ///
    /// # Errors
    /// Every object that cannot be placed, or is declared twice: the revision is refused whole.
    pub(super) fn place(
        revision: &Revision,
        kinds: &Kinds,
        default_namespace: &str,
    ) -> Result<Self, Vec<PlacingError>> {
        let mut placed = Vec::with_capacity(revision.manifests.len());
        let mut unplaced = Vec::new();
        let mut errors = Vec::new();
        for manifest in &revision.manifests {
            match kinds.lookup(&manifest.gvk) {
                Lookup::Found(kind) => {
                    let scope = kind.scope();
                    match placing::place(revision, manifest, scope, default_namespace) {
                        Ok(desired) => placed.push(desired),
                        Err(error) => errors.push(error),
                    }
                }
                Lookup::NotServed => unplaced.push(Unplaced {
                    manifest: manifest.clone(),
                    reason: not_served(&manifest.gvk),
                }),
                Lookup::Unknown(reason) => {
                    unplaced.push(Unplaced { manifest: manifest.clone(), reason });
                }
            }
        }
        match placing::unique(placed) {
            Ok(objects) if errors.is_empty() => Ok(Self { objects, unplaced }),
            Ok(_) => Err(errors),
            Err(more) => {
                errors.extend(more);
                Err(errors)
            }
        }
    }

    /// What is different in `next`.
    pub(super) fn changes(&self, next: &Self) -> Changes {
        let differs = |(key, desired): &(&ObjectKey, &Arc<Desired>)| {
            self.objects.get(*key).is_none_or(|old| old.digest != desired.digest)
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

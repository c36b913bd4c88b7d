//! In which order objects are looked at when a source is taken up: what others need first
//! (namespaces, CRDs), then the rest, then what intercepts others (webhooks, API services).
//!
//! A wave is let go when every object of the one before it had its first pass, however that
//! ended: a failing object delays the next wave by one pass, never for ever.

use std::collections::{BTreeMap, BTreeSet};
use trimtab_core::identity::ObjectKey;
use trimtab_core::placing::rank;

/// Objects that wait for their first pass.
#[derive(Debug, Default)]
pub(super) struct Waves {
    held: BTreeMap<u8, BTreeSet<ObjectKey>>,
    outstanding: BTreeSet<ObjectKey>,
}

impl Waves {
    /// These objects are to be looked at, in their turn.
    pub(super) fn add(&mut self, keys: impl IntoIterator<Item = ObjectKey>) {
        for key in keys {
            self.held.entry(wave(&key)).or_default().insert(key);
        }
    }

    /// The objects whose turn has come.
    pub(super) fn release(&mut self) -> Vec<ObjectKey> {
        if !self.outstanding.is_empty() {
            return Vec::new();
        }
        let Some((_, keys)) = self.held.pop_first() else { return Vec::new() };
        self.outstanding.clone_from(&keys);
        keys.into_iter().collect()
    }

    /// This object had a pass, or is of no interest any more.
    pub(super) fn passed(&mut self, key: &ObjectKey) {
        self.outstanding.remove(key);
        self.held.retain(|_, keys| {
            keys.remove(key);
            !keys.is_empty()
        });
    }

    /// Whether this object's turn is still to come.
    pub(super) fn holds(&self, key: &ObjectKey) -> bool {
        self.held.get(&wave(key)).is_some_and(|keys| keys.contains(key))
    }

    /// Whether every object had its first pass.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.outstanding.is_empty()
    }
}

fn wave(key: &ObjectKey) -> u8 {
    match rank(&key.group_kind) {
        0 | 1 => 0,
        8.. => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_core::identity::GroupKind;

    fn key(group: &str, kind: &str, name: &str) -> ObjectKey {
        ObjectKey::new(GroupKind::new(group, kind), "", name)
    }

    #[test]
    fn a_wave_is_let_go_when_the_one_before_had_its_first_pass() {
        let namespace = key("", "Namespace", "shop");
        let deployment = key("apps", "Deployment", "web");
        let hook = key("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "h");
        let mut waves = Waves::default();
        waves.add([hook.clone(), deployment.clone(), namespace.clone()]);
        assert_eq!(waves.release(), std::slice::from_ref(&namespace));
        assert!(waves.release().is_empty(), "the namespace had no pass yet");
        waves.passed(&namespace);
        assert_eq!(waves.release(), std::slice::from_ref(&deployment));
        waves.passed(&deployment);
        assert_eq!(waves.release(), std::slice::from_ref(&hook));
        waves.passed(&hook);
        assert!(waves.is_empty());
    }
}

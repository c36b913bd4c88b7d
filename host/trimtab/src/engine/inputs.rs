//! What comes in: desired state, the watches, the plugin directory, discovery. Each is taken into
//! the engine's state and ends in objects that are to be looked at. (`sources.rs` makes desired state.)

use super::desired::DesiredState;
use super::reads::ForReads;
use super::{DISCOVER_LATER, DISCOVER_SOON, Engine, KIND_EXPECTED_WITHIN, brings_kinds};
use crate::journal::SourceLine;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;
use trimtab_core::identity::{Gvk, ObjectKey};
use trimtab_core::order::needs::Dependency;
use trimtab_core::record::Trigger;
use trimtab_core::redact::is_sensitive;
use trimtab_kube::{Event, Lookup};

impl Engine {
    /// Takes up another desired state: what is new or changed is looked at in its turn, what is gone
    /// is left where it is.
    pub(super) fn take_desired(&mut self, next: DesiredState, trigger: Trigger) {
        let changes = self.desired.changes(&next);
        for key in &changes.handed_over {
            if let (Some(old), Some(new)) = (self.desired.objects.get(key), next.objects.get(key)) {
                tracing::info!("{key} is handed over from source {} to {}", old.source, new.source);
            }
        }
        self.desired = next;
        self.rules.forget(changes.changed.iter().chain(&changes.gone), Instant::now());
        self.secrets_moved |= changes.changed.iter().chain(&changes.gone).any(is_secret);
        if !changes.changed.is_empty() {
            self.moved_at = Instant::now();
        }
        for key in &changes.gone {
            tracing::info!("{key} left the source");
            self.forget(key);
        }
        let mut counts: HashMap<Arc<str>, usize> = HashMap::new();
        for desired in changes.changed.iter().filter_map(|key| self.desired.objects.get(key)) {
            *counts.entry(desired.source.clone()).or_default() += 1;
        }
        for key in &changes.changed {
            let state = self.keys.entry(key.clone()).or_default();
            state.touched(trigger);
            // What a start finds changed is not known to be one revision's.
            let source = self.desired.objects.get(key).map(|desired| &desired.source);
            if let (Trigger::Source, Some(many)) = (trigger, source.and_then(|it| counts.get(it))) {
                state.changed_among(*many);
            }
        }
        self.take_needs();
        self.add_to_order(changes.changed);
        self.pruning.moved();
        self.watch_kinds();
        if !self.desired.unplaced.is_empty() {
            self.discover_at.get_or_insert_with(|| Instant::now() + DISCOVER_SOON);
        }
    }

    /// Tells the store which kinds to watch, and which of their objects we care about: those that
    /// are declared, and those that plugins read beside them.
    pub(super) fn watch_kinds(&mut self) {
        let registry = self.parts.registry.borrow().clone();
        let ForReads { mut whole, before } = match self.parts.store.kinds() {
            Some(kinds) => ForReads::of(
                self.desired.objects.keys(),
                |kind| registry.for_kind(kind).map(|served| &*served.power),
                |kind| match kinds.preferred(kind) {
                    Lookup::Found(served) => Some((served.gvk.clone(), served.namespaced)),
                    Lookup::NotServed | Lookup::Unknown(_) => None,
                },
            ),
            None => ForReads::default(),
        };
        let mut wanted: HashMap<Gvk, HashSet<ObjectKey>> = HashMap::new();
        for desired in self.desired.objects.values() {
            wanted.entry(desired.gvk.clone()).or_default().insert(desired.key.clone());
        }
        // What objects wait for, and no source declares.
        if let Some(kinds) = self.parts.store.kinds() {
            for key in self.order.needs().undeclared() {
                if let Lookup::Found(kind) = kinds.preferred(&key.group_kind) {
                    wanted.entry(kind.gvk.clone()).or_default().insert(key.clone());
                }
            }
        }
        for gvk in whole.keys() {
            wanted.entry(gvk.clone()).or_default();
        }
        for gvk in self.watched.extract_if(|gvk| !wanted.contains_key(gvk)) {
            self.answered.remove(&gvk);
            self.parts.store.forget(&gvk);
        }
        for (gvk, keys) in wanted {
            let namespaces = whole.remove(&gvk).unwrap_or_default();
            self.parts.store.set_interest_and_whole(&gvk, &keys, &namespaces);
            self.watched.insert(gvk);
        }
        self.read_before = before;
    }

    pub(super) fn forget(&mut self, key: &ObjectKey) {
        self.keys.remove(key);
        self.readers.forget(key);
        self.queue.remove(key);
        self.order.passed(key);
    }

    pub(super) fn take_events(&mut self, event: Event) {
        let mut next = Some(event);
        while let Some(event) = next {
            match event {
                Event::Changed(key, received_at) => self.live_changed(&key, received_at),
                Event::Synced(gvk) => self.kind_answered(&gvk),
                Event::Degraded { gvk, reason } => {
                    tracing::warn!("watch of {gvk} is degraded: {reason}");
                    self.kind_answered(&gvk);
                }
                Event::Recovered(gvk) => {
                    tracing::info!("watch of {gvk} recovered");
                    self.kind_answered(&gvk);
                }
                Event::KindsChanged => self.kinds_changed(),
            }
            next = self.parts.events.try_next();
        }
    }

    pub(super) fn kinds_changed(&mut self) {
        self.facts.changing();
        self.place_all();
    }

    pub(super) fn live_changed(&mut self, key: &ObjectKey, received_at: Instant) {
        if let Some(state) = self.keys.get_mut(key) {
            self.secrets_moved |= is_secret(key);
            state.event(received_at);
            if self.is_answered(key) && !self.order.holds(key) {
                self.queue.add(key, &key.group_kind);
            }
        }
        self.order.stir(&Dependency::Object(key.clone()));
        self.wake_readers(key, received_at);
        if brings_kinds(&key.group_kind) {
            self.expect_kinds();
        }
    }

    /// What was answered by the old schema is asked again, and what failed by it tried at once.
    pub(super) fn schemas_changed(&mut self, kinds: &[Gvk]) {
        tracing::info!(
            "the schema of {} changed",
            kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        );
        let of_kinds = |(_, desired): &(&ObjectKey, &Arc<trimtab_core::object::Desired>)| {
            kinds.contains(&desired.gvk)
        };
        let keys: Vec<ObjectKey> =
            self.desired.objects.iter().filter(of_kinds).map(|(key, _)| key.clone()).collect();
        for key in keys {
            if let Some(state) = self.keys.get_mut(&key) {
                state.forget_answer();
            }
            if !self.order.holds(&key) {
                self.look_afresh(&key);
            }
        }
    }

    /// A kind's watch has an answer: its objects are looked at, and those that waited to read it.
    pub(super) fn kind_answered(&mut self, gvk: &Gvk) {
        self.answered.insert(gvk.clone());
        self.secrets_moved |= is_sensitive(&gvk.group_kind());
        let concerned = |(key, desired): &(&ObjectKey, &Arc<_>)| {
            let desired: &trimtab_core::object::Desired = desired;
            desired.gvk == *gvk
                || self.read_before.get(&key.group_kind).is_some_and(|kinds| kinds.contains(gvk))
        };
        let keys: Vec<ObjectKey> =
            self.desired.objects.iter().filter(concerned).map(|(key, _)| key.clone()).collect();
        for key in keys {
            if !self.order.holds(&key) {
                self.look_afresh(&key);
            }
        }
        for reader in self.readers.of_kind(gvk) {
            self.wake(&reader, Instant::now());
        }
    }

    pub(super) fn take_registry(&mut self) {
        let registry = self.parts.registry.borrow_and_update().clone();
        self.note_suspensions();
        self.tell_plugins();
        self.moved_at = Instant::now();
        let mut touched = Vec::new();
        for (key, state) in &mut self.keys {
            let stamp = registry.for_kind(&key.group_kind).map(|served| served.stamp);
            if state.stamp != stamp {
                state.touched(Trigger::Plugin);
                touched.push(key.clone());
            }
        }
        self.unclaimed_told.clear();
        self.pruning.moved();
        self.add_to_order(touched);
        self.watch_kinds();
        if self.reviewed_under != registry.policies {
            self.reviewed_under = registry.policies;
            self.put_together();
        }
    }

    /// Rules that hide nothing: somebody believes that they do.
    pub(super) fn tell_idle_rules(&mut self) {
        for rule in self.rules.idle(Instant::now()) {
            let text = format!(
                "ignore rule {rule} has led to no field of any object for a day: correct it, or take it out"
            );
            tracing::warn!("{text}");
            self.note_host("ignore-rule-idle", &text);
        }
    }

    pub(super) fn expect_kinds(&mut self) {
        self.facts.changing();
        self.kind_expected_until = Instant::now() + KIND_EXPECTED_WITHIN;
        if !self.desired.unplaced.is_empty() {
            let soon = Instant::now() + DISCOVER_SOON;
            self.discover_at = Some(self.discover_at.map_or(soon, |at| at.min(soon)));
        }
    }

    /// Asks for kinds that are missing: the store tells by an event when there are others.
    pub(super) async fn discover_if_due(&mut self) {
        let now = Instant::now();
        if self.discover_at.is_none_or(|at| at > now) {
            return;
        }
        self.discover_at = None;
        if let Err(error) = self.parts.store.refresh_discovery().await {
            tracing::warn!("discovery failed and is tried again: {error}");
        }
        if !self.desired.unplaced.is_empty() || self.parts.store.kinds().is_none() {
            let expected = now < self.kind_expected_until;
            self.discover_at = Some(now + if expected { DISCOVER_SOON } else { DISCOVER_LATER });
        }
    }

    pub(super) fn tell(&self, line: SourceLine) {
        if let Err(error) = self.parts.journal.source(line) {
            tracing::error!("{error}");
        }
    }

    /// Something of the host itself, for log and journal.
    pub(super) fn tell_host(&self, event: &str, message: &str) {
        tracing::info!("{message}");
        self.note_host(event, message);
    }

    pub(super) fn note_host(&self, event: &str, message: &str) {
        if let Err(error) = self.parts.journal.host(event, message) {
            tracing::error!("{error}");
        }
    }
}

fn is_secret(key: &ObjectKey) -> bool {
    is_sensitive(&key.group_kind)
}

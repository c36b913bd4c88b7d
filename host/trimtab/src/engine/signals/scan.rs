//! Looking through objects for values of Secrets, on a thread that may take its time.

use super::Heard;
use crate::config::Place;
use crate::engine::Engine;
use crate::timestamp::now_ms;
use std::sync::Arc;
use tokio::sync::mpsc;
use trimtab_core::identity::ObjectKey;
use trimtab_core::object::Live;
use trimtab_core::redact::is_sensitive;
use trimtab_core::signals::Observation;
use trimtab_core::signals::misplaced::{self, Index, Side};

/// One batch.
struct Scan {
    /// The host's key.
    key: [u8; 32],
    index: Arc<Index>,
    /// What the index is made of anew, if it is to be.
    secrets: Option<Vec<(ObjectKey, Arc<[u8]>)>>,
    objects: Vec<Looked>,
}

/// One object, as it is on one side.
struct Looked {
    key: ObjectKey,
    side: Side,
    json: Arc<[u8]>,
    in_git: bool,
    /// The file and line that declare it, and of which source.
    origin: String,
}

/// What came of it.
pub(in crate::engine) struct Scanned {
    /// The new index, where one was made.
    pub(super) index: Option<Arc<Index>>,
    pub(super) found: Vec<Observation>,
}

impl Engine {
    pub(super) fn take_scanned(&mut self, scanned: Scanned) {
        self.signals.looking = false;
        if let Some(index) = scanned.index {
            if index.is_full() && !self.signals.full_told {
                self.signals.full_told = true;
                tracing::warn!(
                    "Secrets hold more than {} hashes of values are kept for: some values are not looked for in other objects",
                    misplaced::HASHES_AT_MOST
                );
            }
            self.signals.index = index;
        }
        self.signal_all(scanned.found);
    }

    /// Looks through what is to be looked through, one batch at a time, beside the loop.
    pub(super) fn scan(&mut self) {
        if self.signals.looking || !self.signals.secrets_moved && self.signals.unlooked.is_empty() {
            return;
        }
        if !self.placed_once {
            return;
        }
        let mut secrets = None;
        if std::mem::take(&mut self.signals.secrets_moved) {
            secrets = Some(self.known_secrets());
            // Other values: everything is to be looked through for them.
            for key in self.desired.objects.keys() {
                self.signals.unlooked.insert((key.clone(), Side::Desired));
                self.signals.unlooked.insert((key.clone(), Side::Live));
            }
        }
        let mut objects = Vec::with_capacity(self.signals.unlooked.len());
        for (key, side) in std::mem::take(&mut self.signals.unlooked) {
            let Some(desired) = self.desired.objects.get(&key) else { continue };
            let json = match side {
                Side::Desired => desired.json.clone(),
                Side::Live => match self.parts.store.live(&key, &desired.gvk) {
                    Live::Present(live) => live.json,
                    Live::Absent | Live::Unknown(_) => continue,
                },
            };
            let in_git = self
                .sources
                .get(&desired.source)
                .is_some_and(|entry| matches!(entry.config.place, Place::Git(_)));
            let origin = format!("{} of {}", desired.origin, desired.source);
            objects.push(Looked { key, side, json, in_git, origin });
        }
        self.signals.looking = true;
        let scan = Scan {
            key: self.signals.options.key,
            index: self.signals.index.clone(),
            secrets,
            objects,
        };
        scan.start(self.signals.sender.clone());
    }

    /// Secrets that are declared, as they are declared and as they are live.
    fn known_secrets(&self) -> Vec<(ObjectKey, Arc<[u8]>)> {
        let secrets =
            self.desired.objects.values().filter(|desired| is_sensitive(&desired.key.group_kind));
        let mut all = Vec::new();
        for desired in secrets {
            all.push((desired.key.clone(), desired.json.clone()));
            if let Live::Present(live) = self.parts.store.live(&desired.key, &desired.gvk) {
                all.push((desired.key.clone(), live.json));
            }
        }
        all
    }
}

impl Scan {
    /// Begins; the answer comes by the channel.
    fn start(self, sender: mpsc::Sender<Heard>) {
        tokio::task::spawn_blocking(move || {
            // Nobody listens any more only where the host ends.
            let _ = sender.blocking_send(Heard::Scanned(self.run()));
        });
    }

    fn run(self) -> Scanned {
        let made = self.secrets.map(|secrets| {
            let secrets = secrets.iter().map(|(key, json)| (key, &**json));
            Arc::new(Index::new(&self.key, secrets))
        });
        let index = made.as_ref().unwrap_or(&self.index);
        let look = |it: &Looked| {
            let places = misplaced::look(index, &it.key, &it.json, it.side, it.in_git);
            misplaced::told(&it.key, &places, it.side, &it.origin, now_ms())
        };
        let found = self.objects.iter().filter_map(look).collect();
        Scanned { index: made, found }
    }
}

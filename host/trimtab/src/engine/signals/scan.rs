//! Looking through objects for values of Secrets, on a thread that may take its time.

use super::Heard;
use crate::timestamp::now_ms;
use std::sync::Arc;
use tokio::sync::mpsc;
use trimtab_core::identity::ObjectKey;
use trimtab_core::signals::Observation;
use trimtab_core::signals::misplaced::{self, Index, Side};

/// One batch.
pub(super) struct Scan {
    /// The host's key.
    pub(super) key: [u8; 32],
    pub(super) index: Arc<Index>,
    /// What the index is made of anew, if it is to be.
    pub(super) secrets: Option<Vec<(ObjectKey, Arc<[u8]>)>>,
    pub(super) objects: Vec<Looked>,
}

/// One object, as it is on one side.
pub(super) struct Looked {
    pub(super) key: ObjectKey,
    pub(super) side: Side,
    pub(super) json: Arc<[u8]>,
    pub(super) in_git: bool,
    /// The file and line that declare it, and of which source.
    pub(super) origin: String,
}

/// What came of it.
pub(in crate::engine) struct Scanned {
    /// The new index, where one was made.
    pub(super) index: Option<Arc<Index>>,
    pub(super) found: Vec<Observation>,
}

impl Scan {
    /// Begins; the answer comes by the channel.
    pub(super) fn start(self, sender: mpsc::Sender<Heard>) {
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

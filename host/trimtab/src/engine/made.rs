//! What was made, in the loop: the inventories of all sources, read once and written in batches.
//!
//! Before an object is made its entry is in the cluster: the pass waits for that write, which all
//! passes of a moment share. What a pass found out afterwards (UID, digest) is written soon. Where
//! the inventory cannot be read or written, a source with `prune: true` makes nothing new and says
//! so; one without goes on, and nothing of it can be pruned later.

mod noted;

use super::Engine;
use super::sources::Problem;
use crate::made::{self, Inventories, Kept, NotWritten, Shard};
use crate::timestamp::now_ms;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use trimtab_core::identity::ObjectKey;
use trimtab_core::inventory::{Entry, Inventory};
use trimtab_core::object::{Desired, Live, LiveObject};

/// How long what nobody waits for may be unwritten.
const WRITE_AFTER: Duration = Duration::from_millis(500);
/// How soon a failed read or write is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(15);
/// How long the last write may take when the host ends.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// All inventories.
pub(super) struct Made {
    namespace: Arc<str>,
    inventories: Inventories,
    reading: bool,
    /// They were read once; until then nothing is known of what was made.
    read: bool,
    /// They have to be read again before anything is written: somebody else wrote.
    moved: bool,
    writing: bool,
    /// Entries that are in no shard in the cluster yet, and who waits for them.
    unwritten: HashMap<ObjectKey, Arc<str>>,
    in_flight: HashMap<ObjectKey, Arc<str>>,
    parked: BTreeSet<ObjectKey>,
    changed_at: Option<Instant>,
    retry_at: Option<Instant>,
    /// Why it cannot be read or written.
    pub(super) problem: Option<Problem>,
    /// Sources that are configured no more and of which it was told.
    told_foreign: HashSet<Arc<str>>,
    /// Sources of whose inventory it was told that somebody else writes it too.
    told_shared: HashSet<Arc<str>>,
    sender: mpsc::Sender<Done>,
    receiver: mpsc::Receiver<Done>,
}

/// What a task of this module ended with.
pub(super) enum Done {
    Read(Result<Inventories, String>),
    Written(Vec<(Shard, Result<LiveObject, NotWritten>)>),
}

/// Whether an object may be made.
pub(super) enum May {
    /// Its entry is in the cluster, or nothing depends on that.
    Go,
    /// Not before its entry is written.
    Wait,
    /// Its entry cannot be written, and why.
    No(String),
}

impl Made {
    pub(super) fn new(namespace: &str) -> Self {
        let (sender, receiver) = mpsc::channel(4);
        Self {
            namespace: namespace.into(),
            inventories: Inventories::new(),
            reading: false,
            read: false,
            moved: false,
            writing: false,
            unwritten: HashMap::new(),
            in_flight: HashMap::new(),
            parked: BTreeSet::new(),
            changed_at: None,
            retry_at: None,
            problem: None,
            told_foreign: HashSet::new(),
            told_shared: HashSet::new(),
            sender,
            receiver,
        }
    }

    pub(super) async fn next(&mut self) -> Option<Done> {
        self.receiver.recv().await
    }

    /// Whether it was read, or it is known that it cannot be.
    pub(super) fn is_known(&self) -> bool {
        self.read || self.problem.is_some()
    }

    /// Whether nothing is under way, to be written, or failing to be.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_known()
            && !self.writing
            && (self.problem.is_some() || self.changed_at.is_none() && self.unwritten.is_empty())
    }

    pub(super) fn due(&self) -> Option<Duration> {
        let retry = self.retry_at.map(|at| at.saturating_duration_since(Instant::now()));
        let write = self.changed_at.map(|at| WRITE_AFTER.saturating_sub(at.elapsed()));
        if self.writing || self.reading {
            return None;
        }
        retry.or(write)
    }

    /// Whether some of it lies in the cluster: its namespace is there, and ours to write to.
    pub(super) fn is_in_cluster(&self) -> bool {
        self.problem.is_none() && self.inventories.values().any(|kept| !kept.lies.is_empty())
    }

    /// The inventory of a source, where it is known.
    pub(super) fn of(&self, source: &str) -> Option<&Inventory> {
        self.kept(source).map(|kept| &kept.inventory)
    }

    fn kept(&self, source: &str) -> Option<&Kept> {
        self.inventories.get(source).filter(|kept| kept.corrupt.is_none())
    }

    /// Why nothing can be pruned by it, if so.
    pub(super) fn trouble(&self, source: &str) -> Option<String> {
        let corrupt = self.inventories.get(source).and_then(|kept| kept.corrupt.clone());
        let problem = self.problem.as_ref().map(|problem| problem.text.clone());
        let unread = (!self.read).then(|| "the inventory has not been read yet".to_owned());
        corrupt.or(problem).or(unread)
    }

    pub(super) fn entry(&self, source: &str, key: &ObjectKey) -> Option<&Entry> {
        self.of(source)?.get(key)
    }

    /// The source that has this object by its inventory.
    pub(super) fn holder(&self, key: &ObjectKey) -> Option<Arc<str>> {
        self.inventories
            .iter()
            .find(|(_, kept)| kept.inventory.get(key).is_some_and(|entry| entry.uid.is_some()))
            .map(|(source, _)| source.clone())
    }

    /// Its UID by any inventory.
    pub(super) fn uid(&self, key: &ObjectKey) -> Option<&Arc<str>> {
        self.inventories.values().find_map(|kept| kept.inventory.get(key)?.uid.as_ref())
    }

    /// Whether an object that is not there may be made; where it has no entry, one is begun.
    fn may_make(&mut self, desired: &Desired) -> May {
        if !self.read && self.problem.is_none() {
            self.parked.insert(desired.key.clone());
            return May::Wait;
        }
        if let Some(why) = self.trouble(&desired.source) {
            return if desired.terms.prune { May::No(why) } else { May::Go };
        }
        let (key, source) = (&desired.key, &desired.source);
        // The UID of an object that is gone would disown the one that is made now, if we were killed.
        let entry = match self.entry(source, key) {
            None => Some(Entry::intended(&desired.revision)),
            Some(known) if known.uid.is_some() => Some(Entry { uid: None, ..known.clone() }),
            Some(_) => None,
        };
        if let Some(entry) = entry {
            self.set(source, key, entry);
            self.unwritten.insert(key.clone(), source.clone());
        }
        if self.unwritten.contains_key(key) || self.in_flight.contains_key(key) {
            self.parked.insert(key.clone());
            return May::Wait;
        }
        May::Go
    }

    pub(super) fn set(&mut self, source: &Arc<str>, key: &ObjectKey, entry: Entry) {
        let kept = self.inventories.entry(source.clone()).or_insert_with(|| Kept::new(source));
        if kept.inventory.set(key, entry) {
            self.changed_at.get_or_insert_with(Instant::now);
        }
    }

    pub(super) fn forget(&mut self, source: &str, key: &ObjectKey) {
        self.unwritten.remove(key);
        if let Some(kept) = self.inventories.get_mut(source)
            && kept.inventory.remove(key)
        {
            self.changed_at.get_or_insert_with(Instant::now);
        }
    }

    fn set_revision(&mut self, source: &Arc<str>, revision: &Arc<str>) {
        let kept = self.inventories.entry(source.clone()).or_insert_with(|| Kept::new(source));
        if kept.inventory.revision() != Some(revision) {
            kept.inventory.set_revision(revision);
            self.changed_at.get_or_insert_with(Instant::now);
        }
    }

    fn failed(&mut self, text: String) -> bool {
        let is_new = self.problem.as_ref().is_none_or(|problem| problem.text != text);
        let since_ms = self.problem.as_ref().map_or_else(now_ms, |problem| problem.since_ms);
        self.problem = Some(Problem { text, since_ms });
        self.retry_at = Some(Instant::now() + RETRY_AFTER);
        is_new
    }

    /// The shards that are to be written now; they count as written until that failed.
    fn take_shards(&mut self) -> Vec<Shard> {
        let mut shards = Vec::new();
        for (source, kept) in &mut self.inventories {
            if kept.corrupt.is_some() {
                continue;
            }
            for index in kept.inventory.changed() {
                let text = kept.inventory.take(index);
                let seen = kept.lies.get(&index).cloned();
                shards.push(Shard { source: source.clone(), index, text, seen });
            }
        }
        self.changed_at = None;
        self.in_flight = std::mem::take(&mut self.unwritten);
        shards
    }
}

impl Engine {
    /// Whether this object may be made now; where not, its pass is over before it began, or waits
    /// for the write of its entry.
    pub(super) fn may_make(&mut self, desired: &Desired, live: &Live) -> May {
        if !matches!(live, Live::Absent) || !self.would_be_written(desired) {
            return May::Go;
        }
        // Its entry is about to lose the UID of what is gone, which is how it is told from a new one.
        let entry = self.made.entry(&desired.source, &desired.key);
        if let Some(uid) = entry.and_then(|entry| entry.uid.as_ref()) {
            let uid = uid.clone();
            self.signal_absent(&desired.key, &uid);
        }
        self.made.may_make(desired)
    }

    /// Reads and writes what is due.
    pub(super) fn keep_made(&mut self) {
        let made = &mut self.made;
        if made.writing || made.reading || self.parts.store.kinds().is_none() {
            return;
        }
        if made.retry_at.is_some_and(|at| at > Instant::now()) {
            return;
        }
        made.retry_at = None;
        let sender = made.sender.clone();
        if !made.read || made.moved {
            made.reading = true;
            let (store, namespace) = (self.parts.store.clone(), made.namespace.clone());
            tokio::spawn(async move {
                let read = made::read(&store, &namespace).await;
                let _ = sender.send(Done::Read(read)).await;
            });
            return;
        }
        let due = made.changed_at.is_some_and(|at| at.elapsed() >= WRITE_AFTER);
        if !due && made.unwritten.is_empty() {
            return;
        }
        let shards = made.take_shards();
        made.writing = true;
        let (writer, namespace) = (self.parts.writer.clone(), made.namespace.clone());
        tokio::spawn(async move {
            let mut results = Vec::with_capacity(shards.len());
            for shard in shards {
                let result = made::write(&writer, &namespace, &shard).await;
                results.push((shard, result));
            }
            let _ = sender.send(Done::Written(results)).await;
        });
    }

    /// Writes what is not written yet, before the host ends.
    pub(super) async fn end_made(&mut self) {
        let start = Instant::now();
        while start.elapsed() < END_PATIENCE && self.made.is_known() && !self.made.is_quiet() {
            if let Some(at) = self.made.changed_at.as_mut() {
                *at = at.checked_sub(WRITE_AFTER).unwrap_or(*at);
            }
            self.keep_made();
            match tokio::time::timeout(END_PATIENCE, self.made.next()).await {
                Ok(Some(done)) => self.take_made(done),
                Ok(None) | Err(_) => break,
            }
        }
        if self.made.is_known() && !self.made.is_quiet() {
            tracing::warn!("the inventory is not as new as what was made; the next start mends it");
        }
    }

    pub(super) fn take_made(&mut self, done: Done) {
        match done {
            Done::Read(Ok(inventories)) => self.made_read(inventories),
            Done::Read(Err(why)) => {
                self.made.reading = false;
                self.made_failed(why);
            }
            Done::Written(results) => self.made_written(results),
        }
    }

    fn made_read(&mut self, inventories: Inventories) {
        let made = &mut self.made;
        (made.reading, made.read, made.moved, made.problem) = (false, true, false, None);
        let mut before = std::mem::replace(&mut made.inventories, inventories);
        for (source, mut ours) in std::mem::take(&mut before) {
            if ours.corrupt.is_some() {
                continue;
            }
            // What we know is whole: it mends what is not understood any more.
            match made.inventories.remove(&source) {
                Some(theirs) => {
                    ours.inventory.merge(&theirs.inventory);
                    ours.lies = theirs.lies;
                }
                None => {
                    ours.inventory.merge(&Inventory::new(&source));
                    ours.lies.clear();
                }
            }
            made.changed_at = Some(Instant::now());
            made.inventories.insert(source, ours);
        }
        let corrupt: Vec<String> =
            made.inventories.values().filter_map(|kept| kept.corrupt.clone()).collect();
        for text in corrupt {
            tracing::error!("{text}; nothing of that source is pruned");
            self.note_host("inventory-corrupt", &text);
        }
        if self.first.is_none() {
            self.tell_foreign();
        }
        self.release_parked();
        self.pruning.moved();
    }

    /// Of sources that are configured no more nothing is deleted by itself.
    pub(super) fn tell_foreign(&mut self) {
        let foreign: Vec<(Arc<str>, usize)> = self
            .made
            .inventories
            .iter()
            .filter(|(source, kept)| {
                self.config.get(source).is_none() && !kept.inventory.is_empty()
            })
            .map(|(source, kept)| (source.clone(), kept.inventory.len()))
            .collect();
        for (source, count) in foreign {
            if self.made.told_foreign.insert(source.clone()) {
                self.tell_host("source-not-configured", &format!(
                    "{count} objects were made for source {source}, which is configured no more: nothing of them is deleted; `trimtab source remove {source} --prune` or `--orphan` says what becomes of them"
                ));
            }
        }
    }

    fn made_written(&mut self, results: Vec<(Shard, Result<LiveObject, NotWritten>)>) {
        self.made.writing = false;
        let mut failed = None;
        let mut shared = Vec::new();
        for (shard, result) in results {
            let Some(kept) = self.made.inventories.get_mut(&shard.source) else { continue };
            match result {
                Ok(live) => {
                    kept.lies.insert(shard.index, live);
                    continue;
                }
                Err(NotWritten::Moved) => {
                    self.made.moved = true;
                    if self.made.told_shared.insert(shard.source.clone()) {
                        shared.push(shard.source.clone());
                    }
                }
                Err(NotWritten::Failed(why)) => failed = Some(why),
            }
            kept.inventory.not_written(shard.index);
            let lost: Vec<ObjectKey> = self
                .made
                .in_flight
                .extract_if(|_, source| *source == shard.source)
                .map(|(key, _)| key)
                .collect();
            self.made.unwritten.extend(lost.into_iter().map(|key| (key, shard.source.clone())));
            self.made.changed_at = Some(Instant::now());
        }
        self.made.in_flight.clear();
        for source in shared {
            self.tell_host("inventory-shared", &format!(
                "somebody else wrote the inventory of source {source} meanwhile: if another host follows a source of that name here, each prunes what the other made; give it another name, or another --inventory-namespace"
            ));
        }
        match failed {
            Some(why) => self.made_failed(why),
            None => self.made.problem = None,
        }
        self.release_parked();
    }

    fn made_failed(&mut self, why: String) {
        if self.made.failed(why.clone()) {
            let text = format!(
                "{why}; sources with prune: true make nothing new meanwhile, and of the others nothing can be pruned later"
            );
            tracing::error!("{text}");
            self.note_host("inventory-unusable", &text);
        }
        self.release_parked();
    }

    /// Passes that waited for an entry begin anew; those that still have none wait again.
    fn release_parked(&mut self) {
        for key in std::mem::take(&mut self.made.parked) {
            if self.made.unwritten.contains_key(&key) && self.made.problem.is_none() {
                self.made.parked.insert(key);
                continue;
            }
            if self.is_answered(&key) {
                self.queue.add(&key, &key.group_kind);
            }
        }
    }
}

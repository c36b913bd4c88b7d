//! The inventory: what Trimtab made for one source, and nothing else. Only what stands here is ever
//! pruned.
//!
//! Entries are by identity without version, so that an object that is declared in another version
//! is the same one. An entry is made before its object is (then without UID), and leaves when the
//! object is gone or somebody else's. As text (`text.rs`) it goes into ConfigMaps of the cluster, in
//! shards: an entry stays in the shard that it came into, so that one change writes one shard.
//! Touches no cluster; who reads and writes the text is the caller's.

mod place;
mod text;

pub use self::place::{DATA, LABEL, Place};
pub use self::text::{Corrupt, SHARD_BYTES_AT_MOST, SHARDS_AT_MOST, VERSION, heading};

use crate::identity::{Digest, ObjectKey};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What a person allowed of an object's deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Approval {
    /// Nothing.
    #[default]
    None,
    /// Its deletion as one of many.
    Deletion,
    /// Its deletion with everything that goes with it, whosever that is.
    WithContents,
}

/// What is remembered of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its UID; `None`: it was about to be made.
    pub uid: Option<Arc<str>>,
    /// The revision that it was last applied from.
    pub revision: Arc<str>,
    /// Short digest of the desired bytes that were last in force; empty before.
    pub digest: Arc<str>,
    /// It ended by itself, as it was meant to: a Job that its TTL removed is not made anew.
    pub done: bool,
    /// Its manifest says that it is never pruned.
    pub keep: bool,
    /// What a person allowed.
    pub approved: Approval,
}

impl Entry {
    /// An object that is about to be made or taken over.
    pub fn intended(revision: &Arc<str>) -> Self {
        Self {
            uid: None,
            revision: revision.clone(),
            digest: Arc::from(""),
            done: false,
            keep: false,
            approved: Approval::None,
        }
    }

    /// Whether this desired state was in force last.
    pub fn has(&self, desired: Digest) -> bool {
        !self.digest.is_empty() && *self.digest == *desired.short()
    }
}

/// What Trimtab made for one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    source: Arc<str>,
    revision: Option<Arc<str>>,
    shards: Vec<Shard>,
    place: HashMap<ObjectKey, usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shard {
    entries: BTreeMap<ObjectKey, Entry>,
    /// What its entries take as text, at most.
    bytes: usize,
    changed: bool,
}

impl Inventory {
    /// One with nothing in it.
    pub fn new(source: &Arc<str>) -> Self {
        Self {
            source: source.clone(),
            revision: None,
            shards: vec![Shard::default()],
            place: HashMap::new(),
        }
    }

    /// The source's name.
    pub fn source(&self) -> &Arc<str> {
        &self.source
    }

    /// The revision that was last in force: a step back from it is none forward.
    pub fn revision(&self) -> Option<&Arc<str>> {
        self.revision.as_ref()
    }

    /// Says which revision is in force.
    pub fn set_revision(&mut self, revision: &Arc<str>) {
        if self.revision.as_ref() != Some(revision) {
            self.revision = Some(revision.clone());
            self.shards[0].changed = true;
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.place.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.place.is_empty()
    }

    /// What is remembered of this object.
    pub fn get(&self, key: &ObjectKey) -> Option<&Entry> {
        self.shards.get(*self.place.get(key)?)?.entries.get(key)
    }

    /// The same with the key that the inventory holds.
    pub fn entry(&self, key: &ObjectKey) -> Option<(&ObjectKey, &Entry)> {
        self.shards.get(*self.place.get(key)?)?.entries.get_key_value(key)
    }

    /// All entries, sorted within each shard.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Entry)> {
        self.shards.iter().flat_map(|shard| &shard.entries)
    }

    /// Entries of objects that are not among the declared: what may have to be pruned.
    pub fn undeclared(&self, is_declared: impl Fn(&ObjectKey) -> bool) -> Vec<ObjectKey> {
        let mut keys: Vec<ObjectKey> =
            self.iter().map(|(key, _)| key).filter(|key| !is_declared(key)).cloned().collect();
        keys.sort();
        keys
    }

    /// Remembers this of an object. Whether that is other than before.
    pub fn set(&mut self, key: &ObjectKey, entry: Entry) -> bool {
        // What has no name is no object.
        if key.name.is_empty() || self.get(key) == Some(&entry) {
            return false;
        }
        let size = text::size(key, &entry);
        let index = match self.place.get(key) {
            Some(index) => *index,
            None => self.room(size),
        };
        let shard = &mut self.shards[index];
        if let Some(old) = shard.entries.insert(key.clone(), entry) {
            shard.bytes -= text::size(key, &old);
        }
        shard.bytes += size;
        shard.changed = true;
        self.place.insert(key.clone(), index);
        true
    }

    /// Forgets an object. Whether it was there.
    pub fn remove(&mut self, key: &ObjectKey) -> bool {
        let Some(index) = self.place.remove(key) else { return false };
        let shard = &mut self.shards[index];
        if let Some(old) = shard.entries.remove(key) {
            shard.bytes -= text::size(key, &old);
            shard.changed = true;
        }
        true
    }

    /// Takes in what somebody else wrote meanwhile: what only they know is kept, what both know is
    /// as we have it. All of it counts as changed.
    pub fn merge(&mut self, theirs: &Self) {
        for (key, entry) in theirs.iter() {
            if self.get(key).is_none() {
                self.set(key, entry.clone());
            }
        }
        if self.revision.is_none() {
            self.revision.clone_from(&theirs.revision);
        }
        while self.shards.len() < theirs.shards.len() {
            self.shards.push(Shard::default());
        }
        self.shards.iter_mut().for_each(|shard| shard.changed = true);
    }

    /// Shards whose text is other than it was last [taken](Self::take), the newest first: a reader
    /// that finds the first shard finds all that it counts.
    pub fn changed(&self) -> Vec<usize> {
        (0..self.shards.len()).rev().filter(|index| self.shards[*index].changed).collect()
    }

    /// The text of a shard, which counts as written from now on.
    pub fn take(&mut self, index: usize) -> Vec<u8> {
        self.shards[index].changed = false;
        text::write(self, index)
    }

    /// The text of a shard that was taken did not arrive.
    pub fn not_written(&mut self, index: usize) {
        self.shards[index].changed = true;
    }

    /// A shard with this much room.
    fn room(&mut self, size: usize) -> usize {
        let has_room = |shard: &Shard| shard.bytes + size <= text::ENTRIES_BYTES_AT_MOST;
        match self.shards.iter().position(has_room) {
            Some(index) => index,
            None => {
                self.shards.push(Shard::default());
                // It has the number of shards.
                self.shards[0].changed = true;
                self.shards.len() - 1
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! From a graph of drafts to a facts buffer: the counterpart of `layout.rs`.

use super::layout::{HEADER, VERSION, bits, bucket, buckets, table_length};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// A place, as in `layout.rs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    pub(super) node: usize,
    pub(super) default: Option<String>,
    pub(super) marks: u16,
}

/// A type, as in `layout.rs`. Slots are positions in [`Graph::slots`].
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Draft {
    pub(super) bits: u32,
    pub(super) additional: Option<usize>,
    pub(super) item: Option<usize>,
    pub(super) keys: Vec<(String, Option<String>)>,
    pub(super) fields: BTreeMap<String, usize>,
}

/// Drafts that refer to each other by position; equal ones are stored once.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: Vec<Draft>,
    slots: Vec<Slot>,
    known_nodes: BTreeMap<Draft, usize>,
    known_slots: BTreeMap<Slot, usize>,
}

impl Graph {
    /// A node to be filled later, for types that contain themselves.
    pub(super) fn reserve(&mut self) -> usize {
        self.nodes.push(Draft::default());
        self.nodes.len() - 1
    }

    pub(super) fn fill(&mut self, node: usize, draft: Draft) {
        if let Some(held) = self.nodes.get_mut(node) {
            *held = draft;
        }
    }

    pub(super) fn node(&mut self, draft: Draft) -> usize {
        if let Some(&known) = self.known_nodes.get(&draft) {
            return known;
        }
        let node = self.reserve();
        self.fill(node, draft.clone());
        self.known_nodes.insert(draft, node);
        node
    }

    pub(super) fn slot(&mut self, slot: Slot) -> usize {
        if let Some(&known) = self.known_slots.get(&slot) {
            return known;
        }
        self.slots.push(slot.clone());
        self.known_slots.insert(slot, self.slots.len() - 1);
        self.slots.len() - 1
    }

    pub(super) fn draft(&self, node: usize) -> Option<&Draft> {
        self.nodes.get(node)
    }

    pub(super) fn slot_at(&self, slot: usize) -> Option<&Slot> {
        self.slots.get(slot)
    }

    /// The buffer; `root` is a slot. `None` if it would not fit 32-bit offsets, or one type has more
    /// fields than 16 bits count.
    pub(super) fn encode(&self, root: usize) -> Option<Vec<u8>> {
        if self.nodes.iter().any(|node| node.fields.len() > usize::from(u16::MAX)) {
            return None;
        }
        let slot_at = |slot: usize| HEADER as usize + slot * 12;
        let mut at = slot_at(self.slots.len());
        let mut node_at = Vec::with_capacity(self.nodes.len());
        let mut keys_at = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            node_at.push(at);
            let tables = [node.additional.is_some(), node.item.is_some(), !node.keys.is_empty()];
            at += 4 + 4 * tables.iter().filter(|&&there| there).count();
            if !node.fields.is_empty() {
                at += 4 + table_length(buckets(node.fields.len())) + 8 * node.fields.len();
            }
        }
        for node in &self.nodes {
            keys_at.push(at);
            if !node.keys.is_empty() {
                at += 4 + 8 * node.keys.len();
            }
        }
        u32::try_from(at).ok()?;
        let mut out =
            Writer { bytes: Vec::new(), texts: Vec::new(), seen: BTreeMap::new(), base: at };
        out.bytes.extend_from_slice(&[VERSION, 0, 0, 0]);
        out.word(slot_at(root));
        for slot in &self.slots {
            out.word(node_at.get(slot.node).copied().unwrap_or(0));
            let default = slot.default.as_deref().map_or(0, |text| out.text(text));
            out.word(default);
            out.word(slot.marks.into());
        }
        for (node, &keys) in self.nodes.iter().zip(&keys_at) {
            out.node(node, keys, slot_at);
        }
        for node in self.nodes.iter().filter(|node| !node.keys.is_empty()) {
            out.word(node.keys.len());
            for (name, default) in &node.keys {
                let name = out.text(name);
                out.word(name);
                let default = default.as_deref().map_or(0, |text| out.text(text));
                out.word(default);
            }
        }
        let Writer { mut bytes, texts, base, .. } = out;
        debug_assert_eq!(bytes.len(), base);
        bytes.extend_from_slice(&texts);
        u32::try_from(bytes.len()).ok().map(|_| bytes)
    }
}

struct Writer {
    bytes: Vec<u8>,
    texts: Vec<u8>,
    seen: BTreeMap<String, usize>,
    base: usize,
}

impl Writer {
    fn word(&mut self, value: usize) {
        self.bytes.extend_from_slice(&(value as u32).to_le_bytes());
    }

    /// The offset of a text. One too long for its length field is left out: 0.
    fn text(&mut self, text: &str) -> usize {
        if let Some(&at) = self.seen.get(text) {
            return at;
        }
        let Ok(length) = u16::try_from(text.len()) else { return 0 };
        let at = self.base + self.texts.len();
        self.texts.extend_from_slice(&length.to_le_bytes());
        self.texts.extend_from_slice(text.as_bytes());
        self.seen.insert(text.into(), at);
        at
    }

    fn node(&mut self, node: &Draft, keys: usize, slot_at: impl Fn(usize) -> usize) {
        let mut flags = node.bits;
        for (bit, there) in [
            (bits::HAS_ADDITIONAL, node.additional.is_some()),
            (bits::HAS_ITEM, node.item.is_some()),
            (bits::HAS_KEYS, !node.keys.is_empty()),
            (bits::HAS_FIELDS, !node.fields.is_empty()),
        ] {
            if there {
                flags |= bit;
            }
        }
        self.word(flags as usize);
        for slot in node.additional.iter().chain(&node.item) {
            self.word(slot_at(*slot));
        }
        if !node.keys.is_empty() {
            self.word(keys);
        }
        if !node.fields.is_empty() {
            self.word(node.fields.len());
            self.fields(&node.fields, slot_at);
        }
    }

    fn fields(&mut self, fields: &BTreeMap<String, usize>, slot_at: impl Fn(usize) -> usize) {
        let buckets = buckets(fields.len());
        let bucket = |name: &str| bucket(name.as_bytes(), buckets);
        let mut sorted: Vec<_> =
            fields.iter().map(|(name, slot)| (bucket(name), name, slot)).collect();
        sorted.sort();
        let table = self.bytes.len();
        for first in 0..=buckets {
            let entry = sorted.partition_point(|(bucket, ..)| *bucket < first);
            self.bytes.extend_from_slice(&(entry as u16).to_le_bytes());
        }
        self.bytes.resize(table + table_length(buckets), 0);
        for (_, name, slot) in sorted {
            let name = self.text(name);
            self.word(name);
            self.word(slot_at(*slot));
        }
    }
}

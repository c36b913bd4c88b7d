//! The inventory as text: compact JSON, one text for each shard.
//!
//! `{"version":1,"source":S,"shard":I,"shards":N,"revision":R,"revisions":[…],"entries":[…]}`, an
//! entry being `[group, kind, namespace, name, uid, digest, revision's index, marks]`. Shard 0 has
//! `shards` and `revision`; the number counts, so that a lost shard is no shorter inventory. Whatever
//! is not understood is refused: an inventory that is half read is none.

use super::{Approval, Entry, Inventory, Shard};
use crate::identity::{GroupKind, ObjectKey};
use std::collections::HashMap;
use std::sync::Arc;
use trimtab_json::{Object, Value};

/// Version of the text. Another one is refused.
pub const VERSION: i64 = 1;
/// A shard's text at most, in bytes: half of what a ConfigMap holds.
pub const SHARD_BYTES_AT_MOST: usize = 512 * 1024;
/// Shards of one source: some 150,000 objects.
pub const SHARDS_AT_MOST: usize = 64;
/// A text that is read: a ConfigMap holds no more.
const TEXT_BYTES_AT_MOST: usize = 1 << 20;
/// What of a shard's text is entries; the rest is for revisions and what stands around.
pub(super) const ENTRIES_BYTES_AT_MOST: usize = SHARD_BYTES_AT_MOST - 32 * 1024;
/// Longest text in an entry: a revision with a long name. Names have 253 characters at most.
const FIELD_BYTES_AT_MOST: usize = 512;

/// Why an inventory cannot be read. Nothing is pruned by it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("inventory_corrupt: {message}")]
pub struct Corrupt {
    /// Which shard, and what is wrong with it.
    pub message: String,
}

fn corrupt<T>(message: impl Into<String>) -> Result<T, Corrupt> {
    Err(Corrupt { message: message.into() })
}

/// The source and the number of a shard, by its own text.
///
/// # Errors
/// The text does not say.
pub fn heading(text: &[u8]) -> Result<(Arc<str>, usize), Corrupt> {
    let tree = match trimtab_json::parse(text) {
        Ok(tree) => tree,
        Err(error) => return corrupt(error.to_string()),
    };
    let shard = tree.get("shard").and_then(Value::as_u64).and_then(|it| usize::try_from(it).ok());
    match (tree.str_at(&["source"]), shard) {
        (Some(source), Some(shard)) => Ok((source.into(), shard)),
        _ => corrupt("it does not say which shard of which source it is"),
    }
}

/// What an entry takes as text, at most: with its revision, and with room for escapes in names
/// that an API server would not take.
pub(super) fn size(key: &ObjectKey, entry: &Entry) -> usize {
    let names = [&*key.group_kind.group, &key.group_kind.kind, key.namespace_str(), &key.name];
    let names: usize = names.iter().map(|name| name.len() + 3).sum();
    let rest = entry.uid.as_ref().map_or(0, |uid| uid.len()) + entry.digest.len();
    names + rest + entry.revision.len() + 32
}

pub(super) fn write(inventory: &Inventory, index: usize) -> Vec<u8> {
    let shard = &inventory.shards[index];
    let mut revisions: Vec<&Arc<str>> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut entries = Vec::with_capacity(shard.entries.len());
    for (key, entry) in &shard.entries {
        let revision = *known.entry(&entry.revision).or_insert_with(|| {
            revisions.push(&entry.revision);
            revisions.len() - 1
        });
        let text = |text: &str| Value::from(text.to_owned());
        entries.push(Value::Array(vec![
            text(&key.group_kind.group),
            text(&key.group_kind.kind),
            text(key.namespace_str()),
            text(&key.name),
            text(entry.uid.as_deref().unwrap_or_default()),
            text(&entry.digest),
            Value::from(revision as u64),
            text(&marks(entry)),
        ]));
    }
    let mut root = Object::new()
        .with("version", VERSION)
        .with("source", inventory.source.to_string())
        .with("shard", index as u64);
    if index == 0 {
        root = root.with("shards", inventory.shards.len() as u64);
        if let Some(revision) = &inventory.revision {
            root = root.with("revision", revision.to_string());
        }
    }
    let revisions = revisions.into_iter().map(|it| Value::from(it.to_string())).collect();
    let root =
        root.with("revisions", Value::Array(revisions)).with("entries", Value::Array(entries));
    let mut out = Vec::with_capacity(shard.bytes + 256);
    trimtab_json::write(&Value::from(root), &mut out);
    out
}

fn marks(entry: &Entry) -> String {
    let approved = match entry.approved {
        Approval::None => "",
        Approval::Deletion => "a",
        Approval::WithContents => "A",
    };
    let mark = |set: bool, mark| if set { mark } else { "" };
    format!("{}{}{approved}", mark(entry.done, "d"), mark(entry.keep, "k"))
}

impl Inventory {
    /// Reads the shards of a source, each with its number, in any order. None at all: nothing was
    /// ever made for it.
    ///
    /// # Errors
    /// Anything that is not understood, of another version or source, twice there, or missing.
    pub fn read(source: &Arc<str>, shards: &[(usize, &[u8])]) -> Result<Self, Corrupt> {
        let mut inventory = Self::new(source);
        if shards.is_empty() {
            return Ok(inventory);
        }
        let highest = shards.iter().map(|(index, _)| *index).max().unwrap_or_default();
        if highest >= SHARDS_AT_MOST {
            return corrupt(format!("shard {highest} of source {source} is one too many"));
        }
        inventory.shards = vec![Shard::default(); highest + 1];
        let mut seen = vec![false; highest + 1];
        let mut counted = 0;
        for (index, text) in shards {
            if std::mem::replace(&mut seen[*index], true) {
                return corrupt(format!("shard {index} of source {source} is there twice"));
            }
            let here = |message: String| Corrupt {
                message: format!("shard {index} of source {source}: {message}"),
            };
            counted = counted.max(read_shard(&mut inventory, *index, text).map_err(here)?);
        }
        let missing =
            (0..counted.max(highest + 1)).find(|index| !seen.get(*index).is_some_and(|it| *it));
        if let Some(missing) = missing {
            return corrupt(format!(
                "shard {missing} of source {source} is missing: put its ConfigMap back, or delete the others too and nothing of before is pruned"
            ));
        }
        inventory.shards.iter_mut().for_each(|shard| shard.changed = false);
        Ok(inventory)
    }
}

/// Takes one shard in; gives how many shards it says there are.
fn read_shard(inventory: &mut Inventory, index: usize, text: &[u8]) -> Result<usize, String> {
    if text.len() > TEXT_BYTES_AT_MOST {
        return Err(format!("{} bytes are more than a ConfigMap holds", text.len()));
    }
    let tree = trimtab_json::parse(text).map_err(|error| error.to_string())?;
    match tree.get("version").and_then(Value::as_i64) {
        Some(VERSION) => {}
        other => {
            let other = other.map_or_else(|| "none".to_owned(), |it| it.to_string());
            return Err(format!(
                "its version is {other}, and this Trimtab knows {VERSION}: use the Trimtab that wrote it"
            ));
        }
    }
    if tree.str_at(&["source"]) != Some(&inventory.source) {
        return Err(format!("it is of source {:?}", tree.str_at(&["source"]).unwrap_or_default()));
    }
    if tree.get("shard").and_then(Value::as_u64) != Some(index as u64) {
        return Err("it is of another number".into());
    }
    let list = |name: &str| {
        tree.get(name).and_then(Value::as_array).ok_or_else(|| format!("it has no list {name}"))
    };
    let revisions: Vec<Arc<str>> = list("revisions")?
        .iter()
        .map(|revision| field(revision).map(Arc::from))
        .collect::<Result<_, _>>()?;
    for (position, entry) in list("entries")?.iter().enumerate() {
        let (key, entry) =
            read_entry(entry, &revisions).map_err(|why| format!("entry {position}: {why}"))?;
        if inventory.place.insert(key.clone(), index).is_some() {
            return Err(format!("entry {position}: {key} is there twice"));
        }
        let shard = &mut inventory.shards[index];
        shard.bytes += size(&key, &entry);
        shard.entries.insert(key, entry);
    }
    if index > 0 {
        return Ok(0);
    }
    if let Some(revision) = tree.get("revision") {
        inventory.revision = Some(field(revision)?.into());
    }
    let counted =
        tree.get("shards").and_then(Value::as_u64).and_then(|it| usize::try_from(it).ok());
    counted
        .filter(|counted| (1..=SHARDS_AT_MOST).contains(counted))
        .ok_or_else(|| "it does not say how many shards there are".into())
}

fn read_entry(entry: &Value<'_>, revisions: &[Arc<str>]) -> Result<(ObjectKey, Entry), String> {
    let Some([group, kind, namespace, name, uid, digest, revision, marks]) = entry.as_array()
    else {
        return Err("it has not eight members".into());
    };
    let (kind, name, uid) = (field(kind)?, field(name)?, field(uid)?);
    if kind.is_empty() || name.is_empty() {
        return Err("it names no object: kind or name is empty".into());
    }
    let key = ObjectKey::new(GroupKind::new(field(group)?, kind), field(namespace)?, name);
    let revision = revision.as_u64().and_then(|it| usize::try_from(it).ok());
    let revision = revision
        .and_then(|revision| revisions.get(revision))
        .ok_or_else(|| "its revision is not among the revisions".to_owned())?;
    let mut read = Entry {
        uid: (!uid.is_empty()).then(|| uid.into()),
        digest: field(digest)?.into(),
        ..Entry::intended(revision)
    };
    for mark in field(marks)?.chars() {
        match mark {
            'd' => read.done = true,
            'k' => read.keep = true,
            'a' => read.approved = Approval::Deletion,
            'A' => read.approved = Approval::WithContents,
            other => return Err(format!("its mark {other:?} is not known")),
        }
    }
    Ok((key, read))
}

fn field<'v>(value: &'v Value<'_>) -> Result<&'v str, String> {
    match value.as_str() {
        Some(text) if text.len() <= FIELD_BYTES_AT_MOST => Ok(text),
        Some(_) => Err(format!("a text has more than {FIELD_BYTES_AT_MOST} bytes")),
        None => Err("a member is no text".into()),
    }
}

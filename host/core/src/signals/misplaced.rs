//! `misplaced-secret`: a value of a Secret stands where everybody may read it.
//!
//! An [`Index`] knows the values of Secrets by keyed hashes of every 16 bytes of them, in the
//! spellings in which they turn up: as they are, in base64 (whatever stands before them), in
//! hexadecimal, and encoded for URLs. A text is gone through once, and a place is told, never a
//! value. So a part of a value is found too, from 16 bytes on.
//!
//! Secrets also hold what is no secret: user names, addresses, certificates, whole configuration
//! files. Of these nothing is looked for but what looks like a password in them, since every other
//! object says the like ([`telling.rs`](self::telling)).

mod telling;

use self::telling::{telling_parts, telling_window};
use super::{Name, Observation, Subject, shapes};
use crate::decision::Severity;
use crate::identity::ObjectKey;
use crate::redact::is_sensitive;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap};
use trimtab_json::{Object, Value};

/// Bytes of a part that is found.
pub const PART: usize = 16;
/// Hashes that are kept, over all Secrets: some 16 MB.
pub const HASHES_AT_MOST: usize = 1 << 20;
/// Hashes of one spelling of one value; of longer ones every second, third … is kept.
const HASHES_OF_ONE: usize = 4096;
/// Places of one object that are told.
const PLACES_AT_MOST: usize = 8;
/// A Mersenne prime: hashes are polynomials modulo it.
const P: u64 = (1 << 61) - 1;

/// Values of Secrets by keyed hashes.
#[derive(Clone, Debug, Default)]
pub struct Index {
    base: u64,
    /// By how many bytes a hash is of: what hash is whose.
    hashes: BTreeMap<usize, HashMap<u64, u32>>,
    /// Whose: `Secret shop/db, key password`.
    names: Vec<String>,
    count: usize,
    at_most: usize,
    full: bool,
}

/// One place where a value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// JSON pointer within the object.
    pub path: String,
    /// What stands there: whose value, or which shape.
    pub what: String,
}

/// Which side of an object is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// As a source declares it.
    Desired,
    /// As the API server has it.
    Live,
}

impl Index {
    /// Of these Secrets (identity and JSON text), under a key of this host's own.
    pub fn new<'s>(
        key: &[u8; 32],
        secrets: impl IntoIterator<Item = (&'s ObjectKey, &'s [u8])>,
    ) -> Self {
        Self::bounded(key, secrets, HASHES_AT_MOST)
    }

    fn bounded<'s>(
        key: &[u8; 32],
        secrets: impl IntoIterator<Item = (&'s ObjectKey, &'s [u8])>,
        at_most: usize,
    ) -> Self {
        let digest = Sha256::new().chain_update(b"misplaced").chain_update(key).finalize();
        let mut base = [0; 8];
        base.copy_from_slice(&digest[..8]);
        let base = u64::from_le_bytes(base) % (P - 512) + 257;
        let mut index = Self { base, at_most, ..Self::default() };
        for (key, json) in secrets {
            if !index.full {
                index.add(key, json);
            }
        }
        index
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether there were more values than are kept: some are not looked for.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Hashes that are kept.
    pub fn len(&self) -> usize {
        self.count
    }

    fn add(&mut self, key: &ObjectKey, json: &[u8]) {
        let Ok(secret) = trimtab_json::parse(json) else { return };
        for (section, encoded) in [("data", true), ("stringData", false)] {
            let members = secret.get(section).and_then(Value::as_object);
            for (name, value) in members.into_iter().flat_map(Object::iter) {
                let Some(text) = value.as_str() else { continue };
                let decoded = encoded.then(|| trimtab_compare::decode_base64(text)).flatten();
                let value = decoded.unwrap_or_else(|| text.as_bytes().to_vec());
                let parts = telling_parts(name, &value);
                if parts.is_empty() {
                    continue;
                }
                let owner = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
                self.names.push(format!("{key}, key {name}"));
                for part in parts {
                    for spelling in spellings(&part) {
                        self.add_spelling(&spelling, owner);
                    }
                }
            }
        }
    }

    fn add_spelling(&mut self, text: &[u8], owner: u32) {
        let length = text.len().min(PART);
        let step = text.len().div_ceil(HASHES_OF_ONE);
        let whole = text.len() < PART;
        for window in text.windows(length).step_by(step.max(1)) {
            if !whole && !telling_window(window) {
                continue;
            }
            if self.count >= self.at_most {
                self.full = true;
                return;
            }
            let hash = window.iter().fold(0, |hash, byte| self.next(hash, *byte));
            let hashes = self.hashes.entry(length).or_default();
            if hashes.insert(hash, owner).is_none() {
                self.count += 1;
            }
        }
    }

    fn next(&self, hash: u64, byte: u8) -> u64 {
        modulo(u128::from(hash) * u128::from(self.base) + u128::from(byte) + 1)
    }

    /// Whose value stands in this text, if one does.
    pub fn find(&self, text: &[u8]) -> Option<&str> {
        let owner = self.hashes.iter().find_map(|(length, hashes)| {
            if text.len() < *length {
                return None;
            }
            // What the byte that leaves a window counts for in its hash.
            let leaves =
                (1..*length).fold(1, |power, _| modulo(u128::from(power) * u128::from(self.base)));
            let mut hash = 0;
            for (at, byte) in text.iter().enumerate() {
                if at >= *length {
                    let gone = u128::from(leaves) * (u128::from(text[at - length]) + 1);
                    hash = modulo(u128::from(hash) + u128::from(P - modulo(gone)));
                }
                hash = self.next(hash, *byte);
                if at + 1 >= *length
                    && let Some(owner) = hashes.get(&hash)
                {
                    return Some(*owner);
                }
            }
            None
        })?;
        self.names.get(usize::try_from(owner).ok()?).map(String::as_str)
    }

    /// Where values stand in this object, which is no Secret. `shapes`: what has the shape of secret
    /// material counts too.
    pub fn places(&self, object: &Value<'_>, shapes: bool) -> Vec<Place> {
        let mut found = Vec::new();
        self.beneath(object, &mut String::new(), shapes, &mut found);
        found
    }

    fn beneath(&self, value: &Value<'_>, path: &mut String, shapes: bool, found: &mut Vec<Place>) {
        if found.len() >= PLACES_AT_MOST {
            return;
        }
        let mut step = |name: &str, value: &Value<'_>, found: &mut Vec<Place>| {
            let length = path.len();
            path.push('/');
            path.push_str(&name.replace('~', "~0").replace('/', "~1"));
            self.beneath(value, path, shapes, found);
            path.truncate(length);
        };
        match value {
            Value::Object(members) => {
                for (name, value) in members.iter().filter(|(name, _)| *name != "managedFields") {
                    step(name, value, found);
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    step(&at.to_string(), item, found);
                }
            }
            other => {
                let Some(text) = other.as_str() else { return };
                let what = match self.find(text.as_bytes()) {
                    Some(whose) => Some(format!("a value of {whose}")),
                    None if shapes => shapes::shape_in(text).map(words),
                    None => None,
                };
                found.extend(what.map(|what| Place { path: path.clone(), what }));
            }
        }
    }
}

/// A shape's name for people: `a private key`.
fn words(shape: &str) -> String {
    format!("a {}", shape.replace('-', " "))
}

/// Private keys and tokens in a Secret that lies in plain text in Git.
pub fn in_plain_secret(object: &Value<'_>) -> Vec<Place> {
    let mut found = Vec::new();
    for (section, encoded) in [("data", true), ("stringData", false)] {
        let members = object.get(section).and_then(Value::as_object);
        for (name, value) in members.into_iter().flat_map(Object::iter) {
            let Some(text) = value.as_str() else { continue };
            let decoded = encoded.then(|| trimtab_compare::decode_base64(text)).flatten();
            let plain = decoded.and_then(|plain| String::from_utf8(plain).ok());
            if let Some(shape) = shapes::shape_in(plain.as_deref().unwrap_or(text)) {
                let path = format!("/{section}/{}", name.replace('~', "~0").replace('/', "~1"));
                found.push(Place { path, what: words(shape) });
            }
        }
    }
    found.truncate(PLACES_AT_MOST);
    found
}

/// Looks through one object. `in_git`: its source is a repository, where a plain Secret is for all
/// that may read it.
pub fn look(index: &Index, key: &ObjectKey, json: &[u8], side: Side, in_git: bool) -> Vec<Place> {
    let secret = is_sensitive(&key.group_kind);
    let shapes = side == Side::Desired;
    if secret && !(in_git && shapes) || index.is_empty() && !shapes {
        return Vec::new();
    }
    let Ok(object) = trimtab_json::parse(json) else { return Vec::new() };
    if secret { in_plain_secret(&object) } else { index.places(&object, shapes) }
}

/// What is told of these places; `origin`: the file and line that declare the object.
pub fn told(
    key: &ObjectKey,
    places: &[Place],
    side: Side,
    origin: &str,
    at_ms: u64,
) -> Option<Observation> {
    let first = places.first()?;
    let paths: Vec<&str> = places.iter().map(|place| place.path.as_str()).collect();
    let mut whats: Vec<&str> = places.iter().map(|place| place.what.as_str()).collect();
    whats.dedup();
    let (place, word) = match side {
        Side::Desired => (format!(", as {origin} declares it"), "desired"),
        Side::Live => (String::new(), "live"),
    };
    let text = format!(
        "{key}{place}: {} stands in {}, where whoever may read the object reads it: take it out, and renew it",
        first.what,
        paths.join(", ")
    );
    let subject = Subject::Object(key.clone());
    let told = Observation::new(Name::MisplacedSecret, Severity::Critical, subject, text, at_ms);
    Some(
        told.about(format!("{word} {} {}", paths.join(" "), whats.join(" ")))
            .with("paths", paths.join(", "))
            .with("what", whats.join(", "))
            .with("side", word)
            .with("origin", if side == Side::Desired { origin } else { "" }),
    )
}

fn modulo(value: u128) -> u64 {
    // Both halves have 61 bits at most, after a second round one bit more at most.
    let fold = |value: u128| (value & u128::from(P)) + (value >> 61);
    let value = u64::try_from(fold(fold(value))).unwrap_or(0);
    if value >= P { value - P } else { value }
}

/// The spellings that are looked for.
fn spellings(value: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![value.to_vec()];
    for before in 0..3 {
        // What stands before it in the text that was encoded shifts every character.
        let padded = [&[0; 2][..before], value].concat();
        let text = trimtab_compare::encode_base64(&padded);
        let text = text.trim_end_matches('=');
        // Characters that hold bits of what stands before or after are not its own.
        let from = [0, 2, 3][before];
        let own = (padded.len() * 8) / 6;
        let text = text.get(from..own.min(text.len())).unwrap_or_default();
        let for_urls = text.replace('+', "-").replace('/', "_");
        if for_urls != text {
            all.push(for_urls.into_bytes());
        }
        all.push(text.as_bytes().to_vec());
    }
    let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
    all.push(hex.to_uppercase().into_bytes());
    all.push(hex.into_bytes());
    let encoded: String = value
        .iter()
        .map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) => {
                char::from(*byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect();
    if encoded.as_bytes() != value {
        all.push(encoded.into_bytes());
    }
    // A spelling that is too short to be told from a word is none.
    all.retain(|spelling| spelling.len() >= telling::SHORTEST);
    all
}

#[cfg(test)]
#[path = "misplaced_tests.rs"]
mod tests;

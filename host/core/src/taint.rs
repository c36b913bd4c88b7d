//! What becomes of the words and content of a plugin that saw a Secret.
//!
//! It may say that something is wrong, and not carry values out while saying it: its free text is
//! replaced by fixed words, paths that neither object has are dropped, and content that it made is
//! searched for the values. The search is a second line only: whoever may make content and read
//! Secrets can always find another spelling.

use crate::decision::{Action, Comparison, Decision, Difference, Verdict};
use crate::grant::Refusal;
use crate::redact::{self, is_sensitive};
use crate::snapshot::Snapshot;
use std::sync::Arc;
use trimtab_json::{Path, Step, Value};

/// Stands in for a plugin's words.
pub(crate) const WITHHELD: &str = "(withheld: the plugin saw a Secret)";
/// The refusal's reason.
pub(crate) const REFUSED: &str = "SecretInContent";
/// Shorter values are words that occur anywhere.
const SHORTEST: usize = 8;
/// Of a value without its punctuation: what is left of it may be a word sooner.
const SHORTEST_SQUEEZED: usize = 12;

/// Which Secrets a plugin saw in a pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taint {
    /// Secrets that it read, as JSON text.
    read: Vec<Arc<[u8]>>,
    /// Whether the object itself is one.
    own: bool,
}

impl Taint {
    pub(crate) fn of(snapshot: &Snapshot, read: Vec<Arc<[u8]>>) -> Self {
        Self { read, own: is_sensitive(&snapshot.key.group_kind) }
    }

    /// Whether it saw any.
    pub(crate) fn is_tainted(&self) -> bool {
        self.own || !self.read.is_empty()
    }

    /// Whether it read a Secret besides the object: then values may stand anywhere.
    pub(crate) fn has_read(&self) -> bool {
        !self.read.is_empty()
    }

    /// A comparison without the plugin's words.
    pub(crate) fn comparison(&self, comparison: Comparison) -> Comparison {
        match comparison {
            Comparison::Invalid(_) if self.is_tainted() => Comparison::Invalid(WITHHELD.into()),
            Comparison::Unknown(_) if self.is_tainted() => Comparison::Unknown(WITHHELD.into()),
            other => other,
        }
    }

    /// The differences, all as they are without a taint; else those that lie where one of the
    /// objects has something, with the values that the objects have there: a path or a value of a
    /// plugin's own making says what it likes.
    pub(crate) fn differences(
        &self,
        differences: Vec<Difference>,
        snapshot: &Snapshot,
    ) -> Vec<Difference> {
        if !self.is_tainted() {
            return differences;
        }
        let places = Places::of(snapshot);
        let known = |mut it: Difference| {
            it.immutable = it.immutable.filter(|path| places.have(path));
            // Values of a Secret's data are never shown, and may be in another spelling there.
            if !redact::hides(&snapshot.key.group_kind, &it.path) {
                it.desired = it.desired.and_then(|_| value(places.desired.as_ref(), &it.path));
                it.live = it.live.and_then(|_| value(places.live.as_ref(), &it.path));
            }
            it
        };
        differences.into_iter().filter(|it| places.have(&it.path)).map(known).collect()
    }

    /// A verdict without the plugin's words.
    pub(crate) fn verdict(&self, verdict: Verdict, snapshot: &Snapshot) -> Verdict {
        if !self.is_tainted() {
            return verdict;
        }
        match verdict {
            Verdict::Unknown(_) => Verdict::Unknown(WITHHELD.into()),
            Verdict::Defer { after_ms, .. } => Verdict::Defer { reason: WITHHELD.into(), after_ms },
            Verdict::Decided(decision) => Verdict::Decided(self.silent(decision, snapshot)),
        }
    }

    /// Whether content that the plugin made carries a value that it saw.
    pub(crate) fn in_content(&self, content: &[u8], snapshot: &Snapshot) -> Option<Refusal> {
        if !self.is_tainted() {
            return None;
        }
        let refusal = |why: &str| Refusal {
            reason: REFUSED,
            message: format!("the content that the plugin made {why}, and is not written"),
        };
        let Ok(mut tree) = trimtab_json::parse(content) else {
            return Some(refusal("cannot be read after the plugin saw a Secret"));
        };
        let mut read = Values::default();
        for secret in &self.read {
            read.of(secret);
        }
        if read.are_in(&tree) {
            return Some(refusal("holds a value of a Secret that the plugin read"));
        }
        if self.own {
            let mut own = Values::default();
            own.of(&snapshot.desired.json);
            if let Some(live) = snapshot.live_object() {
                own.of(&live.json);
            }
            // Its own values belong into its own data, and nowhere else.
            if let Some(root) = tree.as_object_mut() {
                root.remove("data");
                root.remove("stringData");
            }
            if own.are_in(&tree) {
                return Some(refusal("holds a value of the Secret outside its data"));
            }
        }
        None
    }

    /// What the host acts on and scripts look for stays; of names, those that hold no value.
    fn silent(&self, mut decision: Decision, snapshot: &Snapshot) -> Decision {
        let mut values = Values::default();
        self.read.iter().for_each(|secret| values.of(secret));
        if self.own {
            values.of(&snapshot.desired.json);
            if let Some(live) = snapshot.live_object() {
                values.of(&live.json);
            }
        }
        let named = |name: &mut String| {
            if values.are_in_text(name.as_bytes()) {
                "withheld".clone_into(name);
            }
        };
        let places = Places::of(snapshot);
        for action in &mut decision.actions {
            match action {
                Action::Leave(reason) => WITHHELD.clone_into(reason),
                Action::RemoveFields(paths) => paths.retain(|path| places.have(path)),
                _ => {}
            }
        }
        for condition in &mut decision.conditions {
            WITHHELD.clone_into(&mut condition.message);
            named(&mut condition.type_);
            named(&mut condition.reason);
        }
        for finding in &mut decision.findings {
            WITHHELD.clone_into(&mut finding.message);
            named(&mut finding.name);
            finding.path = finding.path.take().filter(|path| places.have(path));
        }
        decision
    }
}

/// Where desired or live has something: a path that leads there says nothing new.
struct Places<'s> {
    desired: Option<Value<'s>>,
    live: Option<Value<'s>>,
}

impl<'s> Places<'s> {
    fn of(snapshot: &'s Snapshot) -> Self {
        let live = snapshot.live_object();
        Self {
            desired: trimtab_json::parse(&snapshot.desired.json).ok(),
            live: live.and_then(|live| trimtab_json::parse(&live.json).ok()),
        }
    }

    fn have(&self, path: &str) -> bool {
        let Ok(path) = Path::parse(path) else { return false };
        // What a Secret states as `stringData` is compared, and told, as the `data` that it becomes.
        let written = match path.steps() {
            [Step::Field(section), rest @ ..] if section == "data" => {
                let section = [Step::Field("stringData".into())];
                Some(section.iter().chain(rest).cloned().collect::<Path>())
            }
            _ => None,
        };
        let both = || [&self.desired, &self.live].into_iter().flatten();
        [Some(path), written]
            .iter()
            .flatten()
            .any(|path| both().any(|object| path.resolve(object).is_some()))
    }
}

/// JSON text of what stands there.
fn value(object: Option<&Value<'_>>, path: &str) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    trimtab_json::write(Path::parse(path).ok()?.resolve(object?)?, &mut text);
    Some(text)
}

/// Secret values in the spellings that are looked for.
#[derive(Default)]
struct Values {
    needles: Vec<Vec<u8>>,
    /// The same, letters and digits alone: a value with something between them is found so.
    squeezed: Vec<Vec<u8>>,
}

impl Values {
    /// Adds the values of a Secret.
    fn of(&mut self, secret: &[u8]) {
        let Ok(secret) = trimtab_json::parse(secret) else { return };
        for (section, encoded) in [("data", true), ("stringData", false)] {
            let members = secret.get(section).and_then(Value::as_object);
            for (_, value) in members.into_iter().flat_map(trimtab_json::Object::iter) {
                let Some(text) = value.as_str() else { continue };
                let decoded = encoded.then(|| trimtab_compare::decode_base64(text)).flatten();
                self.value(&decoded.unwrap_or_else(|| text.as_bytes().to_vec()));
            }
        }
    }

    fn value(&mut self, value: &[u8]) {
        let trimmed = value.trim_ascii();
        if trimmed.len() < SHORTEST {
            return;
        }
        for value in [value, trimmed] {
            let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
            let base64 = trimtab_compare::encode_base64(value);
            let base64 = base64.trim_end_matches('=').to_owned();
            self.needles.push(base64.replace('+', "-").replace('/', "_").into_bytes());
            self.needles.push(base64.into_bytes());
            self.needles.push(hex.to_uppercase().into_bytes());
            self.needles.push(hex.into_bytes());
            self.needles.push(value.iter().rev().copied().collect());
            self.needles.push(value.to_vec());
        }
        self.needles.sort();
        self.needles.dedup();
        self.squeezed = self.needles.iter().map(|needle| squeezed(needle)).collect();
        self.squeezed.retain(|needle| needle.len() >= SHORTEST_SQUEEZED);
    }

    /// Whether a key or a text of the tree holds one of them.
    fn are_in(&self, tree: &Value<'_>) -> bool {
        match tree {
            Value::Object(object) => object
                .iter()
                .any(|(name, value)| self.are_in_text(name.as_bytes()) || self.are_in(value)),
            Value::Array(items) => items.iter().any(|item| self.are_in(item)),
            other => other.scalar_text().is_some_and(|text| self.are_in_text(text.as_bytes())),
        }
    }

    fn are_in_text(&self, text: &[u8]) -> bool {
        let among = |needles: &[Vec<u8>], text: &[u8]| {
            let stands = |needle: &Vec<u8>| text.windows(needle.len()).any(|it| it == &needle[..]);
            needles.iter().any(stands)
        };
        among(&self.needles, text) || among(&self.squeezed, &squeezed(text))
    }
}

fn squeezed(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(u8::is_ascii_alphanumeric).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_plain_in_base64_in_hex_and_reversed_and_a_short_one_is_not_looked_for() {
        let mut values = Values::default();
        // "correct horse" and "short"
        values.of(br#"{"data":{"a":"Y29ycmVjdCBob3JzZQ==","b":"c2hvcnQ="}}"#);
        let found = |text: &str| {
            let json = format!(r#"{{"x":["{text}"]}}"#);
            values.are_in(&trimtab_json::parse(json.as_bytes()).unwrap())
        };
        for text in [
            "so correct horse!",
            "Y29ycmVjdCBob3JzZQ",
            "636f727265637420686f727365",
            "636F727265637420686F727365",
            "esroh tcerroc",
            "\\u0063orrect horse",
            "c.o.r.r.e.c.t. .h.o.r.s.e",
            "correct-horse",
        ] {
            assert!(found(text), "{text}");
        }
        for text in ["short", "correct", "c2hvcnQ="] {
            assert!(!found(text), "{text}");
        }
    }
}

//! Redaction: Secret values never leave the host, whatever carries them.
//!
//! In place of a value stands a keyed fingerprint: two equal values of one host have equal
//! fingerprints, and nothing can be learned from one without the host's key. Free text that may
//! quote a Secret (a server's refusal, a plugin's reason) is withheld whole.
//!
//! A value that was copied out of a Secret into another object (a URL with a password) is hidden
//! there, too, if the redactor was told of the Secret: see [`Redactor::aware_of`].

use crate::decision::{Condition, Difference, Finding};
use crate::identity::GroupKind;
use crate::reason;
use crate::record::Outcome;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use trimtab_json::Value;

/// Stands in for text that may quote a Secret's values.
const WITHHELD: &str = "(withheld: it may quote a Secret's values)";

/// Stands in for a Secret's value within other text.
const HIDDEN: &str = "(a Secret's value)";
/// Shorter values are words that stand everywhere (`true`, `admin`): hidden in their Secret alone.
const TELLING_BYTES: usize = 6;

/// Whether objects of this kind carry values that must not be shown.
pub fn is_sensitive(kind: &GroupKind) -> bool {
    kind.group.is_empty() && &*kind.kind == "Secret"
}

/// Replaces values by fingerprints under a key of this host.
#[derive(Clone)]
pub struct Redactor {
    key: [u8; 32],
    /// Values of Secrets as they may stand within the JSON text of other objects, each once.
    values: Arc<[Box<str>]>,
}

impl Redactor {
    /// With the host's own random key.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key, values: Arc::default() }
    }

    /// The same, and what these Secrets hold (whole objects, JSON text) is hidden wherever it
    /// stands: as it is, and in base64. Takes the place of the Secrets of before.
    pub fn aware_of<'s>(&self, secrets: impl IntoIterator<Item = &'s [u8]>) -> Self {
        let mut values = Vec::new();
        for secret in secrets.into_iter().filter_map(|json| trimtab_json::parse(json).ok()) {
            for (field, encoded) in [("data", true), ("stringData", false)] {
                let members = secret.get(field).and_then(Value::as_object);
                for (_, value) in members.into_iter().flat_map(|members| members.iter()) {
                    let Some(text) = value.as_str() else { continue };
                    if encoded {
                        let plain = trimtab_compare::decode_base64(text);
                        values.extend(plain.and_then(|plain| String::from_utf8(plain).ok()));
                        values.push(text.to_owned());
                    } else {
                        values.push(trimtab_compare::encode_base64(text.as_bytes()));
                        values.push(text.to_owned());
                    }
                }
            }
        }
        let mut values: Vec<Box<str>> = values.iter().filter_map(|value| telling(value)).collect();
        // The longest first: of two values of which one is within the other, both are hidden.
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self { key: self.key, values: values.into() }
    }

    /// The JSON string that stands for this value: `"fingerprint:0123456789ab"`.
    pub fn fingerprint(&self, value: &[u8]) -> Vec<u8> {
        // Key on both sides: SHA-256 alone lets a message be extended.
        let digest = Sha256::new()
            .chain_update(self.key)
            .chain_update(value)
            .chain_update(self.key)
            .finalize();
        let mut text = b"\"fingerprint:".to_vec();
        for byte in digest.iter().take(6) {
            text.extend_from_slice(format!("{byte:02x}").as_bytes());
        }
        text.push(b'"');
        text
    }

    /// These differences as they may be shown.
    pub fn differences(&self, kind: &GroupKind, differences: &[Difference]) -> Vec<Difference> {
        let mut shown = differences.to_vec();
        for difference in &mut shown {
            let hides = hides(kind, &difference.path);
            for bytes in [&mut difference.desired, &mut difference.live].into_iter().flatten() {
                if hides || self.quotes(bytes) {
                    *bytes = self.fingerprint(bytes);
                }
            }
        }
        shown
    }

    /// These differences with every value hidden: of a plugin that read Secrets, which may put
    /// their values anywhere.
    pub fn all(&self, differences: &[Difference]) -> Vec<Difference> {
        let mut shown = differences.to_vec();
        for difference in &mut shown {
            for bytes in [&mut difference.desired, &mut difference.live].into_iter().flatten() {
                *bytes = self.fingerprint(bytes);
            }
        }
        shown
    }

    /// This object as it may be shown: with the fingerprints that its differences have.
    pub fn object(&self, kind: &GroupKind, object: &mut Value<'_>) {
        self.beneath(kind, &mut String::new(), object);
    }

    fn beneath(&self, kind: &GroupKind, path: &mut String, value: &mut Value<'_>) {
        if let Value::Object(members) = value {
            members.retain(|name, value| {
                let length = path.len();
                path.push('/');
                path.push_str(name);
                self.beneath(kind, path, value);
                path.truncate(length);
                true
            });
            return;
        }
        if let Value::Array(items) = value {
            items.iter_mut().for_each(|item| self.beneath(kind, path, item));
            return;
        }
        let mut text = Vec::new();
        trimtab_json::write(value, &mut text);
        if hides(kind, path) || self.quotes(&text) {
            let shown = self.fingerprint(&text);
            let shown = String::from_utf8_lossy(&shown);
            *value = shown.trim_matches('"').to_owned().into();
        }
    }

    /// These findings as they may be shown.
    pub fn findings(&self, kind: &GroupKind, mut findings: Vec<Finding>) -> Vec<Finding> {
        for finding in &mut findings {
            finding.message = self.text(kind, std::mem::take(&mut finding.message));
        }
        findings
    }

    /// These conditions as they may be shown.
    pub fn conditions(&self, kind: &GroupKind, mut conditions: Vec<Condition>) -> Vec<Condition> {
        for condition in &mut conditions {
            condition.message = self.text(kind, std::mem::take(&mut condition.message));
        }
        conditions
    }

    /// This text of a plugin as it may be shown.
    pub fn text(&self, kind: &GroupKind, text: String) -> String {
        if is_sensitive(kind) { WITHHELD.to_owned() } else { self.without_values(text) }
    }

    /// A name or path of a plugin's making: all hidden where it holds a value.
    pub(crate) fn name(&self, name: String) -> String {
        let holds = self.values.iter().any(|value| name.contains(&**value));
        if holds { HIDDEN.to_owned() } else { name }
    }

    /// This outcome as it may be shown.
    pub fn outcome(&self, kind: &GroupKind, outcome: Outcome) -> Outcome {
        match outcome {
            // The word is ours, and holds nothing of the object.
            Outcome::Rejected(text) if is_sensitive(kind) => Outcome::Rejected(format!(
                "{}the API server refuses the Secret {WITHHELD}: `kubectl apply --dry-run=server` shows its message",
                reason::word_of(&text).map(|word| format!("{word}: ")).unwrap_or_default()
            )),
            Outcome::Rejected(text) => Outcome::Rejected(self.without_values(text)),
            Outcome::Left(text) => Outcome::Left(self.text(kind, text)),
            Outcome::Fault(text) => Outcome::Fault(self.text(kind, text)),
            Outcome::Deferred { reason, after } => {
                Outcome::Deferred { reason: self.text(kind, reason), after }
            }
            other => other,
        }
    }

    /// Whether this JSON text holds the value of a Secret.
    fn quotes(&self, json: &[u8]) -> bool {
        !self.values.is_empty()
            && std::str::from_utf8(json)
                .is_ok_and(|json| self.values.iter().any(|value| json.contains(&**value)))
    }

    fn without_values(&self, mut text: String) -> String {
        for value in self.values.iter() {
            if text.contains(&**value) {
                text = text.replace(&**value, HIDDEN);
            }
        }
        text
    }
}

/// The value as it stands within JSON text, if it is long enough to be known by.
fn telling(value: &str) -> Option<Box<str>> {
    let value = value.trim();
    if value.len() < TELLING_BYTES {
        return None;
    }
    let mut json = Vec::with_capacity(value.len() + 2);
    trimtab_json::write(&Value::from(value.to_owned()), &mut json);
    let inner = json.get(1..json.len() - 1)?;
    std::str::from_utf8(inner).ok().map(Into::into)
}

/// Whether the value at this path must not be shown, whatever it is.
pub(crate) fn hides(kind: &GroupKind, path: &str) -> bool {
    let within = |place: &str| {
        path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // The annotation may hold a whole Secret, and its path lies under /metadata. Other tools have
    // such annotations of their own.
    let carries_objects = path.contains("last-applied-configuration");
    is_sensitive(kind)
        && (path.is_empty()
            || path == "/metadata"
            || ["/data", "/stringData", "/metadata/annotations"].into_iter().any(within))
        || carries_objects
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::DifferenceKind;

    fn shown(kind: &str, path: &str) -> String {
        let difference = Difference {
            path: path.into(),
            kind: DifferenceKind::Changed,
            desired: Some(br#""hunter2""#.to_vec()),
            live: Some(br#""hunter2""#.to_vec()),
            immutable: None,
            managers: vec![],
        };
        let redactor = Redactor::new([7; 32]);
        let all = redactor.differences(&GroupKind::new("", kind), &[difference]);
        assert_eq!(all[0].desired, all[0].live, "equal values keep equal fingerprints");
        String::from_utf8(all[0].desired.clone().unwrap()).unwrap()
    }

    #[test]
    fn a_secret_value_is_shown_as_a_fingerprint_wherever_it_stands() {
        for path in ["", "/data/pw", "/stringData/pw", "/data", "/metadata/annotations"] {
            assert!(shown("Secret", path).starts_with("\"fingerprint:"), "{path}");
        }
        assert!(shown("Secret", "/metadata/annotations/a").starts_with("\"fingerprint:"));
        let annotation = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
        assert!(shown("ConfigMap", annotation).starts_with("\"fingerprint:"));
    }

    #[test]
    fn other_values_are_shown_as_they_are() {
        assert_eq!(shown("ConfigMap", "/data/pw"), "\"hunter2\"");
        assert_eq!(shown("Secret", "/metadata/labels/a"), "\"hunter2\"");
    }

    #[test]
    fn an_object_is_shown_with_the_fingerprints_that_its_differences_have() {
        let text = br#"{"kind":"Secret","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"hunter2","a":"b"}},"data":{"pw":"hunter2"},"type":"Opaque"}"#;
        let mut object = trimtab_json::parse(text).unwrap();
        Redactor::new([7; 32]).object(&GroupKind::new("", "Secret"), &mut object);
        let mut out = Vec::new();
        trimtab_json::write(&object, &mut out);
        let out = String::from_utf8(out).unwrap();
        assert!(!out.contains("hunter2") && !out.contains(r#""a":"b""#), "{out}");
        assert!(out.contains(r#""type":"Opaque""#), "{out}");
        assert!(out.contains(&format!(r#""pw":{}"#, shown("Secret", "/data/pw"))), "{out}");
    }

    #[test]
    fn a_value_that_was_copied_out_of_a_secret_is_hidden_wherever_it_stands() {
        let secrets: [&[u8]; 2] = [
            br#"{"kind":"Secret","data":{"pw":"aHVudGVyMg==","short":"YWJj"}}"#,
            br#"{"kind":"Secret","stringData":{"quoted":"say \"ahoy\""}}"#,
        ];
        let redactor = Redactor::new([7; 32]).aware_of(secrets);
        let kind = GroupKind::new("", "ConfigMap");
        let shown = |json: &str| {
            let difference = Difference {
                path: "/data/url".into(),
                kind: DifferenceKind::Changed,
                desired: Some(json.as_bytes().to_vec()),
                live: None,
                immutable: None,
                managers: vec![],
            };
            let all = redactor.differences(&kind, &[difference]);
            String::from_utf8(all[0].desired.clone().unwrap()).unwrap()
        };
        for quoting in [
            r#""postgres://u:hunter2@db""#,
            r#"["--pw","hunter2"]"#,
            r#""aHVudGVyMg==""#,
            r#""say \"ahoy\"""#,
            r#""c2F5ICJhaG95Ig==""#,
        ] {
            assert!(shown(quoting).starts_with("\"fingerprint:"), "{quoting}");
        }
        assert_eq!(shown(r#""abc and hunter""#), r#""abc and hunter""#);
        let text = redactor.text(&kind, "bad url postgres://u:hunter2@db".into());
        assert_eq!(text, "bad url postgres://u:(a Secret's value)@db");
    }

    #[test]
    fn fingerprints_of_two_hosts_differ() {
        let a = Redactor::new([1; 32]).fingerprint(b"x");
        assert_ne!(a, Redactor::new([2; 32]).fingerprint(b"x"));
    }
}

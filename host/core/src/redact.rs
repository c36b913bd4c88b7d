//! Redaction: Secret values never leave the host, whatever carries them.
//!
//! In place of a value stands a keyed fingerprint: two equal values of one host have equal
//! fingerprints, and nothing can be learned from one without the host's key. Free text that may
//! quote a Secret (a server's refusal, a plugin's reason) is withheld whole.

use crate::decision::{Difference, Finding};
use crate::identity::GroupKind;
use crate::record::Outcome;
use sha2::{Digest as _, Sha256};
use trimtab_json::Value;

/// Stands in for text that may quote a Secret's values.
const WITHHELD: &str = "(withheld: it may quote a Secret's values)";

/// Whether objects of this kind carry values that must not be shown.
pub fn is_sensitive(kind: &GroupKind) -> bool {
    kind.group.is_empty() && &*kind.kind == "Secret"
}

/// Replaces values by fingerprints under a key of this host.
#[derive(Clone)]
pub struct Redactor {
    key: [u8; 32],
}

impl Redactor {
    /// With the host's own random key.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key }
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
            if self.hides(kind, &difference.path) {
                for bytes in [&mut difference.desired, &mut difference.live].into_iter().flatten() {
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

    /// This object as it may be shown.
    pub fn object(&self, kind: &GroupKind, object: &mut Value<'_>) {
        let hide = |value: &mut Value<'_>| {
            let mut text = Vec::new();
            trimtab_json::write(value, &mut text);
            let shown = self.fingerprint(&text);
            let shown = String::from_utf8_lossy(&shown);
            *value = shown.trim_matches('"').to_owned().into();
        };
        for section in ["data", "stringData"].into_iter().filter(|_| is_sensitive(kind)) {
            match object.as_object_mut().and_then(|root| root.get_mut(section)) {
                Some(Value::Object(values)) => values.retain(|_, value| {
                    hide(value);
                    true
                }),
                Some(other) => hide(other),
                None => {}
            }
        }
        let metadata = object.as_object_mut().and_then(|root| root.get_mut("metadata"));
        let annotations = metadata
            .and_then(Value::as_object_mut)
            .and_then(|metadata| metadata.get_mut("annotations"))
            .and_then(Value::as_object_mut);
        if let Some(annotations) = annotations {
            annotations.retain(|name, value| {
                if self.hides(kind, name) {
                    hide(value);
                }
                true
            });
        }
    }

    /// These findings as they may be shown.
    pub fn findings(&self, kind: &GroupKind, mut findings: Vec<Finding>) -> Vec<Finding> {
        if is_sensitive(kind) {
            for finding in &mut findings {
                WITHHELD.clone_into(&mut finding.message);
            }
        }
        findings
    }

    /// This text of a plugin as it may be shown.
    pub fn text(&self, kind: &GroupKind, text: String) -> String {
        if is_sensitive(kind) { WITHHELD.to_owned() } else { text }
    }

    /// This outcome as it may be shown.
    pub fn outcome(&self, kind: &GroupKind, outcome: Outcome) -> Outcome {
        if !is_sensitive(kind) {
            return outcome;
        }
        match outcome {
            Outcome::Left(_) => Outcome::Left(WITHHELD.into()),
            Outcome::Rejected(_) => Outcome::Rejected(format!(
                "the API server refuses the Secret {WITHHELD}: `kubectl apply --dry-run=server` shows its message"
            )),
            Outcome::Fault(_) => Outcome::Fault(WITHHELD.into()),
            Outcome::Deferred { after, .. } => Outcome::Deferred { reason: WITHHELD.into(), after },
            other => other,
        }
    }

    /// Whether the value at this path must not be shown.
    fn hides(&self, kind: &GroupKind, path: &str) -> bool {
        // The annotation may hold a whole Secret, and its path lies under /metadata.
        let carries_objects = path.contains("last-applied-configuration");
        is_sensitive(kind)
            && (path.is_empty()
                || path.starts_with("/data")
                || path.starts_with("/stringData")
                || path == "/metadata"
                || path == "/metadata/annotations")
            || carries_objects
    }
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
        assert!(!out.contains("hunter2") && out.contains(r#""a":"b""#), "{out}");
        assert!(out.contains(&format!(r#""pw":{}"#, shown("Secret", "/data/pw"))), "{out}");
    }

    #[test]
    fn fingerprints_of_two_hosts_differ() {
        let a = Redactor::new([1; 32]).fingerprint(b"x");
        assert_ne!(a, Redactor::new([2; 32]).fingerprint(b"x"));
    }
}

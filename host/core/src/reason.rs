//! Reasons of refusals: the word that scripts branch on, then the sentence for people. Whoever says
//! no (the comparison, the API server), the word is the same.

use crate::decision::{Difference, DifferenceKind};
use crate::identity::GroupKind;
use crate::recreate::losing;

/// The server cannot read what managedFields remember of an object.
pub const STALE_MANAGED_FIELDS: &str = "stale_managed_fields_version";

/// Why the API server would refuse to apply desired, if the differences tell.
pub fn of_differences(kind: &GroupKind, differences: &[Difference]) -> Option<String> {
    if let Some(unknown) = unknown_field(differences) {
        return Some(unknown);
    }
    let frozen = differences.iter().find_map(|each| each.immutable.as_ref())?;
    Some(format!(
        "{}: {frozen} cannot be changed once the object exists; state its old value, or delete the object by hand to have it made anew",
        immutable_word(kind)
    ))
}

/// A field that the type's schema does not have, if there is one.
pub fn unknown_field(differences: &[Difference]) -> Option<String> {
    let unknown = differences.iter().find(|each| each.kind == DifferenceKind::Pruned)?;
    Some(format!(
        "unknown_field: the type's schema has no {}; correct its spelling or remove it",
        unknown.path
    ))
}

/// The server's refusal to change a field, with its word.
pub(crate) fn immutable(kind: &GroupKind, message: &str) -> String {
    format!("{}: {message}", immutable_word(kind))
}

/// Whether a text begins with a word of a reason: lower-case letters and `_`, then a colon.
pub(crate) fn word_of(text: &str) -> Option<&str> {
    let (word, _) = text.split_once(": ")?;
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    (word.contains('_') && word.bytes().all(is_word)).then_some(word)
}

fn immutable_word(kind: &GroupKind) -> &'static str {
    if losing(kind).is_some() { "immutable_field_stateful" } else { "immutable_field" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_keeps_its_word_whoever_says_it() {
        let text = immutable(&GroupKind::new("apps", "StatefulSet"), "spec: Forbidden: no");
        assert_eq!(text, "immutable_field_stateful: spec: Forbidden: no");
        assert_eq!(word_of(&text), Some("immutable_field_stateful"));
        assert_eq!(word_of("Deployment.apps \"a\" is invalid: no"), None);
        assert_eq!(word_of("spec: no"), None);
    }
}

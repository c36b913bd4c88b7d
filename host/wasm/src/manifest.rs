//! The manifest as a component carries it: one JSON object in a custom section.
//!
//! Takes the section's bytes and gives the core's [`PluginManifest`]. Strict: a key that the host
//! does not know could carry a promise that the host would not keep.

use crate::Error;
use crate::text::printable;
use std::collections::BTreeSet;
use trimtab_core::decision::ActionKind;
use trimtab_core::plugin::{KindPattern, PluginManifest};

/// Name of the component's custom section that holds the manifest.
pub const MANIFEST_SECTION: &str = "trimtab:manifest";

/// Largest manifest, in bytes. With every list at its bound it has about half of this.
pub const MAX_MANIFEST_BYTES: usize = 32 << 10;

/// Claims or reads in one manifest, each.
const MAX_PATTERNS: usize = 128;

/// Bytes of the description.
const MAX_DESCRIPTION_BYTES: usize = 400;

/// Bytes of one pattern over kinds: a group of 253 and a kind of 63.
const MAX_PATTERN_BYTES: usize = 320;

/// Bytes of a name: an RFC 1123 label.
const MAX_NAME_BYTES: usize = 63;

/// Bytes of a version.
const MAX_VERSION_BYTES: usize = 64;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    name: String,
    version: String,
    #[serde(default)]
    description: String,
    wit: String,
    claims: Vec<String>,
    #[serde(default)]
    reads: Vec<String>,
    #[serde(default)]
    actions: Vec<String>,
}

/// Reads a manifest from its JSON text.
///
/// # Errors
/// [`Error::Manifest`] with a sentence that names the key and says what it should be.
pub fn read(json: &[u8]) -> Result<PluginManifest, Error> {
    if json.len() > MAX_MANIFEST_BYTES {
        return Err(invalid(format!(
            "it has {} bytes, and at most {MAX_MANIFEST_BYTES} are read",
            json.len()
        )));
    }
    let wire: Wire = serde_json::from_slice(json)
        .map_err(|error| invalid(printable(&error.to_string(), MAX_DESCRIPTION_BYTES)))?;
    check_name(&wire.name)?;
    check_version("version", &wire.version)?;
    check_version("wit", &wire.wit)?;
    if wire.description.len() > MAX_DESCRIPTION_BYTES
        || printable(&wire.description, MAX_DESCRIPTION_BYTES) != wire.description
    {
        return Err(invalid(format!(
            "`description` is one line of at most {MAX_DESCRIPTION_BYTES} bytes"
        )));
    }
    if wire.claims.is_empty() {
        return Err(invalid(
            "`claims` names no kind: write for example claims = [\"Deployment.apps\"]".into(),
        ));
    }
    Ok(PluginManifest {
        claims: patterns("claims", &wire.claims)?,
        reads: patterns("reads", &wire.reads)?,
        actions: actions(&wire.actions)?,
        name: wire.name,
        version: wire.version,
        description: wire.description,
        wit: wire.wit,
    })
}

fn invalid(message: String) -> Error {
    Error::Manifest(message)
}

fn check_name(name: &str) -> Result<(), Error> {
    let label = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let bytes = name.as_bytes();
    let ends = |at: Option<&u8>| at.is_some_and(|c| label(*c));
    if name.len() <= MAX_NAME_BYTES
        && ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|&c| label(c) || c == b'-')
    {
        return Ok(());
    }
    Err(invalid(format!(
        "`name` is {:?}: it is made of lower-case letters, digits and '-', at most {MAX_NAME_BYTES}, with a letter or digit at both ends",
        printable(name, MAX_NAME_BYTES)
    )))
}

fn check_version(key: &str, version: &str) -> Result<(), Error> {
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let numeric = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
    let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'+');
    if version.len() <= MAX_VERSION_BYTES
        && version.bytes().all(allowed)
        && numbers.split('.').count() == 3
        && numbers.split('.').all(numeric)
    {
        return Ok(());
    }
    Err(invalid(format!(
        "`{key}` is {:?}: write a version of three numbers, such as 0.1.0",
        printable(version, MAX_VERSION_BYTES)
    )))
}

fn patterns(key: &str, texts: &[String]) -> Result<Vec<KindPattern>, Error> {
    if texts.len() > MAX_PATTERNS {
        return Err(invalid(format!(
            "`{key}` has {} entries, and at most {MAX_PATTERNS} are read: use *.group or *",
            texts.len()
        )));
    }
    let mut patterns = Vec::with_capacity(texts.len());
    for text in texts {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(invalid(format!("`{key}` has an entry of {} bytes", text.len())));
        }
        let pattern = KindPattern::parse(text)
            .map_err(|message| invalid(format!("`{key}`: {}", printable(&message, 1024))))?;
        if patterns.contains(&pattern) {
            return Err(invalid(format!("`{key}` names {pattern} twice")));
        }
        patterns.push(pattern);
    }
    Ok(patterns)
}

fn actions(words: &[String]) -> Result<BTreeSet<ActionKind>, Error> {
    let mut actions = BTreeSet::new();
    for word in words {
        let kind = ActionKind::parse(word).ok_or_else(|| {
            let all: Vec<_> = ActionKind::ALL.iter().map(|kind| kind.as_str()).collect();
            invalid(format!(
                "`actions` names {:?}, and there are {}",
                printable(word, MAX_NAME_BYTES),
                all.join(", ")
            ))
        })?;
        if !actions.insert(kind) {
            return Err(invalid(format!("`actions` names {kind} twice")));
        }
    }
    Ok(actions)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"name":"web","version":"1.2.3","description":"d","wit":"0.1.0",
        "claims":["Deployment.apps","*.batch","*"],"reads":["Service"],"actions":["apply-desired"]}"#;

    fn message(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from));
        read(GOOD.replace(from, to).as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_good_manifest_reads() {
        let manifest = read(GOOD.as_bytes()).unwrap();
        assert_eq!((manifest.claims.len(), manifest.reads.len()), (3, 1));
        assert!(manifest.actions.contains(&ActionKind::ApplyDesired));
    }

    #[test]
    fn every_fault_names_its_key_and_what_it_should_be() {
        for (from, to, says) in [
            ("\"wit\"", "\"wat\"", "unknown field `wat`"),
            ("\"web\"", "\"Web\"", "lower-case"),
            ("\"web\"", "\"../web\"", "lower-case"),
            ("\"web\"", "\"\"", "lower-case"),
            ("1.2.3", "1.2", "three numbers"),
            ("1.2.3", "1.2.3\\u001b", "three numbers"),
            ("Deployment.apps", "deployment", "not a kind"),
            ("Deployment.apps", "*", "twice"),
            ("[\"apply-desired\"]", "[\"write\"]", "there are apply-desired"),
            ("\"d\"", "\"a\\nb\"", "one line"),
            ("\"version\"", "\"name\"", "duplicate field `name`"),
            ("[\"Deployment.apps\",\"*.batch\",\"*\"]", "[]", "names no kind"),
        ] {
            let message = message(from, to);
            assert!(message.contains(says), "{from} → {to}: {message}");
        }
    }

    #[test]
    fn a_huge_manifest_is_not_parsed() {
        let huge = vec![b' '; MAX_MANIFEST_BYTES + 1];
        assert!(read(&huge).unwrap_err().to_string().contains("at most"));
    }
}

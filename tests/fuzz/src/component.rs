//! A plugin's file, as `plugin inspect` and the host read it before any compiler does.

use crate::MESSAGE_BYTES;
use serde_json::json;
use trimtab_core::identity::Digest;
use trimtab_core::plugin::PluginManifest;
use trimtab_wasm::{MANIFEST_SECTION, WIT_VERSIONS, inspect, read_manifest};

/// How a component begins.
const HEADER: &[u8] = b"\0asm\x0d\0\x01\0";
/// Sections, by their numbers.
const CUSTOM: u8 = 0;
const EXPORTS: u8 = 11;
/// The export that makes a component a plugin: its name, of an instance, of index 0, without a type.
const RECONCILER: &[u8] = b"trimtab:plugin/reconciler@0.1.0";

/// Any bytes: as a file, as what follows a component's header, and as the manifest of a component
/// that is else a plugin.
pub fn component(data: &[u8]) {
    file(data);
    file(&[HEADER, data].concat());
    manifest(data);
}

fn file(bytes: &[u8]) {
    match inspect(bytes) {
        Ok(seen) => {
            assert_eq!((seen.size, seen.digest), (bytes.len(), Digest::of(bytes)));
            assert!(WIT_VERSIONS.contains(&&*seen.wit) && seen.manifest.wit == seen.wit);
            for name in &seen.imports {
                let ours = ["log", "lookup", "types"]
                    .iter()
                    .any(|it| *name == format!("trimtab:plugin/{it}@{}", seen.wit));
                // Told, so that nobody grants it unseen.
                let wasi = name.starts_with("wasi:") && seen.wasi().any(|it| it == name);
                assert!(ours || wasi, "imports {name:?}");
            }
            lawful(&seen.manifest);
        }
        Err(error) => shown(&error.to_string()),
    }
}

/// The manifest decides alone whether a component that has what it takes is a plugin.
fn manifest(data: &[u8]) {
    let read = read_manifest(data);
    let mut exports = vec![1, 0];
    name(RECONCILER, &mut exports);
    exports.extend([5, 0, 0]);
    let mut custom = Vec::new();
    name(MANIFEST_SECTION.as_bytes(), &mut custom);
    custom.extend_from_slice(data);
    let mut bytes = HEADER.to_vec();
    for (id, body) in [(EXPORTS, exports), (CUSTOM, custom)] {
        bytes.push(id);
        length(body.len(), &mut bytes);
        bytes.extend(body);
    }
    let inspected = inspect(&bytes);
    match &read {
        Ok(manifest) if manifest.wit == "0.1.0" => {
            lawful(manifest);
            let seen = inspected.expect("a component with a good manifest is a plugin");
            assert_eq!(&seen.manifest, manifest);
            let again = read_manifest(&text(manifest)).expect("a manifest's own text is one");
            assert_eq!(&again, manifest);
        }
        Ok(_) => assert!(inspected.is_err(), "built against another WIT than it says"),
        Err(error) => {
            shown(&error.to_string());
            assert!(inspected.is_err(), "a component without a good manifest is no plugin");
        }
    }
}

/// What holds for every manifest that was read.
fn lawful(manifest: &PluginManifest) {
    let label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    assert!((1..=63).contains(&manifest.name.len()) && manifest.name.chars().all(label));
    assert!(!manifest.claims.is_empty() && manifest.claims.len().max(manifest.reads.len()) <= 128);
    assert!(manifest.description.chars().all(|c| !c.is_control()));
}

/// A message goes to a terminal and a log: one line, and not without end.
fn shown(message: &str) {
    assert!(message.len() <= MESSAGE_BYTES, "{} bytes of message", message.len());
    assert!(!message.chars().any(char::is_control), "a control character in {message:?}");
}

fn text(manifest: &PluginManifest) -> Vec<u8> {
    let words = |list: Vec<String>| list;
    json!({
        "name": manifest.name,
        "version": manifest.version,
        "description": manifest.description,
        "wit": manifest.wit,
        "claims": words(manifest.claims.iter().map(ToString::to_string).collect()),
        "reads": words(manifest.reads.iter().map(ToString::to_string).collect()),
        "actions": words(manifest.actions.iter().map(ToString::to_string).collect()),
    })
    .to_string()
    .into_bytes()
}

fn name(name: &[u8], out: &mut Vec<u8>) {
    length(name.len(), out);
    out.extend_from_slice(name);
}

/// LEB128.
fn length(mut value: usize, out: &mut Vec<u8>) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

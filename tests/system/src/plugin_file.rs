//! Plugin files for tests, made from ours byte by byte: another version, another name, a damaged
//! or an empty one. A component is a header and sections, each an id, a length and content.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

const MANIFEST: &str = "trimtab:manifest";
const HEADER: usize = 8;
const CUSTOM: u8 = 0;

/// The same component with another version in its manifest: another file with another digest,
/// as a newer build is.
///
/// # Errors
/// As [`with_manifest`].
pub fn with_version(component: &[u8], version: &str) -> Result<Vec<u8>> {
    with_manifest(component, |manifest| manifest["version"] = version.into())
}

/// The same component with its manifest changed.
///
/// # Errors
/// These bytes are no component with a manifest.
pub fn with_manifest(component: &[u8], change: impl FnOnce(&mut Value)) -> Result<Vec<u8>> {
    let mut changed = component.get(..HEADER).context("the file is too short")?.to_vec();
    let mut rest = &component[HEADER..];
    let mut manifest = None;
    while let Some((&id, after_id)) = rest.split_first() {
        let (length, content) = number(after_id)?;
        let content = content.get(..length).context("a section is cut off")?;
        let end = (content.as_ptr() as usize - rest.as_ptr() as usize) + length;
        match (id, custom(content)?) {
            (CUSTOM, (name, data)) if name == MANIFEST.as_bytes() => manifest = Some(data),
            _ => changed.extend_from_slice(&rest[..end]),
        }
        rest = &rest[end..];
    }
    let Some(manifest) = manifest else { bail!("the component carries no {MANIFEST} section") };
    let mut manifest: Value = serde_json::from_slice(manifest)?;
    change(&mut manifest);
    append_manifest(&mut changed, &serde_json::to_vec(&manifest)?);
    Ok(changed)
}

/// A valid component that exports nothing, and says of itself what a plugin would.
pub fn bare_component() -> Vec<u8> {
    let mut component = b"\0asm\x0d\0\x01\0".to_vec();
    let manifest = r#"{"name":"bare","version":"0.1.0","wit":"0.1.0","claims":["ConfigMap"],
        "actions":["apply-desired"]}"#;
    append_manifest(&mut component, manifest.as_bytes());
    component
}

/// A valid core module: WebAssembly, and no component.
pub fn core_module() -> Vec<u8> {
    b"\0asm\x01\0\0\0".to_vec()
}

fn append_manifest(component: &mut Vec<u8>, json: &[u8]) {
    let mut content = Vec::new();
    append_number(&mut content, MANIFEST.len());
    content.extend_from_slice(MANIFEST.as_bytes());
    content.extend_from_slice(json);
    component.push(CUSTOM);
    append_number(component, content.len());
    component.extend_from_slice(&content);
}

/// Name and data of a custom section; of any other section, something that is no name of ours.
fn custom(content: &[u8]) -> Result<(&[u8], &[u8])> {
    let Ok((length, rest)) = number(content) else { return Ok((&[], &[])) };
    Ok(rest.split_at_checked(length).unwrap_or((&[], &[])))
}

/// An unsigned LEB128 number and what follows it.
fn number(bytes: &[u8]) -> Result<(usize, &[u8])> {
    let mut value = 0usize;
    for (index, byte) in bytes.iter().take(5).enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok((value, &bytes[index + 1..]));
        }
    }
    bail!("a section's length is cut off")
}

fn append_number(bytes: &mut Vec<u8>, mut value: usize) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_another_file_and_nothing_else_changes() {
        let mut component = b"\0asm\x0d\0\x01\0".to_vec();
        component.extend_from_slice(&[7, 2, 0xaa, 0xbb]);
        append_manifest(&mut component, br#"{"name":"a","version":"0.1.0"}"#);
        let changed = with_version(&component, "0.1.1").unwrap();
        assert_ne!(changed, component);
        assert!(String::from_utf8_lossy(&changed).contains(r#""version":"0.1.1""#));
        assert_eq!(with_version(&changed, "0.1.0").unwrap(), component);
    }
}

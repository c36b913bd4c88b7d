//! Plugin files for tests, made from ours byte by byte: another version, another name, a damaged
//! or an empty one. A component is a header and sections, each an id, a length and content.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::ops::Range;

const MANIFEST: &str = "trimtab:manifest";
const WASI: &str = "wasi:random/random@0.2.3";
const RECONCILER: &str = "trimtab:plugin/reconciler@0.1.0";
const HEADER: usize = 8;
const CUSTOM: u8 = 0;
/// Sections of a component and of a core module.
const CORE_MODULE: u8 = 1;
const IMPORTS: u8 = 2;
const EXPORTS: u8 = 7;
const CODE: u8 = 10;
const MEMORIES: u8 = 5;
const CORE_INSTANCES: u8 = 2;
const INSTANCES: u8 = 5;
const COMPONENT_EXPORTS: u8 = 11;
const UNREACHABLE: u8 = 0;

const BARE_MANIFEST: &str = r#"{"name":"bare","version":"0.1.0","wit":"0.1.0","claims":["ConfigMap"],
    "actions":["apply-desired"]}"#;

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

/// The same component with a `compare` that traps at once: each byte of its body is `unreachable`.
///
/// # Errors
/// These bytes are no component with a core module that exports it.
pub fn trapping(component: &[u8]) -> Result<Vec<u8>> {
    let mut changed = component.to_vec();
    for (id, module) in sections(component, HEADER..component.len())? {
        if id == CORE_MODULE
            && let Some(body) = compare_body(component, module)?
        {
            let end = body.end - 1;
            changed[body.start..end].fill(UNREACHABLE);
            return Ok(changed);
        }
    }
    bail!("no core module of the component exports compare")
}

/// The same component with an import of WASI more, which it does not use: as a toolchain's standard
/// library makes one.
///
/// # Errors
/// These bytes are no component.
pub fn with_wasi(component: &[u8]) -> Result<Vec<u8>> {
    const TYPES: u8 = 7;
    const COMPONENT_IMPORTS: u8 = 10;
    let known = wasmparser::Validator::new().validate_all(component)?;
    let mut changed = component.to_vec();
    // The type of an instance of which nothing is asked, and the import of one by its number.
    append_section(&mut changed, TYPES, &[1, 0x42, 0]);
    let mut import = vec![1, 0];
    append_number(&mut import, WASI.len());
    import.extend_from_slice(WASI.as_bytes());
    import.push(5);
    append_number(&mut import, known.as_ref().component_type_count() as usize);
    append_section(&mut changed, COMPONENT_IMPORTS, &import);
    Ok(changed)
}

/// Where the instructions of `compare` are, the final `end` included.
fn compare_body(bytes: &[u8], module: Range<usize>) -> Result<Option<Range<usize>>> {
    let sections = sections(bytes, module.start + HEADER..module.end)?;
    let section =
        |wanted: u8| sections.iter().find(|(id, _)| *id == wanted).map(|(_, at)| at.clone());
    let (Some(exports), Some(code)) = (section(EXPORTS), section(CODE)) else { return Ok(None) };
    let mut imported = 0;
    if let Some(imports) = section(IMPORTS) {
        let mut at = Reader { bytes, at: imports.start };
        for _ in 0..at.number()? {
            at.name()?;
            at.name()?;
            match at.byte()? {
                0 => {
                    at.number()?;
                    imported += 1;
                }
                other => bail!("an import of kind {other}, which ours do not have"),
            }
        }
    }
    let mut at = Reader { bytes, at: exports.start };
    let mut index = None;
    for _ in 0..at.number()? {
        let name = at.name()?;
        let kind = at.byte()?;
        let number = at.number()?;
        if kind == 0 && name.ends_with(b"#compare") {
            index = Some(number);
        }
    }
    let Some(index) = index.and_then(|index| index.checked_sub(imported)) else { return Ok(None) };
    let mut at = Reader { bytes, at: code.start };
    at.number()?;
    for _ in 0..index {
        let length = at.number()?;
        at.at += length;
    }
    let length = at.number()?;
    let end = at.at + length;
    for _ in 0..at.number()? {
        at.number()?;
        at.byte()?;
    }
    Ok(Some(at.at..end))
}

/// Id and content of each section.
fn sections(bytes: &[u8], within: Range<usize>) -> Result<Vec<(u8, Range<usize>)>> {
    let mut at = Reader { bytes, at: within.start };
    let mut sections = Vec::new();
    while at.at < within.end {
        let id = at.byte()?;
        let length = at.number()?;
        sections.push((id, at.at..at.at + length));
        at.at += length;
    }
    Ok(sections)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8> {
        let byte = *self.bytes.get(self.at).context("the file is cut off")?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<usize> {
        let rest = self.bytes.get(self.at..).context("the file is cut off")?;
        let (value, after) = number(rest)?;
        self.at += rest.len() - after.len();
        Ok(value)
    }

    fn name(&mut self) -> Result<&'a [u8]> {
        let length = self.number()?;
        let name = self.bytes.get(self.at..self.at + length).context("the file is cut off")?;
        self.at += length;
        Ok(name)
    }
}

/// A valid component that exports nothing, and says of itself what a plugin would.
pub fn bare_component() -> Vec<u8> {
    let mut component = b"\0asm\x0d\0\x01\0".to_vec();
    append_manifest(&mut component, BARE_MANIFEST.as_bytes());
    component
}

/// The component with this instance under the name of the contract's interface, and a manifest: what
/// is compiled before anybody sees that it is not the contract's.
fn with_reconciler(mut component: Vec<u8>, instance: &[u8], manifest: &str) -> Vec<u8> {
    append_section(&mut component, INSTANCES, instance);
    let mut exports = vec![1, 0];
    append_number(&mut exports, RECONCILER.len());
    exports.extend_from_slice(RECONCILER.as_bytes());
    exports.extend([INSTANCES, 0, 0]);
    append_section(&mut component, COMPONENT_EXPORTS, &exports);
    append_manifest(&mut component, manifest.as_bytes());
    component
}

/// What the bombs say of themselves: a kind that nothing else claims.
const BOMB_MANIFEST: &str = r#"{"name":"bomb","version":"0.1.0","wit":"0.1.0","claims":["Lease.coordination.k8s.io"],
        "actions":["apply-desired"]}"#;

/// How many core instances [`instance_bomb`] has.
const INSTANCE_COUNT: usize = 1_000;

/// A valid component of one small module and very many instances of it, each with a memory.
pub fn instance_bomb() -> Vec<u8> {
    let mut module = core_module();
    append_section(&mut module, MEMORIES, &[1, 0, 1]);
    let mut bomb = b"\0asm\x0d\0\x01\0".to_vec();
    append_section(&mut bomb, CORE_MODULE, &module);
    let mut instances = Vec::new();
    append_number(&mut instances, INSTANCE_COUNT);
    instances.extend([0, 0, 0].repeat(INSTANCE_COUNT));
    append_section(&mut bomb, CORE_INSTANCES, &instances);
    with_reconciler(bomb, &[1, 1, 0], BARE_MANIFEST)
}

/// The same component with this many bytes more that nobody reads.
pub fn with_ballast(component: &[u8], bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    content[0] = 1;
    content[1] = b'x';
    let mut large = component.to_vec();
    append_section(&mut large, CUSTOM, &content);
    large
}

/// A valid core module: WebAssembly, and no component.
pub fn core_module() -> Vec<u8> {
    b"\0asm\x01\0\0\0".to_vec()
}

/// A plugin file of some 200 KB that the compiler needs more memory for than a worker has, within a
/// second. Each of its loops may change each of its variables, and the compiler keeps an account of
/// every pair until it has seen the loop's end.
pub fn compile_bomb() -> Vec<u8> {
    loops_and_variables(5_000, 20_000)
}

/// A plugin file of some 8 KB that the compiler is busy with for minutes, in little memory.
pub fn slow_compile_bomb() -> Vec<u8> {
    loops_and_variables(500, 500)
}

/// A plugin by its outside (a manifest, the export); inside, one function of so many loops, each
/// within the one before, which set so many variables in the innermost.
fn loops_and_variables(loops: usize, variables: usize) -> Vec<u8> {
    const I32: u8 = 0x7f;
    const EMPTY: u8 = 0x40;
    const LOOP: u8 = 0x03;
    const END: u8 = 0x0b;
    const BR_IF: u8 = 0x0d;
    const GET: u8 = 0x20;
    const SET: u8 = 0x21;
    const CONST: u8 = 0x41;
    const ADD: u8 = 0x6a;
    let mut body = vec![1];
    append_number(&mut body, variables);
    body.push(I32);
    body.extend([LOOP, EMPTY].repeat(loops));
    for variable in 0..variables {
        body.push(GET);
        append_number(&mut body, variable);
        body.extend([CONST, 1, ADD, SET]);
        append_number(&mut body, variable);
    }
    for at in 0..loops {
        body.push(GET);
        append_number(&mut body, at % variables);
        body.extend([BR_IF, 0, END]);
    }
    body.push(END);
    let mut code = vec![1];
    append_number(&mut code, body.len());
    code.extend(body);
    let mut module = core_module();
    append_section(&mut module, 1, &[1, 0x60, 0, 0]);
    append_section(&mut module, 3, &[1, 0]);
    append_section(&mut module, CODE, &code);

    let mut component = b"\0asm\x0d\0\x01\0".to_vec();
    append_section(&mut component, CORE_MODULE, &module);
    // An instance that holds nothing.
    with_reconciler(component, &[1, 0x01, 0], BOMB_MANIFEST)
}

fn append_manifest(component: &mut Vec<u8>, json: &[u8]) {
    let mut content = Vec::new();
    append_number(&mut content, MANIFEST.len());
    content.extend_from_slice(MANIFEST.as_bytes());
    content.extend_from_slice(json);
    append_section(component, CUSTOM, &content);
}

fn append_section(bytes: &mut Vec<u8>, id: u8, content: &[u8]) {
    bytes.push(id);
    append_number(bytes, content.len());
    bytes.extend_from_slice(content);
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
    fn a_compile_bomb_is_a_plugin_by_its_outside() {
        for bomb in [compile_bomb(), slow_compile_bomb()] {
            assert_eq!(trimtab_wasm::inspect(&bomb).unwrap().manifest.name, "bomb");
        }
    }

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

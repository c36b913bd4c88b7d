//! What a file says of itself, read without compiling or running anything.
//!
//! Takes the file's bytes and gives an [`Inspection`], or the one reason why the file is no
//! plugin for this host. The import allow-list is checked here, before any compiler sees the
//! code, and names are all that is trusted: types are checked when the component is linked.

use crate::manifest::{self, MANIFEST_SECTION, MAX_MANIFEST_BYTES};
use crate::text::printable;
use crate::{Error, MAX_COMPONENT_BYTES, WIT_VERSIONS};
use trimtab_core::identity::Digest;
use trimtab_core::plugin::{PluginIdentity, PluginManifest};
use wasmparser::{Encoding, Parser, Payload};

/// Package of the contract.
const PACKAGE: &str = "trimtab:plugin/";

/// Interfaces of the contract that a component may import: two with functions, one of types.
const IMPORTABLE: [&str; 3] = ["log", "lookup", "types"];

/// What the import of every interface of WASI begins with.
const WASI: &str = "wasi:";

/// Packages that are linked, closed. The others (HTTP, key-value stores, neural networks) no plugin
/// gets.
const LINKED_WASI: [&str; 6] = ["cli", "clocks", "filesystem", "io", "random", "sockets"];

/// The interface that makes a component a reconciler.
const RECONCILER: &str = "reconciler";

/// The interface that makes it a policy.
const POLICY: &str = "policy";

/// Imports or exports of one component. Ours have four; against lists made to be printed.
const MAX_NAMES: usize = 64;

/// Bytes of a name in a message.
const SHOWN_BYTES: usize = 120;

/// What a plugin's file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// SHA-256 of the file: what a grant is pinned to.
    pub digest: Digest,
    /// Size of the file in bytes.
    pub size: usize,
    /// Who it is and what it asks for.
    pub manifest: PluginManifest,
    /// The component's imports, such as `trimtab:plugin/log@0.1.0`.
    pub imports: Vec<String>,
    /// The component's exports.
    pub exports: Vec<String>,
    /// The WIT version that it was built against.
    pub wit: String,
}

impl Inspection {
    /// Which code this is.
    pub fn identity(&self) -> PluginIdentity {
        PluginIdentity {
            name: self.manifest.name.clone(),
            version: self.manifest.version.clone(),
            digest: self.digest,
        }
    }

    /// Whether it compares and decides.
    pub fn reconciles(&self) -> bool {
        has(&self.exports, RECONCILER)
    }

    /// Whether it reviews.
    pub fn reviews(&self) -> bool {
        has(&self.exports, POLICY)
    }

    /// Its imports of WASI, by name. It is linked to one that is closed: no files, arguments,
    /// variables or network, time and random numbers fixed by the pass.
    pub fn wasi(&self) -> impl Iterator<Item = &str> {
        self.imports.iter().map(String::as_str).filter(|name| name.starts_with(WASI))
    }
}

/// Reads what a file says of itself. Runs nothing and compiles nothing.
///
/// # Errors
/// The reason why the file is no plugin for this host; see [`Error`].
pub fn inspect(bytes: &[u8]) -> Result<Inspection, Error> {
    let (manifest, outline) = outline(bytes)?;
    let wit = check_names(&outline)?;
    let manifest = manifest::read(manifest.ok_or(Error::NoManifest)?)?;
    if manifest.wit != wit {
        return Err(Error::Manifest(format!(
            "`wit` is {}, and the component is built against trimtab:plugin@{wit}",
            manifest.wit
        )));
    }
    Ok(Inspection {
        digest: Digest::of(bytes),
        size: bytes.len(),
        manifest,
        imports: outline.imports,
        exports: outline.exports,
        wit,
    })
}

/// The WIT version that a component was built against, with or without a manifest: for whoever
/// writes the manifest.
///
/// # Errors
/// As for [`inspect`].
pub fn wit_version(bytes: &[u8]) -> Result<String, Error> {
    check_names(&outline(bytes)?.1)
}

#[derive(Default)]
struct Outline {
    imports: Vec<String>,
    exports: Vec<String>,
}

/// The top level of the component: its manifest section and the names at its edge.
fn outline(bytes: &[u8]) -> Result<(Option<&[u8]>, Outline), Error> {
    check_header(bytes)?;
    let mut outline = Outline::default();
    let mut manifest = None;
    let mut depth = 0usize;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(damaged)? {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if depth == 1 && section.name() == MANIFEST_SECTION => {
                if section.data().len() > MAX_MANIFEST_BYTES {
                    return Err(Error::Manifest(format!(
                        "it has {} bytes, and at most {MAX_MANIFEST_BYTES} are read",
                        section.data().len()
                    )));
                }
                if manifest.replace(section.data()).is_some() {
                    return Err(Error::Manifest(
                        "the file carries two, and it would be a matter of taste which one counts"
                            .into(),
                    ));
                }
            }
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    outline.imports.push(import.map_err(damaged)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    outline.exports.push(export.map_err(damaged)?.name.name.to_owned());
                }
            }
            _ => {}
        }
        if outline.imports.len().max(outline.exports.len()) > MAX_NAMES {
            return Err(Error::Compile(format!("it has more than {MAX_NAMES} imports or exports")));
        }
    }
    Ok((manifest, outline))
}

fn check_header(bytes: &[u8]) -> Result<(), Error> {
    if bytes.len() > MAX_COMPONENT_BYTES {
        return Err(Error::TooLarge { size: bytes.len(), max: MAX_COMPONENT_BYTES });
    }
    if bytes.is_empty() {
        return Err(Error::NotWasm("the file is empty".into()));
    }
    if !bytes.starts_with(b"\0asm") {
        let what = match bytes.first() {
            Some(b'(') => "it is WebAssembly text".to_owned(),
            _ => format!(
                "it begins with {:?}",
                printable(&String::from_utf8_lossy(&bytes[..bytes.len().min(8)]), 16)
            ),
        };
        return Err(Error::NotWasm(what));
    }
    match Parser::new(0).parse_all(bytes).next() {
        Some(Ok(Payload::Version { encoding: Encoding::Component, .. })) => Ok(()),
        Some(Ok(_)) => Err(Error::CoreModule),
        Some(Err(error)) => Err(damaged(error)),
        None => Err(Error::NotWasm("the file is empty".into())),
    }
}

fn damaged(error: wasmparser::BinaryReaderError) -> Error {
    Error::Damaged { offset: error.offset(), message: printable(error.message(), SHOWN_BYTES) }
}

/// Whether this is an interface of WASI 0.2 that is linked under a grant that says so.
fn is_linked_wasi(import: &str) -> bool {
    let parts = import.strip_prefix(WASI).and_then(|rest| rest.split_once('/'));
    parts.is_some_and(|(package, interface)| {
        LINKED_WASI.contains(&package)
            && interface.split_once('@').is_some_and(|(_, version)| version.starts_with("0.2."))
    })
}

/// Checks the names at the component's edge; gives the WIT version it was built against.
fn check_names(outline: &Outline) -> Result<String, Error> {
    let mut version: Option<&str> = None;
    for name in outline.imports.iter().chain(&outline.exports) {
        // Of another version: said first, since every other fault may follow from it.
        if let Some(found) = name.strip_prefix(PACKAGE).and_then(|rest| rest.split_once('@')) {
            if !WIT_VERSIONS.contains(&found.1) {
                return Err(Error::WitVersion { found: printable(found.1, SHOWN_BYTES) });
            }
            if version.is_some_and(|version| version != found.1) {
                return Err(Error::Compile("it mixes versions of trimtab:plugin".into()));
            }
            version = Some(found.1);
        }
    }
    for name in &outline.imports {
        let interface = name.strip_prefix(PACKAGE).and_then(|rest| rest.split_once('@'));
        let ours = interface.is_some_and(|(interface, _)| IMPORTABLE.contains(&interface));
        if !ours && !is_linked_wasi(name) {
            return Err(Error::Import { name: printable(name, SHOWN_BYTES) });
        }
    }
    let plays_a_part = [RECONCILER, POLICY].iter().any(|it| has(&outline.exports, it));
    match version {
        Some(version) if plays_a_part => Ok(version.to_owned()),
        _ => Err(Error::WrongWorld {
            exports: match outline.exports.as_slice() {
                [] => "it exports nothing".into(),
                names => format!("it exports {}", printable(&names.join(", "), SHOWN_BYTES)),
            },
        }),
    }
}

/// Whether this interface of the contract is among the names.
fn has(names: &[String], interface: &str) -> bool {
    names.iter().any(|name| {
        let found = name.strip_prefix(PACKAGE).and_then(|rest| rest.split_once('@'));
        found.is_some_and(|(found, _)| found == interface)
    })
}

#[cfg(test)]
mod tests {
    use super::is_linked_wasi;

    #[test]
    fn what_is_linked_is_of_wasi_0_2_and_of_its_closed_packages() {
        for name in ["wasi:cli/environment@0.2.0", "wasi:io/poll@0.2.6", "wasi:sockets/tcp@0.2.3"] {
            assert!(is_linked_wasi(name), "{name}");
        }
        for name in [
            "wasi:http/outgoing-handler@0.2.0",
            "wasi:cli/environment@0.3.0",
            "wasi:cli/environment",
            "wasi_snapshot_preview1",
            "wasi:keyvalue/store@0.2.0",
        ] {
            assert!(!is_linked_wasi(name), "{name}");
        }
    }
}

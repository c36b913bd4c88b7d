//! From a core module to a plugin's file: strip, encode as a component, add the manifest.

use crate::Error;
use wasm_encoder::{ComponentSection, CustomSection, RawSection};
use wasmparser::{Parser, Payload};

/// Begins the names of the custom sections that carry the contract from the bindings to the
/// encoder.
const CONTRACT_SECTIONS: &str = "component-type";

/// The component of this core module, without its manifest.
pub(crate) fn encode(package: &str, core: &[u8]) -> Result<Vec<u8>, Error> {
    let failed = |message: String| Error::Component { package: package.to_owned(), message };
    let (stripped, has_contract) = strip(core).map_err(|error| failed(error.to_string()))?;
    if !has_contract {
        return Err(failed(
            "it exports no plugin: call `trimtab_sdk::export!` at the top level of src/lib.rs"
                .into(),
        ));
    }
    wit_component::ComponentEncoder::default()
        .validate(true)
        .module(&stripped)
        .and_then(|encoder| encoder.encode())
        .map_err(|error| failed(format!("{error:#}")))
}

/// The component with its manifest.
pub(crate) fn with_manifest(component: &[u8], json: &[u8]) -> Vec<u8> {
    let mut component = without_names(component);
    let section = CustomSection { name: trimtab_wasm::MANIFEST_SECTION.into(), data: json.into() };
    ComponentSection::append_to_component(&section, &mut component);
    component
}

/// Without the component's own names, which the encoder writes and nobody reads.
fn without_names(component: &[u8]) -> Vec<u8> {
    let mut lean = Vec::with_capacity(component.len());
    let mut copied = 0;
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component).map_while(Result::ok) {
        match &payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Payload::CustomSection(section) = payload
            && section.name() == "component-name"
            && depth == 0
        {
            // The section's header: its id, and its size in as many bytes as that needs.
            let range = section.range();
            let size_bytes = (1..=5).find(|bytes| range.len() < 1 << (7 * bytes)).unwrap_or(5);
            let start = range.start.saturating_sub(1 + size_bytes);
            lean.extend_from_slice(component.get(copied..start).unwrap_or_default());
            copied = range.end;
        }
    }
    lean.extend_from_slice(component.get(copied..).unwrap_or_default());
    lean
}

/// Without names, debug information and producers, which nobody reads in the sandbox; the second
/// value is whether the contract's sections were there.
fn strip(core: &[u8]) -> wasmparser::Result<(Vec<u8>, bool)> {
    let mut module = wasm_encoder::Module::new();
    let mut has_contract = false;
    for payload in Parser::new(0).parse_all(core) {
        let payload = payload?;
        if let Payload::CustomSection(section) = &payload {
            if !section.name().starts_with(CONTRACT_SECTIONS) {
                continue;
            }
            has_contract = true;
        }
        if let Some((id, range)) = payload.as_section() {
            let data = core.get(range).unwrap_or_default();
            module.section(&RawSection { id, data });
        }
    }
    Ok((module.finish(), has_contract))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_without_the_contract_is_told_to_export() {
        let empty = wasm_encoder::Module::new().finish();
        let message = encode("x", &empty).unwrap_err().to_string();
        assert!(message.contains("trimtab_sdk::export!"), "{message}");
    }

    #[test]
    fn stripping_drops_names_and_keeps_the_contract() {
        let mut module = wasm_encoder::Module::new();
        let custom =
            |name: &'static str| CustomSection { name: name.into(), data: b"x"[..].into() };
        module.section(&custom("name")).section(&custom("component-type:x"));
        let (stripped, has_contract) = strip(&module.finish()).unwrap();
        assert!(has_contract);
        let mut expected = wasm_encoder::Module::new();
        expected.section(&custom("component-type:x"));
        assert_eq!(stripped, expected.finish());
    }
}

//! Files that are no plugin for this host: each is refused, with its own reason.

use crate::guest::{MANIFEST, WIT, component, file, module, sandbox, with_manifest};
use trimtab_wasm::{Error, MAX_COMPONENT_BYTES, Plugin, inspect};

fn refused(bytes: &[u8]) -> Error {
    let error = inspect(bytes).unwrap_err();
    assert_eq!(Plugin::load(bytes, &sandbox()).unwrap_err(), error);
    error
}

#[test]
fn a_good_file_says_what_it_is_without_being_run() {
    let bytes = file("(func $start unreachable) (start $start)", "");
    let inspection = inspect(&bytes).unwrap();
    assert_eq!(inspection.manifest.name, "hostile");
    assert_eq!(inspection.wit, "0.1.0");
    assert_eq!(inspection.size, bytes.len());
    assert_eq!(inspection.exports, ["trimtab:plugin/reconciler@0.1.0"]);
    for import in ["log", "lookup", "types"] {
        let name = format!("trimtab:plugin/{import}@0.1.0");
        assert!(inspection.imports.contains(&name), "{name} in {:?}", inspection.imports);
    }
}

#[test]
fn a_component_of_another_wit_version_is_refused_and_both_are_named() {
    let newer = |text: &str| text.replace("0.1.0", "0.2.0");
    let bytes = with_manifest(component(&newer(WIT), &newer(&module("", ""))), &newer(MANIFEST));
    let error = refused(&bytes);
    assert_eq!(error, Error::WitVersion { found: "0.2.0".into() });
    let text = error.to_string();
    assert!(text.contains("0.2.0") && text.contains("0.1.0"), "{text}");
}

#[test]
fn an_import_beyond_log_and_lookup_is_refused_before_anything_is_compiled() {
    let wit = WIT
        .replace("interface log {", "interface network { send: func(); }\ninterface log {")
        .replace("  import log;", "  import log;\n  import network;");
    let more = r#"(import "trimtab:plugin/network@0.1.0" "send" (func $send))"#;
    let bytes = with_manifest(component(&wit, &module(more, "(call $send)")), MANIFEST);
    assert_eq!(refused(&bytes), Error::Import { name: "trimtab:plugin/network@0.1.0".into() });
}

#[test]
fn a_known_interface_with_a_function_of_another_type_does_not_link() {
    let wit = WIT.replace(
        "log: func(level: level, message: string);",
        "log: func(level: level, message: string);\n  flush: func();",
    );
    let more = r#"(import "trimtab:plugin/log@0.1.0" "flush" (func $flush))"#;
    let bytes = with_manifest(component(&wit, &module(more, "(call $flush)")), MANIFEST);
    let error = Plugin::load(&bytes, &sandbox()).unwrap_err();
    assert!(matches!(error, Error::Compile(_)), "{error}");
}

#[test]
fn what_is_no_component_is_refused_with_its_own_reason() {
    let core = wat::parse_str("(module)").unwrap();
    assert_eq!(refused(&core), Error::CoreModule);
    assert!(matches!(refused(b""), Error::NotWasm(_)));
    assert!(matches!(refused(b"(component)"), Error::NotWasm(text) if text.contains("text")));
    assert!(matches!(refused(b"#!/bin/sh\n"), Error::NotWasm(_)));
    let empty = wat::parse_str("(component)").unwrap();
    assert!(matches!(refused(&empty), Error::WrongWorld { .. }));
}

#[test]
fn a_file_that_ends_early_is_refused_wherever_it_ends() {
    let whole = file("", "");
    for end in 0..whole.len() {
        assert!(inspect(&whole[..end]).is_err(), "cut at {end} of {}", whole.len());
    }
    assert!(matches!(refused(&whole[..whole.len() / 2]), Error::Damaged { .. }));
}

#[test]
fn a_damaged_byte_anywhere_never_brings_the_host_down() {
    let whole = file("", "");
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        let _ = inspect(&damaged);
    }
}

#[test]
fn a_file_that_is_too_large_is_not_parsed() {
    let huge = vec![0; MAX_COMPONENT_BYTES + 1];
    let size = huge.len();
    assert_eq!(refused(&huge), Error::TooLarge { size, max: MAX_COMPONENT_BYTES });
}

#[test]
fn a_manifest_that_is_missing_doubled_or_wrong_is_refused() {
    let bare = component(WIT, &module("", ""));
    assert_eq!(refused(&bare), Error::NoManifest);
    let doubled = with_manifest(with_manifest(bare.clone(), MANIFEST), MANIFEST);
    assert!(matches!(refused(&doubled), Error::Manifest(text) if text.contains("two")));
    let unknown = MANIFEST.replace("\"wit\"", "\"powers\":[],\"wit\"");
    let unknown = with_manifest(bare.clone(), &unknown);
    assert!(matches!(refused(&unknown), Error::Manifest(text) if text.contains("powers")));
    let other = with_manifest(bare, &MANIFEST.replace("\"wit\":\"0.1.0\"", "\"wit\":\"0.1.1\""));
    assert!(matches!(refused(&other), Error::Manifest(text) if text.contains("0.1.1")));
}

#[test]
fn a_manifest_inside_a_nested_module_does_not_count() {
    let inner = format!(
        r#"(component (core module (@custom "trimtab:manifest" "{}")))"#,
        MANIFEST.replace('"', "\\\"").replace('\n', "")
    );
    assert!(matches!(refused(&wat::parse_str(inner).unwrap()), Error::WrongWorld { .. }));
}

#[test]
fn memory_that_no_slot_holds_is_refused_at_load() {
    let wat = module("", "").replace("\"memory\") 3)", "\"memory\") 2000)");
    let bytes = with_manifest(component(WIT, &wat), MANIFEST);
    assert!(matches!(Plugin::load(&bytes, &sandbox()).unwrap_err(), Error::Compile(_)));
}

#[test]
fn closed_proposals_do_not_compile() {
    for (name, more) in [
        ("threads", "(memory $shared 1 1 shared)"),
        ("tail calls", "(func $tail (return_call $tail))"),
        ("multi-memory", "(memory $other 1)"),
        ("gc", "(type $struct (struct (field i32)))"),
        ("exceptions", "(tag $tag)"),
        ("memory64", "(memory $other i64 1)"),
    ] {
        let core = wat::parse_str(module(more, "")).unwrap();
        let wat = wasm_encoder_component(&core);
        let bytes = with_manifest(wat, MANIFEST);
        let error = Plugin::load(&bytes, &sandbox()).unwrap_err();
        assert!(matches!(error, Error::Compile(_)), "{name}: {error}");
    }
}

/// A component that exports an empty `reconciler` and holds this module, which is never used: for
/// modules that the encoder itself would refuse.
fn wasm_encoder_component(core: &[u8]) -> Vec<u8> {
    use wasm_encoder::{
        Component, ComponentExportKind, ComponentExportSection, ComponentInstanceSection,
        RawSection,
    };
    let mut component = Component::new();
    component.section(&RawSection { id: 1, data: core });
    let mut instances = ComponentInstanceSection::new();
    let nothing: [(&str, ComponentExportKind, u32); 0] = [];
    instances.export_items(nothing);
    component.section(&instances);
    let mut exports = ComponentExportSection::new();
    exports.export("trimtab:plugin/reconciler@0.1.0", ComponentExportKind::Instance, 0, None);
    component.section(&exports);
    component.finish()
}

//! Makes guests of WebAssembly text, and snapshots to call them with.

use std::sync::Arc;
use trimtab_core::decision::{Comparison, Verdict};
use trimtab_core::identity::{Digest, GroupKind, Gvk, ObjectKey};
use trimtab_core::object::{Desired, Live, LiveObject, Origin};
use trimtab_core::ports::PluginFault;
use trimtab_core::snapshot::Snapshot;
use trimtab_wasm::{Lookups, MANIFEST_SECTION, NoLookups, Plugin, Sandbox, SandboxOptions};
use wasm_encoder::{ComponentSection, CustomSection};

/// The contract.
pub(crate) const WIT: &str = include_str!("../../../../wit/trimtab.wit");

/// A manifest that a host accepts.
pub(crate) const MANIFEST: &str = r#"{"name":"hostile","version":"0.1.0","description":"",
    "wit":"0.1.0","claims":["*"],"reads":["Service"],"actions":["apply-desired"]}"#;

/// A core module with this body for `compare`, which gives the address of its answer: by default
/// that of zeroes, which read as `in-sync`. `more` goes before the functions.
pub(crate) fn module(more: &str, compare: &str) -> String {
    module_that_decides(more, compare, "")
}

/// The same with this body for `decide`, whose answer of zeroes is a decision for nothing.
pub(crate) fn module_that_decides(more: &str, compare: &str, decide: &str) -> String {
    format!(
        r#"(module
            {IMPORTS}
            {more}
            (memory (export "memory") 3)
            (global $heap (mut i32) (i32.const 65536))
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                (local $at i32)
                (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
                (global.set $heap (i32.add (local.get $at) (local.get 3)))
                (local.get $at))
            (func (export "trimtab:plugin/reconciler@0.1.0#compare") (param i32) (result i32)
                {compare}
                (i32.const 1024))
            (func (export "trimtab:plugin/reconciler@0.1.0#decide") (param i32) (result i32)
                {decide}
                (i32.const 1024)))"#
    )
}

const IMPORTS: &str = r#"
    (import "trimtab:plugin/log@0.1.0" "log" (func $log (param i32 i32 i32)))
    (import "trimtab:plugin/lookup@0.1.0" "get"
        (func $lookup (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))"#;

/// Text that stores `comparison.unknown` with these bytes of memory as its reason.
pub(crate) fn answer_unknown(at: u32, length: u32) -> String {
    format!(
        "(i32.store8 (i32.const 1024) (i32.const 3))
         (i32.store (i32.const 1028) (i32.const {at}))
         (i32.store (i32.const 1032) (i32.const {length}))"
    )
}

/// A component of this core module's text under the contract's text, without a manifest.
pub(crate) fn component(wit: &str, wat: &str) -> Vec<u8> {
    let mut core = wat::parse_str(wat).unwrap();
    let mut resolve = wit_parser::Resolve::default();
    let package = resolve.push_str("trimtab.wit", wit).unwrap();
    let world = resolve.select_world(&[package], Some("reconciler-plugin")).unwrap();
    let encoding = wit_component::StringEncoding::UTF8;
    wit_component::embed_component_metadata(&mut core, &resolve, world, encoding).unwrap();
    let mut encoder = wit_component::ComponentEncoder::default();
    encoder.module(&core).unwrap().encode().unwrap()
}

pub(crate) fn with_manifest(mut component: Vec<u8>, manifest: &str) -> Vec<u8> {
    let section = CustomSection { name: MANIFEST_SECTION.into(), data: manifest.as_bytes().into() };
    ComponentSection::append_to_component(&section, &mut component);
    component
}

/// A whole plugin file.
pub(crate) fn file(more: &str, compare: &str) -> Vec<u8> {
    with_manifest(component(WIT, &module(more, compare)), MANIFEST)
}

pub(crate) fn sandbox() -> Sandbox {
    Sandbox::new(SandboxOptions { calls: Some(8), ..SandboxOptions::default() }).unwrap()
}

pub(crate) fn load(more: &str, compare: &str) -> Plugin {
    Plugin::load(&file(more, compare), &sandbox()).unwrap()
}

pub(crate) fn no_lookups() -> Arc<dyn Lookups> {
    Arc::new(NoLookups)
}

pub(crate) fn compare(plugin: &Plugin) -> Result<Comparison, PluginFault> {
    plugin.compare(&snapshot("ConfigMap"), &no_lookups())
}

pub(crate) fn decide(plugin: &Plugin) -> Result<Verdict, PluginFault> {
    plugin.decide(&snapshot("ConfigMap"), &[], &no_lookups())
}

pub(crate) fn snapshot(kind: &str) -> Snapshot {
    let gvk = Gvk::from_api_version("v1", kind);
    let key = ObjectKey::new(GroupKind::new("", kind), "shop", "a");
    let json: Arc<[u8]> = format!(r#"{{"apiVersion":"v1","kind":"{kind}"}}"#).into_bytes().into();
    Snapshot {
        key: key.clone(),
        gvk: gvk.clone(),
        desired: Arc::new(Desired {
            key,
            gvk,
            digest: Digest::of(&json),
            json: json.clone(),
            source: "test".into(),
            revision: "1".into(),
            origin: Origin { file: "a.yaml".into(), line: 1 },
            ignore: Default::default(),
            terms: Arc::default(),
        }),
        live: Live::Present(LiveObject {
            json,
            uid: "u".into(),
            resource_version: "1".into(),
            deleting: false,
        }),
        facts: Arc::default(),
        applied_uid: None,
        now_ms: 0,
        retries: 0,
        standoff: None,
    }
}

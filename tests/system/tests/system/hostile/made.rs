//! Hostile guests that the SDK has no words for: core modules as text, encoded as components under
//! the contract or under one that was tampered with. Each function gives the shapes of one behaviour.

use trimtab_system_tests::{compile_bomb, instance_bomb, with_ballast, with_manifest};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

/// The contract.
const WIT: &str = include_str!("../../../../../wit/trimtab.wit");

const MANIFEST: &str = r#"{"name":"hostile","version":"0.1.0","wit":"0.1.0",
    "claims":["Trial.hostile.example"],"actions":["apply-desired"]}"#;

/// Files with a word for the shape of each.
pub(super) type Files = Vec<(&'static str, Vec<u8>)>;

/// 2: copies of tens of megabytes, each one instruction, without an end.
pub(super) fn bulk_copies() -> Files {
    let copies = "(drop (memory.grow (i32.const 950)))
        (loop $l
            (memory.copy (i32.const 65536) (i32.const 31457280) (i32.const 31000000))
            (br $l))";
    vec![("copies", plugin("", copies))]
}

/// 4: a table that grows without an end, and a component of a thousand instances.
pub(super) fn tables_and_instances() -> Files {
    let table = "(loop $l (drop (table.grow $t (ref.null func) (i32.const 1000))) (br $l))";
    vec![("table", plugin("(table $t 1 funcref)", table)), ("instances", named(&instance_bomb()))]
}

/// 7: answers that cannot be lifted: text that is not UTF-8, UTF-16 at an odd address, a case that
/// there is not, a list that reaches beyond memory.
pub(super) fn bad_lifts() -> Files {
    let not_utf8 = r#"(data (i32.const 4096) "\ff\fe\ff")"#;
    let utf16 = encode(WIT, &module("", &unknown(4097, 2)), StringEncoding::UTF16);
    let no_case = "(i32.store8 (i32.const 1024) (i32.const 9))";
    let beyond = "(i32.store8 (i32.const 1024) (i32.const 1))
        (i32.store (i32.const 1028) (i32.const -64))
        (i32.store (i32.const 1032) (i32.const 1000000))";
    vec![
        ("utf8", plugin(not_utf8, &unknown(4096, 3))),
        ("utf16", with_a_manifest(utf16)),
        ("case", plugin("", no_case)),
        ("list", plugin("", beyond)),
    ]
}

/// 8: larger than any file that is looked at.
pub(super) fn giant() -> Files {
    vec![("giant", with_ballast(&plugin("", ""), trimtab_wasm::MAX_COMPONENT_BYTES))]
}

/// 9: more than a compiler may take.
pub(super) fn bomb() -> Files {
    vec![("bomb", named(&compile_bomb()))]
}

/// 10: a trap, and a loop, before anything was asked.
pub(super) fn starts() -> Files {
    vec![
        ("trap", plugin("(func $s unreachable) (start $s)", "")),
        ("loop", plugin("(func $s (loop $l (br $l))) (start $s)", "")),
    ]
}

/// 12: another version of the contract, and this version with a function that it does not have.
pub(super) fn wrong_contracts() -> Files {
    let newer = |text: &str| text.replace("0.1.0", "0.2.0");
    let version = encode(&newer(WIT), &newer(&module("", "")), StringEncoding::UTF8);
    let line = "log: func(level: level, message: string);";
    let more = format!("{line}\n  flush: func();");
    let flush = r#"(import "trimtab:plugin/log@0.1.0" "flush" (func $flush))"#;
    vec![
        ("version", with_a_manifest(version)),
        ("function", under(&WIT.replace(line, &more), flush, "(call $flush)")),
    ]
}

/// 13: imports that nobody granted, declared and never called.
pub(super) fn imports() -> Files {
    let world = "  import log;";
    let import = |interface: &str, function: &str, package: &str| {
        let wit = WIT.replace(world, &format!("{world}\n  import {interface};")) + package;
        let more = format!(r#"(import "{interface}" "{function}" (func $unused))"#);
        under(&wit, &more, "")
    };
    vec![
        (
            "wasi",
            import(
                "wasi:cli/environment@0.2.0",
                "leave",
                "\npackage wasi:cli@0.2.0 { interface environment { leave: func(); } }",
            ),
        ),
        (
            "stranger",
            import(
                "stranger:net/out@1.0.0",
                "send",
                "\npackage stranger:net@1.0.0 { interface out { send: func(); } }",
            ),
        ),
    ]
}

/// 14: handles that nobody gave, handles given back twice, and ever more handles. The contract has
/// none, so that the component brings a resource of its own.
pub(super) fn handles() -> Files {
    let wit = WIT.replace("  export reconciler;", "  export reconciler;\n  export things;")
        + "\ninterface things { resource thing; }";
    let more = r#"
        (import "[export]trimtab:plugin/things@0.1.0" "[resource-new]thing"
            (func $new (param i32) (result i32)))
        (import "[export]trimtab:plugin/things@0.1.0" "[resource-rep]thing"
            (func $rep (param i32) (result i32)))
        (import "[export]trimtab:plugin/things@0.1.0" "[resource-drop]thing"
            (func $drop (param i32)))"#;
    let guest = |body: &str| under(&wit, more, body);
    vec![
        ("forged", guest("(drop (call $rep (i32.const 4711)))")),
        (
            "twice",
            guest(
                "(local $h i32)
                (local.set $h (call $new (i32.const 7)))
                (call $drop (local.get $h))
                (call $drop (local.get $h))",
            ),
        ),
        ("leaked", guest("(loop $l (drop (call $new (i32.const 7))) (br $l))")),
    ]
}

/// 16: calls of the host while the host calls, and calls that do not wait for their answer.
pub(super) fn reentrant() -> Files {
    let reentrant = module("", "").replace(
        "(local $at i32)",
        "(local $at i32) (call $log (i32.const 1) (i32.const 4096) (i32.const 1))",
    );
    let concurrent = r#"
        (import "trimtab:plugin/log@0.1.0" "[async-lower]log"
            (func $later (param i32 i32 i32) (result i32)))"#;
    let call = "(drop (call $later (i32.const 1) (i32.const 4096) (i32.const 1)))";
    vec![
        ("reentrant", with_a_manifest(encode(WIT, &reentrant, StringEncoding::UTF8))),
        ("concurrent", plugin(concurrent, call)),
    ]
}

/// A whole file under the contract, with this body for `compare`.
fn plugin(more: &str, compare: &str) -> Vec<u8> {
    under(WIT, more, compare)
}

fn under(wit: &str, more: &str, compare: &str) -> Vec<u8> {
    with_a_manifest(encode(wit, &module(more, compare), StringEncoding::UTF8))
}

/// `compare` answers zeroes, which read as `in-sync`, unless its body stores something else. `more`
/// goes before the functions.
fn module(more: &str, compare: &str) -> String {
    format!(
        r#"(module
            (import "trimtab:plugin/log@0.1.0" "log" (func $log (param i32 i32 i32)))
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
                (i32.const 1024)))"#
    )
}

/// Stores `unknown` with this much of memory as its reason.
fn unknown(at: u32, length: u32) -> String {
    format!(
        "(i32.store8 (i32.const 1024) (i32.const 3))
         (i32.store (i32.const 1028) (i32.const {at}))
         (i32.store (i32.const 1032) (i32.const {length}))"
    )
}

fn encode(wit: &str, wat: &str, strings: StringEncoding) -> Vec<u8> {
    let mut core = wat::parse_str(wat).expect("the text of a guest");
    let mut resolve = wit_parser::Resolve::default();
    let package = resolve.push_str("trimtab.wit", wit).expect("the contract, or one like it");
    let world = resolve.select_world(&[package], Some("reconciler-plugin")).expect("its world");
    embed_component_metadata(&mut core, &resolve, world, strings).expect("the world's own form");
    let mut encoder = ComponentEncoder::default();
    encoder.module(&core).expect("a module of that world").encode().expect("a component of it")
}

/// The name of a section and its content go into a custom section at the end.
fn with_a_manifest(mut component: Vec<u8>) -> Vec<u8> {
    let name = trimtab_wasm::MANIFEST_SECTION;
    let length = |bytes: usize| [0x80 | (bytes & 0x7f) as u8, (bytes >> 7) as u8];
    component.push(0);
    component.extend(length(1 + name.len() + MANIFEST.len()));
    component.push(name.len() as u8);
    component.extend_from_slice(name.as_bytes());
    component.extend_from_slice(MANIFEST.as_bytes());
    component
}

fn named(component: &[u8]) -> Vec<u8> {
    with_manifest(component, |manifest| manifest["name"] = "hostile".into())
        .expect("a component with a manifest")
}

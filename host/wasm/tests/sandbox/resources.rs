//! Guests that take too much: time, memory, stack, tables. Each costs its own call.

use crate::guest::{MANIFEST, WIT, component, no_lookups, sandbox};
use crate::guest::{compare, decide, load, module, snapshot, with_manifest};
use std::time::{Duration, Instant};
use trimtab_core::decision::{Comparison, Verdict};
use trimtab_core::ports::PluginFault;
use trimtab_wasm::{Limits, Plugin};

fn limit(plugin: &Plugin) -> String {
    match compare(plugin) {
        Err(PluginFault::Limit(what)) => what,
        other => panic!("no limit: {other:?}"),
    }
}

fn trap(plugin: &Plugin) -> String {
    match compare(plugin) {
        Err(PluginFault::Trap(text)) => text,
        other => panic!("no trap: {other:?}"),
    }
}

#[test]
fn an_honest_guest_is_in_sync_and_cannot_be_confused_with_a_fault() {
    let plugin = load("", "");
    assert_eq!(compare(&plugin), Ok(Comparison::InSync));
    // Zeroes read as a decision without actions.
    assert_eq!(decide(&plugin), Ok(Verdict::Decided(Default::default())));
}

#[test]
fn an_endless_loop_ends_at_its_deadline() {
    let wall_time = Duration::from_millis(50);
    let plugin =
        load("", "(loop $l (br $l))").with_limits(Limits { wall_time, ..Limits::default() });
    let start = Instant::now();
    assert_eq!(compare(&plugin), Err(PluginFault::Deadline(wall_time)));
    assert!(start.elapsed() >= wall_time);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn an_endless_loop_at_the_start_ends_at_its_deadline() {
    let wall_time = Duration::from_millis(50);
    let plugin = load("(func $s (loop $l (br $l))) (start $s)", "")
        .with_limits(Limits { wall_time, ..Limits::default() });
    assert_eq!(compare(&plugin), Err(PluginFault::Deadline(wall_time)));
}

#[test]
fn a_memory_bomb_is_a_limit() {
    let bomb = "(loop $l (drop (memory.grow (i32.const 16))) (br $l))";
    assert!(limit(&load("", bomb)).starts_with("memory"));
}

#[test]
fn a_memory_limit_may_be_lower_than_the_pool() {
    let limits = Limits { memory_bytes: 4 << 16, ..Limits::default() };
    let grow = |pages: u32| format!("(drop (memory.grow (i32.const {pages})))");
    assert_eq!(compare(&load("", &grow(1)).with_limits(limits)), Ok(Comparison::InSync));
    assert!(limit(&load("", &grow(2)).with_limits(limits)).starts_with("memory"));
    let none = Limits { memory_bytes: 1 << 16, ..limits };
    assert!(limit(&load("", "").with_limits(none)).starts_with("memory"));
}

#[test]
fn a_table_bomb_is_a_limit() {
    let bomb = "(loop $l (drop (table.grow $t (ref.null func) (i32.const 1000))) (br $l))";
    assert!(limit(&load("(table $t 1 funcref)", bomb)).starts_with("table"));
}

#[test]
fn endless_recursion_is_a_trap_and_not_the_end_of_the_host() {
    let text = trap(&load("(func $f (call $f))", "(call $f)"));
    assert!(text.contains("call stack"), "{text}");
}

#[test]
fn traps_say_what_they_were() {
    for (body, says) in [
        ("unreachable", "unreachable"),
        ("(drop (i32.load (i32.const -1)))", "out of bounds"),
        ("(drop (i32.div_u (i32.const 1) (i32.const 0)))", "divide by zero"),
    ] {
        let text = trap(&load("", body));
        assert!(text.contains(says), "{body}: {text}");
    }
}

#[test]
fn a_trap_at_the_start_costs_the_call_only() {
    let plugin = load("(func $s unreachable) (start $s)", "");
    for _ in 0..3 {
        assert!(matches!(compare(&plugin), Err(PluginFault::Trap(_))));
    }
}

#[test]
fn nothing_is_left_from_one_call_to_the_next() {
    // Counts in a global and in memory; answers the sum as a digit.
    let count = "
        (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
        (i32.store (i32.const 2048) (i32.add (i32.load (i32.const 2048)) (i32.const 1)))
        (i32.store8 (i32.const 4096)
            (i32.add (i32.const 48) (i32.add (global.get $calls) (i32.load (i32.const 2048)))))
        (i32.store8 (i32.const 1024) (i32.const 3))
        (i32.store (i32.const 1028) (i32.const 4096))
        (i32.store (i32.const 1032) (i32.const 1))
        (drop (memory.grow (i32.const 8)))
        (memory.fill (i32.const 131072) (i32.const 65) (i32.const 524288))";
    let plugin = load("(global $calls (mut i32) (i32.const 0))", count);
    for _ in 0..20 {
        assert_eq!(compare(&plugin), Ok(Comparison::Unknown("2".into())));
    }
}

#[test]
fn memory_that_another_plugin_filled_reads_as_zero() {
    let sandbox = sandbox();
    let guest = |compare: &str| {
        let bytes = with_manifest(component(WIT, &module("", compare)), MANIFEST);
        Plugin::load(&bytes, &sandbox).unwrap()
    };
    let writer = guest("(memory.fill (i32.const 2048) (i32.const 65) (i32.const 194000))");
    // Answers a byte of what it finds, or traps if it is no zero.
    let reader = guest(
        "(local $i i32)
         (local.set $i (i32.const 70000))
         (loop $l
            (if (i32.load8_u (local.get $i)) (then unreachable))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $l (i32.lt_u (local.get $i) (i32.const 196000))))",
    );
    for _ in 0..40 {
        assert_eq!(compare(&writer), Ok(Comparison::InSync));
        assert_eq!(compare(&reader), Ok(Comparison::InSync));
    }
}

#[test]
fn an_unknown_live_object_is_never_shown_to_a_plugin() {
    let mut unknown = snapshot("ConfigMap");
    unknown.live = trimtab_core::object::Live::Unknown("the list is forbidden".into());
    let plugin = load("", "unreachable");
    assert_eq!(
        plugin.compare(&unknown, &no_lookups()),
        Ok(Comparison::Unknown("the list is forbidden".into()))
    );
}

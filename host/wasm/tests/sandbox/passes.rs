//! The two calls of a pass: in one instance, which no other pass has, each with its limits anew.

use crate::guest::{
    MANIFEST, WIT, component, module_that_decides, no_lookups, sandbox, snapshot, with_manifest,
};
use std::time::Duration;
use trimtab_core::decision::{Comparison, Verdict};
use trimtab_core::ports::{Judge, PluginFault};
use trimtab_wasm::{Limits, Plugin, Sandbox};

/// A guest that counts its calls in a global. `compare` answers one difference; `decide` answers
/// *unknown* with so many letters as calls were made.
fn counting(sandbox: &Sandbox, compare: &str, decide: &str) -> Plugin {
    let count = "(global.set $calls (i32.add (global.get $calls) (i32.const 1)))";
    let different = "
        (i32.store8 (i32.const 1024) (i32.const 1))
        (i32.store (i32.const 1028) (i32.const 2048))
        (i32.store (i32.const 1032) (i32.const 1))
        (i32.store (i32.const 2048) (i32.const 4096))
        (i32.store (i32.const 2052) (i32.const 2))
        (i32.store8 (i32.const 2056) (i32.const 1))";
    let unknown = "
        (i32.store8 (i32.const 1024) (i32.const 1))
        (i32.store (i32.const 1032) (i32.const 4098))
        (i32.store (i32.const 1036) (global.get $calls))";
    let more = r#"(global $calls (mut i32) (i32.const 0)) (data (i32.const 4096) "/aaaaaaaaa")"#;
    let compare = format!("{count} {compare} {different}");
    let decide = format!("{count} {decide} {unknown}");
    let core = module_that_decides(more, &compare, &decide);
    let plugin = Plugin::load(&with_manifest(component(WIT, &core), MANIFEST), sandbox).unwrap();
    // The first calls of a build are made twice, and keep nothing.
    for _ in 0..8 {
        plugin.compare(&snapshot("ConfigMap"), &no_lookups()).unwrap();
    }
    plugin
}

/// How many calls the instance that decides has had.
async fn calls_in_a_pass(plugin: &Plugin) -> usize {
    let judge = plugin.judgement(no_lookups());
    let object = snapshot("ConfigMap");
    let Ok(Comparison::Different(found)) = judge.compare(&object).await else {
        panic!("no difference");
    };
    match judge.decide(&object, &found).await {
        Ok(Verdict::Unknown(letters)) => letters.len(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_pass_has_one_instance_for_its_two_calls_and_shares_it_with_no_other() {
    let sandbox = sandbox();
    let plugin = counting(&sandbox, "", "");
    for _ in 0..3 {
        assert_eq!(calls_in_a_pass(&plugin).await, 2);
    }
    assert!(matches!(
        plugin.decide(&snapshot("ConfigMap"), &[], &no_lookups()),
        Ok(Verdict::Unknown(letters)) if letters.len() == 1
    ));
}

#[tokio::test]
async fn passes_that_wait_take_no_slot_from_those_that_run_and_beyond_a_bound_a_fresh_one_decides()
{
    let sandbox = sandbox();
    let plugin = counting(&sandbox, "", "");
    let object = snapshot("ConfigMap");
    let mut waiting = Vec::new();
    for _ in 0..60 {
        let judge = plugin.judgement(no_lookups());
        let Ok(Comparison::Different(found)) = judge.compare(&object).await else {
            panic!("no difference");
        };
        waiting.push((judge, found));
    }
    let mut counts = Vec::new();
    for (judge, found) in &waiting {
        match judge.decide(&object, found).await {
            Ok(Verdict::Unknown(letters)) => counts.push(letters.len()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(counts.iter().filter(|count| **count == 2).count(), 16, "{counts:?}");
    assert!(counts.iter().all(|count| (1..=2).contains(count)), "{counts:?}");
    drop(waiting);
    assert_eq!(calls_in_a_pass(&plugin).await, 2);
}

#[tokio::test]
async fn the_time_between_the_calls_is_not_the_guests_and_each_call_has_its_own() {
    let sandbox = sandbox();
    let wall_time = Duration::from_millis(200);
    let limits = Limits { wall_time, ..Limits::default() };
    let object = snapshot("ConfigMap");
    for (decide, ends) in [("", true), ("(loop $l (br $l))", false)] {
        let plugin = counting(&sandbox, "", decide).with_limits(limits);
        let judge = plugin.judgement(no_lookups());
        let Ok(Comparison::Different(found)) = judge.compare(&object).await else {
            panic!("no difference");
        };
        tokio::time::sleep(3 * wall_time).await;
        let decided = judge.decide(&object, &found).await;
        match ends {
            true => assert!(matches!(&decided, Ok(Verdict::Unknown(_))), "{decided:?}"),
            false => assert_eq!(decided, Err(PluginFault::Deadline(wall_time))),
        }
    }
}

#[tokio::test]
async fn what_fails_in_the_second_call_leaves_nothing_behind() {
    let sandbox = sandbox();
    let plugin = counting(&sandbox, "", "unreachable");
    let object = snapshot("ConfigMap");
    for _ in 0..40 {
        let judge = plugin.judgement(no_lookups());
        let Ok(Comparison::Different(found)) = judge.compare(&object).await else {
            panic!("no difference");
        };
        assert!(matches!(judge.decide(&object, &found).await, Err(PluginFault::Trap(_))));
    }
    assert_eq!(calls_in_a_pass(&counting(&sandbox, "", "")).await, 2);
}

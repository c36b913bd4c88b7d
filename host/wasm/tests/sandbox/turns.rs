//! Many calls at once: the pool is never exhausted, and one plugin starves no other.

use crate::guest::{
    MANIFEST, WIT, component, module, no_lookups, sandbox, snapshot, with_manifest,
};
use std::time::{Duration, Instant};
use trimtab_core::decision::Comparison;
use trimtab_core::ports::{Judge, PluginFault};
use trimtab_wasm::{Limits, Plugin};

fn guests() -> (Plugin, Plugin) {
    let sandbox = sandbox();
    let guest = |compare: &str| {
        let bytes = with_manifest(component(WIT, &module("", compare)), MANIFEST);
        Plugin::load(&bytes, &sandbox).unwrap()
    };
    (guest(""), guest("(loop $l (br $l))"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_calls_than_slots_are_all_answered() {
    let (honest, _) = guests();
    let calls: Vec<_> = (0..200)
        .map(|_| {
            let judge = honest.judgement(no_lookups());
            tokio::spawn(async move { judge.compare(&snapshot("ConfigMap")).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), Ok(Comparison::InSync));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_uses_up_its_time_leaves_turns_for_the_others() {
    let (honest, endless) = guests();
    let wall_time = Duration::from_secs(1);
    let endless = endless.with_limits(Limits { wall_time, ..Limits::default() });
    let loops: Vec<_> = (0..16)
        .map(|_| {
            let judge = endless.judgement(no_lookups());
            tokio::spawn(async move { judge.compare(&snapshot("ConfigMap")).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let start = Instant::now();
    let judge = honest.judgement(no_lookups());
    assert_eq!(judge.compare(&snapshot("ConfigMap")).await, Ok(Comparison::InSync));
    assert!(start.elapsed() < wall_time, "waited {:?} behind another plugin", start.elapsed());
    for call in loops {
        assert_eq!(call.await.unwrap(), Err(PluginFault::Deadline(wall_time)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_nobody_waits_for_gives_its_turn_back() {
    let (honest, endless) = guests();
    let wall_time = Duration::from_millis(100);
    let endless = endless.with_limits(Limits { wall_time, ..Limits::default() });
    for _ in 0..20 {
        let judge = endless.judgement(no_lookups());
        let object = snapshot("ConfigMap");
        let _ = tokio::time::timeout(Duration::from_millis(1), judge.compare(&object)).await;
    }
    let judge = honest.judgement(no_lookups());
    assert_eq!(judge.compare(&snapshot("ConfigMap")).await, Ok(Comparison::InSync));
}

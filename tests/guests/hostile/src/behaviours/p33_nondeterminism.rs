//! Looks for anything that could differ between two runs, and answers with it: addresses, seeds of
//! hash tables, counters, bits of a NaN, how much memory it can have.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use trimtab_sdk::{Decision, Snapshot, Verdict};

static RUNS: AtomicU32 = AtomicU32::new(0);

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    let runs = RUNS.fetch_add(1, Ordering::Relaxed);
    let seed = RandomState::new().hash_one(1_u8);
    let heap = Box::into_raw(Box::new(1_u8)) as usize;
    let stack = &raw const runs as usize;
    let nan = (black_box(0.0_f64) / black_box(0.0)).to_bits();
    let stale = vec![0_u8; 1 << 16].iter().map(|byte| u64::from(black_box(*byte))).sum::<u64>();
    let retries = snapshot.live().is_some();
    Decision::new().leave(format!("{runs} {seed} {heap} {stack} {nan} {stale} {retries}")).into()
}

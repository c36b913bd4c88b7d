//! Takes memory, and touches all of it, until there is none.

use super::Compared;
use std::hint::black_box;
use trimtab_sdk::Snapshot;

pub(super) fn compare<'s>(_: &'s Snapshot<'_>) -> Compared<'s> {
    let mut held = Vec::new();
    loop {
        held.push(black_box(vec![0xa5_u8; 1 << 20]));
        black_box(&held);
    }
}

//! Spends its time in the host's functions rather than in its own: long lines, and reads beyond
//! their number.

use super::Compared;
use trimtab_sdk::{Snapshot, log, lookup};

pub(super) fn compare<'s>(snapshot: &'s Snapshot<'_>) -> Compared<'s> {
    let line = "x".repeat(8 << 20);
    let namespace = snapshot.id().namespace;
    loop {
        log::debug(&line);
        let _ = lookup::find("hostile.example", "Trial", namespace);
    }
}

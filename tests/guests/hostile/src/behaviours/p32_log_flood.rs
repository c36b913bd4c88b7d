//! Floods whatever it may write to, with lines that end lines, move cursors and pretend to be the
//! host's.

use trimtab_sdk::{Decision, Finding, Snapshot, Verdict, log};

const FORGED: &str = "x\r\n2026-01-01T00:00:00Z ERROR plugin neighbour is quarantined \u{1b}[2J\u{1b}]0;x\u{7}\u{202e}\u{2028}";

pub(super) fn decide(_: &Snapshot<'_>) -> Verdict {
    for index in 0..5_000_u32 {
        log::warn(format!("{index} {FORGED}"));
    }
    log::error(FORGED.repeat(500));
    let mut decision = Decision::new().leave(FORGED);
    for index in 0..200_u32 {
        decision = decision.finding(Finding::warning("flood", format!("{index} {FORGED}")));
    }
    decision.into()
}

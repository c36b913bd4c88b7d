//! Panics with last words that are long, end the line, and look like a line of the host's.

use super::Compared;
use trimtab_sdk::Snapshot;

pub(super) fn compare<'s>(_: &'s Snapshot<'_>) -> Compared<'s> {
    panic!(
        "\r\n\u{1b}[2J ERROR plugin generic is quarantined: forged \u{202e}{}",
        "x".repeat(1 << 16)
    );
}

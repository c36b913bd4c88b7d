//! Names its object by a name that is none: a homoglyph, another case, path steps, escapes, NUL, too
//! long, or one for the server to make.

use crate::content::{and_apply, with};
use trimtab_sdk::{Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    let name = |json: &str| with(snapshot, "metadata name", json);
    let long = format!(r#""{}""#, "a".repeat(254));
    and_apply([
        // A Cyrillic letter where a Latin one looks the same.
        name("\"victim\u{0430}\""),
        name(r#""VICTIM""#),
        name(r#""..""#),
        name(r#""../../secrets/victim""#),
        name(r#""victim/status""#),
        name(r#""victim%2fstatus""#),
        name(r#""victim\u0000""#),
        name(&long),
        name(r#""""#),
        name("7"),
        with(snapshot, "metadata generateName", r#""victim-""#),
    ])
}

//! What we say of a commit beside what Git says of it.

use super::super::*;
use super::world::*;

/// What we and Git say of one commit. Where they differ, the row's name says why we are stricter.
pub(super) struct Row<'a> {
    pub(super) name: &'a str,
    pub(super) commit: Commit,
    pub(super) ours: &'a str,
    pub(super) gits: bool,
}

pub(super) fn compare(world: &World, rows: &[Row<'_>]) {
    let wanted = world.verification(Mode::Head);
    let mut wrong = Vec::new();
    for row in rows {
        let ours = judge(world, row.commit, &wanted);
        let gits = world.git_trusts("verify-commit", row.commit);
        if word(&ours) != row.ours || gits != row.gits {
            wrong.push(format!("{}: {:?}, Git {gits}", row.name, ours));
        }
        // Never the other way round: what Git refuses we refuse.
        assert!(gits || ours.is_err(), "{}: laxer than Git", row.name);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A commit's bytes with this signature in its header.
pub(super) fn with_signature(plain: &[u8], signature: &str) -> Vec<u8> {
    let at = plain.windows(2).position(|two| two == b"\n\n").unwrap() + 1;
    let header = format!("gpgsig {}\n", signature.trim_end().replace('\n', "\n "));
    [&plain[..at], header.as_bytes(), &plain[at..]].concat()
}

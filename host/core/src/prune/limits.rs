//! What is too much to be deleted without a person: the set that is held, and its digest.

use super::{Doomed, Held, Situation};
use crate::identity::{Digest, GroupKind, ObjectKey};
use crate::inventory::Approval;
use std::collections::BTreeMap;

/// What of a source may go at once without a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// More than this share of its objects waits, in percent…
    pub percent: u32,
    /// …where it is this many at least.
    pub percent_from: usize,
    /// More than this many wait.
    pub number: usize,
    /// All of a kind wait where it is this many at least.
    pub all_of_a_kind_from: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { percent: 30, percent_from: 5, number: 50, all_of_a_kind_from: 3 }
    }
}

/// The deletions that nobody has allowed yet, if they are too many.
pub(super) fn held(now: &Situation<'_>, doomed: &[Doomed<'_>]) -> Option<Held> {
    let open: Vec<&Doomed<'_>> =
        doomed.iter().filter(|it| it.entry.approved == Approval::None).collect();
    let reason = reason(now, &open)?;
    Some(of(now, reason, &open, Approval::Deletion))
}

/// These deletions as they are held.
pub(super) fn of(
    now: &Situation<'_>,
    reason: String,
    open: &[&Doomed<'_>],
    allows: Approval,
) -> Held {
    let mut lines: Vec<String> = open
        .iter()
        .map(|it| {
            let ObjectKey { group_kind: GroupKind { group, kind }, name, .. } = it.key;
            format!("{group}/{kind}/{}/{name} {}\n", it.key.namespace_str(), it.live.uid)
        })
        .collect();
    lines.sort();
    let word = if allows == Approval::WithContents { "delete with contents" } else { "delete" };
    let text = format!("{word} of source {}\n{}", now.inventory.source(), lines.concat());
    let mut keys: Vec<ObjectKey> = open.iter().map(|it| it.key.clone()).collect();
    keys.sort();
    Held { reason, digest: Digest::of(text.as_bytes()), keys, allows }
}

fn reason(now: &Situation<'_>, open: &[&Doomed<'_>]) -> Option<String> {
    let Limits { percent, percent_from, number, all_of_a_kind_from } = now.terms.deletion.limits;
    let (count, all) = (open.len(), now.inventory.len());
    if count > number {
        return Some(format!("mass_prune: {count} objects would be deleted, more than {number}"));
    }
    // More than the share: compared without a division.
    if count >= percent_from && count as u128 * 100 > u128::from(percent) * all as u128 {
        let share = count * 100 / all.max(1);
        return Some(format!(
            "mass_prune: {count} of {all} objects would be deleted, {share} % and more than {percent} %"
        ));
    }
    let mut of_kind: BTreeMap<&GroupKind, usize> = BTreeMap::new();
    for it in open {
        *of_kind.entry(&it.key.group_kind).or_default() += 1;
    }
    of_kind.into_iter().find_map(|(kind, count)| {
        let all = now.inventory.iter().filter(|(key, _)| key.group_kind == *kind).count();
        (count >= all_of_a_kind_from && count == all)
            .then(|| format!("mass_prune: all {count} objects of kind {kind} would be deleted"))
    })
}

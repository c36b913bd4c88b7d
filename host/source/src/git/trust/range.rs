//! Which commits are new: reachable from the new one and not from the old one.
//!
//! Both histories are walked together, newest first by the committers' dates. Dates are words: they
//! decide how far is walked, and a false one can only make more commits count as new, never fewer,
//! since what is old is old by its children alone.

use super::object::Reader;
use super::{COMMITS_WALKED_AT_MOST, Commit, Reason};
use std::collections::{BinaryHeap, HashMap, HashSet};

/// How far below the oldest new commit the old history is still walked, in seconds: clocks of
/// committers differ.
const DATES_DIFFER_BY: i64 = 24 * 60 * 60;

/// By which of the two a commit can be reached.
const NEW: u8 = 1;
const OLD: u8 = 2;

/// What lies between two commits.
#[derive(Debug, Default)]
pub(super) struct Range {
    /// Whether the old one is among the new one's ancestors (or is it).
    pub(super) descends: bool,
    /// What is new, oldest first by date.
    pub(super) commits: Vec<Commit>,
}

/// What `new` brings that `last` did not have.
pub(super) fn since(reader: &Reader<'_>, last: Commit, new: Commit) -> Result<Range, Reason> {
    let (seen, queue, fresh) = (HashMap::new(), BinaryHeap::new(), HashSet::new());
    let mut walk = Walk { seen, queue, fresh, oldest: i64::MAX };
    walk.mark(reader, new, NEW)?;
    walk.mark(reader, last, OLD)?;
    while let Some((date, commit)) = walk.queue.pop() {
        // With nothing new left, older dates alone could still take commits out of what is new.
        let far = walk.oldest == i64::MAX || date < walk.oldest.saturating_sub(DATES_DIFFER_BY);
        if walk.fresh.is_empty() && far {
            break;
        }
        if walk.fresh.remove(&commit) {
            walk.oldest = walk.oldest.min(date);
        }
        let bits = walk.seen.get(&commit).map_or(0, |(bits, _)| *bits);
        for parent in &reader.commit(commit)?.parents {
            walk.mark(reader, *parent, bits)?;
        }
    }
    let descends = walk.seen.get(&last).is_some_and(|(bits, _)| bits & NEW != 0);
    let mut commits: Vec<_> = walk
        .seen
        .into_iter()
        .filter(|(_, (bits, _))| *bits == NEW)
        .map(|(commit, (_, date))| (date, commit))
        .collect();
    commits.sort_unstable();
    Ok(Range { descends, commits: commits.into_iter().map(|(_, commit)| commit).collect() })
}

struct Walk {
    /// Commits with how they can be reached, and their dates.
    seen: HashMap<Commit, (u8, i64)>,
    /// Commits whose parents are still to be marked as they are.
    queue: BinaryHeap<(i64, Commit)>,
    /// Those among them that are new so far.
    fresh: HashSet<Commit>,
    /// Date of the oldest commit that was new when its parents were marked.
    oldest: i64,
}

impl Walk {
    fn mark(&mut self, reader: &Reader<'_>, commit: Commit, bits: u8) -> Result<(), Reason> {
        let (known, date) = match self.seen.get(&commit) {
            Some(seen) => *seen,
            // What the old history lost does not matter: it can only make more count as new.
            None if bits == OLD && !reader.has(commit) => return Ok(()),
            None => (0, reader.commit(commit)?.committed),
        };
        let bits = known | bits;
        if bits == known {
            return Ok(());
        }
        if self.seen.insert(commit, (bits, date)).is_none()
            && self.seen.len() > COMMITS_WALKED_AT_MOST
        {
            return Err(Reason::TooMany("commits in between", COMMITS_WALKED_AT_MOST));
        }
        self.queue.push((date, commit));
        if bits == NEW {
            self.fresh.insert(commit);
        } else {
            self.fresh.remove(&commit);
        }
        Ok(())
    }
}

/// The youngest common ancestors of two commits: none, one, or several where histories crossed.
pub(super) fn bases(
    reader: &Reader<'_>,
    one: Commit,
    other: Commit,
) -> Result<Vec<Commit>, Reason> {
    let (one, other) = (ancestors(reader, one)?, ancestors(reader, other)?);
    let common: HashSet<_> = one.intersection(&other).copied().collect();
    let mut older = HashSet::new();
    for commit in &common {
        older.extend(reader.commit(*commit)?.parents.iter().copied());
    }
    let mut bases: Vec<_> = common.difference(&older).copied().collect();
    bases.sort_unstable();
    Ok(bases)
}

/// A commit and everything before it.
fn ancestors(reader: &Reader<'_>, commit: Commit) -> Result<HashSet<Commit>, Reason> {
    let mut all = HashSet::from([commit]);
    let mut left = vec![commit];
    while let Some(commit) = left.pop() {
        for parent in &reader.commit(commit)?.parents {
            if all.insert(*parent) {
                left.push(*parent);
            }
        }
        if all.len() > COMMITS_WALKED_AT_MOST {
            return Err(Reason::TooMany("commits before a merge", COMMITS_WALKED_AT_MOST));
        }
    }
    Ok(all)
}

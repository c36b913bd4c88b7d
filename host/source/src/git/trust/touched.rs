//! Who made each file what it is: the signers of the commits that brought it to its present content.
//!
//! A commit makes a file what it is where it differs there from its first parent, and has there what
//! the head has. So a signer of an earlier state of a file vouches for nothing of its present one.

use super::changes::{Entry, Trees};
use super::object::Reader;
use super::{Commit, Reason};
use std::collections::BTreeMap;

/// Files that are looked at: beyond, nobody but the head's signer is named.
const FILES_AT_MOST: usize = 20_000;

/// By path from the repository's root: names of signers, each once, in the order of `commits`.
/// `signed` has each commit with its signer's name.
pub(super) fn by_file(
    reader: &Reader<'_>,
    head: Commit,
    signed: &[(Commit, String)],
) -> Result<BTreeMap<String, Vec<String>>, Reason> {
    let trees = Trees::new(reader);
    let now = Entry::root(reader.commit(head)?.tree);
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (commit, signer) in signed {
        let commit = reader.commit(*commit)?;
        let parent = match commit.parents.first() {
            Some(parent) => Some(Entry::root(reader.commit(*parent)?.tree)),
            None => None,
        };
        let here = Entry::root(commit.tree);
        let mut paths = Vec::new();
        trees.differences(parent, Some(here), &mut |path| {
            paths.push(path.to_vec());
            Ok(())
        })?;
        for path in paths {
            let content = trees.at(here, &path)?;
            if content.is_none() || content != trees.at(now, &path)? {
                continue;
            }
            let Ok(path) = String::from_utf8(path) else { continue };
            let signers = files.entry(path).or_default();
            if !signers.contains(signer) {
                signers.push(signer.clone());
            }
            if files.len() > FILES_AT_MOST {
                return Ok(BTreeMap::new());
            }
        }
    }
    Ok(files)
}

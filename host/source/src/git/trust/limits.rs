//! Signers that may change some paths alone.
//!
//! A commit is held against its parent: every path that differs, where it stands and where it stood,
//! has to be the signer's. A merge differs from its parents by what each of them did not have, so
//! it is held against what merging alone would give: a path that is not the signer's is as one
//! parent has it, and every parent that has it otherwise left it as it was where the two parted.
//! ("As one parent has it" alone would let a signer bring back an old state of anybody's file, by
//! merging an old commit.)
//!
//! Where the head alone is checked, nobody answers for what is between: there the whole difference
//! to what was accepted has to be the signer's.

use super::changes::{Entry, Trees};
use super::commit::CommitText;
use super::object::Reader;
use super::range;
use super::signers::Found;
use super::{Commit, Reason};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Paths outside a signer's limits that one merge may bring.
const PATHS_AT_MOST: usize = 100_000;

/// What one signer may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Whose: a principal of the allowed signers, a user ID or its mail address, or a fingerprint.
    /// Every limit that is for a key holds.
    pub principal: String,
    /// Patterns of paths from the repository's root: `*` and `?` within one name, `**` for any
    /// names; a slash at the end means everything beneath.
    pub paths: Vec<String>,
}

/// The patterns of one limit.
#[derive(Clone, Debug)]
pub(super) struct Paths(Rc<[Vec<String>]>);

impl Paths {
    /// # Errors
    /// A pattern that matches nothing, or cannot be meant.
    pub(super) fn new(limit: &Limit) -> Result<Self, String> {
        let patterns = limit.paths.iter().map(|pattern| {
            names(pattern).ok_or_else(|| {
                format!(
                    "the limit for {:?} has the pattern {pattern:?}: write paths from the repository's root, such as \"apps/shop/**\"",
                    limit.principal
                )
            })
        });
        patterns.collect::<Result<Rc<[_]>, _>>().map(Self)
    }

    fn hold(&self, path: &[u8]) -> bool {
        let path: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        self.0.iter().any(|pattern| {
            wild(
                pattern,
                &path,
                |name| name == "**",
                |pattern, name| {
                    wild(pattern.as_bytes(), name, |c| *c == b'*', |c, d| *c == b'?' || c == d)
                },
            )
        })
    }
}

/// The names of a pattern, one a folder.
fn names(pattern: &str) -> Option<Vec<String>> {
    let (pattern, beneath) = match pattern.strip_suffix('/') {
        Some(folder) => (folder, true),
        None => (pattern, false),
    };
    let mut names: Vec<String> = pattern.split('/').map(str::to_owned).collect();
    let meant = |name: &String| {
        !matches!(name.as_str(), "" | "." | "..") && (name == "**" || !name.contains("**"))
    };
    if !names.iter().all(meant) {
        return None;
    }
    if beneath {
        names.push("**".into());
    }
    // What is beneath a folder is not the folder itself.
    if names.last().is_some_and(|name| name == "**") {
        names.push("*".into());
    }
    Some(names)
}

/// Whether the pattern covers all of the text; a star covers any run of it.
fn wild<P, T>(
    pattern: &[P],
    text: &[T],
    star: impl Fn(&P) -> bool,
    one: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut back = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(part) if star(part) => {
                back = Some((p, t));
                p += 1;
            }
            Some(part) if one(part, &text[t]) => (p, t) = (p + 1, t + 1),
            _ => match back {
                Some((at, from)) => {
                    back = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(star)
}

/// Whether the signer may make all the difference between what was accepted and this commit.
pub(super) fn keeps_all(
    reader: &Reader<'_>,
    signer: &Found,
    last: Option<Commit>,
    new: Commit,
) -> Result<(), Reason> {
    if signer.paths.is_empty() {
        return Ok(());
    }
    let root = |commit| reader.commit(commit).map(|commit| Entry::root(commit.tree));
    // What the mirror lost cannot be compared with: then all is to be vouched for.
    let last = last.filter(|last| reader.has(*last));
    let before = last.map(root).transpose()?;
    Trees::new(reader).differences(before, Some(root(new)?), &mut |path| {
        if may(signer, path) {
            return Ok(());
        }
        let (signer, path) = (signer.shown.principal.clone(), shown(path));
        Err(match last {
            Some(_) => Reason::OutsidePaths { signer, path },
            None => Reason::VouchesForAll { signer, path },
        })
    })
}

/// Whether the signer may make this commit.
pub(super) fn keeps(
    reader: &Reader<'_>,
    signer: &Found,
    commit: &CommitText,
) -> Result<(), Reason> {
    if signer.paths.is_empty() {
        return Ok(());
    }
    let trees = Trees::new(reader);
    let after = Entry::root(commit.tree);
    let parents = commit
        .parents
        .iter()
        .map(|parent| Ok((*parent, Entry::root(reader.commit(*parent)?.tree))))
        .collect::<Result<Vec<_>, Reason>>()?;
    let mut others = BTreeSet::new();
    let befores: Vec<_> = match &parents[..] {
        [] => vec![None],
        parents => parents.iter().map(|(_, root)| Some(*root)).collect(),
    };
    for before in befores {
        trees.differences(before, Some(after), &mut |path| {
            if !may(signer, path) {
                others.insert(path.to_vec());
            }
            if others.len() > PATHS_AT_MOST {
                return Err(Reason::TooMany("paths of others in one merge", PATHS_AT_MOST));
            }
            Ok(())
        })?;
    }
    for path in others {
        if !merged_alone(reader, &trees, &parents, after, &path)? {
            let (signer, path) = (signer.shown.principal.clone(), shown(&path));
            return Err(Reason::OutsidePaths { signer, path });
        }
    }
    Ok(())
}

/// Whether merging these parents, without anybody's hand, gives what stands at this path.
fn merged_alone(
    reader: &Reader<'_>,
    trees: &Trees<'_>,
    parents: &[(Commit, Entry)],
    after: Entry,
    path: &[u8],
) -> Result<bool, Reason> {
    if parents.len() < 2 {
        return Ok(false);
    }
    let result = trees.at(after, path)?;
    let mut sides = Vec::new();
    for (commit, root) in parents {
        sides.push((*commit, trees.at(*root, path)?));
    }
    for (from, _) in sides.iter().filter(|(_, entry)| *entry == result) {
        let mut all = true;
        for (other, entry) in sides.iter().filter(|(_, entry)| *entry != result) {
            all &= left_alone(reader, trees, *from, *other, *entry, path)?;
        }
        if all {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether what `other` has at this path is what stood there wherever the two parted.
fn left_alone(
    reader: &Reader<'_>,
    trees: &Trees<'_>,
    from: Commit,
    other: Commit,
    entry: Option<Entry>,
    path: &[u8],
) -> Result<bool, Reason> {
    let bases = range::bases(reader, from, other)?;
    if bases.is_empty() {
        return Ok(entry.is_none());
    }
    for base in bases {
        let root = Entry::root(reader.commit(base)?.tree);
        if trees.at(root, path)? != entry {
            return Ok(false);
        }
    }
    Ok(true)
}

fn may(signer: &Found, path: &[u8]) -> bool {
    signer.paths.iter().all(|paths| paths.hold(path))
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).chars().filter(|c| !c.is_control()).take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::{Limit, Paths};

    fn holds(pattern: &str, path: &str) -> bool {
        let limit = Limit { principal: "a".into(), paths: vec![pattern.into()] };
        Paths::new(&limit).unwrap().hold(path.as_bytes())
    }

    #[test]
    fn a_star_stays_within_a_name_and_two_go_through_folders() {
        for (pattern, path, held) in [
            ("apps/a/**", "apps/a/x.yaml", true),
            ("apps/a/**", "apps/a/b/c.yaml", true),
            ("apps/a/**", "apps/a", false),
            ("apps/a/**", "apps/ab/x.yaml", false),
            ("apps/a/", "apps/a/b/c.yaml", true),
            ("apps/a/", "apps/a", false),
            ("apps/a", "apps/a", true),
            ("apps/a", "apps/a/x.yaml", false),
            ("apps/*", "apps/x.yaml", true),
            ("apps/*", "apps/b/x.yaml", false),
            ("**/web.yaml", "web.yaml", true),
            ("**/web.yaml", "a/b/web.yaml", true),
            ("**/web.yaml", "a/b/not-web.yaml", false),
            ("**", "anything/at/all", true),
            ("a/**/z?.yaml", "a/z1.yaml", true),
            ("a/**/z?.yaml", "a/b/c/z1.yaml", true),
            ("a/**/z?.yaml", "a/b/c/z.yaml", false),
            ("a/*/c", "a/b/c", true),
            ("a/*/c", "a/b/b/c", false),
        ] {
            assert_eq!(holds(pattern, path), held, "{pattern} {path}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_meant_is_refused() {
        for pattern in ["", "/", "/apps", "apps//a", "../a", "apps/./a", "apps/a**"] {
            let limit = Limit { principal: "a".into(), paths: vec![pattern.into()] };
            assert!(Paths::new(&limit).unwrap_err().contains("from the repository's root"));
        }
    }
}

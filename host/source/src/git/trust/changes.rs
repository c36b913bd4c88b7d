//! What differs between trees: paths of files, links and modules, with what stands there.
//!
//! A rename is two paths. A folder that became a file is the file and all that was in the folder.

use super::object::Reader;
use super::{ENTRIES_COMPARED_AT_MOST, Reason};
use gix::ObjectId;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Folders within folders.
const DEPTH_AT_MOST: usize = 256;

const TREE: u32 = 0o040_000;

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    mode: u32,
    id: ObjectId,
}

impl Entry {
    /// The root of a commit.
    pub(super) fn root(id: ObjectId) -> Self {
        Self { mode: TREE, id }
    }
}

type Tree = BTreeMap<Vec<u8>, Entry>;

/// Trees, as they are read for one comparison.
pub(super) struct Trees<'r> {
    reader: &'r Reader<'r>,
    known: RefCell<HashMap<ObjectId, Rc<Tree>>>,
    entries: Cell<usize>,
}

impl<'r> Trees<'r> {
    pub(super) fn new(reader: &'r Reader<'r>) -> Self {
        Self { reader, known: RefCell::default(), entries: Cell::new(0) }
    }

    /// Calls `each` with every path that differs.
    pub(super) fn differences(
        &self,
        before: Option<Entry>,
        after: Option<Entry>,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        self.compare(&mut Vec::new(), before, after, 0, each)
    }

    fn compare(
        &self,
        path: &mut Vec<u8>,
        before: Option<Entry>,
        after: Option<Entry>,
        depth: usize,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        if before == after {
            return Ok(());
        }
        if depth > DEPTH_AT_MOST {
            return Err(Reason::TooMany("folders within folders", DEPTH_AT_MOST));
        }
        if [before, after].into_iter().flatten().any(|entry| entry.mode != TREE) {
            each(path)?;
        }
        let (before, after) = (self.children(before)?, self.children(after)?);
        let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
        for name in names {
            let length = path.len();
            if length > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(name);
            let (before, after) = (before.get(name).copied(), after.get(name).copied());
            self.compare(path, before, after, depth + 1, each)?;
            path.truncate(length);
        }
        Ok(())
    }

    /// What stands at this path; `None`: nothing.
    pub(super) fn at(&self, root: Entry, path: &[u8]) -> Result<Option<Entry>, Reason> {
        let mut here = Some(root);
        for name in path.split(|byte| *byte == b'/') {
            here = self.children(here)?.get(name).copied();
        }
        Ok(here)
    }

    fn children(&self, entry: Option<Entry>) -> Result<Rc<Tree>, Reason> {
        let Some(entry) = entry.filter(|entry| entry.mode == TREE) else {
            return Ok(Rc::default());
        };
        if let Some(known) = self.known.borrow().get(&entry.id) {
            return Ok(known.clone());
        }
        let tree = parse(&self.reader.tree(entry.id)?)
            .map_err(|what| Reason::Damaged(format!("tree {}: {what}", entry.id)))?;
        self.entries.set(self.entries.get() + tree.len());
        if self.entries.get() > ENTRIES_COMPARED_AT_MOST {
            return Err(Reason::TooMany("files to compare", ENTRIES_COMPARED_AT_MOST));
        }
        let tree = Rc::new(tree);
        self.known.borrow_mut().insert(entry.id, tree.clone());
        Ok(tree)
    }
}

/// Entries by name. A name that could be read as another path, or stands twice, is damage.
fn parse(mut bytes: &[u8]) -> Result<Tree, &'static str> {
    let mut tree = Tree::new();
    while !bytes.is_empty() {
        let blank = bytes.iter().position(|byte| *byte == b' ').ok_or("it is cut off")?;
        let (mode, rest) = (&bytes[..blank], &bytes[blank + 1..]);
        let end = rest.iter().position(|byte| *byte == 0).ok_or("it is cut off")?;
        let (name, rest) = (&rest[..end], &rest[end + 1..]);
        let (id, rest) = rest.split_at_checked(20).ok_or("it is cut off")?;
        let mode = std::str::from_utf8(mode)
            .ok()
            .and_then(|mode| u32::from_str_radix(mode, 8).ok())
            .ok_or("a mode in it is no number")?;
        if name.contains(&b'/') || [&b""[..], b".", b".."].contains(&name) {
            return Err("a name in it is no name of a file");
        }
        let id = ObjectId::try_from(id).map_err(|_| "an id in it is damaged")?;
        if tree.insert(name.to_vec(), Entry { mode, id }).is_some() {
            return Err("a name stands in it twice");
        }
        bytes = rest;
    }
    Ok(tree)
}

//! The files of a commit's tree, read out of the mirror: each object held against its own id, its
//! size known before it is unpacked.

use super::mirror::MirrorFault;
use super::names;
use crate::error::{Fault, ProblemCode};
use crate::limits::{MAX_PATH_BYTES, MAX_TREE_BYTES};
use crate::walk::{Entry, Files, Listing, Name, Obstacle, is_manifest};
use gix::objs::{Kind, TreeRefIter};
use gix::{ObjectId, Repository};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// An object could not be read as it should be.
#[derive(Debug)]
pub(crate) enum ObjectFault {
    /// It is not there, or it is not what its id says.
    Broken(String),
    /// It is larger than may be held.
    TooLarge(String),
}

impl From<ObjectFault> for MirrorFault {
    fn from(fault: ObjectFault) -> Self {
        match fault {
            ObjectFault::Broken(why) | ObjectFault::TooLarge(why) => MirrorFault::Broken(why),
        }
    }
}

/// The bytes of an object that is of this kind, and is what its id says.
///
/// # Errors
/// [`ObjectFault`]
pub(crate) fn object(
    repo: &Repository,
    id: ObjectId,
    kind: Kind,
    limit: u64,
) -> Result<Vec<u8>, ObjectFault> {
    let size = size(repo, id, kind)?;
    if size > limit {
        let what = super::link::size(limit);
        return Err(ObjectFault::TooLarge(format!("the {kind} {id} is larger than {what}")));
    }
    let mut object = repo.find_object(id).map_err(|error| broken(kind, id, &error))?;
    let computed = gix::objs::compute_hash(id.kind(), kind, &object.data);
    if computed.map_err(|error| broken(kind, id, &error))? != id {
        return Err(ObjectFault::Broken(format!("the {kind} {id} is not what its id says")));
    }
    Ok(std::mem::take(&mut object.data))
}

/// The size of an object, which is not unpacked for it.
///
/// # Errors
/// [`ObjectFault::Broken`]
pub(crate) fn size(repo: &Repository, id: ObjectId, kind: Kind) -> Result<u64, ObjectFault> {
    let header = repo.try_find_header(id).map_err(|error| broken(kind, id, &error))?;
    let Some(header) = header else {
        return Err(ObjectFault::Broken(format!("the {kind} {id} is missing")));
    };
    if header.kind() != kind {
        return Err(ObjectFault::Broken(format!("{id} is a {}, not a {kind}", header.kind())));
    }
    Ok(header.size())
}

fn broken(kind: Kind, id: ObjectId, error: &gix::Error) -> ObjectFault {
    let words = super::words::of_error(error);
    ObjectFault::Broken(format!("the {kind} {id} cannot be read: {words}"))
}

/// A tree and all below it.
pub(crate) struct TreeFiles<'r> {
    repo: &'r Repository,
    root: ObjectId,
    trees: HashMap<ObjectId, Rc<Vec<Item>>>,
    /// Sizes that are known from an earlier reading.
    sizes: &'r HashMap<ObjectId, u64>,
    /// What was found to be broken: then nothing of the walk counts.
    pub(crate) broken: Option<String>,
}

struct Item {
    name: Name,
    what: What,
    id: ObjectId,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Tree,
    Blob,
    Link,
    Submodule,
    Strange(u16),
}

impl<'r> TreeFiles<'r> {
    pub(crate) fn new(
        repo: &'r Repository,
        root: ObjectId,
        sizes: &'r HashMap<ObjectId, u64>,
    ) -> Self {
        Self { repo, root, trees: HashMap::new(), sizes, broken: None }
    }

    /// The tree under a path of names below this one, if it is one.
    ///
    /// # Errors
    /// [`ObjectFault`]
    pub(crate) fn folder(&mut self, path: &str) -> Result<Option<ObjectId>, ObjectFault> {
        let mut id = self.root;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let tree = self.tree(id)?;
            match find(&tree, name.as_bytes()) {
                Some(item) if item.what == What::Tree => id = item.id,
                _ => return Ok(None),
            }
        }
        self.tree(id)?;
        Ok(Some(id))
    }

    /// A tree's entries, sorted by the bytes of their names.
    fn tree(&mut self, id: ObjectId) -> Result<Rc<Vec<Item>>, ObjectFault> {
        if let Some(tree) = self.trees.get(&id) {
            return Ok(tree.clone());
        }
        // Git writes no object for the tree that holds nothing.
        let bytes = match id == ObjectId::empty_tree(id.kind()) {
            true => Vec::new(),
            false => object(self.repo, id, Kind::Tree, MAX_TREE_BYTES)?,
        };
        let mut items = Vec::new();
        for entry in TreeRefIter::from_bytes(&bytes, id.kind()) {
            let entry = entry.map_err(|error| broken(Kind::Tree, id, &error))?;
            let what = match entry.mode.value() {
                0o040000 => What::Tree,
                // What very old versions of Git wrote for a file of a group's.
                0o100644 | 0o100755 | 0o100664 => What::Blob,
                0o120000 => What::Link,
                0o160000 => What::Submodule,
                other => What::Strange(other),
            };
            items.push(Item { name: entry.filename.to_vec(), what, id: entry.oid.to_owned() });
        }
        items.sort_by(|a, b| a.name.cmp(&b.name));
        let items = Rc::new(items);
        self.trees.insert(id, items.clone());
        Ok(items)
    }

    /// The tree under a path below the source's root; `None` where there is none.
    fn at(&mut self, path: &[Name]) -> Result<Option<Rc<Vec<Item>>>, ObjectFault> {
        let mut tree = self.tree(self.root)?;
        for name in path {
            let id = match find(&tree, name) {
                Some(item) if item.what == What::Tree => item.id,
                _ => return Ok(None),
            };
            tree = self.tree(id)?;
        }
        Ok(Some(tree))
    }

    fn obstacle(&mut self, fault: ObjectFault) -> Obstacle {
        match fault {
            ObjectFault::Broken(why) => {
                self.broken.get_or_insert_with(|| why.clone());
                Obstacle::Unreadable(why)
            }
            ObjectFault::TooLarge(why) => Obstacle::Unreadable(why),
        }
    }

    fn entry(&mut self, item: &Item) -> Result<Entry<ObjectId>, ObjectFault> {
        Ok(match item.what {
            What::Tree => Entry::Folder,
            What::Blob => {
                let size = match self.sizes.get(&item.id) {
                    Some(size) => *size,
                    None => size(self.repo, item.id, Kind::Blob)?,
                };
                Entry::File { size, handle: item.id }
            }
            What::Link => {
                let limit = MAX_PATH_BYTES as u64;
                match object(self.repo, item.id, Kind::Blob, limit) {
                    Ok(target) => Entry::Link(target),
                    // Longer than any path: it leads nowhere.
                    Err(ObjectFault::TooLarge(_)) => Entry::Other,
                    Err(fault) => return Err(fault),
                }
            }
            What::Submodule | What::Strange(_) => Entry::Other,
        })
    }
}

impl Files for TreeFiles<'_> {
    type Handle = ObjectId;

    fn list(&mut self, folder: &[Name]) -> Result<Listing, Obstacle> {
        let tree = match self.at(folder) {
            Ok(Some(tree)) => tree,
            Ok(None) => return Err(Obstacle::Absent),
            Err(fault) => return Err(self.obstacle(fault)),
        };
        let mut listing = Listing::default();
        // Names in lower case, of what is read: what is not may differ in case as it likes.
        let mut lower = HashSet::new();
        let mut previous: Option<&Name> = None;
        for item in tree.iter() {
            let is_hidden = item.name.starts_with(b".");
            let is_read = !is_hidden
                && match item.what {
                    What::Blob => is_manifest(&item.name),
                    _ => true,
                };
            let is_new =
                !is_read || lower.insert(String::from_utf8_lossy(&item.name).to_lowercase());
            let is_twice = previous.replace(&item.name) == Some(&item.name);
            match fault(item, is_hidden, is_twice, is_new) {
                Some(fault) => listing.faults.push((item.name.clone(), fault)),
                None => listing.names.push(item.name.clone()),
            }
        }
        Ok(listing)
    }

    fn look(&mut self, path: &[Name]) -> Result<Entry<ObjectId>, Obstacle> {
        let Some((name, folder)) = path.split_last() else { return Ok(Entry::Folder) };
        let tree = match self.at(folder) {
            Ok(Some(tree)) => tree,
            Ok(None) => return Err(Obstacle::Absent),
            Err(fault) => return Err(self.obstacle(fault)),
        };
        let Some(item) = find(&tree, name) else { return Err(Obstacle::Absent) };
        self.entry(item).map_err(|fault| self.obstacle(fault))
    }
}

fn find<'t>(tree: &'t [Item], name: &[u8]) -> Option<&'t Item> {
    let at = tree.binary_search_by(|item| item.name.as_slice().cmp(name)).ok()?;
    tree.get(at)
}

/// What is wrong with an entry by its name and mode alone.
fn fault(item: &Item, is_hidden: bool, is_twice: bool, is_new: bool) -> Option<Fault> {
    let refuse =
        |code, message: &str, remedy: &str| Some(Fault::new(code, 1, message, remedy).whole_file());
    if let Err(why) = names::check(&item.name) {
        return refuse(ProblemCode::UnsafeName, why, "rename it");
    }
    if is_twice {
        let why = "the folder has two entries of this name";
        return refuse(ProblemCode::UnsafeName, why, "make the commit anew with Git itself");
    }
    if let What::Strange(mode) = item.what {
        let why = format!("the entry's mode {mode:o} is none of Git's");
        return refuse(ProblemCode::NotAFile, &why, "make the commit anew with Git itself");
    }
    if is_hidden {
        return None;
    }
    if !is_new {
        let why = "the name differs from another one in this folder in case alone";
        return refuse(ProblemCode::UnsafeName, why, "rename one of the two");
    }
    if item.what == What::Submodule {
        let why = "this is a submodule, and submodules are not followed";
        let remedy = "put its files here, or point the source at a folder without it";
        return refuse(ProblemCode::NotFollowed, why, remedy);
    }
    None
}

//! A commit's folder to manifests. What a file held is kept by the id of its content, so that a
//! change of one file costs the reading of one, whatever else there is.
//!
//! The id of a blob is a digest over all of its bytes, and each blob is held against its id when it
//! is read: what is kept under one cannot be of another content. What is kept is what the last
//! reading used, so that the limits of a source bound it.

use super::files::{self, ObjectFault, TreeFiles};
use crate::directory::read_text;
use crate::error::{Problem, ProblemCode};
use crate::limits::{MAX_FILE_BYTES, MAX_PROBLEMS};
use crate::walk::{self, File};
use gix::objs::Kind;
use gix::{ObjectId, Repository};
use std::collections::HashMap;
use std::sync::Arc;
use trimtab_core::object::Manifest;

/// What the last reading decoded.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    sizes: HashMap<ObjectId, u64>,
    /// By content and by name: the name stands in every manifest.
    manifests: HashMap<(ObjectId, Arc<str>), Arc<[Manifest]>>,
}

/// A folder's manifests, in the order of paths and lines, and what stands against them.
pub(crate) struct Content {
    pub(crate) manifests: Vec<Manifest>,
    pub(crate) problems: Vec<Problem>,
    /// Files whose content was not known from the last reading.
    pub(crate) decoded: usize,
}

/// Reads a tree.
///
/// # Errors
/// What is broken in the mirror: nothing of the reading counts.
pub(crate) fn read(
    repo: &Repository,
    root: ObjectId,
    known: &mut Decoded,
) -> Result<Content, String> {
    let mut tree = TreeFiles::new(repo, root, &known.sizes);
    let found = walk::walk(&mut tree);
    if let Some(broken) = tree.broken {
        return Err(broken);
    }
    let mut content = Content { manifests: Vec::new(), problems: found.problems, decoded: 0 };
    let mut kept = Decoded::default();
    for file in found.files {
        if content.problems.len() >= MAX_PROBLEMS {
            break;
        }
        let key = (file.handle, file.name);
        let manifests = match known.manifests.remove(&key) {
            Some(manifests) => manifests,
            None => {
                content.decoded += 1;
                match decode(repo, &File { name: key.1.clone(), handle: key.0 })? {
                    Ok(manifests) => manifests,
                    Err(problems) => {
                        content.problems.extend(problems);
                        continue;
                    }
                }
            }
        };
        content.manifests.extend(manifests.iter().cloned());
        if let Some(size) = known.sizes.get(&key.0) {
            kept.sizes.insert(key.0, *size);
        } else if let Ok(size) = files::size(repo, key.0, Kind::Blob) {
            kept.sizes.insert(key.0, size);
        }
        kept.manifests.insert(key, manifests);
    }
    *known = kept;
    Ok(content)
}

type Read = Result<Arc<[Manifest]>, Vec<Problem>>;

fn decode(repo: &Repository, file: &File<ObjectId>) -> Result<Read, String> {
    match files::object(repo, file.handle, Kind::Blob, MAX_FILE_BYTES) {
        Ok(bytes) => Ok(read_text(&file.name, &bytes).map(Arc::from)),
        Err(ObjectFault::Broken(why)) => Err(why),
        Err(ObjectFault::TooLarge(why)) => Ok(Err(vec![Problem {
            code: ProblemCode::TooLarge,
            file: file.name.clone(),
            line: None,
            path: None,
            message: why,
            remedy: "split it".to_owned(),
        }])),
    }
}

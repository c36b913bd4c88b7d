//! A directory, or one file, as a source: the whole tree in one revision.
//!
//! A reading looks at all files, waits until they have been left alone for a moment, reads them,
//! and looks again: if anything moved meanwhile it starts over. So a revision is what the tree held
//! at one moment, also while a mount is being swapped or a file is being written.

use crate::decode;
use crate::error::{Fault, Problem, ProblemCode, SourceError};
use crate::identity::duplicates;
use crate::limits::{MAX_FILE_BYTES, MAX_OBJECTS, MAX_PROBLEMS, READ_ATTEMPTS};
use crate::manifest;
use crate::tree::{self, Stamp, Tree};
use crate::{Fingerprint, Source};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trimtab_core::object::{Manifest, Provenance, Revision};

/// A directory of manifests, or a single file whatever its name.
///
/// # Guarantees
/// A [`Revision`] holds every manifest of every file, in the order of paths and lines. Its id is
/// `sha256:` over the sorted paths and contents. A directory without manifests is an empty
/// revision; a path that is not there is [`SourceError::Missing`]. Whoever prunes must tell an empty
/// revision from an intended removal.
///
/// # Caveats
/// Manifests are read whole: while anything in the tree is refused, nothing of it is used. A reading
/// waits for [`crate::limits::QUIET`] after the last change. A writer that pauses for longer between
/// two files, or within one, is seen half-way: replace files by a rename, trees by a link.
#[derive(Clone, Debug)]
pub struct Directory {
    name: Arc<str>,
    path: PathBuf,
    default_namespace: Arc<str>,
}

impl Directory {
    /// The source `name` at `path`. Objects without a namespace count as in `default_namespace`
    /// where two declarations are compared; the manifests keep what they state.
    pub fn new(name: &str, path: impl Into<PathBuf>, default_namespace: &str) -> Self {
        Self { name: name.into(), path: path.into(), default_namespace: default_namespace.into() }
    }
}

impl Source for Directory {
    fn name(&self) -> &str {
        &self.name
    }

    fn fingerprint(&self) -> Result<Fingerprint, SourceError> {
        let tree = tree::walk(&self.path)?;
        Ok(Fingerprint::new(&tree.state(), tree.is_settled()))
    }

    fn read(&self) -> Result<Revision, SourceError> {
        let mut tree = tree::walk(&self.path)?;
        for _ in 0..READ_ATTEMPTS {
            std::thread::sleep(tree.unrest());
            let content = read_tree(&tree);
            let after = tree::walk(&self.path)?;
            match content {
                Some(content) if after.is_same(&tree) => return self.revision(tree, content),
                _ => tree = after,
            }
        }
        Err(SourceError::Unsettled { path: self.path.to_string_lossy().into() })
    }

    fn watched_paths(&self) -> Vec<PathBuf> {
        vec![self.path.clone()]
    }
}

impl Directory {
    fn revision(&self, tree: Tree, content: Content) -> Result<Revision, SourceError> {
        let mut problems = tree.into_found().problems;
        problems.extend(content.problems);
        let manifests = unique(content.manifests, problems, &self.default_namespace)?;
        let id = content.hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let id = format!("sha256:{id}").into();
        let provenance = Provenance::default();
        Ok(Revision { source: self.name.clone(), id, manifests, provenance })
    }
}

/// Reads the documents of one text: standard input, or a file that somebody named. `name` stands
/// for it in messages; if it ends with `.json` the text must be JSON.
///
/// # Errors
/// [`SourceError::Refused`] with all problems.
pub fn read_documents(
    name: &str,
    bytes: &[u8],
    default_namespace: &str,
) -> Result<Vec<Manifest>, SourceError> {
    let name: Arc<str> = name.into();
    let (manifests, problems) = match read_text(&name, bytes) {
        Ok(manifests) => (manifests, Vec::new()),
        Err(problems) => (Vec::new(), problems),
    };
    unique(manifests, problems, default_namespace)
}

pub(crate) fn read_text(name: &Arc<str>, bytes: &[u8]) -> Result<Vec<Manifest>, Vec<Problem>> {
    if bytes.starts_with(LFS_POINTER) {
        return Err(vec![lfs_pointer().in_file(name)]);
    }
    let documents = decode::documents(name, bytes).map_err(|fault| vec![fault.in_file(name)])?;
    manifest::manifests(name, documents)
}

/// How a file begins whose content Git LFS keeps elsewhere.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

fn lfs_pointer() -> Fault {
    let message =
        "this is a pointer to content that Git LFS keeps elsewhere, and it is not fetched";
    let remedy = "keep manifests in Git itself (git lfs untrack, then commit the file again)";
    Fault::new(ProblemCode::NotFollowed, 1, message, remedy).whole_file()
}

/// The manifests, if there are no problems and no two are one object.
pub(crate) fn unique(
    manifests: Vec<Manifest>,
    mut problems: Vec<Problem>,
    default_namespace: &str,
) -> Result<Vec<Manifest>, SourceError> {
    problems.extend(duplicates(&manifests, default_namespace));
    if let Some(beyond) = manifests.get(MAX_OBJECTS) {
        problems.push(Problem {
            code: ProblemCode::TooLarge,
            file: beyond.origin.file.clone(),
            line: Some(beyond.origin.line),
            path: None,
            message: format!("the source declares more than {MAX_OBJECTS} objects"),
            remedy: "split the source".to_owned(),
        });
    }
    if problems.is_empty() { Ok(manifests) } else { Err(SourceError::refused(problems)) }
}

struct Content {
    hash: [u8; 32],
    manifests: Vec<Manifest>,
    problems: Vec<Problem>,
}

/// The content of all files; `None` if one is no longer the file that the walk saw.
fn read_tree(tree: &Tree) -> Option<Content> {
    let mut hash = Sha256::new();
    let mut manifests = Vec::new();
    let mut problems = Vec::new();
    for file in tree.files() {
        if problems.len() >= MAX_PROBLEMS {
            break;
        }
        match read_file(&file.handle.path, file.handle.stamp) {
            Ok(Some(bytes)) => {
                // Lengths in front: no two trees give one sequence of bytes.
                hash.update((file.name.len() as u64).to_le_bytes());
                hash.update(file.name.as_bytes());
                hash.update((bytes.len() as u64).to_le_bytes());
                hash.update(&bytes);
                match read_text(&file.name, &bytes) {
                    Ok(found) => manifests.extend(found),
                    Err(found) => problems.extend(found),
                }
            }
            Ok(None) => return None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => problems.push(Problem {
                code: ProblemCode::Unreadable,
                file: file.name.clone(),
                line: None,
                path: None,
                message: format!("cannot be read: {error}"),
                remedy: "let the host's user read it, or take it out of the source".to_owned(),
            }),
        }
    }
    Some(Content { hash: hash.finalize().into(), manifests, problems })
}

/// The content of one file; `None` if it is not the file, or not in the state, that the walk saw.
/// The check on the open file also catches a link put in its place in between.
fn read_file(path: &Path, stamp: Stamp) -> io::Result<Option<Vec<u8>>> {
    let file = fs::File::open(path)?;
    if Stamp::of(&file.metadata()?) != stamp {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    (&file).take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    let is_same = Stamp::of(&file.metadata()?) == stamp && bytes.len() as u64 <= MAX_FILE_BYTES;
    Ok(is_same.then_some(bytes))
}

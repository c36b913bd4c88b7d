//! The files of a source: which there are, each once, and nothing outside the root.
//!
//! Manifests are `*.yaml`, `*.yml` and `*.json`, as kubectl has it. Hidden names (a leading dot) are
//! left out, which with the rules for links makes a mounted ConfigMap read right: its visible names
//! are links through `..data` into a hidden folder that is swapped in one step.
//!
//! Links are resolved step by step by hand. Each step must stay inside the root, even if the end
//! would be inside again; what leaves it is refused, whether it exists or not.

use crate::error::{Fault, Problem, ProblemCode, SourceError};
use crate::limits::{
    MAX_ENTRIES, MAX_FILE_BYTES, MAX_FILES, MAX_FOLDER_DEPTH, MAX_LINK_HOPS, MAX_PATH_BYTES,
    MAX_TOTAL_BYTES, QUIET, RACY_AGE,
};
use crate::manifest::{not_rendered_chart, not_rendered_kustomization};
use std::collections::{HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What a walk found: files sorted by visible path, and what stands against reading them.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
    pub(crate) problems: Vec<Problem>,
    /// When any file, or the listing of any folder, last changed: nanoseconds of Unix time.
    newest: i128,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// Path below the root by visible names, with `/`.
    pub(crate) name: Arc<str>,
    /// Where it really lies.
    pub(crate) path: PathBuf,
    pub(crate) stamp: Stamp,
}

/// What tells one state of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// The later of its two times, in nanoseconds of Unix time.
    fn newest(&self) -> i128 {
        let nanos =
            |(seconds, nanos): (i64, i64)| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        nanos(self.modified).max(nanos(self.changed))
    }
}

impl Tree {
    /// The state of all files as bytes, for a fingerprint.
    pub(crate) fn state(&self) -> Vec<u8> {
        format!("{:?}", (&self.files, &self.problems)).into_bytes()
    }

    /// Whether two walks saw the same files in the same state.
    pub(crate) fn is_same(&self, other: &Tree) -> bool {
        self.files == other.files && self.problems == other.problems
    }

    /// How long to wait until the tree has been quiet for [`QUIET`]; zero if it has, or if its
    /// clock is ahead of ours.
    pub(crate) fn unrest(&self) -> Duration {
        let age = now().saturating_sub(self.newest);
        let left = i128::try_from(QUIET.as_nanos()).unwrap_or(0).saturating_sub(age);
        if age < 0 || left <= 0 {
            return Duration::ZERO;
        }
        Duration::from_nanos(u64::try_from(left).unwrap_or(0))
    }

    /// Whether every file's stamp is old enough to prove, if it stays, that the file has stayed.
    pub(crate) fn is_settled(&self) -> bool {
        let racy = i128::try_from(RACY_AGE.as_nanos()).unwrap_or(i128::MAX);
        let racy_from = now().saturating_sub(racy);
        self.files.iter().all(|file| file.stamp.newest() < racy_from)
    }
}

/// Nanoseconds of Unix time.
fn now() -> i128 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i128::try_from(now.as_nanos()).unwrap_or(i128::MAX)
}

/// Looks at all files below `root`, or at the one file that it is. The root itself may be a link:
/// whoever configured it chose it.
///
/// # Errors
/// [`SourceError::Missing`] or [`SourceError::Unreadable`] for the root itself.
pub(crate) fn walk(root: &Path) -> Result<Tree, SourceError> {
    let shown = || Arc::from(root.to_string_lossy());
    let fault = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            SourceError::Missing { path: shown() }
        }
        _ => SourceError::Unreadable { path: shown(), reason: error.to_string().into() },
    };
    let real = fs::canonicalize(root).map_err(fault)?;
    let metadata = fs::metadata(&real).map_err(fault)?;
    let mut walker = Walker {
        root: real.clone(),
        tree: Tree { files: Vec::new(), problems: Vec::new(), newest: 0 },
        entries: 0,
        bytes: 0,
        seen: HashSet::new(),
        full: false,
    };
    if metadata.is_dir() {
        fs::read_dir(&real).map_err(fault)?;
        walker.folder(&[], "", 0);
    } else {
        let name = root.file_name().unwrap_or(root.as_os_str()).to_string_lossy();
        walker.file(name.as_ref(), real, &metadata);
    }
    let mut tree = walker.tree;
    tree.files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tree)
}

struct Walker {
    root: PathBuf,
    tree: Tree,
    entries: usize,
    bytes: u64,
    /// Real paths of what was taken up through links, and of all files.
    seen: HashSet<PathBuf>,
    /// Set once a limit of the whole source was passed: one problem says so, not thousands.
    full: bool,
}

impl Walker {
    /// One folder: `real` are its names below the root without links, `shown` its visible path.
    fn folder(&mut self, real: &[OsString], shown: &str, depth: usize) {
        if let Ok(metadata) = fs::metadata(self.join(real)) {
            self.tree.newest = self.tree.newest.max(Stamp::of(&metadata).newest());
        }
        let listing =
            fs::read_dir(self.join(real)).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut names: Vec<OsString> = match listing {
            Ok(entries) => entries.into_iter().map(|entry| entry.file_name()).collect(),
            Err(error) => {
                return self.unreadable(if shown.is_empty() { "." } else { shown }, &error);
            }
        };
        names.sort();
        if names.iter().any(|name| name == "Chart.yaml") {
            // Its templates are no YAML: one problem for the chart, none for what lies in it.
            return self.problem(&below(shown, "Chart.yaml"), not_rendered_chart());
        }
        let kustomization =
            names.iter().filter_map(|name| name.to_str()).find(|name| is_kustomization(name));
        if let Some(name) = kustomization {
            self.problem(&below(shown, name), not_rendered_kustomization(1).whole_file());
        }
        let is_kustomized = kustomization.is_some();
        for name in names {
            if self.full || name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let Some(text) = name.to_str() else {
                let remedy = "rename it";
                let lossy = below(shown, &name.to_string_lossy());
                self.refuse(&lossy, ProblemCode::NotAFile, "the file's name is not UTF-8", remedy);
                continue;
            };
            self.entry(real, &name, &below(shown, text), depth, is_kustomized);
        }
    }

    /// One name in a folder. Manifests beside a kustomization are its material, often patches.
    fn entry(
        &mut self,
        parent: &[OsString],
        name: &OsStr,
        shown: &str,
        depth: usize,
        is_kustomized: bool,
    ) {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return self.overflow(shown, format!("the source has more than {MAX_ENTRIES} entries"));
        }
        if shown.len() > MAX_PATH_BYTES {
            let message = format!("the path is longer than {MAX_PATH_BYTES} bytes");
            return self.refuse(shown, ProblemCode::TooLarge, &message, "use shorter names");
        }
        let mut real = parent.to_vec();
        real.push(name.to_owned());
        let mut metadata = match fs::symlink_metadata(self.join(&real)) {
            Ok(metadata) => metadata,
            // Gone since the listing: the walk after the reading will differ.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.unreadable(shown, &error),
        };
        if metadata.is_symlink() {
            let target = match self.resolve(parent, name) {
                Ok(target) => target,
                Err(fault) => return self.problem(shown, fault.whole_file()),
            };
            metadata = match fs::symlink_metadata(self.join(&target)) {
                Ok(metadata) => metadata,
                Err(error) => return self.unreadable(shown, &error),
            };
            let is_hidden = target.iter().any(|part| part.as_encoded_bytes().starts_with(b"."));
            let own_name = target.last().and_then(|name| name.to_str()).unwrap_or_default();
            // Each file once: under its own name, or through the first link to where it is hidden.
            let is_read_anyway = !is_hidden && (metadata.is_dir() || is_manifest(own_name));
            let path = self.join(&target);
            if is_read_anyway || (metadata.is_dir() && !self.seen.insert(path)) {
                return;
            }
            real = target;
        }
        if metadata.is_dir() {
            if depth >= MAX_FOLDER_DEPTH {
                let message = format!("folders nest more than {MAX_FOLDER_DEPTH} deep");
                return self.refuse(shown, ProblemCode::TooLarge, &message, "flatten the source");
            }
            self.folder(&real, shown, depth + 1);
        } else if is_manifest(shown) && !is_kustomized {
            let path = self.join(&real);
            self.file(shown, path, &metadata);
        }
    }

    fn file(&mut self, shown: &str, path: PathBuf, metadata: &Metadata) {
        if !metadata.is_file() {
            let message = "this is no regular file";
            return self.refuse(shown, ProblemCode::NotAFile, message, "remove it from the source");
        }
        if metadata.len() > MAX_FILE_BYTES {
            let message = format!("the file is larger than {} MiB", MAX_FILE_BYTES >> 20);
            return self.refuse(shown, ProblemCode::TooLarge, &message, "split it");
        }
        self.bytes = self.bytes.saturating_add(metadata.len());
        if self.bytes > MAX_TOTAL_BYTES {
            let message = format!("the source holds more than {} MiB", MAX_TOTAL_BYTES >> 20);
            return self.overflow(shown, message);
        }
        if self.tree.files.len() >= MAX_FILES {
            return self
                .overflow(shown, format!("the source has more than {MAX_FILES} manifest files"));
        }
        if !self.seen.insert(path.clone()) {
            return;
        }
        let stamp = Stamp::of(metadata);
        self.tree.newest = self.tree.newest.max(stamp.newest());
        self.tree.files.push(File { name: shown.into(), path, stamp });
    }

    /// The names below the root that a link leads to, none of them a link.
    fn resolve(&self, parent: &[OsString], name: &OsStr) -> Result<Vec<OsString>, Fault> {
        let refused = |code, message: &str, remedy: &str| Err(Fault::new(code, 1, message, remedy));
        let escape = || {
            let remedy =
                "put the file itself there, or give the link a leading dot to have it ignored";
            refused(ProblemCode::SymlinkEscape, "the link leaves the source's root", remedy)
        };
        let mut resolved = parent.to_vec();
        let mut todo = VecDeque::from([name.to_owned()]);
        let mut hops = 0;
        while let Some(part) = todo.pop_front() {
            match part.to_str() {
                Some("" | ".") => continue,
                Some("..") => {
                    if resolved.pop().is_none() {
                        return escape();
                    }
                    continue;
                }
                _ => {}
            }
            resolved.push(part);
            let path = self.join(&resolved);
            match fs::symlink_metadata(&path) {
                Ok(metadata) if !metadata.is_symlink() => continue,
                Ok(_) => {}
                Err(_) => {
                    let remedy = "correct or remove the link";
                    return refused(ProblemCode::NotAFile, "the link points to nothing", remedy);
                }
            }
            hops += 1;
            let Ok(target) = fs::read_link(&path) else {
                return refused(
                    ProblemCode::NotAFile,
                    "the link cannot be read",
                    "recreate the link",
                );
            };
            if hops > MAX_LINK_HOPS {
                return refused(
                    ProblemCode::NotAFile,
                    "the links lead in a circle",
                    "remove the link",
                );
            }
            if target.is_absolute() {
                return escape();
            }
            resolved.pop();
            for part in target.components().rev() {
                todo.push_front(part.as_os_str().to_owned());
            }
        }
        Ok(resolved)
    }

    fn join(&self, names: &[OsString]) -> PathBuf {
        let mut path = self.root.clone();
        path.extend(names);
        path
    }

    fn overflow(&mut self, shown: &str, message: String) {
        self.full = true;
        let remedy = "point the source at a smaller folder";
        self.refuse(shown, ProblemCode::TooLarge, &message, remedy);
    }

    fn unreadable(&mut self, shown: &str, error: &io::Error) {
        let message = format!("cannot be read: {error}");
        let remedy = "let the host's user read it, or take it out of the source";
        self.refuse(shown, ProblemCode::Unreadable, &message, remedy);
    }

    fn refuse(&mut self, shown: &str, code: ProblemCode, message: &str, remedy: &str) {
        self.problem(shown, Fault::new(code, 1, message, remedy).whole_file());
    }

    fn problem(&mut self, shown: &str, fault: Fault) {
        self.tree.problems.push(fault.in_file(&shown.into()));
    }
}

fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

fn is_manifest(name: &str) -> bool {
    [".yaml", ".yml", ".json"].iter().any(|ending| name.ends_with(ending))
}

fn is_kustomization(name: &str) -> bool {
    matches!(name, "kustomization.yaml" | "kustomization.yml" | "Kustomization")
}

//! The files of a directory: which there are, each once, and nothing outside the root.
//!
//! Which of them count is `walk.rs`, the same for all sources. Here is what the operating system
//! says of each, so that a later look can tell whether anything changed.

use crate::error::SourceError;
use crate::limits::{QUIET, RACY_AGE};
use crate::walk::{self, Entry, Files, Found, Listing, Name, Obstacle};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What a walk found, and when any of it last changed.
#[derive(Debug)]
pub(crate) struct Tree {
    found: Found<File>,
    /// When any file, or the listing of any folder, last changed: nanoseconds of Unix time.
    newest: i128,
}

/// Where a file really lies, and in which state it was seen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct File {
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
    /// The files sorted by visible path, and what stands against reading them.
    pub(crate) fn into_found(self) -> Found<File> {
        self.found
    }

    pub(crate) fn files(&self) -> &[walk::File<File>] {
        &self.found.files
    }

    /// The state of all files as bytes, for a fingerprint.
    pub(crate) fn state(&self) -> Vec<u8> {
        format!("{:?}", (&self.found.files, &self.found.problems)).into_bytes()
    }

    /// Whether two walks saw the same files in the same state.
    pub(crate) fn is_same(&self, other: &Tree) -> bool {
        self.found.files == other.found.files && self.found.problems == other.found.problems
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
        self.files().iter().all(|file| file.handle.stamp.newest() < racy_from)
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
    let mut disk = Disk { root: real.clone(), newest: 0 };
    let found = if metadata.is_dir() {
        fs::read_dir(&real).map_err(fault)?;
        walk::walk(&mut disk)
    } else {
        let name = root.file_name().unwrap_or(root.as_os_str()).to_string_lossy();
        let entry = entry(real, &metadata);
        walk::single(&mut disk, &name, entry)
    };
    let newest =
        found.files.iter().map(|file| file.handle.stamp.newest()).fold(disk.newest, i128::max);
    Ok(Tree { found, newest })
}

/// A directory as the operating system has it.
struct Disk {
    root: PathBuf,
    newest: i128,
}

impl Disk {
    fn join(&self, names: &[Name]) -> PathBuf {
        let mut path = self.root.clone();
        path.extend(names.iter().map(|name| OsStr::from_bytes(name)));
        path
    }
}

impl Files for Disk {
    type Handle = File;

    fn list(&mut self, folder: &[Name]) -> Result<Listing, Obstacle> {
        let path = self.join(folder);
        if let Ok(metadata) = fs::metadata(&path) {
            self.newest = self.newest.max(Stamp::of(&metadata).newest());
        }
        let names = fs::read_dir(path).map_err(obstacle)?;
        let names = names.map(|entry| entry.map(|entry| entry.file_name().into_vec()));
        let names = names.collect::<Result<_, _>>().map_err(obstacle)?;
        Ok(Listing { names, faults: Vec::new() })
    }

    fn look(&mut self, path: &[Name]) -> Result<Entry<File>, Obstacle> {
        let path = self.join(path);
        let metadata = fs::symlink_metadata(&path).map_err(obstacle)?;
        if metadata.is_symlink() {
            let target = fs::read_link(&path).map_err(obstacle)?;
            return Ok(Entry::Link(target.into_os_string().into_vec()));
        }
        Ok(entry(path, &metadata))
    }
}

fn entry(path: PathBuf, metadata: &Metadata) -> Entry<File> {
    if metadata.is_dir() {
        Entry::Folder
    } else if metadata.is_file() {
        let stamp = Stamp::of(metadata);
        Entry::File { size: metadata.len(), handle: File { path, stamp } }
    } else {
        Entry::Other
    }
}

fn obstacle(error: io::Error) -> Obstacle {
    match error.kind() {
        io::ErrorKind::NotFound => Obstacle::Absent,
        _ => Obstacle::Unreadable(error.to_string()),
    }
}

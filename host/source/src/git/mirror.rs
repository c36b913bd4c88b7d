//! A bare copy of what was fetched, in the source's own folder of the state directory.
//!
//! It holds objects and two names: what was fetched last, and what was accepted last. Its
//! configuration is ours to the letter; a mirror that is in any other state is broken, and a broken
//! one is made anew beside it and put in its place.

use super::GitOptions;
use crate::limits::{DELTA_CACHE_BYTES, MAX_PACKS};
use gix::odb::pack::cache::lru::MemoryCappedHashmap;
use gix::refs::transaction::PreviousValue;
use gix::{ObjectId, Repository};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// What was fetched last: it is what the server had.
pub(crate) const FETCHED: &str = "refs/trimtab/fetched";
/// What was accepted last: it is what is in force.
pub(crate) const ACCEPTED: &str = "refs/trimtab/accepted";

/// All that a mirror's own configuration says.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfilemode = true\n\
                      \tlogallrefupdates = false\n\tusereplacerefs = false\n";

/// The folder of a source: `STATE/sources/NAME`.
#[derive(Debug)]
pub(crate) struct Mirror {
    folder: PathBuf,
}

/// Why a mirror is no use as it stands.
#[derive(Debug)]
pub(crate) enum MirrorFault {
    /// It can be made anew.
    Broken(String),
    /// The operating system refuses.
    System(io::Error),
}

impl From<io::Error> for MirrorFault {
    fn from(error: io::Error) -> Self {
        MirrorFault::System(error)
    }
}

/// Held while the folder is in use by this process.
pub(crate) struct Lock(#[allow(dead_code)] File);

impl Mirror {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self) -> PathBuf {
        self.folder.join("mirror")
    }

    /// Waits until no other process uses the folder, which is made if it is not there.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn lock(&self) -> io::Result<Lock> {
        make_folder(&self.folder)?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.folder.join("lock"))?;
        file.lock()?;
        Ok(Lock(file))
    }

    /// The mirror, made if there is none.
    ///
    /// # Errors
    /// [`MirrorFault`]
    pub(crate) fn open(&self, options: &GitOptions) -> Result<Repository, MirrorFault> {
        let path = self.path();
        if !path.try_exists()? {
            self.put_back()?;
        }
        if !path.try_exists()? {
            make(&path)?;
        }
        open(&path, options)
    }

    /// An empty mirror beside the one in use, until [`Mirror::replace`] puts it in its place.
    ///
    /// # Errors
    /// [`MirrorFault`]
    pub(crate) fn fresh(&self, options: &GitOptions) -> Result<Repository, MirrorFault> {
        let path = self.folder.join("mirror.new");
        remove(&path)?;
        make(&path)?;
        open(&path, options)
    }

    /// Puts the fresh mirror in the place of the old one.
    ///
    /// # Errors
    /// [`MirrorFault`]
    pub(crate) fn replace(&self, options: &GitOptions) -> Result<Repository, MirrorFault> {
        let (path, old, new) =
            (self.path(), self.folder.join("mirror.old"), self.folder.join("mirror.new"));
        remove(&old)?;
        if path.try_exists()? {
            fs::rename(&path, &old)?;
        }
        fs::rename(&new, &path)?;
        remove(&old)?;
        open(&path, options)
    }

    /// What was accepted last, by its file alone: of a mirror that is broken otherwise, too.
    pub(crate) fn accepted(&self) -> Option<ObjectId> {
        [self.path(), self.folder.join("mirror.old")].iter().find_map(|mirror| {
            let text = fs::read(mirror.join(ACCEPTED)).ok()?;
            ObjectId::from_hex(text.trim_ascii_end()).ok()
        })
    }

    /// A process that was ended while it replaced the mirror leaves the old one beside.
    fn put_back(&self) -> io::Result<()> {
        let old = self.folder.join("mirror.old");
        if old.try_exists()? {
            fs::rename(old, self.path())?;
        }
        Ok(())
    }
}

/// What a name in the mirror stands for, if there is such a name.
///
/// # Errors
/// The mirror is broken, in words.
pub(crate) fn named(repo: &Repository, name: &str) -> Result<Option<ObjectId>, MirrorFault> {
    let reference = repo.try_find_reference(name).map_err(broken)?;
    match reference.map(|reference| reference.try_id().map(gix::Id::detach)) {
        None => Ok(None),
        Some(Some(id)) => Ok(Some(id)),
        Some(None) => Err(MirrorFault::Broken(format!("{name} is no name of an object"))),
    }
}

/// Gives an object a name. What the name stood for before stays in the mirror.
///
/// # Errors
/// [`MirrorFault`]
pub(crate) fn name(repo: &Repository, name: &str, id: ObjectId) -> Result<(), MirrorFault> {
    if named(repo, name)? != Some(id) {
        repo.reference(name, id, PreviousValue::Any, "").map_err(broken)?;
    }
    Ok(())
}

/// Whether finding objects costs more than fetching all of it once would.
pub(crate) fn is_scattered(repo: &Repository) -> bool {
    let packs = fs::read_dir(repo.objects.store_ref().path().join("pack"));
    let is_pack = |entry: &fs::DirEntry| entry.path().extension().is_some_and(|end| end == "pack");
    packs.is_ok_and(|packs| packs.flatten().filter(is_pack).count() > MAX_PACKS)
}

fn broken(error: gix::Error) -> MirrorFault {
    MirrorFault::Broken(super::words::of_error(&error))
}

fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes an empty repository by hand: no hooks, no templates, no configuration of anybody's.
fn make(path: &Path) -> io::Result<()> {
    for folder in ["objects/pack", "objects/info", "refs/trimtab"] {
        make_folder(&path.join(folder))?;
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    fs::write(path.join("config"), CONFIG)?;
    // What makes the folder a repository comes last.
    fs::write(path.join("HEAD"), "ref: refs/heads/none\n")
}

fn open(path: &Path, options: &GitOptions) -> Result<Repository, MirrorFault> {
    let config = match fs::read_to_string(path.join("config")) {
        Ok(config) => config,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    if config != CONFIG {
        return Err(MirrorFault::Broken("its configuration is not the host's own".into()));
    }
    for strange in ["objects/info/alternates", "objects/info/http-alternates", "shallow"] {
        if path.join(strange).try_exists()? {
            return Err(MirrorFault::Broken(format!("there is {strange} in it")));
        }
    }
    let limit = options.limits.object_bytes;
    gix::open::Options::isolated()
        .open_path_as_is(true)
        .strict_config(true)
        .with(gix::sec::Trust::Full)
        .config_overrides([
            format!("gitoxide.objects.allocLimit={limit}"),
            "clone.rejectShallow=true".into(),
        ])
        .open(path)
        .map(|repo| {
            let mut repo = repo.to_thread_local();
            repo.objects.set_pack_cache(|| Box::new(MemoryCappedHashmap::new(DELTA_CACHE_BYTES)));
            repo
        })
        .map_err(broken)
}

//! What was accepted last, and what a person allowed: two small files of one source's folder.
//!
//! `accepted.json` is written after a revision was taken; `allow` holds the one revision that may
//! be taken although it is a step back. Every acceptance removes `allow` first: cut off in between,
//! the allowance is lost and can be given again, and it is never used twice.

use super::Commit;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Bytes of either file: they have some 200.
const FILE_BYTES_AT_MOST: u64 = 64 * 1024;
const VERSION: u32 = 1;

/// The folder of one source in the state directory.
#[derive(Clone, Debug)]
pub struct Memory {
    folder: PathBuf,
}

/// A revision that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// It.
    pub commit: Commit,
    /// Seconds since 1970.
    pub at: u64,
    /// Digest of the source's configuration that it was accepted by.
    pub configuration: String,
    /// What was accepted when a person last allowed a step back: nobody has to descend from that
    /// any more, whoever else still remembers it.
    pub left: Option<Commit>,
}

/// A file of the memory that cannot be read or written. What was accepted is then not known, which
/// is not the same as nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}; {remedy}")]
pub struct MemoryError {
    /// The file.
    pub file: String,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub remedy: &'static str,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct AcceptedFile {
    version: u32,
    commit: String,
    accepted_at_seconds: u64,
    configuration: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<String>,
}

impl Memory {
    /// The memory in this folder, which need not be there yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// What was accepted last; `None`: nothing ever was, or the state directory is new.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn accepted(&self) -> Result<Option<Remembered>, MemoryError> {
        let file = self.accepted_file();
        let remedy = "look at the cluster's inventory for the last revision, then remove the file";
        let wrong = |what: String| failed(&file, what, remedy);
        let Some(text) = read(&file).map_err(|error| wrong(error.to_string()))? else {
            return Ok(None);
        };
        let found: AcceptedFile =
            serde_json::from_str(&text).map_err(|error| wrong(format!("damaged ({error})")))?;
        if found.version != VERSION {
            return Err(wrong(format!("of version {}, which is not known", found.version)));
        }
        let commit = found.commit.parse().map_err(|error| wrong(format!("{error}")))?;
        let left = found.left.map(|left| left.parse()).transpose();
        let left = left.map_err(|error: super::NoCommit| wrong(format!("{error}")))?;
        let (at, configuration) = (found.accepted_at_seconds, found.configuration);
        Ok(Some(Remembered { commit, at, configuration, left }))
    }

    /// Remembers a revision that was taken, and uses up what a person allowed.
    ///
    /// # Errors
    /// It is not on disk: the next start would judge by what was accepted before.
    pub fn remember(&self, taken: &Remembered) -> Result<(), MemoryError> {
        self.forget_allowed()?;
        let file = self.accepted_file();
        let text = serde_json::to_string(&AcceptedFile {
            version: VERSION,
            commit: taken.commit.to_string(),
            accepted_at_seconds: taken.at,
            configuration: taken.configuration.clone(),
            left: taken.left.map(|left| left.to_string()),
        });
        let text = text.map_err(io::Error::from);
        text.and_then(|text| self.write(&file, &(text + "\n")))
            .map_err(|error| unwritten(&file, &error))
    }

    /// The revision that may be taken although it is a step back.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn allowed(&self) -> Result<Option<Commit>, MemoryError> {
        let file = self.allow_file();
        let remedy = "remove it, and allow again";
        let text = read(&file).map_err(|error| failed(&file, error.to_string(), remedy))?;
        text.map(|text| text.trim_end().parse())
            .transpose()
            .map_err(|error: super::NoCommit| failed(&file, error.to_string(), remedy))
    }

    /// Lets this one revision be taken once. It replaces what was allowed before.
    ///
    /// # Errors
    /// It is not on disk.
    pub fn allow(&self, commit: Commit) -> Result<(), MemoryError> {
        let file = self.allow_file();
        self.write(&file, &format!("{commit}\n")).map_err(|error| unwritten(&file, &error))
    }

    fn forget_allowed(&self) -> Result<(), MemoryError> {
        let file = self.allow_file();
        match fs::remove_file(&file) {
            Ok(()) => self.sync_folder(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
        .map_err(|error| unwritten(&file, &error))
    }

    /// In one step, and on disk when it returns.
    fn write(&self, file: &Path, text: &str) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let beside = file.with_extension("new");
        let mut open =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        open.write_all(text.as_bytes())?;
        open.sync_all()?;
        fs::rename(&beside, file)?;
        self.sync_folder()
    }

    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }

    fn accepted_file(&self) -> PathBuf {
        self.folder.join("accepted.json")
    }

    fn allow_file(&self) -> PathBuf {
        self.folder.join("allow")
    }
}

fn failed(file: &Path, what: String, remedy: &'static str) -> MemoryError {
    MemoryError { file: file.display().to_string(), what, remedy }
}

fn unwritten(file: &Path, error: &io::Error) -> MemoryError {
    failed(file, error.to_string(), "let the host's user write its state directory")
}

/// `None`: it is not there.
fn read(file: &Path) -> io::Result<Option<String>> {
    let open = match File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let mut text = String::new();
    open.take(FILE_BYTES_AT_MOST).read_to_string(&mut text)?;
    Ok(Some(text))
}

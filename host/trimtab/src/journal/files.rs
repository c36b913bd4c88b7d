//! The files of the log, in order, and their lines as bytes.
//!
//! `journal.jsonl` is the newest; one that was full is `journal-SEQ.jsonl`, by the number of its
//! first line. What a crash tore off and logs that could not be continued lie beside them.

use super::hash;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

/// Name of the newest file within the state directory.
pub(crate) const FILE: &str = "journal.jsonl";
const PREFIX: &str = "journal-";
const SUFFIX: &str = ".jsonl";
/// Bytes of one line. The host's own stay far below: an object has at most 1.5 MiB.
const LINE_BYTES_AT_MOST: u64 = 64 << 20;

/// The name of a full file whose first line has this number.
pub(super) fn full(first_seq: u64) -> String {
    format!("{PREFIX}{first_seq:012}{SUFFIX}")
}

/// Every file of the log, oldest first.
///
/// # Errors
/// There is none, or the folder cannot be read.
pub(crate) fn of(state: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = full_ones(state).unwrap_or_default();
    let newest = state.join(FILE);
    let is_there = newest.exists();
    anyhow::ensure!(
        is_there || !files.is_empty(),
        "no journal at {}: give the --state of the host that ran",
        newest.display()
    );
    files.extend(is_there.then_some(newest));
    Ok(files)
}

/// The full files, oldest first.
pub(super) fn full_ones(state: &Path) -> anyhow::Result<Vec<PathBuf>> {
    use anyhow::Context as _;
    let failed = || format!("the state directory {}", state.display());
    let mut files: Vec<(u64, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(state).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let name = entry.file_name();
        let seq = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok());
        if let Some(seq) = seq {
            files.push((seq, entry.path()));
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// One line as it stands in its file.
#[derive(Clone, Debug)]
pub(crate) struct RawLine {
    pub(crate) file: PathBuf,
    /// Counted from 1.
    pub(crate) number: usize,
    /// Without the end of line.
    pub(crate) bytes: Vec<u8>,
    /// Whether it ends with an end of line: only a torn one does not.
    pub(crate) whole: bool,
}

impl RawLine {
    pub(crate) fn hash(&self) -> String {
        hash(&self.bytes)
    }
}

/// The lines of these files, one after the other: memory for one line.
pub(crate) struct Lines {
    files: std::vec::IntoIter<PathBuf>,
    open: Option<(PathBuf, BufReader<File>, usize)>,
}

impl Lines {
    pub(crate) fn of(files: Vec<PathBuf>) -> Self {
        Self { files: files.into_iter(), open: None }
    }

    /// The next line, put into `bytes`; `None` at the end.
    ///
    /// # Errors
    /// A file cannot be read, or holds a line without end.
    pub(crate) fn next_into(&mut self, bytes: &mut Vec<u8>) -> anyhow::Result<Option<Place>> {
        use anyhow::Context as _;
        use std::io::Read as _;
        loop {
            let Some((path, reader, number)) = &mut self.open else {
                let Some(path) = self.files.next() else { return Ok(None) };
                let file = File::open(&path).with_context(|| path.display().to_string())?;
                self.open = Some((path, BufReader::with_capacity(1 << 18, file), 0));
                continue;
            };
            bytes.clear();
            let read = reader
                .by_ref()
                .take(LINE_BYTES_AT_MOST)
                .read_until(b'\n', bytes)
                .with_context(|| path.display().to_string())?;
            if read == 0 {
                self.open = None;
                continue;
            }
            *number += 1;
            let whole = bytes.last() == Some(&b'\n');
            if whole {
                bytes.pop();
            }
            anyhow::ensure!(
                whole || (read as u64) < LINE_BYTES_AT_MOST,
                "{}:{number}: a line of more than {LINE_BYTES_AT_MOST} bytes: this is no journal",
                path.display()
            );
            return Ok(Some(Place { number: *number, whole }));
        }
    }

    /// The file of the last line that was given.
    pub(crate) fn file(&self) -> &Path {
        self.open.as_ref().map_or(Path::new(""), |(path, ..)| path)
    }
}

/// Where a line stands in its file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) number: usize,
    pub(crate) whole: bool,
}

impl Iterator for Lines {
    type Item = anyhow::Result<RawLine>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = Vec::new();
        let place = match self.next_into(&mut bytes) {
            Ok(place) => place?,
            Err(error) => return Some(Err(error)),
        };
        let (file, number, whole) = (self.file().to_owned(), place.number, place.whole);
        Some(Ok(RawLine { file, number, bytes, whole }))
    }
}

/// The newest file, read on as it grows, and over into the next when it is full.
pub(crate) struct Tail {
    path: PathBuf,
    open: Option<BufReader<File>>,
    /// What was read of a line that is being written.
    begun: Vec<u8>,
}

impl Tail {
    /// From the beginning of the newest file of this state directory.
    pub(crate) fn of(state: &Path) -> Self {
        Self { path: state.join(FILE), open: None, begun: Vec::new() }
    }

    /// The next whole line, if there is one by now.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn next(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        use std::os::unix::fs::MetadataExt as _;
        loop {
            let Some(reader) = &mut self.open else {
                match File::open(&self.path) {
                    Ok(file) => self.open = Some(BufReader::new(file)),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                    Err(error) => return Err(error),
                }
                continue;
            };
            // Asked before reading: what comes after the switch is in the next file.
            let ours = reader.get_ref().metadata()?.ino();
            let switched = std::fs::metadata(&self.path).is_ok_and(|newest| newest.ino() != ours);
            reader.read_until(b'\n', &mut self.begun)?;
            if self.begun.last() == Some(&b'\n') {
                self.begun.pop();
                return Ok(Some(std::mem::take(&mut self.begun)));
            }
            if !switched {
                return Ok(None);
            }
            self.open = None;
            self.begun.clear();
        }
    }
}

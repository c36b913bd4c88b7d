//! The chain: lines appended to the newest file, each with its number and the hash of the line
//! before it.
//!
//! A line is written whole or not at all: what a full disk or a crash leaves of one is taken out
//! again, and kept beside the log where it was found at a start. A file that is full is closed by a
//! checkpoint and set aside; the chain goes on in the next.

use super::checkpoint::HostKey;
use super::files::{self, FILE};
use super::lines::{Event, LogLine, VERSION};
use super::{Limits, hash};
use crate::timestamp::{now_ms, rfc3339};
use anyhow::Context as _;
use serde::Deserialize;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trimtab_core::ports::JournalError;

/// What every line begins with.
#[derive(Debug, Deserialize)]
pub(super) struct Head {
    pub(super) v: u32,
    pub(super) seq: u64,
    pub(super) prev: String,
    pub(super) time: String,
}

/// The end of the log, where lines are appended.
pub(super) struct Chain {
    state: PathBuf,
    limits: Limits,
    key: HostKey,
    file: Arc<File>,
    bytes: u64,
    /// Number of the file's first line.
    first: u64,
    /// Number of the next line, and the hash of the last.
    seq: u64,
    prev: String,
    log: String,
    /// Lines after the last checkpoint.
    unvouched: u64,
    /// The last checkpoint of this run.
    newest: Option<Arc<str>>,
    checkpoints: Copies,
    /// A line could not be taken out again: nothing can be appended any more.
    broken: Option<String>,
}

/// What was found at the end of a log at the start.
pub(super) enum Found {
    Fresh,
    Whole,
    /// The last line was torn: what was left of it is in this file.
    Torn(PathBuf),
    /// The log could not be continued: it is in this file now.
    SetAside(PathBuf),
}

impl Chain {
    /// Opens the log of this state directory at its end.
    ///
    /// # Errors
    /// Its files cannot be read or written.
    pub(super) fn open(state: &Path, limits: Limits) -> anyhow::Result<(Self, Found)> {
        let path = state.join(FILE);
        let failed = || format!("cannot open the journal {}", path.display());
        let key = HostKey::open(state)?;
        let mut file = newest(&path).with_context(failed)?;
        let torn = cut_torn_line(&mut file, state).with_context(failed)?;
        let end = match last_line(&mut file).with_context(failed)? {
            Some(line) => Some(line),
            // The crash came between two files.
            None => match files::full_ones(state)?.pop() {
                Some(full) => last_line(&mut File::open(full)?)?,
                None => None,
            },
        };
        let mut found = torn.map_or(Found::Whole, Found::Torn);
        let mut start = End { seq: 0, prev: String::new(), log: None };
        if let Some(line) = end {
            match End::after(&line, state) {
                Some(end) => start = end,
                None => {
                    found = Found::SetAside(set_aside(state)?);
                    file = newest(&path).with_context(failed)?;
                }
            }
        } else if !matches!(found, Found::Torn(_)) {
            found = Found::Fresh;
        }
        let bytes = file.metadata().with_context(failed)?.len();
        let checkpoints = Copies::open(state, limits.checkpoints.as_deref());
        let mut chain = Self {
            state: state.to_owned(),
            key,
            file: Arc::new(file),
            bytes,
            first: start.seq,
            seq: start.seq,
            prev: start.prev,
            log: start.log.clone().unwrap_or_default(),
            unvouched: 0,
            newest: None,
            checkpoints,
            broken: None,
            limits,
        };
        if bytes > 0 {
            chain.first = first_seq(&path)?.unwrap_or(chain.first);
        }
        if start.log.is_none() {
            let mut id = [0; 16];
            getrandom::fill(&mut id)
                .map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
            chain.log = id.iter().map(|byte| format!("{byte:02x}")).collect();
            let line = LogLine { log: chain.log.clone(), key: chain.key.public().to_owned() };
            chain.append(&Event::Log(line))?;
        }
        Ok((chain, found))
    }

    /// The public half of the host's key.
    pub(super) fn public_key(&self) -> &str {
        self.key.public()
    }

    /// The file that holds the last line, and that line's number.
    pub(super) fn tail(&self) -> (Arc<File>, u64) {
        (self.file.clone(), self.seq.saturating_sub(1))
    }

    /// The log's id, and the last checkpoint of this run as it stands in the log.
    pub(super) fn newest_checkpoint(&self) -> Option<(String, Arc<str>)> {
        Some((self.log.clone(), self.newest.clone()?))
    }

    /// Lines that no checkpoint covers yet.
    pub(super) fn unvouched(&self) -> u64 {
        self.unvouched
    }

    /// Appends one line; its number.
    ///
    /// # Errors
    /// It is not in the log, and nothing of it is.
    pub(super) fn append(&mut self, event: &Event) -> Result<u64, JournalError> {
        let time = rfc3339(now_ms());
        let body = serde_json::to_vec(event).map_err(|error| self.failed(&error))?;
        self.append_body(&time, &body)?;
        self.unvouched += 1;
        if self.bytes >= self.limits.max_bytes {
            self.rotate()?;
        }
        Ok(self.seq - 1)
    }

    /// Vouches for every line until now, in the log and outside.
    ///
    /// # Errors
    /// As [`Chain::append`]. A copy that cannot be written is told by the log, and stops nothing.
    pub(super) fn checkpoint(&mut self) -> Result<(), JournalError> {
        let time = rfc3339(now_ms());
        let line = self.key.checkpoint(&self.log, self.seq, &self.prev, &time);
        let body =
            serde_json::to_vec(&Event::Checkpoint(line)).map_err(|error| self.failed(&error))?;
        let bytes = self.append_body(&time, &body)?;
        self.unvouched = 0;
        self.checkpoints.append(&bytes);
        self.newest = std::str::from_utf8(&bytes).ok().map(Into::into);
        Ok(())
    }

    /// `{"v":2,"seq":…,"prev":"…","time":"…",` and what the body, an object, begins with.
    fn append_body(&mut self, time: &str, body: &[u8]) -> Result<Vec<u8>, JournalError> {
        if let Some(broken) = &self.broken {
            return Err(JournalError(broken.clone()));
        }
        let (seq, prev) = (self.seq, &self.prev);
        let head = format!(r#"{{"v":{VERSION},"seq":{seq},"prev":"{prev}","time":"{time}","#);
        let mut line = head.into_bytes();
        line.extend_from_slice(body.get(1..).unwrap_or_default());
        let hash = hash(&line);
        line.push(b'\n');
        if let Err(error) = (&*self.file).write_all(&line) {
            if let Err(undo) = self.file.set_len(self.bytes) {
                self.broken = Some(format!(
                    "{}: half a line could not be taken out again ({undo}): start the host anew",
                    self.state.join(FILE).display()
                ));
            }
            return Err(self.failed(&error));
        }
        self.bytes += line.len() as u64;
        self.seq += 1;
        self.prev = hash;
        Ok(line)
    }

    /// Closes the file with a checkpoint and goes on in a new one.
    fn rotate(&mut self) -> Result<(), JournalError> {
        self.checkpoint()?;
        let path = self.state.join(FILE);
        let switched = (|| {
            self.file.sync_data()?;
            std::fs::rename(&path, self.state.join(files::full(self.first)))?;
            let file = newest(&path)?;
            File::open(&self.state)?.sync_all()?;
            Ok::<_, std::io::Error>(file)
        })();
        self.file = Arc::new(switched.map_err(|error| self.failed(&error))?);
        self.bytes = 0;
        self.first = self.seq;
        self.drop_old();
        Ok(())
    }

    /// Removes the oldest full files beyond the number that is kept.
    fn drop_old(&self) {
        let Ok(full) = files::full_ones(&self.state) else { return };
        let Some(keep) = self.limits.keep else { return };
        for old in full.iter().take(full.len().saturating_sub(keep)) {
            if let Err(error) = std::fs::remove_file(old) {
                tracing::warn!("{}: {error}; it is kept", old.display());
            }
        }
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> JournalError {
        JournalError(format!("{}: {error}", self.state.join(FILE).display()))
    }
}

/// Where a chain goes on.
struct End {
    seq: u64,
    prev: String,
    log: Option<String>,
}

impl End {
    /// After this line; `None` if it is no line of a chain, or its log cannot be told.
    fn after(line: &[u8], state: &Path) -> Option<Self> {
        let head: Head = serde_json::from_slice(line).ok()?;
        (head.v == VERSION).then_some(())?;
        Some(Self { seq: head.seq + 1, prev: hash(line), log: Some(log_id(state)?) })
    }
}

/// The log's id: from its first line that names it.
fn log_id(state: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        log: String,
    }
    let files = files::of(state).ok()?;
    files::Lines::of(files)
        .map_while(Result::ok)
        .find_map(|line| serde_json::from_slice::<Named>(&line.bytes).ok())
        .map(|named| named.log)
}

fn first_seq(path: &Path) -> anyhow::Result<Option<u64>> {
    let line = files::Lines::of(vec![path.to_owned()]).next().transpose()?;
    Ok(line.and_then(|line| serde_json::from_slice::<Head>(&line.bytes).ok()).map(|head| head.seq))
}

fn newest(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)
}

/// The last whole line, without its end.
fn last_line(file: &mut File) -> std::io::Result<Option<Vec<u8>>> {
    let end = file.seek(SeekFrom::End(0))?;
    let Some(start) = line_start(file, end.saturating_sub(1))? else { return Ok(None) };
    if end == 0 {
        return Ok(None);
    }
    let mut line = vec![0; usize::try_from(end - 1 - start).unwrap_or(usize::MAX)];
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut line)?;
    Ok(Some(line))
}

/// Where the line begins that ends before this place.
fn line_start(file: &mut File, end: u64) -> std::io::Result<Option<u64>> {
    const CHUNK: u64 = 64 << 10;
    let mut to = end;
    while to > 0 {
        let from = to.saturating_sub(CHUNK);
        let mut bytes = vec![0; usize::try_from(to - from).unwrap_or(0)];
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(&mut bytes)?;
        if let Some(at) = bytes.iter().rposition(|byte| *byte == b'\n') {
            return Ok(Some(from + at as u64 + 1));
        }
        to = from;
    }
    Ok(Some(0))
}

/// Moves what a crash left of a line into a file of its own.
fn cut_torn_line(file: &mut File, state: &Path) -> anyhow::Result<Option<PathBuf>> {
    let end = file.seek(SeekFrom::End(0))?;
    if end == 0 {
        return Ok(None);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    if last == *b"\n" {
        return Ok(None);
    }
    let start = line_start(file, end)?.unwrap_or(0);
    let mut torn = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.read_to_end(&mut torn)?;
    let path = unused(state, "journal-torn")?;
    std::fs::write(&path, &torn)?;
    file.set_len(start)?;
    file.sync_all()?;
    Ok(Some(path))
}

/// Takes a log that cannot be continued out of the way, whole.
fn set_aside(state: &Path) -> anyhow::Result<PathBuf> {
    let folder = unused(state, "journal-aside")?;
    std::fs::create_dir(&folder)?;
    for file in files::of(state)? {
        if let Some(name) = file.file_name() {
            std::fs::rename(&file, folder.join(name))?;
        }
    }
    Ok(folder)
}

fn unused(state: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let stamp = rfc3339(now_ms()).replace(':', "");
    (0..1000)
        .map(|n| state.join(format!("{name}-{stamp}-{n}")))
        .find(|path| !path.exists())
        .context("no name is left for what cannot be read any more")
}

/// The copies of checkpoints outside the log.
struct Copies {
    path: PathBuf,
    told: bool,
}

impl Copies {
    fn open(state: &Path, path: Option<&Path>) -> Self {
        let path = path.map_or_else(|| state.join(super::CHECKPOINTS), Path::to_owned);
        Self { path, told: false }
    }

    /// A copy that cannot be written leaves the log as it is, and is told once.
    fn append(&mut self, line: &[u8]) {
        let written = newest(&self.path).and_then(|mut file| file.write_all(line));
        match written {
            Ok(()) => self.told = false,
            Err(error) if !self.told => {
                self.told = true;
                tracing::error!(
                    "{}: {error}: checkpoints are in the journal alone, and a shortened journal would not be noticed",
                    self.path.display()
                );
            }
            Err(_) => {}
        }
    }
}

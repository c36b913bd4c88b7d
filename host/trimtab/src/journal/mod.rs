//! The journal: one JSON line for each thing that a pass found or did, and an intent line on disk
//! before each write. Append-only and hash-chained, with signed checkpoints.
//!
//! - `lines.rs`: what a line tells.
//! - `chain.rs`: how it is appended. `files.rs`: how it is read again.
//! - `checkpoint.rs`: how the host vouches for it. `verify.rs`: how that is checked.
//!
//! docs/journal.md is the contract with programs that read it.

mod chain;
mod checkpoint;
mod files;
mod lines;
mod verify;

#[cfg(test)]
mod tests;

pub(crate) use self::checkpoint::{HostKey, public_key};
pub(crate) use self::files::{Lines, Tail, of as files_of};
pub(crate) use self::lines::*;
pub(crate) use self::verify::{Trust, Verdict, own_copies, verify};

use self::chain::{Chain, Found};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use trimtab_core::identity::ObjectKey;
use trimtab_core::ports::{Journal, JournalError};
use trimtab_core::record::{Intent, Record};

/// Name of the copies of checkpoints within the state directory.
pub(crate) const CHECKPOINTS: &str = "audit.checkpoints.jsonl";
/// Bytes after which a file counts as full: some 60,000 lines, searched in a tenth of a second.
pub(crate) const FILE_BYTES: u64 = 64 << 20;
/// Full files that are kept: with the newest, about 1 GiB.
pub(crate) const FILES_KEPT: usize = 16;
/// Lines after which a checkpoint is made in any case.
const CHECKPOINT_LINES: u64 = 256;
/// How long lines may wait for a checkpoint.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(5);

/// What bounds the log, and where copies of its checkpoints go.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Bytes of one file.
    pub(crate) max_bytes: u64,
    /// Full files that are kept; `None`: all.
    pub(crate) keep: Option<usize>,
    /// Where copies of checkpoints are appended; beside the log if nothing is said.
    pub(crate) checkpoints: Option<PathBuf>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: FILE_BYTES, keep: Some(FILES_KEPT), checkpoints: None }
    }
}

/// SHA-256 as it stands in `prev`.
fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The open journal of a running host.
pub(crate) struct JournalFile {
    chain: Arc<Mutex<Chain>>,
    vouched_at: Mutex<Instant>,
    /// Asks for the lines until now to be on disk.
    ask: mpsc::Sender<()>,
    /// The last line that is, or why none can be any more.
    durable: watch::Receiver<Durable>,
}

#[derive(Clone, Debug, Default)]
struct Durable {
    until: Option<u64>,
    failed: Option<String>,
}

impl JournalFile {
    /// Opens or makes the journal of this state directory, and recovers what a crash left.
    ///
    /// # Errors
    /// The file cannot be opened or written: the host must not start.
    pub(crate) fn open(state: &Path, limits: Limits) -> anyhow::Result<Self> {
        let (chain, found) = Chain::open(state, limits)?;
        tracing::info!("audit log: checkpoints are signed by {}", chain.public_key());
        let chain = Arc::new(Mutex::new(chain));
        let (ask, asked) = mpsc::channel();
        let (told, durable) = watch::channel(Durable::default());
        let synced = chain.clone();
        std::thread::Builder::new()
            .name("journal-sync".into())
            .spawn(move || sync(&asked, &synced, &told))?;
        let journal = Self { chain, vouched_at: Mutex::new(Instant::now()), ask, durable };
        match found {
            Found::Fresh | Found::Whole => {}
            Found::Torn(path) => journal.host(
                "journal-mended",
                &format!("the last line was torn by a crash; what is left of it is in {}", path.display()),
            )?,
            Found::SetAside(path) => journal.host(
                "journal-set-aside",
                &format!(
                    "the log before this one cannot be continued: its last line is none of a chain. It is in {}",
                    path.display()
                ),
            )?,
        }
        Ok(journal)
    }

    /// A line about the host itself, on disk.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn host(&self, event: &str, message: &str) -> Result<(), JournalError> {
        self.append(&Event::Host(HostLine { event: event.into(), message: message.into() }))?;
        self.on_disk()
    }

    fn on_disk(&self) -> Result<(), JournalError> {
        let (file, _) = self.chain().tail();
        file.sync_data().map_err(|error| JournalError(error.to_string()))
    }

    /// A line about a source.
    ///
    /// # Errors
    /// It is not in the log.
    pub(crate) fn source(&self, line: SourceLine) -> Result<(), JournalError> {
        self.append(&Event::Source(line)).map(drop)
    }

    /// A line about a plugin.
    ///
    /// # Errors
    /// It is not in the log.
    pub(crate) fn plugin(&self, line: PluginLine) -> Result<(), JournalError> {
        self.append(&Event::Plugin(line)).map(drop)
    }

    /// What becomes of an object that is to be pruned; an intent is on disk when this returns.
    ///
    /// # Errors
    /// It is not in the log, or not on disk.
    pub(crate) fn prune(&self, line: PruneLine) -> Result<(), JournalError> {
        let durable = line.step == PruneStep::Deleting;
        self.append(&Event::Prune(line))?;
        if durable { self.on_disk() } else { Ok(()) }
    }

    /// What policies said of an object that enters.
    ///
    /// # Errors
    /// It is not in the log.
    pub(crate) fn review(&self, line: ReviewLine) -> Result<(), JournalError> {
        self.append(&Event::Review(Box::new(line))).map(drop)
    }

    /// A pass, with the time since the event that caused it.
    ///
    /// # Errors
    /// It is not in the log.
    pub(crate) fn pass(
        &self,
        record: &Record,
        since_event_ms: Option<f64>,
    ) -> Result<(), JournalError> {
        let line = PassLine { since_event_ms, ..PassLine::from(record) };
        self.append(&Event::Pass(Box::new(line))).map(drop)
    }

    /// Makes a checkpoint if one is due.
    ///
    /// # Errors
    /// It is not in the log.
    pub(crate) fn vouch(&self) -> Result<(), JournalError> {
        let mut at = self.vouched_at.lock().unwrap_or_else(PoisonError::into_inner);
        let mut chain = self.chain();
        let lines = chain.unvouched();
        if lines >= CHECKPOINT_LINES || lines > 0 && at.elapsed() >= CHECKPOINT_EVERY {
            chain.checkpoint()?;
            *at = Instant::now();
        }
        Ok(())
    }

    /// The last checkpoint: nothing is appended after it.
    ///
    /// # Errors
    /// It is not on disk.
    pub(crate) fn close(&self) -> Result<(), JournalError> {
        let mut chain = self.chain();
        chain.checkpoint()?;
        chain.tail().0.sync_data().map_err(|error| JournalError(error.to_string()))
    }

    fn append(&self, event: &Event) -> Result<u64, JournalError> {
        self.chain().append(event)
    }

    fn chain(&self) -> std::sync::MutexGuard<'_, Chain> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for JournalFile {
    /// Many passes share one wait for the disk.
    async fn intent(&self, intent: &Intent<'_>) -> Result<(), JournalError> {
        let seq = self.append(&Event::Intent(intent.into()))?;
        let gone = || JournalError("the thread that brings lines to disk is gone".into());
        self.ask.send(()).map_err(|_| gone())?;
        let mut durable = self.durable.clone();
        let until = durable
            .wait_for(|durable| durable.failed.is_some() || durable.until >= Some(seq))
            .await
            .map_err(|_| gone())?;
        until.failed.as_ref().map_or(Ok(()), |failed| Err(JournalError(failed.clone())))
    }
}

/// Brings lines to disk for whoever asks, as long as somebody can.
fn sync(asked: &mpsc::Receiver<()>, chain: &Mutex<Chain>, told: &watch::Sender<Durable>) {
    while asked.recv().is_ok() {
        while asked.try_recv().is_ok() {}
        let (file, until) = chain.lock().unwrap_or_else(PoisonError::into_inner).tail();
        // After a failure the kernel may have dropped what it could not write, and say so once.
        let failed = told.borrow().failed.clone();
        let failed = failed.or_else(|| file.sync_data().err().map(|error| error.to_string()));
        told.send_replace(Durable { until: Some(until), failed });
    }
}

/// The UID under which each object was last written, by the journal of this state directory: a
/// host's memory of what is its own. Nothing where there is no journal.
pub(crate) fn written_uids(state: &Path) -> HashMap<ObjectKey, Arc<str>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wrote {
        object: ObjectLine,
        written_uid: String,
    }
    let Ok(files) = files_of(state) else { return HashMap::new() };
    let wrote = memchr::memmem::Finder::new(b"\"writtenUid\"");
    Lines::of(files)
        .map_while(Result::ok)
        .filter(|line| wrote.find(&line.bytes).is_some())
        .filter_map(|line| serde_json::from_slice::<Wrote>(&line.bytes).ok())
        .map(|wrote| (ObjectKey::from(&wrote.object), wrote.written_uid.into()))
        .collect()
}

//! The API server's audit log, read on as it grows.
//!
//! It is read from where it ends when the host starts, on a thread of its own. A file that is moved
//! away and begun anew is followed; a line that is too long or not understood is passed over, and
//! said once.

use super::Heard;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use trimtab_core::signals::witness;
use trimtab_kube::Writer;

/// How often it is looked for more.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How soon the API server is asked again who we are.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// Longest line that is read, in bytes: bodies of requests may be in it.
const LINE_AT_MOST: usize = 4 << 20;

/// Follows this file until nobody listens.
pub(super) fn follow(path: PathBuf, writer: Writer, sender: mpsc::Sender<Heard>) {
    // Where it ends now: what comes while we ask who we are is not missed.
    let from = std::fs::metadata(&path).map_or(0, |it| it.len());
    tokio::spawn(async move {
        let mut told = false;
        let user = loop {
            match writer.who_we_are().await {
                Ok(user) => break user,
                Err(error) if !told => {
                    tracing::warn!(
                        "the API server's audit log is not read before it is known who we are: {error}"
                    );
                    told = true;
                }
                Err(_) => {}
            }
            tokio::time::sleep(ASK_EVERY).await;
        };
        tracing::info!("reading the API server's audit log {}; we are {user}", path.display());
        if sender.send(Heard::Us(user)).await.is_ok() {
            tokio::task::spawn_blocking(move || read_on(&path, from, &sender));
        }
    });
}

/// What was read of the file, and how far.
struct Reading {
    file: BufReader<File>,
    inode: u64,
    at: u64,
    line: Vec<u8>,
}

fn read_on(path: &Path, mut from: u64, sender: &mpsc::Sender<Heard>) {
    let mut reading: Option<Reading> = None;
    let mut trouble: Option<String> = None;
    while !sender.is_closed() {
        let done = match &mut reading {
            None => open(path, from).map(|opened| {
                from = 0;
                reading = Some(opened);
            }),
            Some(reading) => reading.take(sender),
        };
        if let Err(error) = done {
            let text =
                format!("the API server's audit log {} cannot be read: {error}", path.display());
            if trouble.as_ref() != Some(&text) {
                tracing::warn!("{text}; edits are told by managedFields alone meanwhile");
                trouble = Some(text);
            }
            reading = None;
        } else {
            trouble = None;
        }
        if reading.as_ref().is_some_and(|reading| reading.is_over(path)) {
            reading = None;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn open(path: &Path, from: u64) -> std::io::Result<Reading> {
    use std::os::unix::fs::MetadataExt as _;
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let at = if metadata.len() >= from { from } else { 0 };
    file.seek(SeekFrom::Start(at))?;
    let inode = metadata.ino();
    Ok(Reading { file: BufReader::new(file), inode, at, line: Vec::new() })
}

impl Reading {
    /// Hands on every whole line that is there.
    fn take(&mut self, sender: &mpsc::Sender<Heard>) -> std::io::Result<()> {
        loop {
            let read = self.file.read_until(b'\n', &mut self.line)?;
            self.at += u64::try_from(read).unwrap_or(0);
            if read == 0 || self.line.last() != Some(&b'\n') {
                return Ok(());
            }
            if self.line.len() <= LINE_AT_MOST {
                match witness::read(&self.line) {
                    Ok(Some(write)) => {
                        if sender.blocking_send(Heard::Write(Box::new(write))).is_err() {
                            return Ok(());
                        }
                    }
                    Ok(None) => {}
                    Err(error) => tracing::debug!(
                        "a line of the API server's audit log is passed over: {error}"
                    ),
                }
            }
            self.line.clear();
        }
    }

    /// Whether the file was begun anew: under another inode, or shorter than what was read.
    fn is_over(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata(path).is_ok_and(|it| it.ino() != self.inode || it.len() < self.at)
    }
}

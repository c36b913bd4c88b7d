//! What people ask of a running host: small files in its state directory, so that whoever may write
//! there may ask, and nobody else.
//!
//! A command puts down `requests/ID.ask`; the host takes it away, does it, and puts down `ID.reply`.
//! `engine/requests.rs` is the host's side.

use crate::suspension::Sort;
use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a command looks for its reply.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// Look at a source now, and say what came of it.
    Sync {
        /// The source.
        source: String,
    },
    /// Look no more at the objects of a source or a plugin.
    Suspend {
        /// Which of both.
        sort: Sort,
        /// Its name.
        name: String,
    },
    /// Say what differs in the objects of what is suspended.
    Preview {
        /// Source or plugin.
        sort: Sort,
        /// Its name.
        name: String,
    },
    /// Do the deletions of a source that are held under this digest.
    Approve {
        /// The source.
        source: String,
        /// The digest.
        digest: String,
    },
    /// Do the changes of a plan that a person approved.
    Changes {
        /// Digests of changes.
        changes: Vec<String>,
        /// Digests of deletions.
        deletions: Vec<String>,
        /// Sets of deletions that are held: source and digest.
        held: Vec<(String, String)>,
    },
    /// Look at them again.
    Resume {
        /// Source or plugin.
        sort: Sort,
        /// Its name.
        name: String,
    },
}

/// What the host says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// Whether it did what was asked.
    pub(crate) done: bool,
    /// For people.
    pub(crate) text: String,
}

/// The folder of requests within a state directory.
pub(crate) fn folder(state: &Path) -> PathBuf {
    state.join("requests")
}

/// Whether a host holds the state directory.
pub(crate) fn is_running(state: &Path) -> bool {
    std::fs::File::open(state.join("lock")).is_ok_and(|lock| lock.try_lock().is_err())
}

/// Asks the host of this state directory and waits for its reply.
///
/// # Errors
/// No host runs there, it does not answer in time, or it says why it did not do it.
pub(crate) fn ask(state: &Path, ask: &Ask, patience: Duration) -> anyhow::Result<String> {
    if !is_running(state) {
        bail!("no host runs on {}: start one, or give its --state", state.display());
    }
    let folder = folder(state);
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let mut file = tempfile::Builder::new().prefix("").suffix(".new").tempfile_in(&folder)?;
    serde_json::to_writer(&mut file, ask)?;
    let asked = file.path().with_extension("ask");
    let replied = file.path().with_extension("reply");
    file.persist(&asked)?;
    let start = Instant::now();
    loop {
        if let Ok(text) = std::fs::read(&replied) {
            std::fs::remove_file(&replied).ok();
            let reply: Reply = serde_json::from_slice(&text).context("the host's reply")?;
            return if reply.done { Ok(reply.text) } else { Err(anyhow::Error::msg(reply.text)) };
        }
        let runs = is_running(state);
        if start.elapsed() > patience || !runs {
            std::fs::remove_file(&asked).ok();
            anyhow::ensure!(runs, "the host ended before it answered: see its log");
            bail!("the host did not answer within {patience:?}: see its log");
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

//! The newest checkpoint of the audit log, as an object in the cluster too: a log that was cut off
//! together with its copies on this machine is found by it (`trimtab audit verify --cluster`).
//!
//! It lies beside the inventory, and only where there is one: a host that only observes writes none.

use super::Engine;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use trimtab_core::gate;
use trimtab_core::ports::{ApplyError, Cluster as _};

/// How often one is written at most.
const EVERY: Duration = Duration::from_secs(30);
/// How soon it is tried again after that failed.
const RETRY_AFTER: Duration = Duration::from_secs(300);
/// How long the last one may take when the host ends.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// What of the log is in the cluster.
#[derive(Default)]
pub(super) struct Vouching {
    /// The checkpoint that was written last.
    written: Option<Arc<str>>,
    next_at: Option<Instant>,
    told: bool,
    writing: JoinSet<(Arc<str>, Result<(), ApplyError>)>,
}

impl Engine {
    /// Writes the newest checkpoint into the cluster, now and then.
    pub(super) fn vouch_in_cluster(&mut self) {
        while let Some(Ok(done)) = self.vouching.writing.try_join_next() {
            self.take_vouched(done);
        }
        let is_early = self.vouching.next_at.is_some_and(|at| at > Instant::now());
        if !is_early && self.vouching.writing.is_empty() {
            self.begin_vouching();
        }
    }

    /// Writes the last one of all, before the host ends.
    pub(super) async fn vouch_at_end(&mut self) {
        let write = async {
            while let Some(Ok(done)) = self.vouching.writing.join_next().await {
                self.take_vouched(done);
            }
            self.begin_vouching();
            while let Some(Ok(done)) = self.vouching.writing.join_next().await {
                self.take_vouched(done);
            }
        };
        if tokio::time::timeout(END_PATIENCE, write).await.is_err() {
            tracing::warn!("the last checkpoint of the audit log is not in the cluster");
        }
    }

    fn begin_vouching(&mut self) {
        let Some((log, line)) = self.parts.journal.newest_checkpoint() else { return };
        if self.vouching.written.as_ref() == Some(&line) || !self.made.is_in_cluster() {
            return;
        }
        self.vouching.next_at = Some(Instant::now() + EVERY);
        let change = gate::vouch(&self.options.inventory_namespace, &log, line.trim_end());
        let writer = self.parts.writer.clone();
        self.vouching.writing.spawn(async move {
            let written = writer.write(&change).await.map(drop);
            (line, written)
        });
    }

    fn take_vouched(&mut self, (line, written): (Arc<str>, Result<(), ApplyError>)) {
        match written {
            Ok(()) => {
                self.vouching.written = Some(line);
                self.vouching.told = false;
            }
            Err(error) => {
                self.vouching.next_at = Some(Instant::now() + RETRY_AFTER);
                if !std::mem::replace(&mut self.vouching.told, true) {
                    tracing::warn!(
                        "the audit log's checkpoint is not in the cluster, and stays in its files: {error}"
                    );
                }
            }
        }
    }
}

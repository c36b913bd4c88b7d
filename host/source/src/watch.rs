//! Live reload: a source read again whenever something hints at a change, and now and then anyway.
//!
//! Hints come from the operating system (inotify and the like), collected for a moment. They are
//! only hints: some file systems send none, mounts are swapped by links, and a folder that was
//! replaced takes its watches along. So the fingerprint decides, and a rescan asks for it regularly.

use crate::{Fingerprint, Source, SourceError};
use notify_debouncer_full::notify::event::{AccessKind, AccessMode};
use notify_debouncer_full::notify::{self, EventKind, RecommendedWatcher, RecursiveMode};
use notify_debouncer_full::{DebounceEventResult, Debouncer, RecommendedCache, new_debouncer_opt};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use trimtab_core::object::Revision;

/// What became of a source.
#[derive(Clone, Debug)]
pub enum SourceUpdate {
    /// It was read whole, and its revision is another than the last.
    Loaded(Revision),
    /// It could not be read, for another reason than the last time. Whoever listens keeps the last
    /// revision that was loaded, and prunes nothing.
    Failed(SourceError),
}

/// When to look again.
#[derive(Clone, Copy, Debug)]
pub struct WatchOptions {
    /// How long events are collected before they count as one hint. Editors and `kubectl cp` write
    /// several files within this time.
    pub debounce: Duration,
    /// How long until the next look without any hint.
    pub rescan: Duration,
    /// The same after a failure that may pass by itself; twice as long after each further one, up
    /// to [`WatchOptions::rescan`], so that a server in trouble is left in peace.
    pub retry: Duration,
}

impl WatchOptions {
    fn pause(&self, failures: u32) -> Duration {
        match failures {
            0 => self.rescan,
            more => self.retry.saturating_mul(1 << (more - 1).min(16)).min(self.rescan),
        }
    }
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            debounce: Duration::from_millis(200),
            rescan: Duration::from_secs(30),
            retry: Duration::from_secs(2),
        }
    }
}

/// Reads the source now and after each change, until the receiver is dropped.
///
/// # Guarantees
/// An update comes first in any case, later ones only when the revision's id or the error differs
/// from the last that was sent. Updates come in order; while the receiver is busy, changes are
/// taken together. A rescan without a change opens no file.
///
/// # Assumptions
/// Runs in a tokio runtime. The channel closes by itself only if the source panicked.
pub fn watch(source: Arc<dyn Source>, options: WatchOptions) -> mpsc::Receiver<SourceUpdate> {
    let (updates, receiver) = mpsc::channel(1);
    tokio::spawn(follow(source, options, updates));
    receiver
}

async fn follow(
    source: Arc<dyn Source>,
    options: WatchOptions,
    updates: mpsc::Sender<SourceUpdate>,
) {
    let (hint, mut hints) = mpsc::channel(1);
    let mut follower = Follower {
        source,
        watcher: Watcher { hint, debounce: options.debounce, running: None },
        read_at: None,
        failures: 0,
        last: None,
    };
    loop {
        let name = follower.source.name().to_owned();
        let look = tokio::task::spawn_blocking(move || {
            let update = follower.look();
            (follower, update)
        });
        let update;
        (follower, update) = match look.await {
            Ok(looked) => looked,
            Err(error) => {
                tracing::error!(source = name, %error, "live reload ended: the source panicked");
                return;
            }
        };
        if let Some(update) = update
            && updates.send(update).await.is_err()
        {
            return;
        }
        let pause = options.pause(follower.failures);
        tokio::select! {
            () = updates.closed() => return,
            _ = hints.recv() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

struct Follower {
    source: Arc<dyn Source>,
    watcher: Watcher,
    /// The fingerprint taken before the last reading.
    read_at: Option<Fingerprint>,
    /// Readings in a row that failed by what may pass by itself.
    failures: u32,
    /// What was sent last: a revision's id, or an error.
    last: Option<Result<Arc<str>, SourceError>>,
}

impl Follower {
    fn look(&mut self) -> Option<SourceUpdate> {
        // Watching starts before reading: what changes in between is hinted at.
        self.watcher.cover(&self.source.watched_paths());
        let (now, read) = match self.source.fingerprint() {
            Ok(now) if self.read_at.is_some_and(|before| before.still_holds(&now)) => return None,
            Ok(now) => (Some(now), self.read()),
            Err(error) => (None, Err(error)),
        };
        // What may pass by itself leaves no mark in the content: it is tried again.
        let passes = read.as_ref().is_err_and(|error| !error.is_of_content());
        self.read_at = now.filter(|_| !passes);
        self.failures = if passes { self.failures.saturating_add(1) } else { 0 };
        let outcome = read.as_ref().map(|revision| revision.id.clone()).map_err(Clone::clone);
        if self.last.as_ref() == Some(&outcome) {
            return None;
        }
        self.last = Some(outcome);
        Some(match read {
            Ok(revision) => SourceUpdate::Loaded(revision),
            Err(error) => SourceUpdate::Failed(error),
        })
    }

    /// A revision that the source has noted, so that a restart knows what was in force.
    fn read(&self) -> Result<Revision, SourceError> {
        let revision = self.source.read()?;
        self.source.accept(&revision)?;
        Ok(revision)
    }
}

/// Watches of the operating system on the paths of a source, renewed when those are replaced.
struct Watcher {
    hint: mpsc::Sender<()>,
    debounce: Duration,
    running: Option<Running>,
}

struct Running {
    /// Watches until it is dropped.
    _debouncer: Debouncer<RecommendedWatcher, RecommendedCache>,
    covers: Vec<Place>,
}

/// A watched path: as configured, and what it led to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    path: PathBuf,
    real: Option<(PathBuf, bool, u64, u64)>,
}

impl Place {
    fn of(path: &Path) -> Self {
        let real = std::fs::canonicalize(path).and_then(|real| {
            let metadata = std::fs::metadata(&real)?;
            Ok((real, metadata.is_dir(), metadata.dev(), metadata.ino()))
        });
        Self { path: path.to_owned(), real: real.ok() }
    }

    /// The folder that holds the path itself: where it appears, or is swapped if it is a link.
    fn parent(&self) -> PathBuf {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        }
    }

    /// Whether an event there concerns the source, and is not of a mere neighbour. For a single
    /// file any event in its folder counts: a mounted file changes by a swap beside it.
    fn concerns(&self, event: &Path) -> bool {
        match &self.real {
            Some((real, true, ..)) => {
                event.starts_with(real) || event.file_name() == self.path.file_name()
            }
            _ => true,
        }
    }
}

impl Watcher {
    /// Sees to it that these paths are watched. Without watches there is still the rescan.
    fn cover(&mut self, paths: &[PathBuf]) {
        let places: Vec<Place> = paths.iter().map(|path| Place::of(path)).collect();
        if self.running.as_ref().is_some_and(|running| running.covers == places) {
            return;
        }
        self.running = None;
        if places.is_empty() {
            return;
        }
        match self.start(&places) {
            Ok(running) => self.running = Some(running),
            Err(error) => {
                tracing::warn!(%error, "no file events: changes are found by the rescan alone");
            }
        }
    }

    fn start(&self, places: &[Place]) -> notify::Result<Running> {
        let hint = self.hint.clone();
        let concerned = places.to_vec();
        let on_events = move |events: DebounceEventResult| {
            let is_hint = match &events {
                Ok(events) => events.iter().any(|event| {
                    is_change(&event.kind)
                        && event
                            .paths
                            .iter()
                            .any(|path| concerned.iter().any(|place| place.concerns(path)))
                }),
                Err(_) => true,
            };
            if is_hint {
                // A hint that waits already is enough.
                let _ = hint.try_send(());
            }
        };
        // Links are refused or lead to folders within the root, which are watched themselves.
        let config = notify::Config::default().with_follow_symlinks(false);
        let cache = RecommendedCache::new();
        let mut debouncer = new_debouncer_opt(self.debounce, None, on_events, cache, config)?;
        for place in places {
            // A parent that is not there is no fault: the rescan finds what appears.
            let _ = debouncer.watch(place.parent(), RecursiveMode::NonRecursive);
            match &place.real {
                Some((real, true, ..)) => debouncer.watch(real, RecursiveMode::Recursive)?,
                Some((real, false, ..)) => {
                    if let Some(folder) = real.parent() {
                        debouncer.watch(folder, RecursiveMode::NonRecursive)?;
                    }
                }
                None => {}
            }
        }
        Ok(Running { _debouncer: debouncer, covers: places.to_vec() })
    }
}

/// Whether an event can mean new content. Reading, ours too, is not one.
fn is_change(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests;

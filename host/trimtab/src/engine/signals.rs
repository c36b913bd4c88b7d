//! Signals, in the loop: what passes, watches, sources and plugins show is handed to the functions
//! of `trimtab_core::signals`, and what they find is told: in the log, the audit log, a file, and as
//! Events in the cluster.
//!
//! Nothing here changes what the host does: a finding is told and never acted upon. What takes time
//! (looking through objects, writing Events, reading the API server's audit log) is done beside the
//! loop and comes back by one channel.

mod api_audit;
mod events;
mod passes;
mod scan;
mod standing;
mod witnessed;

use self::events::Posts;
use self::scan::Scanned;
use self::witnessed::Waiting;
use super::Engine;
use crate::findings::{self, Memory};
use crate::timestamp::now_ms;
use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use trimtab_core::identity::ObjectKey;
use trimtab_core::signals::edit::Edits;
use trimtab_core::signals::misplaced::{Index, Side};
use trimtab_core::signals::recreation::Recreations;
use trimtab_core::signals::rollback::Rollbacks;
use trimtab_core::signals::stale::Silence;
use trimtab_core::signals::witness::{ApiWrite, Witness};
use trimtab_core::signals::{Findings, Observation, Subject};

/// How long what was found may be unwritten.
const WRITE_AFTER: Duration = Duration::from_millis(300);

/// What is to be told, and by what.
#[derive(Clone, Debug)]
pub(crate) struct SignalOptions {
    /// The host's own key: values of Secrets are known by hashes under it.
    pub(crate) key: [u8; 32],
    /// The API server's audit log, where it is given.
    pub(crate) api_audit_log: Option<PathBuf>,
    /// Whether Events are written.
    pub(crate) events: bool,
}

/// What signals remember, and what was found.
pub(super) struct Signals {
    options: SignalOptions,
    findings: Findings,
    recreations: Recreations,
    rollbacks: Rollbacks,
    edits: Edits,
    silence: Silence,
    witness: Option<Witness>,
    /// What waits for the audit log, oldest first.
    waiting: VecDeque<Waiting>,
    index: Arc<Index>,
    /// What Secrets hold may be other than the index knows.
    pub(super) secrets_moved: bool,
    /// What is to be looked through.
    unlooked: HashSet<(ObjectKey, Side)>,
    looking: bool,
    full_told: bool,
    posts: Posts,
    changed_at: Option<Instant>,
    sender: mpsc::Sender<Heard>,
    receiver: mpsc::Receiver<Heard>,
}

/// What comes back from beside the loop.
pub(super) enum Heard {
    /// Who we are to the API server; from now on its log is read.
    Us(String),
    Write(Box<ApiWrite>),
    Scanned(Scanned),
    Posted(events::Posted),
}

impl Signals {
    pub(super) fn new(options: SignalOptions, state: &std::path::Path) -> Self {
        let (sender, receiver) = mpsc::channel(1024);
        let now = now_ms();
        let Memory { recreations: made, returns, .. } = findings::resume_memory(state);
        let (mut recreations, mut rollbacks) = (Recreations::default(), Rollbacks::default());
        recreations.made.restore(findings::from_text(made), now);
        rollbacks.returns.restore(findings::from_text(returns), now);
        Self {
            findings: findings::resume(state, now),
            recreations,
            rollbacks,
            edits: Edits::default(),
            silence: Silence::default(),
            witness: options.api_audit_log.as_ref().map(|_| Witness::default()),
            waiting: VecDeque::new(),
            index: Arc::default(),
            secrets_moved: true,
            unlooked: HashSet::new(),
            looking: false,
            full_told: false,
            posts: Posts::new(options.events),
            changed_at: Some(Instant::now()),
            options,
            sender,
            receiver,
        }
    }

    pub(super) async fn next(&mut self) -> Option<Heard> {
        self.receiver.recv().await
    }

    /// How long until [`Engine::tend_signals`] has something to do by itself.
    pub(super) fn due(&self) -> Option<Duration> {
        let now = now_ms();
        let waiting = self.waiting.front().map(Waiting::until_ms);
        let timed = [waiting, self.silence.next_ms()].into_iter().flatten().min();
        let timed = timed.map(|at| Duration::from_millis(at.saturating_sub(now)));
        let write = self.changed_at.map(|at| WRITE_AFTER.saturating_sub(at.elapsed()));
        [timed, write].into_iter().flatten().min()
    }

    /// It is not to be looked at any more.
    pub(super) fn forget(&mut self, key: &ObjectKey) {
        self.recreations.forget(key);
        self.edits.forget(key);
        self.unlooked.remove(&(key.clone(), Side::Live));
        self.unlooked.remove(&(key.clone(), Side::Desired));
    }

    pub(super) fn look_at(&mut self, key: &ObjectKey, side: Side) {
        self.unlooked.insert((key.clone(), side));
    }
}

impl Engine {
    /// Begins what goes on beside the loop. From now on there is a file of findings, be it of none.
    pub(super) fn begin_signals(&mut self) {
        self.write_findings();
        if let Some(file) = &self.signals.options.api_audit_log {
            api_audit::follow(file.clone(), self.parts.writer.clone(), self.signals.sender.clone());
        }
    }

    pub(super) fn take_heard(&mut self, heard: Heard) {
        match heard {
            Heard::Us(user) => {
                let accounts = self.config.sources.iter();
                let accounts = accounts.filter_map(|source| source.terms.acts_as.as_ref());
                let users: Vec<String> = accounts.map(|account| account.user()).collect();
                if let Some(witness) = &mut self.signals.witness {
                    users.iter().for_each(|user| witness.is_us(user));
                    witness.is_us(&user);
                }
            }
            Heard::Write(write) => {
                if let Some(witness) = &mut self.signals.witness {
                    witness.saw(*write);
                }
                if !self.signals.waiting.is_empty() {
                    self.ask_witness();
                }
            }
            Heard::Scanned(scanned) => self.take_scanned(scanned),
            Heard::Posted(posted) => {
                if let Some(problem) = self.signals.posts.posted(posted) {
                    tracing::warn!("{problem}");
                    self.note_host("events-not-written", &problem);
                }
            }
        }
    }

    /// What is due by time: edits that waited, silence that lasts, objects that are to be looked
    /// through, files that are to be written.
    pub(super) fn tend_signals(&mut self) {
        let now = now_ms();
        if self.signals.waiting.front().is_some_and(|it| it.until_ms() <= now) {
            self.ask_witness();
        }
        let silent = self.signals.silence.due(now);
        self.signal_all(silent);
        self.scan();
        if self.signals.changed_at.is_some_and(|at| at.elapsed() >= WRITE_AFTER) {
            self.write_findings();
        }
    }

    /// Writes what was found, now.
    pub(super) fn write_findings(&mut self) {
        self.signals.changed_at = None;
        let state = &self.options.state;
        let memory = Memory {
            v: findings::VERSION,
            recreations: findings::as_text(self.signals.recreations.made.dump()),
            returns: findings::as_text(self.signals.rollbacks.returns.dump()),
        };
        let written = findings::write(state, &self.signals.findings)
            .and_then(|()| findings::write_memory(state, &memory));
        if let Err(error) = written {
            tracing::warn!("findings cannot be written: {error:#}");
        }
    }

    /// Takes up what was observed, and tells of it where it is loud.
    fn signal_all(&mut self, all: Vec<Observation>) {
        for mut seen in all {
            let redactor = &self.parts.redactor;
            seen.message = redactor.own_text(seen.message);
            for (_, text) in &mut seen.evidence {
                *text = redactor.own_text(std::mem::take(text));
            }
            let finding = self.signals.findings.take(seen);
            self.signals.changed_at.get_or_insert_with(Instant::now);
            if !finding.is_loud() {
                continue;
            }
            let times = if finding.count == 1 {
                String::new()
            } else {
                format!(" ({} times)", finding.count)
            };
            tracing::warn!("finding {}{times}: {}", finding.name.as_str(), finding.message);
            if let Err(error) = self.parts.journal.finding((&finding).into()) {
                tracing::error!("{error}");
            }
            let live =
                match &finding.subject {
                    Subject::Object(key) => self.desired.objects.get(key).map(|desired| {
                        (desired.gvk.clone(), self.parts.store.live(key, &desired.gvk))
                    }),
                    _ => None,
                };
            let (writer, sender) = (&self.parts.writer, &self.signals.sender);
            self.signals.posts.post(&finding, live, writer, sender);
        }
    }
}

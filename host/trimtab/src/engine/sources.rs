//! The sources of a host: each with what is in force of it, what is wrong with it, and who follows
//! it. A source that fails keeps what was in force, also over a restart.
//!
//! ```text
//! follower ──Incoming──► waiting ──place──► accepting ──noted──► in force ──put together──► desired
//! ```

use super::Engine;
use super::desired::{DesiredState, Placed, place};
use crate::config::{Config, ConfigUpdate, Place, SourceConfig};
use crate::journal::SourceLine;
use crate::suspension::{self, Suspension};
use crate::timestamp::now_ms;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use trimtab_core::identity::ObjectKey;
use trimtab_core::object::Revision;
use trimtab_core::record::Trigger;
use trimtab_kube::Kinds;
use trimtab_source::{Source, SourceError, SourceUpdate, WatchOptions};

/// How long sources that have not answered yet are waited for at the start, so that two that declare
/// one object are seen together.
const START_PATIENCE: Duration = Duration::from_secs(10);
/// How soon a repository that could not be read is asked again.
const GIT_RETRY: Duration = Duration::from_secs(10);
/// How soon what could not be noted is tried again.
const ACCEPT_AGAIN: Duration = Duration::from_secs(10);

/// All sources by name.
pub(super) struct Sources {
    entries: BTreeMap<String, Entry>,
    incoming: mpsc::Sender<Incoming>,
    generation: u64,
    /// Desired state has been put together once.
    pub(super) begun: bool,
    /// What people are told may be other than what was written.
    pub(super) untold: bool,
    /// Why the newest configuration is not in use, and since when.
    pub(super) config_problem: Option<Problem>,
    /// What was told last of objects that are refused, by source.
    told_refused: BTreeMap<String, Vec<String>>,
}

/// One source.
pub(super) struct Entry {
    pub(super) config: Arc<SourceConfig>,
    /// `None`: its options are no use.
    source: Option<Arc<dyn Source>>,
    /// Which follower's words count.
    generation: u64,
    ask: mpsc::Sender<()>,
    /// Ends with the value.
    follower: JoinSet<()>,
    /// It gave a revision or an error in this run.
    pub(super) answered: bool,
    /// A revision that was read and is not in force yet.
    waiting: Option<Revision>,
    /// One that could be placed, while the source notes that it is accepted.
    accepting: Option<InForce>,
    tried_at: Option<Instant>,
    /// What was in force before this run, until something else is.
    kept: Option<Revision>,
    pub(super) in_force: Option<InForce>,
    pub(super) problem: Option<Problem>,
    pub(super) suspended: Option<Suspension>,
    /// A look that was asked for is over.
    looked: bool,
    /// Commands that wait until it was looked at.
    pub(super) asked: Vec<super::requests::Answer>,
}

/// What is in force of one source.
pub(super) struct InForce {
    pub(super) revision: Revision,
    pub(super) placed: Placed,
    pub(super) since_ms: u64,
    /// It comes from before this run, and the source has not been read since.
    pub(super) from_before: bool,
}

/// Why the newest of something is not in force.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) text: String,
    pub(super) since_ms: u64,
}

/// What a follower says.
pub(super) struct Incoming {
    name: String,
    generation: u64,
    what: What,
}

enum What {
    /// What was in force before this run, if the source remembers; comes first.
    Kept(Option<Revision>),
    Update(SourceUpdate),
    /// What was placed is noted, or cannot be.
    Accepted(Result<(), String>),
    Ended,
}

impl Sources {
    pub(super) fn new() -> (Self, mpsc::Receiver<Incoming>) {
        let (incoming, receiver) = mpsc::channel(16);
        let sources = Self {
            entries: BTreeMap::new(),
            incoming,
            generation: 0,
            begun: false,
            untold: true,
            config_problem: None,
            told_refused: BTreeMap::new(),
        };
        (sources, receiver)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Entry> {
        self.untold = true;
        self.entries.get_mut(name)
    }

    /// Whether each gave a revision or an error.
    pub(super) fn all_answered(&self) -> bool {
        self.entries.values().all(|entry| entry.answered)
    }

    /// Whether something of any is in force.
    pub(super) fn some_in_force(&self) -> bool {
        self.entries.values().any(|entry| entry.in_force.is_some())
    }

    /// Reads which are suspended by a command.
    pub(super) fn note_suspensions(&mut self, state: &Path) {
        for entry in self.entries.values_mut() {
            entry.suspended = suspension::of_source(state, &entry.config.name);
        }
        self.untold = true;
    }

    /// Follows this source from now on; what another of its name had in force stays until then.
    /// `remembered`: the revision that the inventory has as the last in force.
    fn follow(&mut self, config: Arc<SourceConfig>, state: &Path, remembered: Option<&str>) {
        self.generation += 1;
        let (ask, asked) = mpsc::channel(1);
        let mut entry = Entry {
            generation: self.generation,
            ask,
            source: None,
            follower: JoinSet::new(),
            answered: false,
            waiting: None,
            accepting: None,
            tried_at: None,
            kept: None,
            in_force: None,
            problem: None,
            suspended: suspension::of_source(state, &config.name),
            looked: false,
            asked: Vec::new(),
            config,
        };
        match crate::sources::open(&entry.config, state) {
            Ok(source) => {
                if let Some(revision) = remembered {
                    source.remembered_elsewhere(revision);
                }
                let task = forward(
                    source.clone(),
                    options(&entry.config),
                    asked,
                    (entry.config.name.clone(), self.generation),
                    self.incoming.clone(),
                );
                entry.follower.spawn(task);
                entry.source = Some(source);
            }
            Err(error) => {
                entry.answered = true;
                entry.problem = Some(Problem { text: error.to_string(), since_ms: now_ms() });
            }
        }
        if let Some(old) = self.entries.remove(&entry.config.name) {
            entry.in_force = old.in_force;
            entry.asked = old.asked;
        }
        self.untold = true;
        self.entries.insert(entry.config.name.clone(), entry);
    }
}

impl Entry {
    /// Has it looked at now; [`SourceUpdate::Looked`] comes afterwards. Whether somebody will.
    pub(super) fn look(&self) -> bool {
        // Full: somebody asked already, and that look is still to come.
        self.source.is_some()
            && !matches!(self.ask.try_send(()), Err(mpsc::error::TrySendError::Closed(())))
    }

    /// Why its objects are not looked at, if they are not.
    pub(super) fn suspension(&self) -> Option<String> {
        let name = &self.config.name;
        match &self.suspended {
            _ if self.config.suspend => {
                Some(format!("source {name} is suspended by its configuration"))
            }
            Some(Suspension { since_ms }) => Some(format!(
                "source {name} is suspended since {}: `trimtab source resume {name}` ends that",
                crate::timestamp::rfc3339(*since_ms)
            )),
            None => None,
        }
    }

    /// Whether a look that was asked for is over, with all that follows of it; told once.
    pub(super) fn take_looked(&mut self) -> bool {
        self.accepting.is_none() && std::mem::take(&mut self.looked)
    }

    /// Places anew what is in force or about to be; what cannot be any more stays as it was placed.
    fn place_again(&mut self, kinds: &Kinds) -> Result<(), Vec<String>> {
        if let Some(in_force) = &self.in_force {
            let placed = self.place(&in_force.revision, kinds)?;
            if let Some(in_force) = &mut self.in_force {
                in_force.placed = placed;
            }
        }
        if let Some(accepting) = &self.accepting {
            let placed = self.place(&accepting.revision, kinds)?;
            if let Some(accepting) = &mut self.accepting {
                accepting.placed = placed;
            }
        }
        Ok(())
    }

    fn place(&self, revision: &Revision, kinds: &Kinds) -> Result<Placed, Vec<String>> {
        let before = self.in_force.as_ref().map(|in_force| &in_force.placed);
        place(revision, kinds, &self.config, before)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }
}

/// Hands on what becomes of a source: first what it remembers, then everything that it says.
async fn forward(
    source: Arc<dyn Source>,
    options: WatchOptions,
    asked: mpsc::Receiver<()>,
    (name, generation): (String, u64),
    incoming: mpsc::Sender<Incoming>,
) {
    let say = async |what| {
        let message = Incoming { name: name.clone(), generation, what };
        incoming.send(message).await.is_ok()
    };
    let remembers = source.clone();
    let kept = tokio::task::spawn_blocking(move || remembers.last_good()).await;
    if !say(What::Kept(kept.unwrap_or_default())).await {
        return;
    }
    let mut updates = trimtab_source::watch_asked(source, options, asked);
    while let Some(update) = updates.recv().await {
        if !say(What::Update(update)).await {
            return;
        }
    }
    say(What::Ended).await;
}

fn options(config: &SourceConfig) -> WatchOptions {
    let usual = WatchOptions { rescan: config.interval, ..WatchOptions::default() };
    match config.place {
        Place::Directory(_) => usual,
        Place::Git(_) => WatchOptions { retry: GIT_RETRY, ..usual },
    }
}

impl Engine {
    /// Follows every source of a configuration that was read, and no other.
    pub(super) fn take_config(&mut self, next: Config) {
        self.first = None;
        self.followed_at.get_or_insert_with(Instant::now);
        let next = next.after(&self.config);
        self.parts.redactor = Arc::new(self.parts.redactor.with(&next.redact));
        self.secrets_moved = true;
        let gone: Vec<String> = self
            .sources
            .iter()
            .map(|entry| entry.config.name.clone())
            .filter(|name| next.get(name).is_none())
            .collect();
        for name in &gone {
            self.sources.entries.remove(name);
            self.signal_source(name, None);
            self.tell_host("source-removed", &format!("source {name} is configured no more; its objects stay in the cluster, and nobody looks at them; `trimtab source remove {name} --prune` or `--orphan` says what becomes of them"));
        }
        let now = Instant::now();
        for config in &next.sources {
            let old = self.config.get(&config.name);
            if old.is_some_and(|old| Arc::ptr_eq(old, config)) {
                continue;
            }
            match self.sources.get_mut(&config.name) {
                // What is read, and when, is the same; what becomes of it is not.
                Some(entry) if old.is_some_and(|old| reads_alike(old, config)) => {
                    entry.config = config.clone();
                }
                _ => {
                    let made = self.made.of(&config.name).and_then(|made| made.revision());
                    let remembered = made.map(|revision| &**revision);
                    self.sources.follow(config.clone(), &self.options.state, remembered);
                }
            }
        }
        self.rules.keep(next.sources.iter().flat_map(|source| &source.ignore), now);
        self.config = Arc::new(next);
        self.moved_at = now;
        self.tell_foreign();
        self.place_all();
    }

    /// Takes up the first configuration, once the inventory is known or was waited for: it may
    /// remember a revision that this host's own state does not.
    pub(super) fn take_first_config(&mut self) {
        if self.made.is_known() || self.started.elapsed() >= START_PATIENCE {
            let first = self.first.take();
            first.into_iter().for_each(|config| self.take_config(config));
        }
    }

    pub(super) fn take_config_update(&mut self, update: ConfigUpdate) {
        match update {
            ConfigUpdate::Changed(config) => {
                self.sources.config_problem = None;
                self.tell_host("config-changed", "the configuration is another and in force");
                self.take_config(config);
            }
            ConfigUpdate::Same => {
                self.sources.config_problem = None;
                self.tell_host("config-changed", "the configuration is again what is in force");
            }
            ConfigUpdate::Refused(text) => {
                tracing::error!("the configuration is refused, the last good one stays: {text}");
                self.note_host("config-refused", &text);
                self.sources.config_problem = Some(Problem { text, since_ms: now_ms() });
            }
        }
        self.sources.untold = true;
    }

    pub(super) fn take_incoming(&mut self, incoming: Incoming) -> anyhow::Result<()> {
        let Incoming { name, generation, what } = incoming;
        let Some(entry) = self.sources.get_mut(&name) else { return Ok(()) };
        if entry.generation != generation {
            return Ok(());
        }
        match what {
            What::Kept(kept) => entry.kept = kept,
            What::Update(SourceUpdate::Loaded(revision)) => {
                tracing::info!(
                    source = %revision.source,
                    revision = %short(&revision.id),
                    objects = revision.manifests.len(),
                    "source read"
                );
                entry.waiting = Some(revision);
                self.signal_source(&name, None);
                self.place_waiting(&name);
            }
            What::Update(SourceUpdate::Failed(error)) => {
                entry.waiting = None;
                self.signal_source(&name, Some(&error));
                self.refuse_source(&name, problems(&error));
                self.put_together();
            }
            What::Update(SourceUpdate::Looked) => {
                entry.looked = true;
                self.answer_asked(&name);
            }
            What::Accepted(accepted) => {
                self.take_accepted(&name, accepted);
                self.put_together();
                self.answer_asked(&name);
            }
            What::Ended => {
                anyhow::bail!("the follower of source {name} ended; this is a defect of the host")
            }
        }
        Ok(())
    }

    /// Places what was read of a source and is not in force, and has it noted as accepted. What cannot
    /// be placed leaves the last good state in force. Before discovery has been read nothing can be
    /// placed.
    fn place_waiting(&mut self, name: &str) {
        let Some(kinds) = self.parts.store.kinds() else { return };
        let incoming = self.sources.incoming.clone();
        let Some(entry) = self.sources.get_mut(name) else { return };
        let (Some(source), None) = (entry.source.clone(), &entry.accepting) else { return };
        let Some(revision) = entry.waiting.take() else { return };
        let placed = match entry.place(&revision, &kinds) {
            Ok(placed) => placed,
            Err(problems) => {
                self.refuse_source(name, problems);
                return self.put_together();
            }
        };
        let noted = revision.clone();
        entry.accepting =
            Some(InForce { revision, placed, since_ms: now_ms(), from_before: false });
        // It may wait for a look that is under way, and that for a server.
        let (name, generation) = (name.to_owned(), entry.generation);
        tokio::spawn(async move {
            let accepted = tokio::task::spawn_blocking(move || source.accept(&noted)).await;
            let accepted = match accepted {
                Ok(accepted) => accepted.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            let what = What::Accepted(accepted);
            // Nobody listens any more only where the host ends.
            let _ = incoming.send(Incoming { name, generation, what }).await;
        });
    }

    /// Puts in force what could be placed and is noted.
    fn take_accepted(&mut self, name: &str, accepted: Result<(), String>) {
        let Some(entry) = self.sources.get_mut(name) else { return };
        let Some(accepting) = entry.accepting.take() else { return };
        if let Err(why) = accepted {
            entry.waiting.get_or_insert(accepting.revision);
            entry.tried_at = Some(Instant::now());
            return self.refuse_source(name, vec![why]);
        }
        entry.answered = true;
        entry.kept = None;
        let before = entry.in_force.replace(accepting);
        let was_refused = entry.problem.take().is_some();
        let Some(in_force) = &mut entry.in_force else { return };
        let same = before.filter(|before| before.revision.id == in_force.revision.id);
        if let Some(before) = &same {
            in_force.since_ms = before.since_ms;
        }
        let line = SourceLine::in_force(&in_force.revision);
        if same.is_none_or(|before| before.from_before) || was_refused {
            self.tell(line);
        }
        self.place_waiting(name);
    }

    /// The newest of a source is not taken. What is in force stays so; at the start that is what was
    /// before it.
    fn refuse_source(&mut self, name: &str, problems: Vec<String>) {
        let Some(entry) = self.sources.get_mut(name) else { return };
        entry.answered = true;
        let text = problems.join("\n");
        let since_ms = entry.problem.as_ref().map_or_else(now_ms, |problem| problem.since_ms);
        let told = entry.problem.replace(Problem { text, since_ms });
        let is_told = told.is_some_and(|told| told.text == problems.join("\n"));
        self.serve_kept(name);
        let kept = match self.sources.get(name).and_then(|entry| entry.in_force.as_ref()) {
            Some(_) => "; the last good state stays in force",
            None => "",
        };
        if !is_told {
            let text = problems.join("\n  ");
            tracing::error!("source {name} refused, nothing is pruned{kept}:\n  {text}");
            self.tell(SourceLine { source: name.into(), problems, ..SourceLine::default() });
        }
        self.moved_at = Instant::now();
    }

    /// Puts in force what was so before this run, where nothing is.
    fn serve_kept(&mut self, name: &str) {
        let Some(kinds) = self.parts.store.kinds() else { return };
        let Some(entry) = self.sources.get_mut(name) else { return };
        if entry.in_force.is_some() {
            return;
        }
        let Some(revision) = entry.kept.take() else { return };
        match entry.place(&revision, &kinds) {
            Ok(placed) => {
                let (id, since_ms) = (revision.id.to_string(), now_ms());
                let line = SourceLine { from_before: true, ..SourceLine::in_force(&revision) };
                tracing::warn!(source = name, revision = %short(&id), "what was in force before the start is in force until the source can be read");
                entry.in_force = Some(InForce { revision, placed, since_ms, from_before: true });
                self.tell(line);
            }
            Err(problems) => {
                tracing::error!(
                    source = name,
                    "what was in force before the start cannot be placed: {}",
                    problems.join("; ")
                );
            }
        }
    }

    /// Places everything anew: kinds, or what sources are held to, are other than before.
    pub(super) fn place_all(&mut self) {
        let Some(kinds) = self.parts.store.kinds() else { return };
        let names: Vec<String> = self.sources.entries.keys().cloned().collect();
        for name in &names {
            let Some(entry) = self.sources.entries.get_mut(name) else { continue };
            if let Err(problems) = entry.place_again(&kinds) {
                self.refuse_source(name, problems);
            }
            self.place_waiting(name);
            if self.sources.get(name).is_some_and(|entry| entry.problem.is_some()) {
                self.serve_kept(name);
            }
        }
        self.put_together();
    }

    /// What could be read and not be noted is tried again, now and then.
    pub(super) fn accept_again(&mut self) {
        let due = |entry: &&Entry| {
            entry.waiting.is_some() && entry.tried_at.is_some_and(|at| at.elapsed() > ACCEPT_AGAIN)
        };
        let due: Vec<String> =
            self.sources.iter().filter(due).map(|entry| entry.config.name.clone()).collect();
        for name in due {
            self.place_waiting(&name);
        }
    }

    /// How long until [`Engine::begin`] has something to do.
    pub(super) fn begin_due(&self) -> Option<Duration> {
        let from = self.followed_at.unwrap_or(self.started);
        (!self.sources.begun).then(|| START_PATIENCE.saturating_sub(from.elapsed()))
    }

    /// Puts desired state together for the first time, once every source has answered or was waited
    /// for: of one that does not answer, what was in force before.
    pub(super) fn begin(&mut self) {
        let Some(followed_at) = self.followed_at else { return };
        let waited = followed_at.elapsed() >= START_PATIENCE;
        let known = self.sources.all_answered() && self.made.is_known();
        if self.sources.begun || !waited && !known {
            return;
        }
        let Some(_) = self.parts.store.kinds() else { return };
        let late: Vec<String> = self
            .sources
            .iter()
            .filter(|entry| !entry.answered)
            .map(|entry| entry.config.name.clone())
            .collect();
        for name in &late {
            self.serve_kept(name);
        }
        self.sources.begun = true;
        self.put_together();
    }

    /// Makes one desired state of all sources, and takes up what changed.
    pub(super) fn put_together(&mut self) {
        self.sources.untold = true;
        if !self.sources.begun || self.parts.store.kinds().is_none() {
            return;
        }
        let parts = self.sources.iter().filter_map(|entry| entry.in_force.as_ref());
        let holder = |key: &ObjectKey| {
            let in_force = self.desired.objects.get(key).map(|it| it.source.clone());
            in_force.or_else(|| self.made.holder(key))
        };
        let mut next = DesiredState::of(parts.map(|in_force| &in_force.placed), holder);
        let silent: Vec<&str> = self
            .sources
            .iter()
            .filter(|entry| entry.in_force.is_none())
            .map(|entry| entry.config.name.as_str())
            .collect();
        if !silent.is_empty() {
            let has = |source: &str, key: &ObjectKey| {
                self.made.entry(source, key).is_some_and(|it| it.uid.is_some())
            };
            next.leave_to(|desired| {
                let owner = silent.iter().find(|source| has(source, &desired.key))?;
                (!has(&desired.source, &desired.key)).then(|| Arc::from(*owner))
            });
        }
        self.enter(&mut next);
        let trigger = if self.placed_once { Trigger::Source } else { Trigger::Start };
        self.placed_once |= self.sources.some_in_force() && next.reviewing.is_empty();
        self.tell_refused(&next);
        self.take_desired(next, trigger);
    }

    /// Tells of objects that are refused, when they are others than before.
    fn tell_refused(&mut self, next: &DesiredState) {
        let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for it in &next.refused {
            let text = format!("{} ({}): {}", it.object, it.origin, it.reason);
            refused.entry(it.source.clone()).or_default().push(text);
        }
        for (source, texts) in &refused {
            if self.sources.told_refused.get(source) == Some(texts) {
                continue;
            }
            tracing::error!(
                "source {source}: not taken, while the rest is:\n  {}",
                texts.join("\n  ")
            );
            let in_force = self.sources.get(source).and_then(|entry| entry.in_force.as_ref());
            self.tell(SourceLine {
                source: source.clone(),
                revision: in_force.map(|it| it.revision.id.to_string()).unwrap_or_default(),
                refused: texts.clone(),
                ..SourceLine::default()
            });
        }
        self.sources.told_refused = refused;
    }
}

/// What is wrong with a source: each problem of its content, or the one that is none of the content.
fn problems(error: &SourceError) -> Vec<String> {
    let all = error.problems();
    match (error, all.first()) {
        (SourceError::Refused(_), _) | (_, None) => all.iter().map(ToString::to_string).collect(),
        (_, Some(one)) => vec![format!("{error} [{}]", one.code)],
    }
}

/// Whether both configurations read the same, as often.
fn reads_alike(old: &SourceConfig, new: &SourceConfig) -> bool {
    old.place == new.place && old.interval == new.interval && old.namespace == new.namespace
}

fn short(revision: &str) -> &str {
    revision.get(..19).unwrap_or(revision)
}

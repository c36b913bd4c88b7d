//! Signals, in the loop: what passes, watches, sources and plugins show is handed to the functions
//! of `trimtab_core::signals`, and what they find is told: in the log, the audit log, a file, and as
//! Events in the cluster.
//!
//! Nothing here changes what the host does: a finding is told and never acted upon. What takes time
//! (looking through objects, writing Events, reading the API server's audit log) is done beside the
//! loop and comes back by one channel.

mod api_audit;
mod events;
mod scan;

use self::events::Posts;
use self::scan::{Scan, Scanned};
use super::{Engine, Passed};
use crate::findings::{self, Memory};
use crate::plugins::FileStatus;
use crate::timestamp::now_ms;
use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use trimtab_core::denial::{self, Denial};
use trimtab_core::gate::Planned;
use trimtab_core::identity::{Gvk, ObjectKey};
use trimtab_core::object::{Live, LiveObject};
use trimtab_core::record::{Record, Trigger};
use trimtab_core::redact::Redactor;
use trimtab_core::signals::edit::{Edit, Edits};
use trimtab_core::signals::misplaced::{self, Index, Side};
use trimtab_core::signals::recreation::{Maker, Recreations};
use trimtab_core::signals::rollback::{By, Denied, Denies as _, HardDenials, Rollbacks};
use trimtab_core::signals::stale::Silence;
use trimtab_core::signals::trust::{self, Breach};
use trimtab_core::signals::witness::{ApiWrite, Place, Seen, Witness};
use trimtab_core::signals::{Findings, Name, Observation, Subject, contest};
use trimtab_kube::Lookup;
use trimtab_source::SourceError;

/// How long an edit waits for its line in the API server's audit log, in milliseconds.
const WITNESS_WITHIN_MS: u64 = 3_000;
/// Edits that wait at once; of more the oldest are told without.
const WAITING_AT_MOST: usize = 1024;
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

/// Something that was found and for which the audit log is asked.
enum Waiting {
    Edit { until_ms: u64, edit: Edit },
    Recreation { until_ms: u64, key: ObjectKey, seen: Observation },
}

impl Waiting {
    fn until_ms(&self) -> u64 {
        match self {
            Self::Edit { until_ms, .. } | Self::Recreation { until_ms, .. } => *until_ms,
        }
    }
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
    /// Begins what goes on beside the loop.
    pub(super) fn begin_signals(&self) {
        if let Some(file) = &self.signals.options.api_audit_log {
            api_audit::follow(file.clone(), self.parts.writer.clone(), self.signals.sender.clone());
        }
    }

    /// What a pass that ended shows. Before its outcome is taken up, which changes what was in force.
    pub(super) fn signal_pass(&mut self, passed: &Passed) {
        let Passed { key, record, live, .. } = passed;
        let now = record.at_ms;
        let left = record.written();
        let desired = self.desired.objects.get(key).cloned();
        let entry = desired.as_ref().and_then(|it| self.made.entry(&it.source, key));
        let is_start = record.trigger == Trigger::Start;
        let was_in_force = entry.is_some_and(|entry| entry.has(record.desired_digest));
        let before = entry.filter(|_| is_start).and_then(|entry| entry.uid.clone());

        if record.after.is_some() && record.planned.iter().any(Planned::deletes) {
            self.signals.recreations.deleted_by_us(key);
        }
        let mut seen = Vec::new();
        for (object, maker) in makers(live, left.as_ref(), record) {
            let all = self.signals.recreations.seen(key, &object.uid, before.as_ref(), &maker, now);
            seen.extend(all);
        }
        for seen in seen {
            self.signal_recreation(key, seen);
        }
        for edit in self.signals.edits.pass(record, left.as_ref(), was_in_force) {
            self.signal_edit(edit);
        }
        let rounds = self.keys.get(key).and_then(super::KeyState::rounds);
        let mut all: Vec<Observation> = contest::of_record(record, rounds).into_iter().collect();
        all.extend(trust::of_record(record));
        all.extend(quoted(record));
        if denial::runs_pods(&key.group_kind) {
            all.extend(self.signal_values(record, live, left.as_ref()));
        }
        self.signal_all(all);
    }

    /// Values in a live object that policy denies, and that desired does not ask for.
    fn signal_values(
        &mut self,
        record: &Record,
        live: &Live,
        left: Option<&LiveObject>,
    ) -> Vec<Observation> {
        let key = &record.key;
        let managers = || {
            let all = record.differences.iter().flat_map(|difference| &difference.managers);
            let mut names: Vec<&str> = all.map(|manager| manager.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            names.join(", ")
        };
        let mut all = Vec::new();
        if let (Some(live), false) = (live.object(), record.differences.is_empty()) {
            let ours = match self.desired.objects.get(key) {
                Some(desired) => self.denied(key, &desired.json),
                None => return all,
            };
            let mut denied = self.denied(key, &live.json);
            denied.retain(|it| !ours.contains(it));
            let who = managers();
            all = self.signals.rollbacks.seen(key, denied, By::Managers(&who), record.at_ms);
        }
        if record.differences.is_empty() || left.is_some() {
            let nobody = By::Managers("");
            all.extend(self.signals.rollbacks.seen(key, Vec::new(), nobody, record.at_ms));
        }
        all
    }

    /// What policy denies in this object; nothing where the grant lifts it.
    fn denied(&self, key: &ObjectKey, json: &[u8]) -> Vec<Denied> {
        let registry = self.parts.registry.borrow();
        let grant = registry.for_kind(&key.group_kind).and_then(|it| it.power.grant.as_ref());
        if grant.is_some_and(|grant| grant.terms.allow.contains(&Denial::PrivilegedPods)) {
            return Vec::new();
        }
        match trimtab_json::parse(json) {
            Ok(object) => HardDenials.denied(key, &object),
            Err(_) => Vec::new(),
        }
    }

    /// What came into desired state, or left it.
    pub(super) fn signal_desired(&mut self, changed: &[ObjectKey], gone: &[ObjectKey]) {
        for key in gone {
            self.signals.forget(key);
        }
        for key in changed {
            self.signals.look_at(key, Side::Desired);
            let Some(desired) = self.desired.objects.get(key).cloned() else { continue };
            if denial::runs_pods(&key.group_kind) {
                let denied = self.denied(key, &desired.json);
                let by = By::Source(&desired.source, &desired.revision);
                let seen = self.signals.rollbacks.seen(key, denied, by, now_ms());
                self.signal_all(seen);
            }
        }
    }

    /// A watch is broken, or works.
    pub(super) fn signal_watch(&mut self, gvk: &Gvk, trouble: Option<&str>) {
        self.signal_silence(Subject::Watch(gvk.clone()), trouble);
    }

    /// How a source stands.
    pub(super) fn signal_source(&mut self, name: &str, problem: Option<&SourceError>) {
        let subject = Subject::Source(name.into());
        let breach = match problem {
            Some(SourceError::Unverified { .. }) => Some(Breach::Unsigned),
            Some(SourceError::SteppedBack { .. }) => Some(Breach::SteppedBack),
            _ => None,
        };
        let silent = problem.filter(|problem| {
            matches!(
                problem,
                SourceError::Unreachable { .. }
                    | SourceError::AuthRefused { .. }
                    | SourceError::Missing { .. }
                    | SourceError::Unreadable { .. }
                    | SourceError::ReferenceMissing { .. }
            )
        });
        if let (Some(breach), Some(problem)) = (breach, problem) {
            let why = problem.to_string();
            self.signal_all(vec![trust::of_breach(subject.clone(), breach, &why, now_ms())]);
        }
        self.signal_silence(subject, silent.map(ToString::to_string).as_deref());
    }

    fn signal_silence(&mut self, subject: Subject, why: Option<&str>) {
        match why {
            Some(why) => self.signals.silence.failed(subject, why, now_ms()),
            None => {
                if self.signals.silence.answers(&subject) {
                    self.signal_over(&subject);
                }
            }
        }
    }

    fn signal_over(&mut self, subject: &Subject) {
        if self.signals.findings.ended(Name::Stale, subject, now_ms()) {
            tracing::info!("{subject} answers again");
            self.signals.changed_at.get_or_insert_with(Instant::now);
        }
    }

    /// How plugins stand that stand otherwise than before.
    pub(super) fn signal_plugins(&mut self, changed: &[FileStatus]) {
        for plugin in changed {
            let name = if plugin.name.is_empty() { &plugin.file } else { &plugin.name };
            let subject = Subject::Plugin(name.as_str().into());
            let now = now_ms();
            if let Some(breach) = breach_of(plugin) {
                self.signal_all(vec![trust::of_breach(subject, breach, &plugin.reason, now)]);
            } else if plugin.state == "quarantined" {
                let text = format!("{subject} is not called any more: {}", plugin.reason);
                let severity = trimtab_core::decision::Severity::Warning;
                let seen = Observation::new(Name::Stale, severity, subject, text, now);
                self.signal_all(vec![seen.with("why", plugin.reason.clone())]);
            } else {
                self.signal_over(&subject);
            }
        }
    }

    fn signal_edit(&mut self, edit: Edit) {
        if self.signals.witness.is_none() {
            return self.signal_all(edit.told(None));
        }
        let until_ms = now_ms() + WITNESS_WITHIN_MS;
        self.wait_for_witness(Waiting::Edit { until_ms, edit });
    }

    fn signal_recreation(&mut self, key: &ObjectKey, seen: Observation) {
        if self.signals.witness.is_none() {
            return self.signal_all(vec![seen]);
        }
        let until_ms = now_ms() + WITNESS_WITHIN_MS;
        self.wait_for_witness(Waiting::Recreation { until_ms, key: key.clone(), seen });
    }

    fn wait_for_witness(&mut self, waiting: Waiting) {
        self.signals.waiting.push_back(waiting);
        self.ask_witness();
        while self.signals.waiting.len() > WAITING_AT_MOST {
            if let Some(oldest) = self.signals.waiting.pop_front() {
                self.tell_waiting(oldest, true);
            }
        }
    }

    /// Tells of those whose request is in the audit log by now, or that waited long enough.
    fn ask_witness(&mut self) {
        for waiting in std::mem::take(&mut self.signals.waiting) {
            let over = waiting.until_ms() <= now_ms();
            if let Some(waiting) = self.tell_waiting(waiting, over) {
                self.signals.waiting.push_back(waiting);
            }
        }
    }

    /// Gives it back where it is still to wait.
    fn tell_waiting(&mut self, waiting: Waiting, over: bool) -> Option<Waiting> {
        let told = match &waiting {
            Waiting::Edit { edit, .. } => {
                let at = edit
                    .manager
                    .as_ref()
                    .and_then(|it| trimtab_core::signals::witness::ms_of(&it.time));
                let request = self.witness_of(&edit.key, |witness, place| {
                    witness.edit(place, edit.manager.as_ref(), at.unwrap_or(edit.at_ms)).cloned()
                });
                // One by another manager may be an earlier one: the right one may still come.
                let by_it = request.as_ref().is_some_and(|request| {
                    edit.manager.as_ref().is_none_or(|manager| manager.name == request.manager)
                });
                match request {
                    Some(request) if by_it || over => {
                        edit.told(Some(&Seen::Request(Box::new(request))))
                    }
                    _ if over => edit.told(Some(&Seen::Nothing)),
                    _ => return Some(waiting),
                }
            }
            Waiting::Recreation { key, seen, .. } => {
                let at = seen.at_ms;
                let request =
                    self.witness_of(key, |witness, place| witness.deletion(place, at).cloned());
                match request {
                    Some(request) => {
                        let mut seen = seen.clone();
                        seen.message = format!(
                            "{}; deleted by {} (audit id {})",
                            seen.message, request.user, request.audit_id
                        );
                        vec![
                            seen.with("deletedBy", request.user)
                                .with("auditId", request.audit_id)
                                .with("userAgent", request.agent),
                        ]
                    }
                    None if over => vec![seen.clone()],
                    None => return Some(waiting),
                }
            }
        };
        self.signal_all(told);
        None
    }

    fn witness_of(
        &self,
        key: &ObjectKey,
        ask: impl Fn(&Witness, Place<'_>) -> Option<ApiWrite>,
    ) -> Option<ApiWrite> {
        let kinds = self.parts.store.kinds()?;
        let Lookup::Found(kind) = kinds.preferred(&key.group_kind) else { return None };
        let place = Place {
            group: &key.group_kind.group,
            resource: &kind.plural,
            namespace: key.namespace_str(),
            name: &key.name,
        };
        ask(self.signals.witness.as_ref()?, place)
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

    fn take_scanned(&mut self, scanned: Scanned) {
        self.signals.looking = false;
        if let Some(index) = scanned.index {
            if index.is_full() && !self.signals.full_told {
                self.signals.full_told = true;
                tracing::warn!(
                    "Secrets hold more than {} hashes of values are kept for: some values are not looked for in other objects",
                    misplaced::HASHES_AT_MOST
                );
            }
            self.signals.index = index;
        }
        self.signal_all(scanned.found);
    }

    /// Looks through what is to be looked through, one batch at a time, beside the loop.
    fn scan(&mut self) {
        if self.signals.looking || !self.signals.secrets_moved && self.signals.unlooked.is_empty() {
            return;
        }
        if !self.placed_once {
            return;
        }
        let mut secrets = None;
        if std::mem::take(&mut self.signals.secrets_moved) {
            secrets = Some(self.known_secrets());
            // Other values: everything is to be looked through for them.
            for key in self.desired.objects.keys() {
                self.signals.unlooked.insert((key.clone(), Side::Desired));
                self.signals.unlooked.insert((key.clone(), Side::Live));
            }
        }
        let mut objects = Vec::with_capacity(self.signals.unlooked.len());
        for (key, side) in std::mem::take(&mut self.signals.unlooked) {
            let Some(desired) = self.desired.objects.get(&key) else { continue };
            let json = match side {
                Side::Desired => desired.json.clone(),
                Side::Live => match self.parts.store.live(&key, &desired.gvk) {
                    Live::Present(live) => live.json,
                    Live::Absent | Live::Unknown(_) => continue,
                },
            };
            let in_git = self
                .sources
                .get(&desired.source)
                .is_some_and(|entry| matches!(entry.config.place, crate::config::Place::Git(_)));
            let origin = format!("{} of {}", desired.origin, desired.source);
            objects.push(scan::Looked { key, side, json, in_git, origin });
        }
        self.signals.looking = true;
        let scan = Scan {
            key: self.signals.options.key,
            index: self.signals.index.clone(),
            secrets,
            objects,
        };
        scan.start(self.signals.sender.clone());
    }

    /// Secrets that are declared, as they are declared and as they are live.
    fn known_secrets(&self) -> Vec<(ObjectKey, Arc<[u8]>)> {
        let secrets = self
            .desired
            .objects
            .values()
            .filter(|desired| trimtab_core::redact::is_sensitive(&desired.key.group_kind));
        let mut all = Vec::new();
        for desired in secrets {
            all.push((desired.key.clone(), desired.json.clone()));
            if let Live::Present(live) = self.parts.store.live(&desired.key, &desired.gvk) {
                all.push((desired.key.clone(), live.json));
            }
        }
        all
    }
}

/// The objects that a pass saw under its name, each with who made it.
fn makers(live: &Live, left: Option<&LiveObject>, record: &Record) -> Vec<(LiveObject, Maker)> {
    let mut all = Vec::new();
    if let Some(live) = live.object() {
        all.push((live.clone(), Maker::Others(first_manager(live))));
    }
    // What a plugin's own deletion makes anew is told where it is too often.
    let deletes = record.planned.iter().any(Planned::deletes);
    if let Some(left) = left.filter(|left| !deletes && record.live_uid.as_ref() != Some(&left.uid))
    {
        all.push((left.clone(), Maker::Us));
    }
    all
}

/// The manager of an object's oldest entry in managedFields.
fn first_manager(live: &LiveObject) -> String {
    let Ok(object) = trimtab_json::parse(&live.json) else { return String::new() };
    let entries = object.at(&["metadata", "managedFields"]).and_then(|it| it.as_array());
    let times = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some((entry.str_at(&["time"])?, entry.str_at(&["manager"])?)));
    times.min_by_key(|(time, _)| *time).map(|(_, name)| name.to_owned()).unwrap_or_default()
}

/// A value of a Secret in what a plugin said, or in what the API server answered.
fn quoted(record: &Record) -> Option<Observation> {
    let message = record.outcome.message();
    let said = record.findings.iter().map(|finding| &finding.message);
    let said = said.chain(record.conditions.iter().map(|condition| &condition.message));
    let in_words = said.chain([&message]).any(|text| Redactor::hid(text));
    let severity = trimtab_core::decision::Severity::Warning;
    in_words.then(|| {
        let text = format!(
            "{}: a value of a Secret stood in what plugin {} or the API server said of it, and was taken out",
            record.key, record.plugin.name
        );
        let subject = Subject::Object(record.key.clone());
        Observation::new(Name::MisplacedSecret, severity, subject, text, record.at_ms)
            .about("words")
            .with("plugin", record.plugin.name.clone())
    })
}

/// What of a plugin's standing is about trust.
fn breach_of(plugin: &FileStatus) -> Option<Breach> {
    if plugin.reason.contains(crate::signing::UNSIGNED) {
        return Some(Breach::Unsigned);
    }
    if plugin.reason.contains(crate::signing::NO_SIGNATURE_COUNTS) {
        return Some(Breach::Altered);
    }
    (plugin.state == "refused" && plugin.reason.contains("is not pure")).then_some(Breach::Impure)
}

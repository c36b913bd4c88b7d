//! Pruning in the loop: what a source declares no more is read, planned and deleted, one object at a
//! time, each with an intent on disk before.
//!
//! A plan is made anew after every step (`trimtab_core::prune` has the rules). Nothing here survives
//! a restart or has to: the inventory in the cluster says what is left to do.

mod told;

use super::Engine;
use crate::journal::{PruneLine, PruneStep};
use crate::timestamp::now_ms;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use trimtab_core::approval;
use trimtab_core::gate;
use trimtab_core::grant::Mode;
use trimtab_core::identity::{Gvk, ObjectKey};
use trimtab_core::inventory::Entry;
use trimtab_core::object::{Desired, LiveObject};
use trimtab_core::policy::{Point, Policies, Request};
use trimtab_core::ports::{ApplyError, Cluster as _, Written};
use trimtab_core::prune::{Contents, Plan, Seen, Situation, SourceState, Step, plan};
use trimtab_core::review;

/// How soon what goes on by itself is looked at again, and what waits for somebody.
const LOOK_SOON: Duration = Duration::from_secs(2);
const LOOK_LATER: Duration = Duration::from_secs(30);
/// How long a deletion that was refused waits before it is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// Objects read at once.
const READS_AT_ONCE: usize = 8;

/// What is under way of every source.
pub(super) struct Pruning {
    runs: BTreeMap<Arc<str>, Run>,
    sender: mpsc::Sender<Done>,
    receiver: mpsc::Receiver<Done>,
    /// Desired state, inventory or what was allowed is other than at the last look.
    moved: bool,
}

/// What is known of one source's undeclared objects.
#[derive(Default)]
struct Run {
    seen: HashMap<ObjectKey, Seen>,
    kinds: HashMap<ObjectKey, Gvk>,
    contents: HashMap<ObjectKey, Contents>,
    /// Deletions that were refused: why, and until when they are not tried again.
    refused: HashMap<ObjectKey, (String, Instant)>,
    /// A task of it is under way.
    busy: bool,
    look_at: Option<Instant>,
    plan: Plan,
    told: BTreeMap<ObjectKey, String>,
    /// Why nothing is pruned, by the look before, and as it was told.
    stopped: Option<String>,
    told_stopped: Option<String>,
}

/// What a task of this module ended with.
pub(super) enum Done {
    Read {
        source: Arc<str>,
        seen: Vec<(ObjectKey, Option<Gvk>, Seen)>,
    },
    Looked {
        source: Arc<str>,
        key: ObjectKey,
        contents: Contents,
    },
    Deleted {
        source: Arc<str>,
        key: ObjectKey,
        result: Result<Written, ApplyError>,
    },
    /// A policy stopped it, or its intent could not be noted.
    Stopped {
        source: Arc<str>,
        key: ObjectKey,
        why: String,
    },
}

impl Pruning {
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::channel(16);
        Self { runs: BTreeMap::new(), sender, receiver, moved: true }
    }

    pub(super) async fn next(&mut self) -> Option<Done> {
        self.receiver.recv().await
    }

    /// Something is other than it was: what waits is looked at now.
    pub(super) fn moved(&mut self) {
        self.moved = true;
    }

    /// A pass ended: what waited for that is looked at now.
    pub(super) fn pass_ended(&mut self) {
        self.moved |= !self.runs.is_empty();
    }

    /// Whether nothing of it goes on by itself.
    pub(super) fn is_quiet(&self) -> bool {
        let goes_on = |run: &Run| {
            run.busy
                || run.plan.steps.iter().any(|(key, step)| {
                    matches!(step, Step::Delete | Step::Look | Step::Going(_))
                        && !run.refused.contains_key(key)
                })
        };
        !self.moved && !self.runs.values().any(goes_on)
    }

    pub(super) fn due(&self) -> Option<Duration> {
        let at = self.runs.values().filter(|run| !run.busy).filter_map(|run| run.look_at).min();
        at.map(|at| at.saturating_duration_since(Instant::now()))
    }
}

impl Engine {
    /// Takes up what is to be pruned.
    pub(super) fn prune(&mut self) {
        self.note_revisions();
        if !self.made.is_known() || !self.sources.begun {
            return;
        }
        let moved = std::mem::take(&mut self.pruning.moved);
        let now = Instant::now();
        let names: Vec<Arc<str>> =
            self.config.sources.iter().map(|source| Arc::from(source.name.as_str())).collect();
        self.pruning.runs.retain(|name, _| names.contains(name));
        for name in names {
            let due = match self.pruning.runs.get(&name) {
                Some(run) if run.busy => {
                    self.pruning.moved |= moved;
                    continue;
                }
                Some(run) => moved || run.look_at.is_some_and(|at| at <= now),
                None => moved,
            };
            if due {
                self.look_at_undeclared(&name);
            }
        }
    }

    /// The entries of a source that it does not declare.
    fn undeclared(&self, source: &Arc<str>) -> Vec<ObjectKey> {
        let declares = |key: &ObjectKey| {
            self.desired.objects.get(key).is_some_and(|desired| desired.source == *source)
        };
        self.made.of(source).map(|it| it.undeclared(declares)).unwrap_or_default()
    }

    /// Begins a look at what a source does not declare any more.
    fn look_at_undeclared(&mut self, source: &Arc<str>) {
        let undeclared = self.undeclared(source);
        if undeclared.is_empty() {
            self.pruning.runs.remove(source);
            return;
        }
        let closed = self.is_closed(source);
        let run = self.pruning.runs.entry(source.clone()).or_default();
        if closed {
            // Nothing is deleted, so nothing has to be read.
            run.seen.clear();
            return self.go_on(source);
        }
        run.seen.retain(|key, _| undeclared.contains(key));
        run.refused.retain(|_, (_, until)| *until > Instant::now());
        run.busy = true;
        let (store, sender, source) =
            (self.parts.store.clone(), self.pruning.sender.clone(), source.clone());
        tokio::spawn(async move {
            use futures::StreamExt as _;
            let read = |key: ObjectKey| {
                let store = &store;
                async move {
                    let (gvk, seen) = store.read_now(&key).await;
                    (key, gvk, seen)
                }
            };
            let seen = futures::stream::iter(undeclared).map(read).buffer_unordered(READS_AT_ONCE);
            let seen = seen.collect().await;
            let _ = sender.send(Done::Read { source, seen }).await;
        });
    }

    /// Whether nothing of the source is pruned, whatever is there.
    fn is_closed(&self, source: &str) -> bool {
        let prunes = self.config.get(source).is_some_and(|config| config.terms.prune);
        !prunes || matches!(self.state_of(source), SourceState::Not(_))
    }

    pub(super) fn take_pruned(&mut self, done: Done) {
        let source = match &done {
            Done::Read { source, .. }
            | Done::Looked { source, .. }
            | Done::Deleted { source, .. }
            | Done::Stopped { source, .. } => source.clone(),
        };
        let Some(run) = self.pruning.runs.get_mut(&source) else { return };
        run.busy = false;
        match done {
            Done::Read { seen, .. } => {
                run.contents.clear();
                for (key, gvk, seen) in seen {
                    if let Some(gvk) = gvk {
                        run.kinds.insert(key.clone(), gvk);
                    }
                    run.seen.insert(key, seen);
                }
            }
            Done::Looked { key, contents, .. } => {
                run.contents.insert(key, contents);
            }
            // Read again before anything else is decided.
            Done::Deleted { result: Err(ApplyError::Stale(_)), .. } => {
                return self.look_at_undeclared(&source);
            }
            Done::Stopped { key, why, .. } => {
                run_later(self.pruning.runs.get_mut(&source), &key, why.clone());
                self.tell_prune(&source, &key, PruneStep::Failed, why);
            }
            Done::Deleted { key, result, .. } => self.deleted(&source, &key, result),
        }
        self.go_on(&source);
    }

    fn deleted(&mut self, source: &Arc<str>, key: &ObjectKey, result: Result<Written, ApplyError>) {
        self.moved_at = Instant::now();
        let Some(run) = self.pruning.runs.get_mut(source) else { return };
        match result {
            Ok(Written::Deleted) => {
                run.seen.insert(key.clone(), Seen::Absent);
                self.tell_prune(source, key, PruneStep::Deleted, String::new());
                self.wake_readers(key, Instant::now());
            }
            // It is marked, and goes when its finalizers are done.
            Ok(Written::Object(json)) => {
                if let Some(live) = LiveObject::read(json) {
                    run.seen.insert(key.clone(), Seen::Live(live));
                }
                self.tell_prune(source, key, PruneStep::Going, String::new());
            }
            Err(error) => {
                let why = format!("prune_failed: {error}");
                run.refused.insert(key.clone(), (why.clone(), Instant::now() + RETRY_AFTER));
                self.tell_prune(source, key, PruneStep::Failed, why);
            }
        }
    }

    /// How a source stands for pruning.
    fn state_of(&self, source: &str) -> SourceState {
        let not = |why: String| SourceState::Not(format!("nothing is pruned: {why}"));
        if let Some(why) = self.made.trouble(source) {
            return not(why);
        }
        let Some(entry) = self.sources.get(source) else {
            return not(format!("source {source} is not configured"));
        };
        if let Some(why) = entry.suspension() {
            return not(why);
        }
        if let Some(problem) = &entry.problem {
            return not(format!("source {source} cannot be used: {}", problem.text));
        }
        let Some(in_force) = entry.in_force.as_ref().filter(|it| !it.from_before) else {
            return not(format!("source {source} has not been read yet"));
        };
        if let Some(unplaced) = self.desired.unplaced.iter().find(|it| &*it.source == source) {
            let manifest = &unplaced.manifest;
            return not(format!(
                "{} {} is declared and waits for its kind",
                manifest.gvk, manifest.name
            ));
        }
        if let Some(refused) = self.desired.refused.iter().find(|it| it.source == source) {
            return not(format!("{} is declared and refused", refused.object));
        }
        if let Some(key) = self.desired.reviewing.iter().next() {
            return not(format!("{key} is under review"));
        }
        let own = self.desired.objects.values().filter(|desired| &*desired.source == source);
        let open = own.filter_map(|desired| Some((desired, self.open(desired)?)));
        match open.min_by(|(a, _), (b, _)| a.key.cmp(&b.key)) {
            Some((desired, why)) => not(format!("{} is declared and {why}", desired.key)),
            None => SourceState::InForce(in_force.revision.id.clone()),
        }
    }

    /// Why a declared object is not done with: what it replaces may still be needed.
    fn open(&self, desired: &Desired) -> Option<String> {
        if self.order.is_blocked(&desired.key) || self.order.holds(&desired.key) {
            return Some("waits".into());
        }
        let Some(state) = self.keys.get(&desired.key) else {
            return Some("not looked at yet".into());
        };
        if state.is_settled_otherwise(desired.digest) {
            return None;
        }
        state.in_force(desired.digest).err()
    }

    /// Plans by what is known, and takes the next step.
    fn go_on(&mut self, source: &Arc<str>) {
        let state = self.state_of(source);
        let Some(config) = self.config.get(source).cloned() else { return };
        let declares = self.desired.objects.values().filter(|it| it.source == *source).count();
        let plan = {
            let Some(inventory) = self.made.of(source) else { return };
            let Some(run) = self.pruning.runs.get(source) else { return };
            let now = Situation {
                inventory,
                state: &state,
                declares,
                terms: &config.terms,
                seen: &run.seen,
                contents: &run.contents,
            };
            plan(&now, |key| self.desired.objects.get(key).map(|desired| desired.source.clone()))
        };
        self.tell_plan(source, &plan);
        for (key, step) in &plan.steps {
            if matches!(step, Step::Forget(_)) {
                self.made.forget(source, key);
            }
        }
        let Some(run) = self.pruning.runs.get_mut(source) else { return };
        self.sources.untold |= run.plan.held != plan.held;
        run.plan = plan;
        let observes = config.terms.mode == Mode::Observe;
        let waits = config.terms.approval.deletes || self.options.approvals.only;
        let approved = |key: &ObjectKey| {
            let uid = match run.seen.get(key) {
                Some(Seen::Live(live)) => &*live.uid,
                _ => "",
            };
            let deletion = approval::deletion(source, key, uid);
            !waits || self.options.approvals.deletions.contains(&deletion)
        };
        let next = run.plan.steps.iter().find(|(key, step)| {
            let to_do = matches!(step, Step::Look) || *step == Step::Delete && approved(key);
            to_do && !observes && !run.refused.contains_key(key)
        });
        if let Some((key, step)) = next.cloned()
            && let Some(Seen::Live(live)) = run.seen.get(&key).cloned()
            && let Some(gvk) = run.kinds.get(&key).cloned()
        {
            match step {
                Step::Look => return self.look_into(source, key, live),
                _ => return self.delete(source, (key, gvk), live, &config.terms),
            }
        }
        let soon = run.plan.steps.iter().any(|(_, step)| matches!(step, Step::Going(_)));
        // What is stopped by how the source stands costs no request to look at again.
        let waits = matches!(state, SourceState::Not(_));
        let pause = if soon || waits { LOOK_SOON } else { LOOK_LATER };
        run.look_at = Some(Instant::now() + pause);
    }

    fn look_into(&mut self, source: &Arc<str>, key: ObjectKey, live: LiveObject) {
        let Some(run) = self.pruning.runs.get_mut(source) else { return };
        run.busy = true;
        let (store, sender, source) =
            (self.parts.store.clone(), self.pruning.sender.clone(), source.clone());
        tokio::spawn(async move {
            let contents = store.contents(&key, &live).await;
            let _ = sender.send(Done::Looked { source, key, contents }).await;
        });
    }

    /// Deletes one object, after its intent is on disk.
    fn delete(
        &mut self,
        source: &Arc<str>,
        (key, gvk): (ObjectKey, Gvk),
        live: LiveObject,
        terms: &trimtab_core::terms::SourceTerms,
    ) {
        let entry: Option<Entry> = self.made.entry(source, &key).cloned();
        let Some(entry) = entry else { return };
        let draft = gate::prune(terms, &key, &gvk, &entry, &live);
        let Some(run) = self.pruning.runs.get_mut(source) else { return };
        let draft = match draft {
            Ok(draft) => draft,
            Err(refusal) => {
                let until = Instant::now() + RETRY_AFTER;
                run.refused.insert(key.clone(), (refusal.to_string(), until));
                run.look_at = Some(until);
                return self.tell_prune(source, &key, PruneStep::Failed, refusal.to_string());
            }
        };
        run.busy = true;
        let line = self.prune_line(source, &key, PruneStep::Deleting, String::new());
        let policies = Policies {
            reviewers: self.parts.registry.borrow().reviewers.clone(),
            vouched: self.vouched_now(source, None),
        };
        let request = Request {
            point: Point::BeforeWrite,
            key: key.clone(),
            gvk,
            desired: None,
            live: Some(live.json),
            change: None,
            source: source.clone(),
            revision: line.revision.as_str().into(),
            origin: None,
            vouched: policies.vouched.clone(),
            now_ms: now_ms(),
        };
        let (writer, journal, redactor) =
            (self.parts.writer.clone(), self.parts.journal.clone(), self.redactor());
        let (sender, source) = (self.pruning.sender.clone(), source.clone());
        tokio::spawn(async move {
            let mut said = Vec::new();
            let reviewed =
                review::before_prune(&policies, &redactor, request, draft, &mut said).await;
            let noted = match reviewed {
                Err(denied) => Err(denied.reason),
                Ok(reviewed) => {
                    let line = PruneLine { reviews: said.iter().map(Into::into).collect(), ..line };
                    // The intent is on disk before the deletion is asked for.
                    journal
                        .prune(line)
                        .map(|()| gate::change(reviewed))
                        .map_err(|error| format!("{error}; it is not deleted"))
                }
            };
            let done = match noted {
                Ok(change) => {
                    let result = writer.write(&change).await;
                    Done::Deleted { source, key, result }
                }
                Err(why) => Done::Stopped { source, key, why },
            };
            let _ = sender.send(done).await;
        });
    }
}

fn run_later(run: Option<&mut Run>, key: &ObjectKey, why: String) {
    if let Some(run) = run {
        let until = Instant::now() + RETRY_AFTER;
        run.refused.insert(key.clone(), (why, until));
        run.look_at = Some(until);
    }
}

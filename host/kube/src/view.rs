//! All that is known of one kind: its objects of interest, and how its watch is doing.
//!
//! Takes what lists, watches, reads and our own writes show. Gives [`Live`] to the engine and
//! events to its queue. Objects that nobody is interested in are looked up by name and forgotten.
//! One short lock a kind, never held across an await; the lock order is view, then queue.

mod answers;

use crate::decode::{Meta, Undecodable, meta};
use crate::entry::{Entry, ListNumber, Sight};
use crate::events::Queue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::watch;
use trimtab_core::identity::{Gvk, ObjectKey};
use trimtab_core::object::{Live, LiveObject};

/// What one list and watch cover: one namespace, or (`None`) the whole cluster.
pub(crate) type Scope = Option<Arc<str>>;

/// How the watch of a kind is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Which kind.
    pub gvk: Gvk,
    /// Whether everything that is to be watched of it has been listed.
    pub synced: bool,
    /// Since when and why it is broken or cannot be synced; `None` while all is well.
    pub trouble: Option<(Instant, Arc<str>)>,
    /// Objects of interest.
    pub objects: usize,
    /// Lists begun since the host started.
    pub lists: u64,
    /// Objects and lines that did not decode, since the host started.
    pub undecodable: u64,
}

/// Namespace (empty for cluster-scoped) and name.
type Names<'a> = (Cow<'a, str>, Cow<'a, str>);

/// One kind.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) gvk: Gvk,
    /// Counted up to ask for a list now.
    pub(crate) relist: watch::Sender<u64>,
    queue: Arc<Queue>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    feeds: BTreeMap<Scope, Feed>,
    /// By namespace (empty for cluster-scoped), then name: looked up without an allocation.
    entries: HashMap<Arc<str>, HashMap<Arc<str>, Entry>>,
    /// Namespaces (empty for cluster-scoped) of which every object is of interest.
    whole: HashMap<Arc<str>, Whole>,
    writing: HashMap<ObjectKey, Writing>,
    lists: ListNumber,
    undecodable: u64,
}

#[derive(Debug)]
struct Feed {
    /// Why its objects are unknown; `None` once a list has ended well.
    unknown: Option<Arc<str>>,
    trouble: Option<(Instant, Arc<str>)>,
    listing: bool,
}

impl Feed {
    fn new() -> Self {
        Self { unknown: Some("it has not been listed yet".into()), trouble: None, listing: false }
    }
}

/// A namespace that is watched whole.
#[derive(Clone, Copy, Debug)]
struct Whole {
    /// The last list when that began: it may have passed objects by.
    since: ListNumber,
    /// Whether a later list has ended, so that what is not there is known to be absent.
    listed: bool,
}

/// What a new interest needs of the server.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Gained {
    /// Objects that have to be read alone, because a list has begun without them.
    pub(crate) keys: Vec<ObjectKey>,
    /// Whether a namespace became whole of which a list has begun without it.
    pub(crate) relist: bool,
}

/// A write of ours on its way: events of that object wait for its answer, so that an echo that
/// overtakes the answer is recognised.
#[derive(Debug, Default)]
struct Writing {
    count: usize,
    held: Option<Instant>,
}

impl View {
    /// Of this kind; nothing is known.
    pub(crate) fn new(gvk: Gvk, queue: Arc<Queue>) -> Self {
        let mut state = State::default();
        state.feeds.insert(None, Feed::new());
        Self { gvk, relist: watch::Sender::new(0), queue, state: Mutex::new(state) }
    }

    // --- for the engine

    /// Kind and name of the present objects that are asked for.
    pub(crate) fn named(&self, which: impl Fn(&str, &LiveObject) -> bool) -> Vec<String> {
        let state = self.lock();
        let mut names = Vec::new();
        for (namespace, entries) in &state.entries {
            for (name, entry) in entries {
                if entry.object().is_some_and(|object| which(namespace, object)) {
                    names.push(format!("{} {name}", self.gvk.kind));
                }
            }
        }
        names
    }

    /// What is known of this object.
    pub(crate) fn live(&self, key: &ObjectKey) -> Live {
        let state = self.lock();
        let Some(feed) = state.feed_of(key.namespace_str()) else {
            return Live::Unknown(
                format!(
                    "{} may be listed in some namespaces only, and {} is not one of them",
                    self.gvk,
                    key.namespace_str()
                )
                .into(),
            );
        };
        if let Some(reason) = &feed.unknown {
            return Live::Unknown(reason.clone());
        }
        match state.entry(key.namespace_str(), &key.name) {
            Some(entry) => entry.live(),
            None => match state.whole.get(key.namespace_str()) {
                Some(whole) if whole.listed => Live::Absent,
                Some(_) => Live::Unknown("it has not been listed yet".into()),
                None => Live::Unknown("nobody has asked to watch it".into()),
            },
        }
    }

    /// Every object of this namespace (empty for a cluster-scoped kind), by name.
    ///
    /// # Errors
    /// Why that is not known: it is not watched whole, not listed yet, or an object of it does
    /// not decode.
    pub(crate) fn all(&self, namespace: &str) -> Result<Vec<LiveObject>, Arc<str>> {
        let state = self.lock();
        let Some(feed) = state.feed_of(namespace) else {
            return Err(format!("{} may not be listed in {namespace}", self.gvk).into());
        };
        if let Some(reason) = &feed.unknown {
            return Err(reason.clone());
        }
        match state.whole.get(namespace) {
            Some(whole) if whole.listed => {}
            Some(_) => return Err("it has not been listed yet".into()),
            None => return Err("nobody has asked to watch all of its kind there".into()),
        }
        let names = state.entries.get(namespace).into_iter().flatten();
        let mut found: Vec<(&Arc<str>, LiveObject)> = Vec::new();
        for (name, entry) in names {
            match entry.live() {
                Live::Present(object) => found.push((name, object)),
                Live::Absent => {}
                Live::Unknown(reason) => return Err(format!("{name}: {reason}").into()),
            }
        }
        found.sort_unstable_by(|a, b| a.0.cmp(b.0));
        Ok(found.into_iter().map(|(_, object)| object).collect())
    }

    /// These objects are of interest, every object of these namespaces, and no others.
    pub(crate) fn set_interest(
        &self,
        keys: &HashSet<ObjectKey>,
        whole: &HashSet<Arc<str>>,
    ) -> Gained {
        let mut state = self.lock();
        let lists = state.lists;
        let mut wanted: HashMap<Arc<str>, HashMap<Arc<str>, Entry>> = HashMap::new();
        let mut gained = Gained::default();
        for key in keys {
            let namespace: Arc<str> = key.namespace.clone().unwrap_or_default();
            let known = state.entries.get_mut(&namespace).and_then(|names| names.remove(&key.name));
            let mut entry = known.unwrap_or_else(|| {
                if state.lists_without(&namespace) {
                    gained.keys.push(key.clone());
                }
                Entry::new(lists)
            });
            entry.set_unnamed(false);
            wanted.entry(namespace).or_default().insert(key.name.clone(), entry);
        }
        let mut before = std::mem::take(&mut state.whole);
        for namespace in whole {
            // Nobody names them any more, but they are of the namespace.
            for (name, mut entry) in state.entries.remove(namespace).into_iter().flatten() {
                if !entry.is_pending() {
                    entry.set_unnamed(true);
                    wanted.entry(namespace.clone()).or_default().insert(name, entry);
                }
            }
            let known = before.remove(namespace).unwrap_or_else(|| {
                gained.relist |= state.lists_without(namespace);
                Whole { since: lists, listed: false }
            });
            state.whole.insert(namespace.clone(), known);
        }
        state.entries = wanted;
        gained
    }

    /// How it is doing.
    pub(crate) fn health(&self) -> Health {
        let state = self.lock();
        let trouble = state.feeds.values().filter_map(|feed| feed.trouble.clone()).min();
        Health {
            gvk: self.gvk.clone(),
            synced: state.feeds.values().all(|feed| feed.unknown.is_none()),
            trouble,
            objects: state.entries.values().map(HashMap::len).sum(),
            lists: state.lists,
            undecodable: state.undecodable,
        }
    }

    // --- for lists and watches

    /// A list begins.
    pub(crate) fn list_begins(&self, scope: &Scope) -> ListNumber {
        let mut state = self.lock();
        if let Some(feed) = state.feeds.get_mut(scope) {
            feed.listing = true;
        }
        state.lists += 1;
        state.lists
    }

    /// A list shows this item. Gives whether its name could be read.
    pub(crate) fn listed(&self, item: &[u8], scope: &Scope, number: ListNumber) -> bool {
        let read = meta(item);
        let mut state = self.lock();
        let (names, sight) = self.look(&mut state, item, read);
        let Some((namespace, name)) = names else { return false };
        if let Some(sight) = sight {
            let change = state.change(&namespace, &name, |entry| entry.listed(sight, number));
            // Until a scope is synced its objects are unknown, and `Synced` covers them all.
            if change && state.feeds.get(scope).is_some_and(|feed| feed.unknown.is_none()) {
                self.emit(&mut state, &namespace, &name, Instant::now());
            }
        }
        true
    }

    /// A list has ended at this version; `unsure`: it held an item whose name cannot be read.
    pub(crate) fn list_ends(&self, scope: &Scope, number: ListNumber, at: &Arc<str>, unsure: bool) {
        let now = Instant::now();
        let mut state = self.lock();
        let mut changed = Vec::new();
        for (namespace, names) in &mut state.entries {
            if scope.as_ref().is_some_and(|only| only != namespace) {
                continue;
            }
            for (name, entry) in names {
                let change = if unsure {
                    entry.list_ended_unsure(number)
                } else {
                    entry.list_ended(number, at)
                };
                if change {
                    changed.push((namespace.clone(), name.clone()));
                }
            }
        }
        state.entries.values_mut().for_each(|names| names.retain(|_, it| !it.is_forgettable()));
        let mut listed = false;
        for (namespace, whole) in &mut state.whole {
            let shown = scope.as_ref().is_none_or(|only| only == namespace);
            if shown && unsure {
                // One of its objects has no name that can be read: what is not there is not known.
                *whole = Whole { since: number, listed: false };
            } else if shown && !whole.listed && whole.since < number {
                whole.listed = true;
                listed = true;
            }
        }
        let Some(feed) = state.feeds.get_mut(scope) else { return };
        feed.listing = false;
        if feed.unknown.take().is_some() {
            self.queue.synced(&self.gvk);
        } else {
            if listed {
                self.queue.synced(&self.gvk);
            }
            for (namespace, name) in changed {
                self.emit(&mut state, &namespace, &name, now);
            }
        }
    }

    /// A list has failed: what it showed is kept, and nothing follows from what it did not show.
    pub(crate) fn list_failed(&self, scope: &Scope) {
        if let Some(feed) = self.lock().feeds.get_mut(scope) {
            feed.listing = false;
        }
    }

    /// The watch shows this object. Gives its resourceVersion, if it can be read.
    pub(crate) fn saw(&self, object: &[u8], received: Instant) -> Option<Arc<str>> {
        let read = meta(object);
        let version = read.as_ref().ok().map(|meta| Arc::from(&*meta.resource_version));
        let mut state = self.lock();
        if let (Some((namespace, name)), Some(sight)) = self.look(&mut state, object, read)
            && state.change(&namespace, &name, |entry| entry.event(sight))
        {
            self.emit(&mut state, &namespace, &name, received);
        }
        version
    }

    /// The watch says that this object is deleted. Gives its resourceVersion, if it can be read.
    pub(crate) fn saw_deleted(&self, object: &[u8], received: Instant) -> Option<Arc<str>> {
        let mut state = self.lock();
        let lists = state.lists;
        match meta(object) {
            Ok(meta) => {
                let (uid, at) = (Arc::from(&*meta.uid), Arc::from(&*meta.resource_version));
                if state
                    .change(&meta.namespace, &meta.name, |entry| entry.deleted(&uid, &at, lists))
                {
                    self.emit(&mut state, &meta.namespace, &meta.name, received);
                }
                Some(at)
            }
            Err(undecodable) => {
                // That it is gone is certain, but not which one: unknown until the next list.
                self.look(&mut state, object, Err(undecodable));
                self.relist.send_modify(|count| *count += 1);
                None
            }
        }
    }

    /// Something that is no event arrived, or was too long to be one.
    pub(crate) fn saw_garbage(&self, reason: &str) {
        self.count_undecodable(&mut self.lock(), None, reason);
    }

    /// The cluster was restored to an earlier state.
    pub(crate) fn forget_versions(&self) {
        let mut state = self.lock();
        state.entries.values_mut().flat_map(HashMap::values_mut).for_each(Entry::forget_version);
    }

    /// Its objects in this scope are unknown from now on, and why.
    pub(crate) fn set_unknown(&self, scope: &Scope, reason: &Arc<str>) {
        let mut state = self.lock();
        if let Some(feed) = state.feeds.get_mut(scope) {
            feed.unknown = Some(reason.clone());
            feed.listing = false;
        }
        self.trouble(&mut state, scope, reason);
    }

    /// The watch does not work now; what is known stays known.
    pub(crate) fn set_broken(&self, scope: &Scope, reason: &Arc<str>) {
        self.trouble(&mut self.lock(), scope, reason);
    }

    /// The watch works.
    pub(crate) fn set_working(&self, scope: &Scope) {
        let mut state = self.lock();
        let had = state.feeds.get_mut(scope).and_then(|feed| feed.trouble.take());
        if had.is_some() && state.feeds.values().all(|feed| feed.trouble.is_none()) {
            self.queue.health(&self.gvk, Ok(()));
        }
    }

    /// It is watched in these scopes, and nothing is known yet.
    pub(crate) fn set_scopes(&self, scopes: &BTreeSet<Scope>) {
        let mut state = self.lock();
        state.feeds = scopes.iter().map(|scope| (scope.clone(), Feed::new())).collect();
    }

    // --- inside

    /// The namespace and name of what an answer shows, and what it shows if that is of interest.
    fn look<'a>(
        &self,
        state: &mut State,
        object: &[u8],
        read: Result<Meta<'a>, Undecodable>,
    ) -> (Option<Names<'a>>, Option<Sight>) {
        match read {
            Ok(meta) => {
                let wanted = state.wants(&meta.namespace, &meta.name);
                let sight = wanted.then(|| Sight::Object(meta.live(&self.gvk, object)));
                (Some((meta.namespace, meta.name)), sight)
            }
            Err(Undecodable { name, reason }) => {
                self.count_undecodable(state, name.as_ref(), &reason);
                if let Some((namespace, name)) = &name {
                    state.wants(namespace, name);
                }
                let names = name.map(|(namespace, name)| (namespace.into(), name.into()));
                (names, Some(Sight::Undecodable(reason.into())))
            }
        }
    }

    fn count_undecodable(&self, state: &mut State, name: Option<&(String, String)>, reason: &str) {
        state.undecodable += 1;
        // Once a kind: the count goes on in `health`, and an object of interest says it itself.
        if state.undecodable == 1 {
            let name =
                name.map_or_else(String::new, |(namespace, name)| format!("{namespace}/{name}"));
            tracing::warn!(kind = %self.gvk, name, reason, "an object does not decode; others of its kind go on");
        }
    }

    fn emit(&self, state: &mut State, namespace: &str, name: &str, at: Instant) {
        let key = ObjectKey::new(self.gvk.group_kind(), namespace, name);
        match state.writing.get_mut(&key) {
            Some(writing) => {
                writing.held.get_or_insert(at);
            }
            None => self.queue.changed(&key, at),
        }
    }

    fn trouble(&self, state: &mut State, scope: &Scope, reason: &Arc<str>) {
        let Some(feed) = state.feeds.get_mut(scope) else { return };
        let is_news = feed.trouble.as_ref().is_none_or(|(_, known)| known != reason);
        let since = feed.trouble.as_ref().map_or_else(Instant::now, |(since, _)| *since);
        feed.trouble = Some((since, reason.clone()));
        if is_news {
            self.queue.health(&self.gvk, Err(reason.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is whole by itself, so a panic elsewhere does not spoil the value.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn feed_of(&self, namespace: &str) -> Option<&Feed> {
        self.feeds.get(&None).or_else(|| self.feeds.get(&Some(namespace.into())))
    }

    fn entry(&self, namespace: &str, name: &str) -> Option<&Entry> {
        self.entries.get(namespace)?.get(name)
    }

    /// Whether a list of this namespace has begun, so that a new interest has missed it.
    fn lists_without(&self, namespace: &str) -> bool {
        self.feed_of(namespace).is_some_and(|feed| feed.listing || feed.unknown.is_none())
    }

    /// Whether this object is of interest; one that nobody named gets its entry here.
    fn wants(&mut self, namespace: &str, name: &str) -> bool {
        if self.entry(namespace, name).is_some() {
            return true;
        }
        let Some((namespace, _)) = self.whole.get_key_value(namespace) else { return false };
        let mut entry = Entry::new(self.lists);
        entry.set_unnamed(true);
        self.entries.entry(namespace.clone()).or_default().insert(name.into(), entry);
        true
    }

    fn change(
        &mut self,
        namespace: &str,
        name: &str,
        step: impl FnOnce(&mut Entry) -> bool,
    ) -> bool {
        let entry = self.entries.get_mut(namespace).and_then(|names| names.get_mut(name));
        entry.is_some_and(step)
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;

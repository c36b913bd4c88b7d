//! What the cluster serves and has: the reading half of this crate.
//!
//! Takes a connection, and from the engine which objects matter. Gives [`Live`] for each of them
//! from memory, and [`Events`] that say where to look again. Asks the server on its own only:
//! one list and watch a kind, discovery, and a single read where interest begins late.
//!
//! Guarantees:
//! - what is returned never goes back to an older version of an object, nor behind our own write;
//! - our own writes cause no event (the [`crate::Writer`] sees to it);
//! - *unknown* until a kind has been listed, when it may not be listed, or when the server does
//!   not serve it. A broken watch keeps the last known state, and [`Store::health`] says so;
//! - memory is bounded by the objects of interest; others are seen and forgotten.

use crate::address;
use crate::backoff::{Backoff, jittered};
use crate::counts::Verb;
use crate::decode;
use crate::discovery::{Discovery, Kinds, Lookup};
use crate::events::{Events, Queue};
use crate::feed;
use crate::request::{ApiServer, Call, RequestError};
use crate::view::{Health, View};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};
use trimtab_core::identity::{Gvk, ObjectKey};
use trimtab_core::object::{Live, LiveObject};

/// How often each kind is listed anew although its watch works: a lost deletion is found then.
const RELIST_EVERY: Duration = Duration::from_secs(600);
/// How often discovery is asked when nobody waits for a kind. Two requests that answer "unchanged".
const DISCOVER_EVERY: Duration = Duration::from_secs(60);
/// When more objects than this become interesting at once, one list is cheaper than reading each.
const MAX_SINGLE_READS: usize = 16;

/// How to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where to look when a kind may not be listed in the whole cluster.
    pub namespaces: BTreeSet<String>,
    /// How often each kind is listed anew, with up to a quarter taken off at random.
    pub relist_every: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { namespaces: BTreeSet::new(), relist_every: RELIST_EVERY }
    }
}

/// The live state of the cluster, as far as it matters. Clones share it; when the last one goes,
/// its tasks end.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    /// Ended with the store.
    tasks: Mutex<Tasks>,
}

#[derive(Debug, Default)]
struct Tasks {
    all: JoinSet<()>,
    kinds: HashMap<Gvk, AbortHandle>,
}

/// What tasks hold of the store.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) server: ApiServer,
    pub(crate) options: Options,
    /// `None` until discovery has been read once.
    pub(crate) kinds: watch::Sender<Option<Arc<Kinds>>>,
    views: RwLock<HashMap<Gvk, Arc<View>>>,
    queue: Arc<Queue>,
    discovery: tokio::sync::Mutex<Discovery>,
    discovery_asked: Notify,
    waiting_for_kinds: AtomicUsize,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.queue.close();
    }
}

impl Store {
    /// Begins to read discovery; watches nothing yet. Has to be called inside a tokio runtime, as
    /// have [`Store::set_interest`] and [`Store::forget`].
    pub fn start(server: ApiServer, options: Options) -> (Self, Events) {
        let (queue, events) = Queue::new();
        let shared = Arc::new(Shared {
            server,
            options,
            kinds: watch::Sender::new(None),
            views: RwLock::default(),
            queue,
            discovery: tokio::sync::Mutex::default(),
            discovery_asked: Notify::new(),
            waiting_for_kinds: AtomicUsize::new(0),
        });
        let mut tasks = Tasks::default();
        tasks.all.spawn(keep_discovering(shared.clone()));
        let inner = Inner { shared, tasks: Mutex::new(tasks) };
        (Self { inner: Arc::new(inner) }, events)
    }

    /// The connection.
    pub fn server(&self) -> &ApiServer {
        &self.inner.shared.server
    }

    /// What the server serves, as last read; `None` until that has worked once.
    pub fn kinds(&self) -> Option<Arc<Kinds>> {
        self.inner.shared.kinds.borrow().clone()
    }

    /// Reads discovery now, and gives what it says. Watches of kinds that appear begin by
    /// themselves. Called by the engine at its start, after it applied a CRD, and when a kind is
    /// missing; this crate asks on its own too, every minute, and oftener while a kind of interest
    /// is missing.
    ///
    /// # Errors
    /// The server could not be asked. What was known stays.
    pub async fn refresh_discovery(&self) -> Result<Arc<Kinds>, RequestError> {
        self.inner.shared.discover().await
    }

    /// These objects of this kind are of interest, and no others; begins its watch if there is
    /// none. All keys are of the kind. An empty set keeps the watch: see [`Store::forget`].
    pub fn set_interest(&self, gvk: &Gvk, keys: &HashSet<ObjectKey>) {
        self.set_interest_and_whole(gvk, keys, &HashSet::new());
    }

    /// The same, and every object of these namespaces as well (the empty one for a cluster-scoped
    /// kind): what [`Store::all`] answers from.
    pub fn set_interest_and_whole(
        &self,
        gvk: &Gvk,
        keys: &HashSet<ObjectKey>,
        namespaces: &HashSet<Arc<str>>,
    ) {
        let shared = &self.inner.shared;
        let mut tasks = self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shared.view(gvk);
        let is_new = known.is_none();
        let view = known.unwrap_or_else(|| Arc::new(View::new(gvk.clone(), shared.queue.clone())));
        // Before the task begins, so that the first list finds all of them.
        let gained = view.set_interest(keys, namespaces);
        if is_new {
            shared.views().insert(gvk.clone(), view.clone());
            let task = tasks.all.spawn(feed::keep(shared.clone(), view.clone()));
            tasks.kinds.insert(gvk.clone(), task);
        }
        if gained.relist || gained.keys.len() > MAX_SINGLE_READS {
            view.relist.send_modify(|count| *count += 1);
        } else {
            for key in gained.keys {
                tasks.all.spawn(read_until_known(shared.clone(), view.clone(), key));
            }
        }
        while tasks.all.try_join_next().is_some() {}
    }

    /// Ends the watch of this kind; its objects are unknown from now on.
    pub fn forget(&self, gvk: &Gvk) {
        let mut tasks = self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = tasks.kinds.remove(gvk) {
            task.abort();
        }
        self.inner.shared.views().remove(gvk);
    }

    /// Lists this kind anew, now.
    pub fn relist(&self, gvk: &Gvk) {
        if let Some(view) = self.inner.shared.view(gvk) {
            view.relist.send_modify(|count| *count += 1);
        }
    }

    /// The object as last known, from memory, in this version of its kind.
    pub fn live(&self, key: &ObjectKey, gvk: &Gvk) -> Live {
        match self.inner.shared.view(gvk) {
            Some(view) => view.live(key),
            None => Live::Unknown("its kind is not watched".into()),
        }
    }

    /// Objects of interest that name this UID as one of their owners: kind and name of each.
    pub(crate) fn owned_by(&self, uid: &str) -> Vec<String> {
        self.named(|_, object| decode::owners(&object.json).iter().any(|owner| **owner == *uid))
    }

    /// Objects of interest in this namespace: kind and name of each.
    pub(crate) fn within(&self, namespace: &str) -> Vec<String> {
        self.named(|its_namespace, _| its_namespace == namespace)
    }

    fn named(&self, which: impl Fn(&str, &LiveObject) -> bool) -> Vec<String> {
        let views = self.inner.shared.views.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = views.values().flat_map(|view| view.named(&which)).collect();
        names.sort();
        names
    }

    /// Every object of this kind in this namespace (empty for a cluster-scoped kind), by name, as
    /// last known: where [`Store::set_interest_and_whole`] asked for it.
    ///
    /// # Errors
    /// Why that is not known; never the same as none.
    pub fn all(&self, gvk: &Gvk, namespace: &str) -> Result<Vec<LiveObject>, Arc<str>> {
        match self.inner.shared.view(gvk) {
            Some(view) => view.all(namespace),
            None => Err("its kind is not watched".into()),
        }
    }

    /// How each watch is doing.
    pub fn health(&self) -> Vec<Health> {
        let views = self.inner.shared.views.read().unwrap_or_else(PoisonError::into_inner);
        views.values().map(|view| view.health()).collect()
    }

    /// Takes the answer to a write of ours: known at once, and its echo is no event. The
    /// [`crate::Writer`] calls it for each of its own; an answer that states no type is ignored.
    pub fn observe_written(&self, key: &ObjectKey, object: &[u8]) {
        if let Some(view) = decode::gvk_of(object).and_then(|gvk| self.inner.shared.view(&gvk)) {
            view.written(key, object);
        }
    }

    /// Takes that the object with this UID is gone, from the answer to a delete of ours.
    pub fn observe_deleted(&self, key: &ObjectKey, gvk: &Gvk, uid: &Arc<str>) {
        if let Some(view) = self.inner.shared.view(gvk) {
            view.gone(key, uid);
        }
    }

    /// Reads one object from the server into the store: after the server said that ours is old.
    /// A failure changes nothing.
    pub(crate) async fn read_again(&self, key: &ObjectKey, gvk: &Gvk) {
        let shared = &self.inner.shared;
        if let Some(view) = shared.view(gvk)
            && let Err(error) = read(shared, &view, key).await
        {
            tracing::debug!(%key, %error, "could not read it again; the watch will show it");
        }
    }

    /// Events of this object wait until the guard goes.
    pub(crate) fn hold(&self, key: &ObjectKey, gvk: &Gvk) -> Hold {
        let view = self.inner.shared.view(gvk);
        if let Some(view) = &view {
            view.write_begins(key);
        }
        Hold { view, key: key.clone() }
    }
}

/// Holds back the events of one object while a write of ours is on its way.
#[derive(Debug)]
pub(crate) struct Hold {
    view: Option<Arc<View>>,
    key: ObjectKey,
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(view) = &self.view {
            view.write_ends(&self.key);
        }
    }
}

/// Counts a view that waits for its kind to be served.
#[derive(Debug)]
pub(crate) struct WaitsForKind<'a>(&'a Shared);

impl Drop for WaitsForKind<'_> {
    fn drop(&mut self) {
        self.0.waiting_for_kinds.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    fn view(&self, gvk: &Gvk) -> Option<Arc<View>> {
        self.views.read().unwrap_or_else(PoisonError::into_inner).get(gvk).cloned()
    }

    fn views(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<Gvk, Arc<View>>> {
        self.views.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Discovery is to be asked soon, and often until the value goes.
    pub(crate) fn wait_for_kind(&self) -> WaitsForKind<'_> {
        self.waiting_for_kinds.fetch_add(1, Ordering::Relaxed);
        self.ask_discovery();
        WaitsForKind(self)
    }

    /// Discovery is to be asked soon.
    pub(crate) fn ask_discovery(&self) {
        self.discovery_asked.notify_one();
    }

    async fn discover(&self) -> Result<Arc<Kinds>, RequestError> {
        let mut discovery = self.discovery.lock().await;
        let kinds = Arc::new(discovery.read(&self.server).await?);
        let changed = self.kinds.send_if_modified(|known| {
            let changed = known.as_ref() != Some(&kinds);
            *known = Some(kinds.clone());
            changed
        });
        if changed {
            self.queue.kinds_changed();
        }
        Ok(kinds)
    }
}

async fn keep_discovering(shared: Arc<Shared>) {
    let mut backoff = Backoff::default();
    loop {
        let answer = shared.discover().await;
        if let Err(error) = &answer {
            tracing::warn!(%error, "discovery could not be read; what was known stays");
        }
        let wanted = shared.waiting_for_kinds.load(Ordering::Relaxed) > 0;
        let pause = match &answer {
            Err(error) => backoff.next(error.retry_after()),
            Ok(_) if wanted => backoff.next(None),
            Ok(_) => {
                backoff.reset();
                jittered(DISCOVER_EVERY)
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            // At most one more request at once: the permit that `notify_one` leaves is one.
            () = shared.discovery_asked.notified() => backoff.reset(),
        }
    }
}

/// Reads one object in which interest began after its kind was listed, until something is known.
async fn read_until_known(shared: Arc<Shared>, view: Arc<View>, key: ObjectKey) {
    let mut backoff = Backoff::default();
    while view.is_pending(&key) {
        let Err(error) = read(&shared, &view, &key).await else { return };
        view.read_failed(&key, &error.to_string().into());
        if error.code() == 403 {
            // Who may list but not get: the next list shows it.
            view.relist.send_modify(|count| *count += 1);
            return;
        }
        tokio::time::sleep(backoff.next(error.retry_after())).await;
    }
}

async fn read(shared: &Shared, view: &View, key: &ObjectKey) -> Result<(), RequestError> {
    let kinds = shared.kinds.borrow().clone();
    let Some(Lookup::Found(kind)) = kinds.as_deref().map(|kinds| kinds.lookup(&view.gvk)) else {
        // Its objects are unknown anyway until discovery finds the kind, and are listed then.
        return Ok(());
    };
    let asked = view.asked(key);
    let Ok(path) = address::object(kind, key.namespace.as_deref(), &key.name) else {
        // The server has no object by such a name.
        view.read(key, None, asked.as_ref());
        return Ok(());
    };
    match shared.server.call(Call::get(Verb::Get, path)).await {
        Ok(answer) => view.read(key, Some(&answer.body), asked.as_ref()),
        // The object's own 404 names it; the kind's does not.
        Err(error) if error.status().is_some_and(|it| it.code == 404 && *it.name == *key.name) => {
            view.read(key, None, asked.as_ref());
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

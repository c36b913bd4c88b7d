//! A plugin: one file, compiled and linked, ready to be instantiated for each pass.
//!
//! Takes the file's bytes; gives answers of the core's types. Everything that may differ between
//! two passes lies in the store that `call.rs` makes for each and drops after it.

use crate::bindings::ReconcilerPluginPre;
use crate::bindings::policy::PolicyPluginPre;
use crate::cache;
use crate::call::Call;
use crate::convert::Params;
use crate::instance::Instance;
use crate::purity::{self, Sampler};
use crate::wasi::Wasi;
use crate::{Error, Inspection, Judgement, Limits, Lookups, Sandbox, inspect};
use std::cell::RefCell;
use std::sync::Arc;
use tokio::sync::Semaphore;
use trimtab_core::decision::{Comparison, Difference, Verdict};
use trimtab_core::identity::ObjectKey;
use trimtab_core::object::Live;
use trimtab_core::plugin::{KindPattern, PluginIdentity, PluginManifest};
use trimtab_core::ports::PluginFault;
use trimtab_core::snapshot::Snapshot;
use wasmtime::Store;
use wasmtime::component::Linker;

/// A plugin that is loaded into a [`Sandbox`]. Cheap to clone; the compiled code goes with the
/// last clone, so that passes in flight end on the version they began with.
#[derive(Clone)]
pub struct Plugin {
    loaded: Arc<Loaded>,
    limits: Limits,
}

struct Loaded {
    sandbox: Sandbox,
    identity: Arc<PluginIdentity>,
    /// What its manifest reads.
    reads: Arc<[KindPattern]>,
    inspection: Inspection,
    has_wasi: bool,
    /// `None`: it exports no reconciler.
    pre: Option<ReconcilerPluginPre<Call>>,
    /// `None`: it exports no policy.
    policy: Option<PolicyPluginPre<Call>>,
    /// Turns of this plugin: at most half of all, so that one plugin that uses up its time
    /// leaves room for the others.
    turns: Arc<Semaphore>,
    /// Which comparisons are made twice.
    sampler: Sampler,
    /// Which reviews are made twice.
    review_sampler: Sampler,
}

impl Plugin {
    /// Inspects, compiles (or takes from the host's own cache) and links a plugin's file. One that
    /// imports WASI is refused.
    ///
    /// # Guarantees
    /// Nothing of the file is run.
    ///
    /// # Caveats
    /// Compiling takes some 50 ms of processor time for 100 KB: on a runtime, call it in
    /// `spawn_blocking`.
    ///
    /// # Errors
    /// Why the file is not served; see [`Error`].
    pub fn load(bytes: &[u8], sandbox: &Sandbox) -> Result<Self, Error> {
        let inspection = inspect(bytes)?;
        if let Some(name) = inspection.wasi().next() {
            return Err(Error::Wasi { name: name.to_owned() });
        }
        Self::link(bytes, inspection, sandbox, &sandbox.shared.linker)
    }

    /// The same for a file that may import WASI 0.2, which is [closed](crate::Inspection::wasi): for
    /// a plugin whose grant says so.
    ///
    /// # Caveats
    /// On a runtime, such a plugin is called on a blocking thread, as [`Judgement`] does.
    ///
    /// # Errors
    /// As [`Plugin::load`].
    pub fn load_with_wasi(bytes: &[u8], sandbox: &Sandbox) -> Result<Self, Error> {
        Self::link(bytes, inspect(bytes)?, sandbox, &sandbox.shared.with_wasi)
    }

    fn link(
        bytes: &[u8],
        inspection: Inspection,
        sandbox: &Sandbox,
        linker: &Linker<Call>,
    ) -> Result<Self, Error> {
        let shared = &sandbox.shared;
        let has_wasi = inspection.wasi().next().is_some();
        let compile = || shared.compiler.compile(&shared.engine, bytes);
        let code = match &shared.cache {
            Some(cache) => cache.code(inspection.digest, compile)?,
            None => compile()?,
        };
        let component = cache::load(&shared.engine, &code)?;
        let pre = linker.instantiate_pre(&component).map_err(compile_error)?;
        let policy = match inspection.reviews() {
            true => Some(PolicyPluginPre::new(pre.clone()).map_err(compile_error)?),
            false => None,
        };
        let pre = match inspection.reconciles() {
            true => Some(ReconcilerPluginPre::new(pre).map_err(compile_error)?),
            false => None,
        };
        Ok(Self {
            limits: Limits::default(),
            loaded: Arc::new(Loaded {
                sandbox: sandbox.clone(),
                identity: Arc::new(inspection.identity()),
                reads: inspection.manifest.reads.clone().into(),
                has_wasi,
                inspection,
                pre,
                policy,
                turns: Arc::new(Semaphore::new(shared.calls.div_ceil(2))),
                sampler: Sampler::default(),
                review_sampler: Sampler::default(),
            }),
        })
    }

    /// The same plugin under other limits: what its grant says.
    #[must_use]
    pub fn with_limits(&self, limits: Limits) -> Self {
        Self { loaded: self.loaded.clone(), limits: limits.within_ceilings() }
    }

    /// Which code this is.
    pub fn identity(&self) -> &PluginIdentity {
        &self.loaded.identity
    }

    /// What it says of itself.
    pub fn manifest(&self) -> &PluginManifest {
        &self.loaded.inspection.manifest
    }

    /// All that its file says.
    pub fn inspection(&self) -> &Inspection {
        &self.loaded.inspection
    }

    /// The core's judge: this plugin, with these reads.
    pub fn judgement(&self, lookups: Arc<dyn Lookups>) -> Judgement {
        Judgement::new(self.clone(), lookups)
    }

    /// Where does live differ from desired? In a fresh instance, on this thread; some calls are
    /// made twice, and have to agree.
    ///
    /// # Errors
    /// The plugin's fault, or [`PluginFault::Unavailable`] where the pool is exhausted.
    pub fn compare(
        &self,
        snapshot: &Snapshot,
        lookups: &Arc<dyn Lookups>,
    ) -> Result<Comparison, PluginFault> {
        self.begin(snapshot, lookups).map(|(comparison, _)| comparison)
    }

    /// What should be done about these differences? In a fresh instance, on this thread.
    ///
    /// # Errors
    /// The plugin's fault, or [`PluginFault::Unavailable`] where the pool is exhausted.
    pub fn decide(
        &self,
        snapshot: &Snapshot,
        differences: &[Difference],
        lookups: &Arc<dyn Lookups>,
    ) -> Result<Verdict, PluginFault> {
        self.end(None, snapshot, differences, lookups)
    }

    /// The same for both questions of one pass, in one instance: `between` stands for what happens
    /// meanwhile, and gives the differences that are left. `None` without any.
    ///
    /// # Errors
    /// As [`Plugin::compare`] and [`Plugin::decide`].
    pub fn judge(
        &self,
        snapshot: &Snapshot,
        lookups: &Arc<dyn Lookups>,
        between: impl FnOnce(Comparison) -> Vec<Difference>,
    ) -> Result<Option<Verdict>, PluginFault> {
        let (comparison, kept) = self.begin(snapshot, lookups)?;
        let left = between(comparison);
        if left.is_empty() {
            return Ok(None);
        }
        self.end(kept, snapshot, &left, lookups).map(Some)
    }

    /// Compares, and keeps the instance for the decision where there is something to decide and
    /// room to keep it.
    pub(crate) fn begin(
        &self,
        snapshot: &Snapshot,
        lookups: &Arc<dyn Lookups>,
    ) -> Result<(Comparison, Option<Instance>), PluginFault> {
        if let Live::Unknown(why) = &snapshot.live {
            return Ok((Comparison::Unknown(why.to_string()), None));
        }
        if self.loaded.sandbox.shared.guards.purity && self.loaded.sampler.takes() {
            // Decided is in the one that compared, sampled or not: an answer may not depend on that.
            let first = RefCell::new(None);
            let run = |lookups: &Arc<dyn Lookups>, again| -> Result<Comparison, PluginFault> {
                let mut instance = self.instance(snapshot, lookups, again)?;
                let comparison = self.compare_in(&mut instance, snapshot)?;
                if !again {
                    first.replace(Some(instance));
                }
                Ok(comparison)
            };
            let comparison = purity::judged(true, lookups, run)?;
            return Ok(self.kept(comparison, first.into_inner()));
        }
        let mut instance = self.instance(snapshot, lookups, false)?;
        let comparison = self.compare_in(&mut instance, snapshot)?;
        Ok(self.kept(comparison, Some(instance)))
    }

    /// The instance, where there is something to decide and room to keep it.
    fn kept(
        &self,
        comparison: Comparison,
        instance: Option<Instance>,
    ) -> (Comparison, Option<Instance>) {
        let room = match comparison {
            Comparison::Different(_) => {
                self.loaded.sandbox.shared.kept.clone().try_acquire_owned().ok()
            }
            _ => None,
        };
        let kept = room.zip(instance).map(|(room, mut instance)| {
            instance.kept = Some(room);
            instance
        });
        (comparison, kept)
    }

    /// Decides, in the instance that compared where it was kept.
    pub(crate) fn end(
        &self,
        kept: Option<Instance>,
        snapshot: &Snapshot,
        differences: &[Difference],
        lookups: &Arc<dyn Lookups>,
    ) -> Result<Verdict, PluginFault> {
        if let Live::Unknown(why) = &snapshot.live {
            return Ok(Verdict::Unknown(why.to_string()));
        }
        let differences = crate::convert::differences(differences);
        let params = self.params(snapshot);
        let mut instance = match kept {
            Some(instance) => instance,
            None => self.instance(snapshot, lookups, false)?,
        };
        instance.ask(&self.limits, |bindings, store| {
            bindings.trimtab_plugin_reconciler().call_decide(store, params.snapshot(), &differences)
        })
    }

    pub(crate) fn turns(&self) -> (&Arc<Semaphore>, &Arc<Semaphore>) {
        (&self.loaded.turns, &self.loaded.sandbox.shared.turns)
    }

    fn compare_in(
        &self,
        instance: &mut Instance,
        snapshot: &Snapshot,
    ) -> Result<Comparison, PluginFault> {
        let params = self.params(snapshot);
        instance.ask(&self.limits, |bindings, store| {
            bindings.trimtab_plugin_reconciler().call_compare(store, params.snapshot())
        })
    }

    fn params<'a>(&'a self, snapshot: &'a Snapshot) -> Params<'a> {
        Params { snapshot, field_manager: &self.loaded.sandbox.shared.field_manager }
    }

    /// A fresh instance. `again`: the same was asked before, and its log is told.
    fn instance(
        &self,
        snapshot: &Snapshot,
        lookups: &Arc<dyn Lookups>,
        again: bool,
    ) -> Result<Instance, PluginFault> {
        let loaded = &*self.loaded;
        let pre = loaded.pre.as_ref().ok_or_else(|| {
            PluginFault::Invalid("it exports no reconciler, and was asked as one".into())
        })?;
        let mut call = self.call(&snapshot.key, lookups.clone());
        if loaded.has_wasi {
            call.wasi = Wasi::of(snapshot);
        }
        if again {
            call.silence();
        }
        Instance::new(self.store(call), &self.limits, |store| pre.instantiate(store))
    }

    /// A call's own state, for this object.
    pub(crate) fn call(&self, object: &ObjectKey, lookups: Arc<dyn Lookups>) -> Call {
        let Loaded { identity, reads, .. } = &*self.loaded;
        Call::new(self.limits, identity.clone(), reads.clone(), object, lookups)
    }

    pub(crate) fn store(&self, call: Call) -> Store<Call> {
        let shared = &self.loaded.sandbox.shared;
        call.into_store(&shared.engine, shared.guards)
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn has_wasi(&self) -> bool {
        self.loaded.has_wasi
    }

    pub(crate) fn policy_pre(&self) -> Option<&PolicyPluginPre<Call>> {
        self.loaded.policy.as_ref()
    }

    pub(crate) fn samples_review(&self) -> bool {
        self.loaded.sandbox.shared.guards.purity && self.loaded.review_sampler.takes()
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Plugin").field(&*self.loaded.identity).finish()
    }
}

pub(crate) fn compile_error(error: wasmtime::Error) -> Error {
    Error::Compile(crate::text::printable(&format!("{error:#}"), crate::limits::MAX_FAULT_BYTES))
}

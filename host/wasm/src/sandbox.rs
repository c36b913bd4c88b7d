//! The engine and its pool: one per host, shared by all plugins.
//!
//! Takes [`SandboxOptions`]; gives a [`Sandbox`] that plugins are loaded into. Everything that a
//! guest does not need is turned off here, in one place; `limits.rs` has the numbers.

use crate::bindings::ReconcilerPlugin;
use crate::cache::Cache;
use crate::call::Call;
use crate::{Compiler, Error};
use crate::{limits, wasi};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;
use wasmtime::component::{HasSelf, Linker};
use wasmtime::{
    Collector, Config, Enabled, Engine, Inlining, InstanceAllocationStrategy, OptLevel,
    PoolingAllocationConfig, RegallocAlgorithm, Strategy,
};

/// How the sandbox is set up.
#[derive(Clone, Debug)]
pub struct SandboxOptions {
    /// Folder of the compiled-code cache: the host's own, never the plugin directory. Its key
    /// is a file beside it. `None`: every load compiles.
    pub cache_dir: Option<PathBuf>,
    /// Where plugins are compiled.
    pub compiler: Compiler,
    /// Calls at once; `None`: some for each processor.
    pub calls: Option<usize>,
    /// The field manager under which the host applies, told to plugins.
    pub field_manager: String,
    /// What is on: all of it, but where a bench measures what one costs.
    #[doc(hidden)]
    pub guards: Guards,
}

/// Guards that a bench may leave out, to measure what they cost. Nothing else may: a rule of
/// `.ci/invariants` sees to it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Guards {
    /// Checks of the deadline in the guest's code.
    pub deadline: bool,
    /// The limiter of memory and tables.
    pub limiter: bool,
    /// The second run of some comparisons.
    pub purity: bool,
}

impl Default for Guards {
    fn default() -> Self {
        Self { deadline: true, limiter: true, purity: true }
    }
}

impl Default for SandboxOptions {
    fn default() -> Self {
        Self {
            cache_dir: None,
            compiler: Compiler::InProcess,
            calls: None,
            field_manager: "trimtab".into(),
            guards: Guards::default(),
        }
    }
}

/// The engine, its pool, and the turns at them. Cheap to clone; the last clone ends the ticker.
#[derive(Clone)]
pub struct Sandbox {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<Call>,
    /// For plugins whose grant says so.
    pub(crate) with_wasi: Linker<Call>,
    pub(crate) turns: Arc<Semaphore>,
    /// Instances that may wait for their second call.
    pub(crate) kept: Arc<Semaphore>,
    pub(crate) calls: usize,
    pub(crate) cache: Option<Cache>,
    pub(crate) compiler: Compiler,
    pub(crate) field_manager: Arc<str>,
    pub(crate) guards: Guards,
}

impl Sandbox {
    /// Sets up the engine and starts its ticker.
    ///
    /// # Errors
    /// [`Error::Sandbox`]: the pool cannot be reserved, or the cache's folder or key is unusable.
    pub fn new(options: SandboxOptions) -> Result<Self, Error> {
        let failed = |error: wasmtime::Error| Error::Sandbox(format!("{error:#}"));
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let calls = options.calls.unwrap_or(cpus * limits::CALLS_PER_CPU);
        let calls = calls.clamp(limits::CALLS.0, limits::CALLS.1);
        let engine = Engine::new(&run_config(calls, options.guards)).map_err(failed)?;
        let mut linker = Linker::new(&engine);
        ReconcilerPlugin::add_to_linker::<Call, HasSelf<Call>>(&mut linker, |call| call)
            .map_err(failed)?;
        let mut with_wasi = linker.clone();
        wasi::add_to_linker(&mut with_wasi).map_err(failed)?;
        let cache = options.cache_dir.map(|dir| Cache::open(dir, &engine)).transpose()?;
        start_ticker(&engine)?;
        Ok(Self {
            shared: Arc::new(Shared {
                engine,
                linker,
                with_wasi,
                turns: Arc::new(Semaphore::new(calls)),
                kept: Arc::new(Semaphore::new(limits::KEPT)),
                calls,
                cache,
                compiler: options.compiler,
                field_manager: options.field_manager.into(),
                guards: options.guards,
            }),
        })
    }

    /// How many calls run at once; more wait their turn.
    pub fn calls(&self) -> usize {
        self.shared.calls
    }
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox").field("calls", &self.shared.calls).finish_non_exhaustive()
    }
}

/// Advances the epoch, on a thread of its own: a deadline must not wait for a runtime that the
/// guest keeps busy. Ends with the engine.
fn start_ticker(engine: &Engine) -> Result<(), Error> {
    let engine = engine.weak();
    std::thread::Builder::new()
        .name("sandbox-epoch".into())
        .spawn(move || {
            while let Some(engine) = engine.upgrade() {
                engine.increment_epoch();
                drop(engine);
                std::thread::sleep(limits::TICK);
            }
        })
        .map(drop)
        .map_err(|error| Error::Sandbox(format!("no thread for the epoch: {error}")))
}

/// For running: with the pool that instances come from.
fn run_config(calls: usize, guards: Guards) -> Config {
    let mut config = compile_config();
    config.epoch_interruption(guards.deadline);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(calls)));
    config
}

/// All that decides what code is made: a worker's engine has it too, and nothing is run there.
pub(crate) fn compile_config() -> Config {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        .cranelift_opt_level(OptLevel::Speed)
        // Guests are linked small: what pays inlined is inlined here (an eighth of a call).
        .compiler_inlining(Inlining::Yes)
        .cranelift_regalloc_algorithm(RegallocAlgorithm::Backtracking)
        .epoch_interruption(true)
        .max_wasm_stack(limits::WASM_STACK)
        .concurrency_support(false);
    // A plugin is a pure function: the same bits on every machine.
    config.cranelift_nan_canonicalization(true).relaxed_simd_deterministic(true);
    // Closed: what no guest of ours uses, and what has had most of the advisories.
    config
        .wasm_gc(false)
        .wasm_function_references(false)
        .wasm_exceptions(false)
        .wasm_threads(false)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .wasm_relaxed_simd(false)
        .wasm_tail_call(false)
        .wasm_wide_arithmetic(false)
        .wasm_custom_page_sizes(false);
    config.collector(Collector::Null);
    // A fault's text is the guest's own last words; native addresses help nobody, and their
    // tables would be kept for every plugin.
    config.wasm_backtrace_max_frames(None).generate_address_map(false).native_unwind_info(false);
    config
}

fn pool(calls: usize) -> PoolingAllocationConfig {
    let slots = calls + limits::KEPT + limits::POOL_MARGIN;
    let slots = u32::try_from(slots).unwrap_or(u32::MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .total_core_instances(slots * limits::CORE_INSTANCES)
        .total_memories(slots * limits::MEMORIES)
        .total_tables(slots * limits::TABLES)
        .total_gc_heaps(slots)
        .max_core_instances_per_component(limits::CORE_INSTANCES)
        .max_memories_per_component(limits::MEMORIES)
        .max_tables_per_component(limits::TABLES)
        .max_component_instance_size(limits::INSTANCE_METADATA)
        .max_core_instance_size(limits::INSTANCE_METADATA)
        .max_memory_size(limits::MEMORY_CEILING)
        .table_elements(limits::TABLE_ELEMENTS)
        .linear_memory_keep_resident(limits::KEEP_RESIDENT)
        .table_keep_resident(limits::TABLE_KEEP_RESIDENT)
        .max_unused_warm_slots(slots)
        .pagemap_scan(Enabled::No);
    pool
}

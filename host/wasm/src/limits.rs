//! What a guest may use: each limit with its unit and the threat that it stands against.
//!
//! [`Limits`] is what one call of one plugin gets; a grant may narrow or widen it within the
//! ceilings, which size the pool once when the host starts.

use std::time::Duration;

/// Largest plugin file that is looked at, in bytes. Ours are below 100 KB; compiling takes about
/// 0.5 s a megabyte, so that a larger file would be a way to occupy the host. (Guests in other
/// languages, of 10 MB and more, belong to an engine class of their own.)
pub const MAX_COMPONENT_BYTES: usize = 4 << 20;

/// Linear memory of one instance, in bytes, that no grant can exceed: the size of a pool slot.
/// The largest object is 1.5 MiB (etcd's limit); two of them as trees, with what the comparison
/// allocates and a guest allocator that never frees, stay below half of this.
pub(crate) const MEMORY_CEILING: usize = 64 << 20;

/// Of each pool slot, the lowest bytes that stay resident and are cleared by `memset` rather
/// than given back: page faults cost more than instantiation, and a guest linked with a 64 KiB
/// stack works within these for objects of usual size. Measured on a 4 KB Deployment: less costs
/// page faults, more costs `memset`.
pub(crate) const KEEP_RESIDENT: usize = 160 << 10;

/// The same for tables, in bytes.
pub(crate) const TABLE_KEEP_RESIDENT: usize = 16 << 10;

/// Elements of one table; an SDK guest has some hundred. Against table bombs.
pub(crate) const TABLE_ELEMENTS: usize = 10_000;

/// Core instances in one component. An encoded SDK guest has three: itself and two shims.
pub(crate) const CORE_INSTANCES: u32 = 8;

/// Linear memories in one component.
pub(crate) const MEMORIES: u32 = 2;

/// Tables in one component: the guest's own and the shims'.
pub(crate) const TABLES: u32 = 6;

/// Bytes of the host's own bookkeeping for one instance: many exports or types make it grow.
pub(crate) const INSTANCE_METADATA: usize = 256 << 10;

/// Streams, pollables and sockets of WASI that one call holds at once. A standard library opens
/// three streams and polls one or two things.
pub(crate) const WASI_RESOURCES: usize = 64;

/// Random bytes that WASI gives at once: a hash for each 32, which no deadline interrupts.
pub(crate) const WASI_RANDOM_BYTES: usize = 64 << 10;

/// Native stack of guest code, in bytes. A blocking thread has 2 MiB, and an overflow inside a
/// host function would abort the process: this leaves the host 1.5 MiB.
pub(crate) const WASM_STACK: usize = 512 << 10;

/// How often the epoch advances: the grain of every deadline.
pub(crate) const TICK: Duration = Duration::from_millis(5);

/// Calls at once for each processor. More than one, so that a plugin that uses up its time keeps
/// nobody else from running; few, because judging is pure computation.
pub(crate) const CALLS_PER_CPU: usize = 4;

/// Calls at once, at least and at most.
pub(crate) const CALLS: (usize, usize) = (8, 64);

/// Instances that may wait at once for the API server's answer between `compare` and `decide`, without
/// a turn. A dry run takes some milliseconds, so that these serve a thousand corrections a second;
/// beyond them a fresh instance decides. Each has a pool slot of its own: who waits takes no slot from
/// who runs.
pub(crate) const KEPT: usize = 16;

/// Pool slots beyond the calls at once and those that wait: for the synchronous calls of tests and benches, and for
/// instances that are being taken down.
pub(crate) const POOL_MARGIN: usize = 8;

/// How long a call waits for its turn before the pass is given up as not possible now.
pub(crate) const TURN_WAIT: Duration = Duration::from_secs(10);

/// Differences in one answer: beyond this a person reads nothing and the host only pays.
pub(crate) const MAX_DIFFERENCES: usize = 4096;

/// Actions, conditions or findings in one answer, each.
pub(crate) const MAX_ITEMS: usize = 256;

/// Bytes of one path in an answer.
pub(crate) const MAX_PATH_BYTES: usize = 4096;

/// Bytes of a name, a condition's type or its reason.
pub(crate) const MAX_NAME_BYTES: usize = 256;

/// Bytes of a sentence for people in an answer: a reason or a message.
pub(crate) const MAX_SENTENCE_BYTES: usize = 4096;

/// Bytes of a guest's own text in a fault's message.
pub(crate) const MAX_FAULT_BYTES: usize = 512;

/// What one call of a plugin may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wall time of one `compare` or `decide`. An SDK guest takes below a millisecond for usual
    /// objects; the rest is room for a loaded machine. Against endless loops.
    pub wall_time: Duration,
    /// Linear memory, in bytes; at most 64 MiB. Against memory bombs.
    pub memory_bytes: usize,
    /// Bytes of one whole answer, all texts and values together. Against answers that fill the
    /// host's memory or its journal.
    pub output_bytes: usize,
    /// Bytes that may cross from guest to host in one call of either side, before anything is
    /// allocated for them; wasmtime's hostcall fuel.
    pub hostcall_fuel: usize,
    /// Component-model handles held at once. The contract has no resources; WASI has.
    pub handles: usize,
    /// Log lines that are kept; the others are counted and dropped.
    pub log_lines: u32,
    /// Bytes of log text that are kept, all lines together.
    pub log_bytes: usize,
    /// Bytes of one log line; longer lines are cut.
    pub log_line_bytes: usize,
    /// Reads through `lookup`.
    pub lookups: u32,
    /// Bytes that `lookup` hands over, all reads together.
    pub lookup_bytes: usize,
}

impl Default for Limits {
    /// What a plugin gets without a word in its grant.
    fn default() -> Self {
        Self {
            wall_time: Duration::from_secs(1),
            memory_bytes: MEMORY_CEILING,
            output_bytes: 4 << 20,
            hostcall_fuel: 16 << 20,
            handles: 64,
            log_lines: 50,
            log_bytes: 16 << 10,
            log_line_bytes: 2 << 10,
            lookups: 32,
            lookup_bytes: 8 << 20,
        }
    }
}

impl Limits {
    /// What no grant can exceed: beyond these a plugin could hold the host up.
    pub const CEILING: Self = Self {
        wall_time: Duration::from_secs(10),
        memory_bytes: MEMORY_CEILING,
        output_bytes: 16 << 20,
        hostcall_fuel: 64 << 20,
        handles: 64,
        log_lines: 1000,
        log_bytes: 1 << 20,
        log_line_bytes: 2 << 10,
        lookups: 1000,
        lookup_bytes: 32 << 20,
    };

    /// The same within the ceilings.
    pub(crate) fn within_ceilings(mut self) -> Self {
        let top = Self::CEILING;
        self.memory_bytes = self.memory_bytes.min(top.memory_bytes);
        self.wall_time = self.wall_time.clamp(TICK, top.wall_time);
        self.output_bytes = self.output_bytes.min(top.output_bytes);
        self.log_lines = self.log_lines.min(top.log_lines);
        self.log_bytes = self.log_bytes.min(top.log_bytes);
        self.lookups = self.lookups.min(top.lookups);
        self.lookup_bytes = self.lookup_bytes.min(top.lookup_bytes);
        self
    }
}

//! A pass's own state in the sandbox: what a call has used so far, what it may read, and its log.
//!
//! Made for one snapshot, or one review, and dropped with its instance; `compare` and `decide` each begin anew, but
//! for memory. Implements the two imports that a
//! guest has. A guest that may have seen a Secret (the object is one, or it read one) loses its
//! log: free text could carry the values out.

use crate::bindings::trimtab::plugin::{log, lookup, types};
use crate::text::printable;
use crate::wasi::Wasi;
use crate::{Guards, Limits, LookupError, Lookups, limits};
use std::sync::Arc;
use trimtab_core::identity::{GroupKind, ObjectKey};
use trimtab_core::plugin::{KindPattern, PluginIdentity};
use trimtab_core::redact::is_sensitive;
use wasmtime::{Engine, ResourceLimiter, Store};

/// Bytes of each part of a lookup's query: no name in a cluster is longer than 253.
const MAX_QUERY_PART_BYTES: usize = 253;

/// The store's data.
pub(crate) struct Call {
    pub(crate) meter: Meter,
    pub(crate) wasi: Wasi,
    limits: Limits,
    plugin: Arc<PluginIdentity>,
    object: ObjectKey,
    reads: Arc<[KindPattern]>,
    lookups: Arc<dyn Lookups>,
    lookups_left: u32,
    lookup_bytes_left: usize,
    log: Log,
}

/// Counts what a guest takes; remembers the first limit that it ran into.
pub(crate) struct Meter {
    memory_left: usize,
    pub(crate) exceeded: Option<String>,
}

struct Log {
    lines_left: u32,
    bytes_left: usize,
    dropped: u32,
    withheld: bool,
    last_error: Option<String>,
}

impl Call {
    pub(crate) fn new(
        limits: Limits,
        plugin: Arc<PluginIdentity>,
        reads: Arc<[KindPattern]>,
        object: &ObjectKey,
        lookups: Arc<dyn Lookups>,
    ) -> Self {
        Self {
            meter: Meter { memory_left: limits.memory_bytes, exceeded: None },
            wasi: Wasi::default(),
            plugin,
            object: object.clone(),
            reads,
            lookups,
            lookups_left: limits.lookups,
            lookup_bytes_left: limits.lookup_bytes,
            log: Log {
                lines_left: limits.log_lines,
                bytes_left: limits.log_bytes,
                dropped: 0,
                withheld: is_sensitive(&object.group_kind),
                last_error: None,
            },
            limits,
        }
    }

    /// Nothing that it logs is told.
    pub(crate) fn silence(&mut self) {
        self.log.withheld = true;
    }

    /// A fresh store with every limit in force.
    pub(crate) fn into_store(self, engine: &Engine, guards: Guards) -> Store<Self> {
        let handles = self.limits.handles;
        let mut store = Store::new(engine, self);
        if guards.limiter {
            store.limiter(|call| &mut call.meter);
        }
        store.epoch_deadline_trap();
        store.set_max_component_handles(handles);
        Self::begin(&mut store);
        store
    }

    /// Gives a call its time, its bytes, its reads and its log.
    pub(crate) fn begin(store: &mut Store<Self>) {
        let call = store.data_mut();
        let limits = call.limits;
        call.lookups_left = limits.lookups;
        call.lookup_bytes_left = limits.lookup_bytes;
        call.log.lines_left = limits.log_lines;
        call.log.bytes_left = limits.log_bytes;
        call.log.last_error = None;
        // One tick more: the current one is partly over.
        let ticks = limits.wall_time.as_millis().div_ceil(limits::TICK.as_millis()) + 1;
        store.set_epoch_deadline(u64::try_from(ticks).unwrap_or(u64::MAX));
        store.set_hostcall_fuel(limits.hostcall_fuel);
    }

    /// The guest's last line at level error: a panic's text, where the SDK's hook sent it.
    pub(crate) fn last_error(&self) -> Option<&str> {
        self.log.last_error.as_deref()
    }

    /// Says how many lines were dropped, once, after the call.
    pub(crate) fn finish_log(&mut self) {
        let dropped = std::mem::take(&mut self.log.dropped);
        if dropped > 0 {
            tracing::warn!(
                target: "trimtab::plugin",
                plugin = %self.plugin.name, object = %self.object, dropped,
                "the plugin logged more than its limit; the further lines are dropped"
            );
        }
    }
}

impl types::Host for Call {}

impl log::Host for Call {
    fn log(&mut self, level: log::Level, message: String) {
        let log = &mut self.log;
        if log.withheld {
            return;
        }
        let bytes = message.len().min(self.limits.log_line_bytes);
        if log.lines_left == 0 || bytes > log.bytes_left {
            log.dropped = log.dropped.saturating_add(1);
            if level != log::Level::Error {
                return;
            }
        } else {
            log.lines_left -= 1;
            log.bytes_left -= bytes;
        }
        // Kept even past the limit: one bounded line that a trap's message needs.
        if level == log::Level::Error {
            log.last_error = Some(printable(&message, limits::MAX_FAULT_BYTES));
        }
        if log.dropped > 0 {
            return;
        }
        let line = printable(&message, self.limits.log_line_bytes);
        let (plugin, object) = (&self.plugin.name, &self.object);
        match level {
            log::Level::Debug => {
                tracing::debug!(target: "trimtab::plugin", %plugin, %object, "{line}");
            }
            log::Level::Info => {
                tracing::info!(target: "trimtab::plugin", %plugin, %object, "{line}");
            }
            log::Level::Warn => {
                tracing::warn!(target: "trimtab::plugin", %plugin, %object, "{line}");
            }
            log::Level::Error => {
                tracing::error!(target: "trimtab::plugin", %plugin, %object, "{line}");
            }
        }
    }
}

impl lookup::Host for Call {
    fn get(&mut self, query: lookup::Query) -> Result<Option<Vec<u8>>, lookup::LookupError> {
        let lookup::Query { group, kind, namespace, name } = query;
        let kind = self.admit([&group, &kind, &namespace, &name])?;
        let found = self.lookups.get(&self.plugin, &kind, &namespace, &name).map_err(refusal)?;
        found.map(|json| self.hand_over(&kind, &json)).transpose()
    }

    fn find(
        &mut self,
        group: String,
        kind: String,
        namespace: String,
    ) -> Result<Vec<Vec<u8>>, lookup::LookupError> {
        let kind = self.admit([&group, &kind, &namespace, ""])?;
        let found = self.lookups.find(&self.plugin, &kind, &namespace).map_err(refusal)?;
        found.iter().map(|json| self.hand_over(&kind, json)).collect()
    }
}

impl Call {
    /// Counts a read, and lets through what the manifest declares. `query` is group, kind,
    /// namespace and name.
    fn admit(&mut self, query: [&str; 4]) -> Result<GroupKind, lookup::LookupError> {
        self.lookups_left =
            self.lookups_left.checked_sub(1).ok_or(lookup::LookupError::Exhausted)?;
        let too_long = query.iter().any(|part| part.len() > MAX_QUERY_PART_BYTES);
        let [group, kind, ..] = query;
        let kind = GroupKind::new(group, kind);
        if too_long || !self.reads.iter().any(|pattern| pattern.covers(&kind)) {
            return Err(lookup::LookupError::Undeclared);
        }
        Ok(kind)
    }

    /// Copies an object for the guest, within what the call may be handed.
    fn hand_over(&mut self, kind: &GroupKind, json: &[u8]) -> Result<Vec<u8>, lookup::LookupError> {
        self.lookup_bytes_left =
            self.lookup_bytes_left.checked_sub(json.len()).ok_or(lookup::LookupError::Exhausted)?;
        self.log.withheld |= is_sensitive(kind);
        Ok(json.to_vec())
    }
}

fn refusal(error: LookupError) -> lookup::LookupError {
    match error {
        LookupError::Denied => lookup::LookupError::Denied,
        LookupError::Unavailable(why) => lookup::LookupError::Unavailable(why),
    }
}

impl Meter {
    pub(crate) fn exceed(&mut self, what: String) -> wasmtime::Error {
        let error = wasmtime::Error::msg(what.clone());
        self.exceeded.get_or_insert(what);
        error
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // An error, not `Ok(false)`: the guest would abort anyway, and this names the reason.
        let more = desired.saturating_sub(current);
        match self.memory_left.checked_sub(more) {
            Some(left) => {
                self.memory_left = left;
                Ok(true)
            }
            None => Err(self.exceed(format!(
                "memory: it asks for {more} bytes more, and {} are left",
                self.memory_left
            ))),
        }
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired <= limits::TABLE_ELEMENTS {
            return Ok(true);
        }
        Err(self.exceed(format!(
            "table: it asks for {desired} elements, and {} are allowed",
            limits::TABLE_ELEMENTS
        )))
    }

    fn instances(&self) -> usize {
        limits::CORE_INSTANCES as usize + 1
    }

    fn tables(&self) -> usize {
        limits::TABLES as usize
    }

    fn memories(&self) -> usize {
        limits::MEMORIES as usize
    }
}

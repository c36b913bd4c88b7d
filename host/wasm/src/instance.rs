//! An instance of a plugin, for one pass: `compare` is asked in it, and `decide` in the same one where
//! it could be kept while the API server was asked. What the guest read for the first call need not
//! be read for the second.
//!
//! Made for one snapshot and dropped with the pass, or as soon as a call failed: nothing of one pass
//! is there in another. Each call has its limits anew, but for memory.

use crate::bindings::ReconcilerPlugin;
use crate::call::Call;
use crate::convert::Output;
use crate::{Limits, fault};
use tokio::sync::OwnedSemaphorePermit;
use trimtab_core::ports::PluginFault;
use wasmtime::Store;

/// One instance, with its store.
pub(crate) struct Instance {
    bindings: ReconcilerPlugin,
    store: Store<Call>,
    /// Held while it waits for its second call.
    pub(crate) kept: Option<OwnedSemaphorePermit>,
}

impl Instance {
    /// A fresh one; `make` instantiates.
    pub(crate) fn new(
        mut store: Store<Call>,
        limits: &Limits,
        make: impl FnOnce(&mut Store<Call>) -> wasmtime::Result<ReconcilerPlugin>,
    ) -> Result<Self, PluginFault> {
        match make(&mut store) {
            Ok(bindings) => Ok(Self { bindings, store, kept: None }),
            Err(error) => Err(fault::classify(&error, store.data(), limits)),
        }
    }

    /// One call. An instance that failed is not to be asked again.
    pub(crate) fn ask<O: Output>(
        &mut self,
        limits: &Limits,
        run: impl FnOnce(&ReconcilerPlugin, &mut Store<Call>) -> wasmtime::Result<O>,
    ) -> Result<O::Core, PluginFault> {
        Call::begin(&mut self.store);
        let answer = run(&self.bindings, &mut self.store);
        let call = self.store.data_mut();
        call.finish_log();
        match answer {
            Ok(output) => output.into_core(limits),
            Err(error) => Err(fault::classify(&error, call, limits)),
        }
    }
}

//! What a failed call was: the guest's trap, its time, a limit, an invalid answer, or no room.

use crate::Limits;
use crate::call::Call;
use crate::limits::{MAX_FAULT_BYTES, WASI_RESOURCES};
use crate::text::printable;
use trimtab_core::ports::PluginFault;
use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, Trap};

/// How wasmtime words an exhausted hostcall fuel; its type is private. A test holds it to this.
const HOSTCALL_FUEL_TEXT: &str = "fuel allocated for hostcalls has been exhausted";

/// Names the fault behind an error of a call.
pub(crate) fn classify(error: &wasmtime::Error, call: &Call, limits: &Limits) -> PluginFault {
    if error.downcast_ref::<PoolConcurrencyLimitError>().is_some() {
        return PluginFault::Unavailable("every instance slot of the pool is taken".into());
    }
    if let Some(what) = &call.meter.exceeded {
        return PluginFault::Limit(what.clone());
    }
    let chain = format!("{error:#}");
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => return PluginFault::Deadline(limits.wall_time),
        Some(trap) => return PluginFault::Trap(trap_text(*trap, call)),
        None => {}
    }
    if let Some(exit) = error.downcast_ref::<wasmtime_wasi::I32Exit>() {
        return PluginFault::Trap(format!("it ended itself, with status {}", exit.0));
    }
    if let Some(ResourceTableError::Full) = error.downcast_ref() {
        return PluginFault::Limit(format!("it holds more than {WASI_RESOURCES} WASI resources"));
    }
    if chain.contains(HOSTCALL_FUEL_TEXT) {
        return PluginFault::Limit(format!(
            "it hands over more than {} bytes at once",
            limits.hostcall_fuel
        ));
    }
    // Not a trap instruction: the answer could not be lifted (a bad discriminant, a string that
    // is not UTF-8, a pointer out of bounds).
    PluginFault::Invalid(printable(&chain, MAX_FAULT_BYTES))
}

fn trap_text(trap: Trap, call: &Call) -> String {
    match (trap, call.last_error()) {
        // What a panic ends in; the SDK's hook logged its text before.
        (Trap::UnreachableCodeReached, Some(text)) => text.to_owned(),
        (Trap::StackOverflow, _) => "its call stack is exhausted: it recurses too deeply".into(),
        (Trap::MemoryOutOfBounds, Some(text)) => {
            format!("out of bounds memory access, after: {text}")
        }
        (Trap::MemoryOutOfBounds, None) => {
            "out of bounds memory access (deep recursion in a small stack ends so as well)".into()
        }
        (trap, Some(text)) => format!("{trap}, after: {text}"),
        (trap, None) => trap.to_string(),
    }
}

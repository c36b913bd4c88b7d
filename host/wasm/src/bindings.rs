//! What wasmtime generates from the WIT. Only `convert.rs`, `call.rs` and `plugin.rs` look at it.
#![allow(unsafe_code, missing_docs, unreachable_pub, clippy::all)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "reconciler-plugin",
    ownership: Borrowing { duplicate_if_necessary: true },
});

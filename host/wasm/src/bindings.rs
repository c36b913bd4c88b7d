//! What wasmtime generates from the WIT. Only `convert.rs`, `call.rs`, `plugin.rs` and `review.rs` look at it.
#![allow(unsafe_code, missing_docs, unreachable_pub, clippy::all)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "reconciler-plugin",
    ownership: Borrowing { duplicate_if_necessary: true },
});

/// The world of policies; its imports are those above.
pub mod policy {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "policy-plugin",
        ownership: Borrowing { duplicate_if_necessary: true },
        with: {
            "trimtab:plugin/types": super::trimtab::plugin::types,
            "trimtab:plugin/log": super::trimtab::plugin::log,
            "trimtab:plugin/lookup": super::trimtab::plugin::lookup,
        },
    });
}

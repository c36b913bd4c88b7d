//! What wit-bindgen generates from the WIT for policies; imports are those of `bindings.rs`.
#![allow(unsafe_code, missing_docs, unreachable_pub, clippy::all)]

wit_bindgen::generate!({
    path: "../wit",
    world: "policy-plugin",
    pub_export_macro: true,
    export_macro_name: "export_policy",
    default_bindings_module: "trimtab_sdk::guest::policy_bindings",
    with: {
        "trimtab:plugin/types@0.1.0": crate::guest::bindings::trimtab::plugin::types,
        "trimtab:plugin/log@0.1.0": crate::guest::bindings::trimtab::plugin::log,
        "trimtab:plugin/lookup@0.1.0": crate::guest::bindings::trimtab::plugin::lookup,
    },
});

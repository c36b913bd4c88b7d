//! What wit-bindgen generates from the WIT: the only code that touches the canonical ABI.
#![allow(unsafe_code, missing_docs, unreachable_pub, clippy::all)]

wit_bindgen::generate!({
    path: "../wit",
    world: "reconciler-plugin",
    pub_export_macro: true,
    export_macro_name: "export",
    default_bindings_module: "trimtab_sdk::guest::bindings",
});

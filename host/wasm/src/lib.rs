//! The sandbox: the only user of wasmtime.
//!
//! Takes a plugin's file as bytes, and gives a [`Plugin`] whose `compare` and `decide` run in a
//! fresh, limited instance each. Never reads the plugin directory (the caller hands over bytes),
//! never writes to a cluster, and never loads machine code that it did not compile itself.
//!
//! The way of a file: [`inspect`] reads what it says of itself without running anything and
//! refuses what is no plugin of ours; [`Plugin::load`] compiles it (or takes the compiled code
//! from the host's own cache); [`Plugin::judgement`] makes the core's `Judge` of it.
//!
//! Start reading at `plugin.rs`; what a guest may use is in `limits.rs`.

mod call;
mod convert;
mod fault;
mod judge;
mod plugin;
mod purity;

mod cache;
mod compile;
mod confine;
mod limits;
mod sandbox;
mod wasi;

mod bindings;
mod error;
mod inspect;
mod lookups;
mod manifest;
mod text;

pub use compile::{Compiler, compile_worker};
pub use error::Error;
pub use inspect::{Inspection, inspect, wit_version};
pub use judge::Judgement;
pub use limits::{Limits, MAX_COMPONENT_BYTES};
pub use lookups::{LookupError, Lookups, NoLookups};
pub use manifest::{MANIFEST_SECTION, MAX_MANIFEST_BYTES, read as read_manifest};
pub use plugin::Plugin;
#[doc(hidden)]
pub use sandbox::Guards;
pub use sandbox::{Sandbox, SandboxOptions};

/// Versions of the WIT package `trimtab:plugin` that this host speaks.
pub const WIT_VERSIONS: &[&str] = &["0.1.0"];

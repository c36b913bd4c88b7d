//! The sandbox: the only user of wasmtime.
//!
//! Takes a plugin's file as bytes, and gives a [`Plugin`] whose `compare` and `decide` run in a
//! limited instance that is fresh for every pass. Never reads the plugin directory (the caller
//! hands over bytes), never writes to a cluster, and never loads machine code that it did not compile itself.
//!
//! The way of a file: [`inspect`] reads what it says of itself without running anything and
//! refuses what is no plugin of ours; [`Plugin::load`] compiles it (or takes the compiled code
//! from the host's own cache); [`Plugin::judgement`] makes the core's `Judge` of it, and
//! [`Reviewing`] the core's `Reviewer`.
//!
//! Start reading at `plugin.rs`; what a guest may use is in `limits.rs`.

// What a file says of itself: needs no wasmtime.
mod error;
mod inspect;
#[cfg_attr(not(feature = "runtime"), allow(dead_code))]
mod limits;
mod manifest;
mod text;

pub use error::Error;
pub use inspect::{Inspection, inspect, wit_version};
pub use limits::{Limits, MAX_COMPONENT_BYTES};
pub use manifest::{MANIFEST_SECTION, MAX_MANIFEST_BYTES, read as read_manifest};

// What compiles and runs it.
#[cfg(feature = "runtime")]
mod bindings;
#[cfg(feature = "runtime")]
mod cache;
#[cfg(feature = "runtime")]
mod call;
#[cfg(feature = "runtime")]
mod compile;
#[cfg(feature = "runtime")]
mod confine;
#[cfg(feature = "runtime")]
mod convert;
#[cfg(feature = "runtime")]
mod fault;
#[cfg(feature = "runtime")]
mod instance;
#[cfg(feature = "runtime")]
mod judge;
#[cfg(feature = "runtime")]
mod lookups;
#[cfg(feature = "runtime")]
mod plugin;
#[cfg(feature = "runtime")]
mod purity;
#[cfg(feature = "runtime")]
mod review;
#[cfg(feature = "runtime")]
mod sandbox;
#[cfg(feature = "runtime")]
mod wasi;

#[cfg(feature = "runtime")]
#[doc(hidden)]
pub use self::sandbox::Guards;
#[cfg(feature = "runtime")]
pub use self::{
    compile::{Compiler, compile_worker},
    judge::Judgement,
    lookups::{LookupError, Lookups, NoLookups},
    plugin::Plugin,
    purity::{Query, Reads, Recording},
    review::Reviewing,
    sandbox::{Sandbox, SandboxOptions},
};

/// Versions of the WIT package `trimtab:plugin` that this host speaks.
pub const WIT_VERSIONS: &[&str] = &["0.1.0"];

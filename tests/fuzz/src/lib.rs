//! What has to hold for any bytes that a stranger sends.
//!
//! Each target takes bytes as they come from outside (a plugin's file, its answer, a grant, a
//! manifest, a watch), gives them to the code that reads them, and panics where a property is
//! broken; that nothing else panics is one of them. libFuzzer drives them (`libfuzzer/`, its own
//! workspace, `.ci/fuzz`), and so does the binary of this crate, on any toolchain: every seed, then
//! inputs made of seeds. Neither wasmtime nor kube is needed.

mod compare;
mod component;
mod config;
mod draw;
mod facts;
mod grants;
mod guest;
mod json;
mod manifests;
mod policies;
mod signatures;
mod watch;
mod words;

pub mod mutate;

pub use compare::compare;
pub use component::component;
pub use config::config;
pub use facts::facts;
pub use grants::grants;
pub use guest::guest;
pub use json::json;
pub use manifests::manifests;
pub use policies::policies;
pub use signatures::signatures;
pub use watch::watch;
pub use words::words;

/// One target: its name, which is that of its folder of seeds and of its libFuzzer binary, and
/// what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 12] = [
    ("compare", compare),
    ("component", component),
    ("config", config),
    ("facts", facts),
    ("grants", grants),
    ("guest", guest),
    ("json", json),
    ("manifests", manifests),
    ("policies", policies),
    ("signatures", signatures),
    ("watch", watch),
    ("words", words),
];

/// Bytes of a message that a person can still read: whatever a stranger sends, no error is longer.
pub(crate) const MESSAGE_BYTES: usize = 16 << 10;

#[cfg(test)]
mod tests;

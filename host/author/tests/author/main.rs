//! The author's way, end to end: our own plugins, and a new one, through cargo and the sandbox.

mod new_plugin;
mod our_plugins;

use std::path::{Path, PathBuf};

/// The project's folder.
pub(crate) fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

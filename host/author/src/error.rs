//! Why a plugin crate could not be made, built or tested. All terminal: a person has to act.

use std::path::{Path, PathBuf};

/// Why a plugin crate could not be made, built or tested; says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The name of a new plugin cannot be used.
    #[error("{name:?} cannot be a plugin's name: {why}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The new plugin's folder is in use.
    #[error("{} is there and not empty: give another name or remove it", .0.display())]
    Occupied(PathBuf),
    /// The crate's `Cargo.toml` does not describe a plugin.
    #[error("{}: {message}", path.display())]
    Manifest {
        /// The `Cargo.toml`.
        path: PathBuf,
        /// What is wrong, with its line where there is one.
        message: String,
    },
    /// cargo or rustc could not be started.
    #[error("{program} cannot be run: {error}; install Rust from https://rustup.rs")]
    NoCargo {
        /// What was run.
        program: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// The compiler cannot make WebAssembly.
    #[error(
        "the target {} is missing for the Rust toolchain in {sysroot}: run `rustup target add {}`",
        crate::TARGET,
        crate::TARGET
    )]
    NoTarget {
        /// The toolchain that cargo uses for this crate.
        sysroot: String,
    },
    /// cargo failed; it has said why on standard error.
    #[error("cargo could not build {package}: see its messages above")]
    Cargo {
        /// The crate.
        package: String,
    },
    /// cargo's answer is not what was expected.
    #[error("cargo's answer is not understood: {0}")]
    CargoAnswer(String),
    /// The compiled code is no plugin.
    #[error("the compiled code of {package} cannot be made a plugin: {message}")]
    Component {
        /// The crate.
        package: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// The result would be refused by a host.
    #[error("a host would refuse the plugin: {0}")]
    Refused(#[from] trimtab_wasm::Error),
    /// There is nothing to test.
    #[error("{} has no *.yaml: write a case there, with name, desired, live and expect", .0.display())]
    NoCases(PathBuf),
    /// A case cannot be read.
    #[error("{}: {message}", path.display())]
    Case {
        /// The case's file.
        path: PathBuf,
        /// What is wrong, with its line where there is one.
        message: String,
    },
}

impl Error {
    /// For `map_err` on a file's operation.
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::File { path, error }
    }
}

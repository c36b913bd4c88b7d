//! Why a file is not served as a plugin, or the sandbox cannot be set up.

use crate::WIT_VERSIONS;

/// Why a file is refused, or the sandbox does not start. Terminal for these bytes: trying again
/// with the same ones cannot help, except for [`Error::Sandbox`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file is larger than the host looks at.
    #[error(
        "the file has {size} bytes, and at most {max} are accepted: build it with `trimtab plugin build`, which strips and optimizes"
    )]
    TooLarge {
        /// Its size in bytes.
        size: usize,
        /// The most that is accepted.
        max: usize,
    },
    /// The file is no WebAssembly at all.
    #[error("not a WebAssembly file: {0}; `trimtab plugin build` makes a plugin of a crate")]
    NotWasm(String),
    /// The file is a core module, not a component.
    #[error(
        "a core WebAssembly module, not a component: cargo's output must be encoded as a component, as `trimtab plugin build` does"
    )]
    CoreModule,
    /// The file ends early or is damaged.
    #[error("truncated or damaged at byte {offset}: {message}; copy the whole file again")]
    Damaged {
        /// Where, in bytes from the start.
        offset: usize,
        /// What the parser says.
        message: String,
    },
    /// The component was built against a WIT version that this host does not speak.
    #[error("built against trimtab:plugin@{found}, and this host speaks {}: rebuild it with the SDK of this host's version", WIT_VERSIONS.join(", "))]
    WitVersion {
        /// The component's version.
        found: String,
    },
    /// The component is of another world.
    #[error(
        "exports neither trimtab:plugin/reconciler nor trimtab:plugin/policy ({exports}): a plugin does so with `trimtab_sdk::export!` or `export_policy!`; if the file was copied, it may be incomplete"
    )]
    WrongWorld {
        /// What it exports instead.
        exports: String,
    },
    /// The component imports something that a plugin cannot have.
    #[error(
        "imports {name}, which no plugin gets: a plugin has `log` and `lookup`, and WASI 0.2 without HTTP where its grant says so"
    )]
    Import {
        /// The import's name.
        name: String,
    },
    /// The component imports WASI, and nobody said that it may.
    #[error(
        "imports {name}, and a plugin gets WASI, closed, only where its grant says `wasi: closed`: grant it with `trimtab plugin grant --wasi`, or build it for wasm32-unknown-unknown, where Rust's standard library needs none"
    )]
    Wasi {
        /// The first such import.
        name: String,
    },
    /// There is no manifest in the file.
    #[error(
        "carries no manifest (custom section `trimtab:manifest`): build it with `trimtab plugin build`; if the file was copied, it may be incomplete"
    )]
    NoManifest,
    /// The manifest is not valid.
    #[error(
        "its manifest is not valid: {0}; correct [package.metadata.trimtab] in its Cargo.toml and build it again"
    )]
    Manifest(String),
    /// The code does not validate or uses what the sandbox has turned off.
    #[error("does not compile in this sandbox: {0}")]
    Compile(String),
    /// The sandbox itself cannot be set up: the host's trouble, not the plugin's.
    #[error("the sandbox cannot be set up: {0}")]
    Sandbox(String),
}

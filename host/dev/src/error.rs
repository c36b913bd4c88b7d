//! What can go wrong between "give me a control plane" and its end.
//!
//! Each message says what happened, to what, and what to do about it. Nothing here is retried by
//! this crate except a port that somebody else took first (see `plane.rs`).

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no control plane, or no answer from it. All are terminal for the call that
/// returns them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program is neither found nor can be built: there is no Go.
    #[error(
        "{program} not found in KUBEBUILDER_ASSETS, PATH or the cache, and there is no Go to \
         build from: install Go {needed} or later, or set KUBEBUILDER_ASSETS to a folder with etcd \
         and kube-apiserver"
    )]
    NoGo {
        /// The first program that is missing.
        program: &'static str,
        /// The oldest Go that builds them, such as `1.26`.
        needed: &'static str,
    },

    /// There is a Go, but it cannot build this release of Kubernetes.
    #[error(
        "building {program} needs Go {needed} or later and {go} is {found}: update Go, or set \
         KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver"
    )]
    GoTooOld {
        /// What was to be built.
        program: &'static str,
        /// The `go` that was found.
        go: PathBuf,
        /// Its version, such as `1.24.3`.
        found: String,
        /// The oldest that will do, such as `1.26`.
        needed: &'static str,
    },

    /// `go build` ran and failed.
    #[error("building {program} failed ({status}); go said:\n{output}")]
    Build {
        /// What was to be built.
        program: &'static str,
        /// How `go` ended.
        status: String,
        /// The last lines that it wrote.
        output: String,
    },

    /// A program has to be built and there is no place to keep it.
    #[error("no folder to build into: set TRIMTAB_CACHE, XDG_CACHE_HOME or HOME")]
    NoCache,

    /// Another control plane lives in the folder that was given.
    #[error("{} is in use by another control plane", dir.display())]
    Busy {
        /// That folder.
        dir: PathBuf,
    },

    /// A component did not start, ended, or did not become ready in time.
    #[error("{component} {reason}; the end of {}:\n{log_tail}", log.display())]
    Component {
        /// `etcd`, `kube-apiserver` or `kube-controller-manager`.
        component: &'static str,
        /// What it did instead, such as `ended with exit status: 1`.
        reason: String,
        /// The last lines of its log.
        log_tail: String,
        /// The whole log. After a failed start it is kept, even in a temporary folder.
        log: PathBuf,
    },

    /// A kubeconfig points at some other cluster.
    #[error(
        "refusing to touch {found}: it is not the control plane that was started here, {started}"
    )]
    OtherCluster {
        /// The server that the kubeconfig names.
        found: String,
        /// The server that was started.
        started: String,
    },

    /// The command given to `trimtab dev` could not be started.
    #[error("cannot run {command}: {source}")]
    Command {
        /// Its first word.
        command: String,
        /// Why.
        source: io::Error,
    },

    /// The API server could not be reached, or its answer could not be read.
    #[error("{method} {url}: {reason}")]
    Request {
        /// The HTTP method.
        method: String,
        /// The whole address.
        url: String,
        /// Why.
        reason: String,
    },

    /// Keys or certificates could not be made.
    #[error("cannot make certificates: {0}")]
    Certificate(#[from] rcgen::Error),

    /// TLS could not be set up from our own certificates.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] tokio_rustls::rustls::Error),

    /// The operating system refused something.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was attempted, with the path.
        doing: String,
        /// Why not.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: says what was attempted, on which path.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing: format!("{doing} {}", path.display()), source }
    }
}

//! Where the programs are: found on this machine, or built.
//!
//! Takes: the [`Places`] to look in. Gives: the [`Binaries`] to run.
//!
//! The order is `KUBEBUILDER_ASSETS`, `PATH`, our cache, and last a build from source into that
//! cache (`toolchain.rs`). kube-apiserver and kube-controller-manager are taken from one place and
//! of one minor version, because Kubernetes supports no controller manager that is newer than its
//! API server.
//!
//! A program that is older than what Trimtab is tested against is passed over with a line that
//! says so, and the search goes on: it ends at a program that fits or at a sentence that says
//! what to install, never at a test that fails for a reason nobody sees.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::toolchain::{self, ETCD, KUBERNETES, Module};
use crate::{Error, Progress};

/// Where to look for programs, and where to keep those that are built.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The folder that `setup-envtest` fills, from `KUBEBUILDER_ASSETS`.
    pub assets: Option<PathBuf>,
    /// The value of `PATH`; `go` is looked up here too.
    pub path: OsString,
    /// `$TRIMTAB_CACHE`, else `$XDG_CACHE_HOME/trimtab`, else `$HOME/.cache/trimtab`.
    pub cache: Option<PathBuf>,
}

impl Places {
    /// The places that this process' environment names. An empty variable counts as unset.
    pub fn from_env() -> Self {
        Self::from_lookup(|name| env::var_os(name))
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let folder = |name: &str| lookup(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self {
            assets: folder("KUBEBUILDER_ASSETS"),
            path: lookup("PATH").unwrap_or_default(),
            cache: folder("TRIMTAB_CACHE")
                .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("trimtab")))
                .or_else(|| Some(folder("HOME")?.join(".cache/trimtab"))),
        }
    }

    /// The first executable of that name on `PATH`.
    pub(crate) fn on_path(&self, program: &str) -> Option<PathBuf> {
        env::split_paths(&self.path)
            .map(|folder| folder.join(program))
            .find(|candidate| is_executable(candidate))
    }

    fn in_assets(&self, program: &str) -> Option<PathBuf> {
        let candidate = self.assets.as_ref()?.join(program);
        is_executable(&candidate).then_some(candidate)
    }
}

/// The programs of one control plane.
#[derive(Clone, Debug)]
pub struct Binaries {
    /// etcd, 3.5 or later.
    pub etcd: PathBuf,
    /// kube-apiserver, 1.33 or later.
    pub kube_apiserver: PathBuf,
    /// kube-controller-manager of the same minor version; only when it was asked for.
    pub kube_controller_manager: Option<PathBuf>,
}

impl Binaries {
    /// Finds the programs, building what is missing, which takes minutes the first time.
    ///
    /// # Errors
    /// [`Error::NoGo`], [`Error::GoTooOld`] and [`Error::NoCache`] say what to install or set;
    /// [`Error::Build`] carries what `go` said.
    pub async fn find(
        places: &Places,
        controller_manager: bool,
        progress: Progress<'_>,
    ) -> Result<Self, Error> {
        let wanted = if controller_manager { 2 } else { 1 };
        let etcd = locate(places, &ETCD, 1, progress).await?;
        let kubernetes = locate(places, &KUBERNETES, wanted, progress).await?;
        let program = |found: &[PathBuf], at: usize| found.get(at).cloned();
        Ok(Self {
            etcd: program(&etcd, 0).unwrap_or_default(),
            kube_apiserver: program(&kubernetes, 0).unwrap_or_default(),
            kube_controller_manager: program(&kubernetes, 1),
        })
    }
}

//! `trimtab dev`: a real local control plane.

use clap::Args;
use std::ffi::OsString;

/// A real local control plane (etcd and kube-apiserver), for trying things out.
///
/// The programs are taken from KUBEBUILDER_ASSETS, from PATH, or from Trimtab's cache, or else
/// built from Go modules (once, some minutes). Your own kubeconfig is never touched.
#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// Command to run with KUBECONFIG set to the control plane; its end ends it. Without one the
    /// control plane runs until Ctrl-C.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Dev {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let options = trimtab_dev::DevOptions { command: self.command, ..Default::default() };
        let status = crate::cli::runtime()?
            .block_on(trimtab_dev::dev(options, &|line| eprintln!("{line}")))?;
        Ok(u8::try_from(status).unwrap_or(u8::MAX))
    }
}

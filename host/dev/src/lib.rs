//! A real Kubernetes control plane on this machine: etcd, kube-apiserver and, where asked for,
//! kube-controller-manager, as plain processes. `trimtab dev`, the demonstration and the
//! whole-system tests all stand on it.
//!
//! Takes: a few options, and one callback for lines that a person reads.
//! Gives: a [`ControlPlane`] that answers on one loopback port with RBAC on, a kubeconfig of its
//! own, and the certainty that its processes end with it.
//!
//! This crate never
//! - reads or writes `~/.kube/config` or whatever `$KUBECONFIG` names,
//! - writes to standard output: that belongs to the command that runs inside,
//! - listens anywhere but on 127.0.0.1 (etcd listens on no port at all, only on a Unix socket),
//! - leaves a process behind: not after a panic, not after `kill -9` of its owner,
//! - runs a Pod: there is no node, so a status is what a controller or a test writes.
//!
//! Start reading at `plane.rs`; `binaries.rs` says where the programs come from.

mod error;

mod binaries;
mod pinned;
mod toolchain;

mod certs;
mod flags;
mod folder;
mod https;
mod kubeconfig;
mod process;

mod plane;

mod dev;

pub use binaries::{Binaries, Places};
pub use dev::{DevOptions, dev};
pub use error::Error;
pub use flags::AuditLevel;
pub use https::{Answer, Client};
pub use plane::{ControlPlane, Options};

/// Where lines for a person go, one call a line and no line break in it. Never standard output.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// The usual [`Progress`]: each line to standard error.
pub fn to_stderr(line: &str) {
    eprintln!("{line}");
}

//! What the host is measured against: the least that a native controller can be.
//!
//! kube-rs' own `Controller` over one typed kind in one namespace. Whatever changes, it applies the
//! desired object at once: it compares nothing, confirms nothing, asks nobody and records nothing.
//! Runs in a process of its own (this program, started again), so that its time is its own.

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kube_runtime::controller::{Action, Controller};
use kube_runtime::watcher;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;
use trimtab_system_tests::Id;

/// Set for the process that is to be the controller: its folder.
const ROLE: &str = "TRIMTAB_BENCH_CONTROLLER";
const KUBECONFIG: &str = "kubeconfig";
const DESIRED: &str = "desired.json";

/// The running controller; ends with the value.
pub(crate) struct Native {
    child: Child,
    _folder: tempfile::TempDir,
}

impl Native {
    /// Starts it on one object.
    pub(crate) fn start(kubeconfig: &str, desired: &Value) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join(KUBECONFIG), kubeconfig)?;
        std::fs::write(folder.path().join(DESIRED), serde_json::to_vec(desired)?)?;
        let child = Command::new(std::env::current_exe()?).env(ROLE, folder.path()).spawn()?;
        Ok(Self { child, _folder: folder })
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether this process is to be the controller, and on what.
pub(crate) fn role() -> Option<PathBuf> {
    std::env::var_os(ROLE).map(PathBuf::from)
}

struct Context {
    api: Api<Deployment>,
    name: String,
    desired: Value,
}

impl Context {
    async fn apply(&self) -> Result<(), kube::Error> {
        let params = PatchParams::apply("native").force();
        self.api.patch(&self.name, &params, &Patch::Apply(&self.desired)).await?;
        Ok(())
    }
}

/// Is the controller, until it is killed.
pub(crate) async fn run(folder: &Path) -> Result<()> {
    let kubeconfig = Kubeconfig::read_from(folder.join(KUBECONFIG))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let desired: Value = serde_json::from_slice(&std::fs::read(folder.join(DESIRED))?)?;
    let id = Id::of(&desired).context("no name")?;
    let api = Api::namespaced(client, &id.namespace);
    let context = Arc::new(Context { api: api.clone(), name: id.name, desired });
    context.apply().await?;
    Controller::new(api, watcher::Config::default())
        .run(
            async |_, context: Arc<Context>| -> Result<Action, kube::Error> {
                context.apply().await?;
                Ok(Action::await_change())
            },
            |_, _, _| Action::requeue(Duration::from_secs(1)),
            context,
        )
        .for_each(|_| std::future::ready(()))
        .await;
    Ok(())
}

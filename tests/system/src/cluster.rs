//! A control plane with the audit log on, and the ways to it.

use crate::{Api, Audit, Built, Room};
use anyhow::{Context as _, Result};
use std::path::Path;
use trimtab_dev::{AuditLevel, ControlPlane, Options, Places};

/// The user of the harness itself: it looks, and sets up.
const HARNESS: &str = "harness";

/// A running control plane; its processes end with the value, or with this program.
pub struct Cluster {
    plane: ControlPlane,
    api: Api,
    audit: Audit,
    built: Built,
}

impl Cluster {
    /// Starts one. Its programs are found or built as `trimtab dev` does it; lines for people go
    /// to `progress`.
    ///
    /// # Errors
    /// It does not come up, or the binaries under test are not built.
    pub async fn start(progress: trimtab_dev::Progress<'_>) -> Result<Self> {
        Self::start_with(None, progress).await
    }

    /// The same in a folder that stays.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub async fn start_with(
        dir: Option<&Path>,
        progress: trimtab_dev::Progress<'_>,
    ) -> Result<Self> {
        let built = Built::find()?;
        let options = Options {
            places: Places::from_env(),
            dir: dir.map(Into::into),
            audit: Some(AuditLevel::Metadata),
            ..Options::default()
        };
        let plane = ControlPlane::start(options, progress).await?;
        let api = Api::connect(&plane, HARNESS).await?;
        let path = plane.audit_log().context("the control plane has no audit log")?.to_owned();
        let audit = Audit::new(path, api.clone());
        Ok(Self { plane, api, audit, built })
    }

    /// A client as the harness.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// A client as somebody else.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn user(&self, name: &str) -> Result<Api> {
        self.api.user(name)
    }

    /// The audit log.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// What is under test.
    pub fn built(&self) -> &Built {
        &self.built
    }

    /// The control plane, for outages.
    pub fn plane(&mut self) -> &mut ControlPlane {
        &mut self.plane
    }

    /// Its address.
    pub fn server(&self) -> &str {
        self.plane.server()
    }

    /// The certificate of its authority, PEM.
    pub fn ca_pem(&self) -> &str {
        self.plane.ca_pem()
    }

    /// A place for one host, whose requests the audit log shows under a user of this name.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn room(&self, user: &str) -> Result<Room> {
        let kubeconfig = std::fs::read_to_string(self.plane.kubeconfig())?;
        Room::new(self.built.clone(), user, &acting_as(&kubeconfig, user)?)
    }

    /// Ends everything in order.
    pub async fn shutdown(self) {
        self.plane.shutdown().await;
    }
}

/// The administrator's kubeconfig, acting as another user with the same rights.
fn acting_as(kubeconfig: &str, user: &str) -> Result<String> {
    let key = kubeconfig
        .lines()
        .find(|line| line.trim_start().starts_with("client-key-data:"))
        .context("the kubeconfig has no client key")?;
    let indent = &key[..key.len() - key.trim_start().len()];
    let with = format!("{key}\n{indent}as: {user:?}\n{indent}as-groups: [\"system:masters\"]");
    Ok(kubeconfig.replace(key, &with))
}

//! The commands: each reads its arguments, connects what it needs, and says how it ended.

pub(crate) mod audit;
pub(crate) mod dev;
pub(crate) mod diff;
mod inspect;
pub(crate) mod plan;
pub(crate) mod plugin;
pub(crate) mod policy;
pub(crate) mod rbac;
pub(crate) mod remove;
pub(crate) mod run;
mod sign;
pub(crate) mod source;

use crate::cli::ClusterArgs;
use trimtab_kube::{ApiServer, Credentials};

/// Connects to the cluster that the arguments name.
pub(crate) async fn connect(cluster: &ClusterArgs) -> anyhow::Result<ApiServer> {
    let credentials = match (&cluster.service_account, &cluster.kubeconfig, &cluster.context) {
        (Some(folder), _, _) => Credentials::InCluster { service_account: Some(folder.clone()) },
        (None, None, None) => Credentials::Default,
        (None, file, context) => {
            Credentials::Kubeconfig { file: file.clone(), context: context.clone() }
        }
    };
    Ok(trimtab_kube::connect(&credentials).await?)
}

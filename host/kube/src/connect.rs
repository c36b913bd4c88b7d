//! From a kubeconfig or a Pod's own credentials to a connection.
//!
//! Takes [`Credentials`]. Gives an [`ApiServer`]; does not ask it anything yet, so that a host can
//! start while its server is away. Never follows the environment to another cluster than the one
//! that `kubectl` would talk to, and never impersonates because a variable says so.

use crate::request::ApiServer;
use http::header::{HeaderValue, USER_AGENT};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A TCP connection and TLS handshake take two or three round trips; a host that is away is found
/// out within this.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A request that cannot even be sent in this time is stuck.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Where a Pod finds its ServiceAccount's token, CA and namespace.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// What tells a Pod where the API server is.
const SERVICE_HOST: &str = "KUBERNETES_SERVICE_HOST";
const SERVICE_PORT: &str = "KUBERNETES_SERVICE_PORT";

/// Whom to talk to, and as whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Credentials {
    /// As kubectl does: `$KUBECONFIG`, else `~/.kube/config`, else the Pod's own. A kubeconfig
    /// that is there and wrong is an error, not a reason to try the next.
    #[default]
    Default,
    /// A kubeconfig.
    Kubeconfig {
        /// The file; `None`: `$KUBECONFIG`, else `~/.kube/config`.
        file: Option<PathBuf>,
        /// The context; `None`: the file's current one.
        context: Option<String>,
    },
    /// A Pod's own: the address from the environment, token and CA from files that are read again
    /// when they change.
    InCluster {
        /// The folder with `token`, `ca.crt` and `namespace`; `None`: the usual one.
        service_account: Option<PathBuf>,
    },
}

/// Why there is no connection. Terminal: someone has to change something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// There is nothing to connect with.
    #[error(
        "no cluster to talk to: there is neither a kubeconfig ($KUBECONFIG or ~/.kube/config) nor a Pod's own credentials; pass --kubeconfig, or run `trimtab dev` for a local control plane"
    )]
    Nothing,
    /// A kubeconfig is wrong.
    #[error("the kubeconfig {file} cannot be used: {reason}")]
    Kubeconfig {
        /// Which file, or where it was looked for.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// A Pod's credentials are wrong.
    #[error("the Pod's own credentials cannot be used: {0}")]
    InCluster(String),
    /// The client could not be made of them: a certificate, a proxy, a credential plugin.
    #[error("no client for {address}: {reason}")]
    Client {
        /// The server.
        address: String,
        /// What is wrong.
        reason: String,
    },
}

/// A connection with these credentials. Needs a tokio runtime around it.
///
/// A credential plugin that the kubeconfig names is run. Requests are not retried here, and each
/// has a limit in time; a watch has one for silence.
///
/// # Errors
/// The credentials are missing or wrong. That the server does not answer is no error here: see
/// [`ApiServer::version`].
pub async fn connect(credentials: &Credentials) -> Result<ApiServer, ConnectError> {
    from_config(config(credentials).await?)
}

/// A connection with a configuration of kube's.
pub(crate) fn from_config(mut config: Config) -> Result<ApiServer, ConnectError> {
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.write_timeout = Some(WRITE_TIMEOUT);
    // It would end watches; requests have their own limits.
    config.read_timeout = None;
    // Kube's own retry is 15 tries and up to 1000 s between two: our caller knows better.
    config.default_retry = false;
    let agent = HeaderValue::from_static(concat!("trimtab/", env!("CARGO_PKG_VERSION")));
    config.headers.push((USER_AGENT, agent));
    let address = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let auth = &config.auth_info;
    let impersonates = auth.impersonate.is_some() || auth.impersonate_groups.is_some();
    match Client::try_from(config) {
        Ok(client) => Ok(ApiServer::new(client, address, impersonates)),
        Err(error) => Err(ConnectError::Client { address, reason: with_causes(&error) }),
    }
}

async fn config(credentials: &Credentials) -> Result<Config, ConnectError> {
    match credentials {
        Credentials::Kubeconfig { file, context } => {
            kubeconfig(file.as_deref(), context.as_deref()).await
        }
        Credentials::InCluster { service_account } => in_cluster(service_account.as_deref()),
        Credentials::Default => {
            if std::env::var_os("KUBECONFIG").is_some_and(|value| !value.is_empty())
                || home_kubeconfig().is_some_and(|file| file.exists())
            {
                kubeconfig(None, None).await
            } else if std::env::var_os(SERVICE_HOST).is_some() {
                in_cluster(None)
            } else {
                Err(ConnectError::Nothing)
            }
        }
    }
}

async fn kubeconfig(file: Option<&Path>, context: Option<&str>) -> Result<Config, ConnectError> {
    let shown = file.map_or_else(
        || std::env::var("KUBECONFIG").unwrap_or_else(|_| "~/.kube/config".into()),
        |file| file.display().to_string(),
    );
    let wrong = |reason: String| ConnectError::Kubeconfig { file: shown.clone(), reason };
    let read = match file {
        Some(file) => Kubeconfig::read_from(file),
        None => Kubeconfig::read(),
    }
    .map_err(|error| wrong(with_causes(&error)))?;
    if let Some(context) = context
        && !read.contexts.iter().any(|known| known.name == context)
    {
        let known: Vec<&str> = read.contexts.iter().map(|it| it.name.as_str()).collect();
        return Err(wrong(format!("it has no context {context}; it has: {}", known.join(", "))));
    }
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..Default::default() };
    Config::from_custom_kubeconfig(read, &options).await.map_err(|error| wrong(with_causes(&error)))
}

fn in_cluster(folder: Option<&Path>) -> Result<Config, ConnectError> {
    let folder = folder.unwrap_or(Path::new(SERVICE_ACCOUNT));
    let read = |name: &str| {
        let file = folder.join(name);
        std::fs::read_to_string(&file)
            .map_err(|error| ConnectError::InCluster(format!("{}: {error}", file.display())))
    };
    let variable = |name: &str| {
        std::env::var(name).map_err(|_| {
            ConnectError::InCluster(format!(
                "{name} is not set: this is not a Pod, or its spec turns service links off"
            ))
        })
    };
    let (host, port) = (variable(SERVICE_HOST)?, variable(SERVICE_PORT)?);
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let address = format!("https://{host}:{port}");
    let uri = address
        .parse()
        .map_err(|_| ConnectError::InCluster(format!("{address} is no address of a server")))?;
    // Read now to fail early with the file's name; kube reads both again as they change.
    read("token")?;
    read("ca.crt")?;
    let mut config = Config::new(uri);
    config.default_namespace =
        read("namespace").map_or_else(|_| "default".into(), |it| it.trim().into());
    config.root_cert_file = Some(folder.join("ca.crt"));
    let token_file = Some(folder.join("token").display().to_string());
    config.auth_info = AuthInfo { token_file, ..AuthInfo::default() };
    Ok(config)
}

fn home_kubeconfig() -> Option<PathBuf> {
    Some(std::env::home_dir()?.join(".kube/config"))
}

/// An error and its causes in one line. Kube's texts often repeat their cause's: each once.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal(credentials: Credentials) -> String {
        connect(&credentials)
            .await
            .map(|server| server.address().to_owned())
            .unwrap_err()
            .to_string()
    }

    #[tokio::test]
    async fn a_missing_kubeconfig_or_context_is_named() {
        let file = Some(PathBuf::from("/nonexistent/kubeconfig"));
        let text = refusal(Credentials::Kubeconfig { file, context: None }).await;
        assert!(
            text.starts_with("the kubeconfig /nonexistent/kubeconfig cannot be used"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn a_missing_service_account_is_named() {
        let service_account = Some(PathBuf::from("/nonexistent"));
        let text = refusal(Credentials::InCluster { service_account }).await;
        assert!(text.starts_with("the Pod's own credentials cannot be used"), "{text}");
    }
}

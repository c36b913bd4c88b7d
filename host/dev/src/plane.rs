//! The control plane itself: starts its components in order, waits until they really answer,
//! stops and starts the API server for tests of outages, and ends everything.
//!
//! Takes: [`Options`] and a [`Progress`]. Gives: a [`ControlPlane`]; as long as the value lives,
//! the cluster does. Start reading at [`ControlPlane::start`].
//!
//! Everything of one control plane is in one folder (data, keys, logs, kubeconfig), by default a
//! temporary one that goes with the value. Of the outside world it takes one loopback port.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::binaries::{Binaries, Places};
use crate::certs::{Pki, write_private};
use crate::flags::{self, AuditLevel};
use crate::folder::Folder;
use crate::https::{Answer, Client};
use crate::kubeconfig::kubeconfig;
use crate::process::Process;
use crate::{Error, Progress};

/// How long etcd and the API server may take to answer; two seconds are usual, and a machine
/// that compiles something else at the same time needs ten.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Between two looks at whether a component answers.
const READY_POLL: Duration = Duration::from_millis(25);
/// How long etcd and the controller manager may take to end by themselves.
const GRACE: Duration = Duration::from_secs(5);
/// The same for the API server. Without open watches it takes one second; with them it would wait
/// a minute for clients to leave. Its data is etcd's, so ending it hard loses nothing.
const APISERVER_GRACE: Duration = Duration::from_secs(2);
/// A port that was free a moment ago can be taken by somebody else before the API server has it.
const PORT_ATTEMPTS: u32 = 4;

const ETCD: &str = "etcd";
const APISERVER: &str = "kube-apiserver";
const MANAGER: &str = "kube-controller-manager";

/// What to start. `Options::default()` is a bare API server in a temporary folder, with programs
/// from the places that the environment names.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to find programs.
    pub places: Places,
    /// The folder for everything of this control plane. With `None` it is temporary and removed
    /// with the value. A given one is made if it is not there and stays; started in it again, the
    /// objects are still there, while certificates and kubeconfig are new.
    pub dir: Option<PathBuf>,
    /// Also run kube-controller-manager: garbage collection, namespace deletion, Deployments,
    /// service accounts.
    pub controller_manager: bool,
    /// Write an audit log, at this level.
    pub audit: Option<AuditLevel>,
    /// More flags for kube-apiserver, such as `--feature-gates=…`. They override ours.
    pub apiserver_args: Vec<String>,
    /// How long each component may take to become ready.
    pub ready_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            places: Places::from_env(),
            dir: None,
            controller_manager: false,
            audit: None,
            apiserver_args: Vec::new(),
            ready_timeout: READY_TIMEOUT,
        }
    }
}

/// A running control plane. Dropping it kills its processes and removes its temporary folder;
/// [`ControlPlane::shutdown`] ends them in order.
pub struct ControlPlane {
    // Dropped in this order: those that need etcd before it, and the folder last.
    manager: Option<Process>,
    apiserver: Option<Process>,
    etcd: Process,
    endpoint: Endpoint,
    pki: Pki,
    binaries: Binaries,
    options: Options,
    folder: Folder,
}

impl ControlPlane {
    /// Finds (or builds) the programs, starts them, and returns when the API server is ready:
    /// `/readyz` says so, the administrator is let in and the namespace `default` exists; with a
    /// controller manager, also the service account `default` in it.
    ///
    /// Dropping the future that this returns ends what was started so far.
    ///
    /// # Errors
    /// Those of [`Binaries::find`]; [`Error::Busy`] for a folder in use; [`Error::Component`] with
    /// the end of its log when a component does not come up. The folder is then kept, even a
    /// temporary one, so that the logs can be read.
    pub async fn start(options: Options, progress: Progress<'_>) -> Result<Self, Error> {
        let manager = options.controller_manager;
        let binaries = Binaries::find(&options.places, manager, progress).await?;
        let mut plane = Self::with_etcd(options, binaries)?;
        match plane.bring_up().await {
            Ok(()) => Ok(plane),
            Err(error) => {
                plane.folder.keep();
                Err(error)
            }
        }
    }

    /// The folder, the keys, and etcd on its way up.
    fn with_etcd(options: Options, binaries: Binaries) -> Result<Self, Error> {
        let folder = Folder::open(options.dir.as_deref())?;
        let pki = Pki::create(&folder.path.join(flags::PKI))?;
        if let Some(level) = options.audit {
            let policy = folder.path.join(flags::AUDIT_POLICY);
            write_private(&policy, &flags::audit_policy(level))?;
        }
        let etcd = folder.spawn(ETCD, &binaries.etcd, &flags::etcd())?;
        Ok(Self {
            manager: None,
            apiserver: None,
            etcd,
            endpoint: Endpoint::on_a_free_port(&pki)?,
            pki,
            binaries,
            options,
            folder,
        })
    }

    async fn bring_up(&mut self) -> Result<(), Error> {
        self.wait_for(ETCD, Sign::Listens).await?;
        let mut attempts = PORT_ATTEMPTS;
        while let Err(error) = self.start_apiserver().await {
            let port_taken = matches!(&error, Error::Component { log_tail, .. }
                if log_tail.contains("address already in use"));
            attempts -= 1;
            if !port_taken || attempts == 0 {
                return Err(error);
            }
            tracing::debug!(server = self.server(), "the port was taken; trying another");
            self.endpoint = Endpoint::on_a_free_port(&self.pki)?;
        }
        let text = kubeconfig(&self.endpoint.server, &self.pki);
        write_private(&self.folder.kubeconfig, &text)?;
        self.start_manager().await
    }

    /// Starts the API server again after [`ControlPlane::stop_apiserver`]: same port, same data.
    /// Does nothing while it runs.
    ///
    /// # Errors
    /// [`Error::Component`] when it does not become ready.
    pub async fn start_apiserver(&mut self) -> Result<(), Error> {
        if self.apiserver.as_mut().is_some_and(|it| it.ended().is_none()) {
            return Ok(());
        }
        let (port, audit) = (self.endpoint.port, self.options.audit);
        let flags = flags::kube_apiserver(port, audit, &self.options.apiserver_args);
        let program = &self.binaries.kube_apiserver;
        self.apiserver = Some(self.folder.spawn(APISERVER, program, &flags)?);
        let paths = &["/readyz?verbose", "/api/v1/namespaces/default"];
        self.wait_for(APISERVER, Sign::Answers(paths)).await
    }

    /// Ends the API server and leaves the rest running: an outage. Gives it two seconds to end
    /// by itself, then kills it; with open watches it always comes to that.
    pub async fn stop_apiserver(&mut self) {
        if let Some(mut apiserver) = self.apiserver.take() {
            apiserver.stop(APISERVER_GRACE).await;
        }
    }

    /// Ends the API server at once with SIGKILL: a crash. [`ControlPlane::start_apiserver`]
    /// brings it back.
    pub fn kill_apiserver(&mut self) {
        self.apiserver = None;
    }

    /// Ends everything in order, each component with a few seconds to end by itself.
    pub async fn shutdown(mut self) {
        if let Some(manager) = &mut self.manager {
            manager.stop(GRACE).await;
        }
        self.stop_apiserver().await;
        self.etcd.stop(GRACE).await;
    }

    /// Ends everything at once with SIGKILL; the same as dropping the value.
    pub fn kill(self) {}

    /// The first component that has ended although nobody asked it to, as an
    /// [`Error::Component`]; `None` while all is well.
    pub fn failure(&mut self) -> Option<Error> {
        self.components().find_map(|component| {
            let status = component.ended()?;
            Some(component.failure(format!("ended with {status}")))
        })
    }

    /// Refuses every server but this one, so that a test or a demonstration that picked up some
    /// other kubeconfig stops before it touches a real cluster.
    ///
    /// # Errors
    /// [`Error::OtherCluster`], with both addresses.
    pub fn guard(&self, kubeconfig_server: &str) -> Result<(), Error> {
        if kubeconfig_server.trim_end_matches('/') == self.server() {
            return Ok(());
        }
        Err(Error::OtherCluster {
            found: kubeconfig_server.to_owned(),
            started: self.server().to_owned(),
        })
    }

    /// The API server's address, such as `https://127.0.0.1:41234`; the same for the value's life.
    pub fn server(&self) -> &str {
        &self.endpoint.server
    }

    /// A kubeconfig of its own for the administrator: everything embedded, mode 0600, context
    /// `trimtab-dev`.
    pub fn kubeconfig(&self) -> &Path {
        &self.folder.kubeconfig
    }

    /// The folder of this control plane; `logs/` in it has a file for each component.
    pub fn dir(&self) -> &Path {
        &self.folder.path
    }

    /// The certificate of the authority that signed the server's, as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.pki.ca_pem
    }

    /// The audit log, JSON lines; `None` unless [`Options::audit`] asked for it.
    pub fn audit_log(&self) -> Option<&Path> {
        self.options.audit.map(|_| self.folder.audit_log.as_path())
    }

    /// A small client for checks, as the administrator.
    pub fn client(&self) -> &Client {
        &self.endpoint.admin
    }

    /// The same, as nobody.
    pub fn anonymous(&self) -> &Client {
        &self.endpoint.anonymous
    }

    /// What runs, and under which process id.
    pub fn pids(&mut self) -> Vec<(&'static str, u32)> {
        self.components()
            .filter_map(|component| match component.ended() {
                None => Some((component.name(), component.pid())),
                Some(_) => None,
            })
            .collect()
    }

    async fn start_manager(&mut self) -> Result<(), Error> {
        let Some(program) = &self.binaries.kube_controller_manager else {
            return Ok(());
        };
        let flags = flags::kube_controller_manager();
        self.manager = Some(self.folder.spawn(MANAGER, program, &flags)?);
        let paths = &["/api/v1/namespaces/default/serviceaccounts/default"];
        self.wait_for(MANAGER, Sign::Answers(paths)).await
    }

    /// Looks until the sign is there, and no longer than the components run.
    async fn wait_for(&mut self, component: &'static str, sign: Sign) -> Result<(), Error> {
        let limit = self.options.ready_timeout;
        let deadline = Instant::now() + limit;
        while let Err(reason) = self.look_for(sign).await {
            if let Some(error) = self.failure() {
                return Err(error);
            }
            if Instant::now() >= deadline
                && let Some(late) = self.components().find(|it| it.name() == component)
            {
                let reason = format!("was not ready after {} s: {reason}", limit.as_secs_f32());
                return Err(late.failure(reason));
            }
            sleep(READY_POLL).await;
        }
        Ok(())
    }

    /// Whether the sign is there, and if not, what is instead.
    async fn look_for(&self, sign: Sign) -> Result<(), String> {
        match sign {
            // Its path may be too long to connect to from here; etcd makes it when it listens.
            Sign::Listens => match self.folder.path.join(flags::ETCD_SOCKET).try_exists() {
                Ok(true) => Ok(()),
                Ok(false) => Err(format!("there is no {}", flags::ETCD_SOCKET)),
                Err(error) => Err(error.to_string()),
            },
            Sign::Answers(paths) => {
                for path in paths {
                    expect_ok(&self.endpoint.admin, path).await?;
                }
                Ok(())
            }
        }
    }

    /// In the order in which one's end explains another's.
    fn components(&mut self) -> impl Iterator<Item = &mut Process> {
        let others = self.apiserver.iter_mut().chain(self.manager.iter_mut());
        std::iter::once(&mut self.etcd).chain(others)
    }
}

/// What shows that a component is ready.
#[derive(Clone, Copy)]
enum Sign {
    /// etcd's socket is there.
    Listens,
    /// The API server answers each of these paths with 200 to its administrator.
    Answers(&'static [&'static str]),
}

/// Where the API server listens, and who asks it.
struct Endpoint {
    port: u16,
    server: String,
    admin: Client,
    anonymous: Client,
}

impl Endpoint {
    fn on_a_free_port(pki: &Pki) -> Result<Self, Error> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|listener| listener.local_addr())
            .map_err(Error::io("find a free port on", Path::new("127.0.0.1")))?
            .port();
        Ok(Self {
            port,
            server: format!("https://127.0.0.1:{port}"),
            admin: Client::new(port, pki.ca.clone(), Some(&pki.admin))?,
            anonymous: Client::new(port, pki.ca.clone(), None)?,
        })
    }
}

async fn expect_ok(client: &Client, path: &str) -> Result<(), String> {
    match client.get(path).await {
        Ok(Answer { status: 200, .. }) => Ok(()),
        Ok(Answer { status, body }) => {
            // `/readyz?verbose` has a line for each check; those that failed begin so.
            let failed: Vec<&str> = body.lines().filter(|line| line.starts_with("[-]")).collect();
            Err(format!("{path} answered {status} {}", failed.join(", ")))
        }
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_can_be_spawned_on_any_thread() {
        fn check(_: impl Send) {}
        check(ControlPlane::start(Options::default(), &|_| ()));
        check(crate::dev(crate::DevOptions::default(), &|_| ()));
        fn value<T: Send + Sync>() {}
        value::<ControlPlane>();
    }
}

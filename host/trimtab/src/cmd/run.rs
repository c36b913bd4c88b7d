//! `trimtab run`: the host.

use crate::cli::{ClusterArgs, runtime};
use crate::config::SourceArgs;
use crate::engine::{Approvals, Engine, Options, Parts, SignalOptions, Summary};
use crate::journal::{self, JournalFile};
use crate::plugins;
use crate::replay::{KEPT_BYTES, Kept};
use anyhow::Context as _;
use clap::Args;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use trimtab_core::ownership::FIELD_MANAGER;
use trimtab_core::redact::Redactor;
use trimtab_wasm::{Sandbox, SandboxOptions};

/// How long the loop may be silent before `/healthz` says so: its longest sleep is 10 s.
const SILENCE_AT_MOST_MS: u64 = 60_000;

/// Run the host: watch, judge, correct, record.
///
/// Plugins without a grant observe: they report what they would do, and nothing is written.
/// With --once: exit status 0 when everything is as declared, 1 when something did not converge,
/// waits, was refused or is only observed (each is named), 2 when a source cannot be used.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    host: HostArgs,
    /// One full round, then exit.
    #[arg(long)]
    once: bool,
    /// With --once: the longest time that the round may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// Where /healthz and /readyz are served; 0 turns them off.
    #[arg(long, value_name = "ADDRESS", default_value = "0")]
    health_probe_bind_address: String,
    /// How --once prints its result.
    #[command(flatten)]
    output: crate::cli::OutputArgs,
}

/// What makes a host: where desired state comes from, who judges it, and where it goes.
#[derive(Clone, Debug, Args)]
pub(crate) struct HostArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Directory of plugin files (*.wasm), watched while the host runs.
    #[arg(long, value_name = "DIR")]
    plugins: PathBuf,
    /// Grant file, or folder of grant files, watched while the host runs.
    #[arg(long, value_name = "PATH")]
    grants: Option<PathBuf>,
    /// Serve only plugins that are signed by one of these keys: a file of minisign or OpenSSH
    /// public keys, or a folder of them, watched while the host runs.
    #[arg(long, value_name = "KEYS")]
    require_signature: Option<PathBuf>,
    /// Directory of the host's own state: journal, keys, compiled plugins.
    #[arg(long, value_name = "DIR", default_value = ".trimtab")]
    pub(crate) state: PathBuf,
    #[command(flatten)]
    audit: AuditArgs,
    /// Bytes that may be kept of what plugins were shown and answered, for `plugin replay`; the oldest
    /// go first, nothing of a Secret is kept, and 0 keeps nothing.
    #[arg(long, value_name = "BYTES", default_value_t = KEPT_BYTES)]
    keep_inputs: u64,
    #[command(flatten)]
    signals: SignalArgs,
    /// Namespace of the inventory: ConfigMaps that say what was made for each source.
    #[arg(long, value_name = "NAME", default_value = crate::made::NAMESPACE)]
    pub(crate) inventory_namespace: String,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

impl HostArgs {
    /// The plugins with their grants, followed while somebody holds them.
    ///
    /// # Errors
    /// Their directory, the grants or the keys cannot be used.
    pub(crate) fn plugins(&self) -> anyhow::Result<watch::Receiver<Arc<plugins::Registry>>> {
        let sandbox = Sandbox::new(SandboxOptions {
            cache_dir: Some(self.state.join("cache")),
            compiler: crate::cli::compiler()?,
            field_manager: FIELD_MANAGER.into(),
            ..SandboxOptions::default()
        })?;
        let watched = plugins::Options {
            plugins: self.plugins.clone(),
            grants: self.grants.clone(),
            keys: self.require_signature.clone(),
        };
        plugins::watch(watched, sandbox)
    }

    /// Runs the host until it is stopped, or for one round.
    ///
    /// # Errors
    /// It cannot begin, or its journal cannot be written.
    pub(crate) async fn run(
        &self,
        once: Option<Duration>,
        approvals: Approvals,
        pulse: Arc<Pulse>,
    ) -> anyhow::Result<Summary> {
        let config = self.source.read_some()?;
        let state = State::open(&self.state)?;
        let journal = Arc::new(JournalFile::open(&self.state, self.audit.limits())?);
        let kept = match self.keep_inputs {
            0 => None,
            bytes => Some(Arc::new(Kept::open(&self.state, bytes)?)),
        };
        let registry = self.plugins()?;
        plugins::write_status(&self.state, &registry.borrow().status())?;
        let stop = stop_on_signals()?;
        let server = super::connect(&self.cluster).await?;
        let (store, events) = trimtab_kube::Store::start(server, trimtab_kube::Options::default());
        let configs = crate::config::follow(self.source.clone(), config.clone());
        let parts = Parts {
            writer: trimtab_kube::Writer::new(store.clone()),
            store,
            events,
            configs,
            registry,
            journal,
            kept,
            redactor: Arc::new(Redactor::new(state.redaction_key).with(&config.redact)),
            pulse,
        };
        let signals = SignalOptions {
            key: state.redaction_key,
            api_audit_log: self.signals.api_audit_log.clone(),
            events: !self.signals.no_events,
        };
        let options = Options {
            config,
            once: once.is_some(),
            approvals,
            state: self.state.clone(),
            inventory_namespace: self.inventory_namespace.clone(),
            signals,
        };
        if let Some(after) = once {
            let stop = stop.clone();
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                tracing::warn!("the round is not over after {after:?}: stopping (--timeout)");
                stop.cancel();
            });
        }
        Engine::new(options, parts).run(stop).await
    }
}

/// How the audit log is kept.
#[derive(Clone, Debug, Args)]
struct AuditArgs {
    /// Bytes after which a file of the audit log counts as full and the next is begun.
    #[arg(long, value_name = "BYTES", default_value_t = journal::FILE_BYTES, value_parser = clap::value_parser!(u64).range(64 << 10..))]
    audit_max_bytes: u64,
    /// Full files of the audit log that are kept; 0 keeps all.
    #[arg(long, value_name = "NUMBER", default_value_t = journal::FILES_KEPT)]
    audit_keep: usize,
    /// Where copies of the audit log's checkpoints are appended, so that a log that was cut off is
    /// noticed: best on another disk. Beside the log if nothing is said.
    #[arg(long, value_name = "FILE")]
    audit_checkpoints: Option<PathBuf>,
}

/// What signals are told by, and where they are told.
#[derive(Clone, Debug, Args)]
struct SignalArgs {
    /// The API server's own audit log (JSON lines), read on as it grows: edits are then told with
    /// the user and the audit id of the request.
    #[arg(long, value_name = "FILE")]
    api_audit_log: Option<PathBuf>,
    /// Write no Kubernetes Events about findings.
    #[arg(long)]
    no_events: bool,
}

impl AuditArgs {
    fn limits(&self) -> journal::Limits {
        journal::Limits {
            max_bytes: self.audit_max_bytes,
            keep: (self.audit_keep > 0).then_some(self.audit_keep),
            checkpoints: self.audit_checkpoints.clone(),
        }
    }
}

impl Run {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        runtime()?.block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<u8> {
        let pulse = Arc::new(Pulse::default());
        let health = self.serve_health(pulse.clone()).await?;
        let once = self.once.then_some(Duration::from_secs(self.timeout));
        let summary = self.host.run(once, Approvals::default(), pulse).await?;
        health.abort();
        self.conclude(&summary)
    }

    fn conclude(&self, summary: &Summary) -> anyhow::Result<u8> {
        if !self.once {
            tracing::info!("stopped: {summary}");
            return Ok(0);
        }
        crate::output::print(self.output.output, summary, || summary.told())?;
        Ok(summary.status())
    }

    async fn serve_health(&self, pulse: Arc<Pulse>) -> anyhow::Result<tokio::task::JoinHandle<()>> {
        use axum::routing::get;
        let address = match self.health_probe_bind_address.as_str() {
            "0" => return Ok(tokio::spawn(async {})),
            // As kubebuilder's flags: ":8081" is every address.
            text if text.starts_with(':') => format!("0.0.0.0{text}"),
            text => text.to_owned(),
        };
        let address: SocketAddr = address.parse().with_context(|| {
            format!("--health-probe-bind-address {address:?} is not an address such as :8081")
        })?;
        let (live, ready) = (pulse.clone(), pulse);
        let answer = |well: bool| {
            let status = if well { 200 } else { 503 };
            let text = if well { "ok" } else { "not ok" };
            (axum::http::StatusCode::from_u16(status).unwrap_or_default(), text)
        };
        let routes = axum::Router::new()
            .route("/healthz", get(async move || answer(live.is_alive())))
            .route("/readyz", get(async move || answer(ready.is_ready())));
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address} for health probes"))?;
        Ok(tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, routes).await {
                tracing::error!("health probes are not served any more: {error}");
            }
        }))
    }
}

/// What the loop tells the health probes.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    beat_at_ms: AtomicU64,
    ready: AtomicBool,
}

impl Pulse {
    /// The loop came round.
    pub(crate) fn beat(&self, ready: bool) {
        self.beat_at_ms.store(crate::timestamp::now_ms(), Ordering::Relaxed);
        self.ready.store(ready, Ordering::Relaxed);
    }

    fn is_alive(&self) -> bool {
        let at = self.beat_at_ms.load(Ordering::Relaxed);
        at == 0 || crate::timestamp::now_ms().saturating_sub(at) < SILENCE_AT_MOST_MS
    }

    fn is_ready(&self) -> bool {
        self.is_alive() && self.ready.load(Ordering::Relaxed)
    }
}

/// The state directory, held by this process alone.
struct State {
    redaction_key: [u8; 32],
    _lock: File,
}

impl State {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let wrong = || format!("--state {}", path.display());
        std::fs::create_dir_all(path).with_context(wrong)?;
        let lock = File::create(path.join("lock")).with_context(wrong)?;
        lock.try_lock().map_err(|_| {
            anyhow::anyhow!("{} is in use by another trimtab run: give each host its own", wrong())
        })?;
        // From here on somebody may ask us; what was asked before is nobody's any more.
        let _ = std::fs::remove_dir_all(crate::requests::folder(path));
        Ok(Self { redaction_key: crate::state::own_key(&path.join("redaction.key"))?, _lock: lock })
    }
}

/// Cancelled by Ctrl-C and SIGTERM; a second one ends the process at once.
fn stop_on_signals() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let stop = CancellationToken::new();
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let token = stop.clone();
    tokio::spawn(async move {
        for second in [false, true] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if second {
                std::process::exit(130);
            }
            tracing::info!("stopping: passes under way end first (again to stop at once)");
            token.cancel();
        }
    });
    Ok(stop)
}

//! The command line: what can be asked, and which exit status tells what.
//!
//! 0: nothing to do. 1: there are differences, or something did not converge, waits or was
//! refused. 2 and above: an error.

use crate::cmd;
use crate::output::Format;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit status of a command that ended with an error.
const ERROR: u8 = 2;

/// Keeps a Kubernetes cluster on its declared course; what each type's state means is decided by
/// sandboxed plugins.
#[derive(Debug, Parser)]
#[command(name = "trimtab", version, about, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    /// How log lines on stderr look.
    #[arg(long, global = true, value_enum, default_value = "text")]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the host: watch, judge, correct, record.
    Run(cmd::run::Run),
    /// Show what a host would do, in order, with a digest by which it can be approved.
    Plan(cmd::plan::Plan),
    /// Show what differs between desired and live, by meaning. Writes nothing.
    Diff(cmd::diff::Diff),
    /// Print the least ClusterRole and Roles that plugins and their grants need.
    Rbac(cmd::rbac::Rbac),
    /// A real local control plane (etcd and kube-apiserver), for trying things out.
    Dev(cmd::dev::Dev),
    /// Make, build, test, inspect and grant plugins, and list those of a running host.
    #[command(subcommand)]
    Plugin(cmd::plugin::Plugin),
    /// Run a policy on manifests.
    #[command(subcommand)]
    Policy(cmd::policy::Policy),
    /// The sources of a running host: how they stand, and what to do with them.
    #[command(subcommand)]
    Source(cmd::source::Source),
    /// What the host found and did.
    #[command(subcommand)]
    Audit(cmd::audit::Audit),
    /// Compile the plugin on standard input, in a process that holds nothing: for the host itself.
    #[command(hide = true, name = "compile-worker")]
    CompileWorker,
}

/// How to reach the cluster.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClusterArgs {
    /// Kubeconfig file. Without it: $KUBECONFIG, ~/.kube/config, or a Pod's own credentials, in
    /// this order.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Use a Pod's own credentials, from this folder (token, ca.crt); the API server's address
    /// comes from KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT.
    #[arg(
        long,
        value_name = "DIR",
        env = "TRIMTAB_SERVICE_ACCOUNT_DIR",
        conflicts_with_all = ["kubeconfig", "context"]
    )]
    pub(crate) service_account: Option<PathBuf>,
}

/// `-o`.
#[derive(Clone, Debug, Args)]
pub(crate) struct OutputArgs {
    /// How the answer looks.
    #[arg(short, long, value_enum, default_value = "table")]
    pub(crate) output: Format,
}

impl Cli {
    /// Runs the command; errors go to stderr with their causes.
    pub(crate) fn run(self) -> ExitCode {
        self.log();
        let done = match self.command {
            Command::Run(run) => run.run(),
            Command::Plan(plan) => plan.run(),
            Command::Diff(diff) => diff.run(),
            Command::Rbac(rbac) => rbac.run(),
            Command::Dev(dev) => dev.run(),
            Command::Plugin(plugin) => plugin.run(),
            Command::Policy(policy) => policy.run(),
            Command::Source(source) => source.run(),
            Command::Audit(audit) => audit.run(),
            Command::CompileWorker => return compile_worker(),
        };
        match done {
            Ok(status) => ExitCode::from(status),
            Err(error) => {
                eprintln!("trimtab: {error:#}");
                ExitCode::from(ERROR)
            }
        }
    }

    fn log(&self) {
        use tracing_subscriber::EnvFilter;
        let filter = EnvFilter::try_from_default_env()
            .unwrap_or_else(|_| EnvFilter::new("info,kube_client=off,hyper=warn,tower=warn"));
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let lines = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(terminal)
            .with_writer(std::io::stderr);
        match self.log_format {
            LogFormat::Text => lines.with_target(false).init(),
            LogFormat::Json => lines.json().init(),
        }
    }
}

/// Code on standard output, or what is wrong on standard error, in the words that the host hands on.
fn compile_worker() -> ExitCode {
    match trimtab_wasm::compile_worker(std::io::stdin().lock(), std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trimtab_wasm::Error::Compile(message)) => {
            eprint!("{message}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprint!("{error}");
            ExitCode::from(ERROR)
        }
    }
}

/// How this program compiles plugins: as a process of its own.
pub(crate) fn compiler() -> anyhow::Result<trimtab_wasm::Compiler> {
    use anyhow::Context as _;
    let program = std::env::current_exe().context("cannot find the trimtab program itself")?;
    Ok(trimtab_wasm::Compiler::Worker { program, arguments: vec!["compile-worker".into()] })
}

/// The runtime that commands with IO run on.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    use anyhow::Context as _;
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
}

//! `trimtab plugin`: an author's and an administrator's hour, with no cluster.

use crate::cli::OutputArgs;
use crate::requests::is_running;
use crate::schemas::Schemas;
use crate::suspension::Sort;
use crate::{grants, output, plugins};
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use trimtab_author::{BuildOptions, Sdk};
use trimtab_core::grant::Mode;
use trimtab_core::identity::Gvk;
use trimtab_wasm::Inspection;

/// Make, build, test, inspect and grant plugins, and list those of a running host.
#[derive(Debug, Subcommand)]
pub(crate) enum Plugin {
    /// Write a new plugin: a crate that compiles, with a test that its logic can fail.
    New(New),
    /// Build a plugin crate into one .wasm file.
    Build(Build),
    /// Run a plugin's cases through the sandbox that production uses.
    Test(Test),
    /// Read what a plugin file says of itself, without running anything.
    Inspect(super::inspect::Inspect),
    /// Print a grant for a plugin file, pinned to its digest.
    Grant(Box<Grant>),
    /// Make a key pair that signs plugins, in minisign's form, without a password.
    Keygen(super::sign::Keygen),
    /// Sign a plugin file: the signature is written beside it.
    Sign(super::sign::Sign),
    /// Check the signature beside a plugin file.
    Verify(super::sign::Verify),
    /// Have a running host call a plugin again that it quarantined or found impure.
    Release(Release),
    /// Have a running host look no more at the objects of a plugin.
    Suspend(Suspend),
    /// Have a running host look at them again, once it was shown what changed meanwhile.
    Resume(Resume),
    /// What a running host has loaded, in which mode, and why something is refused.
    List(List),
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// Name of the plugin: lower-case letters, digits and dashes. Also the new folder's.
    name: String,
    /// A policy, which reviews, in place of a reconciler.
    #[arg(long)]
    policy: bool,
    /// Where the SDK crate is; without it, the one that this trimtab was built with, if it is
    /// still there.
    #[arg(long, value_name = "DIR")]
    sdk: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Build {
    /// The plugin's crate.
    #[arg(default_value = ".")]
    crate_dir: PathBuf,
    /// Folder for the .wasm file; without it, the crate's own.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// The plugin's crate.
    #[arg(default_value = ".")]
    crate_dir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Grant {
    /// The plugin file.
    file: PathBuf,
    /// observe: report what it would do. enforce: write it.
    #[arg(long, value_enum, default_value = "observe")]
    mode: ModeArg,
    #[command(flatten)]
    narrowed: grants::Narrowed,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ModeArg {
    Observe,
    Enforce,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// State directory of the host.
    #[arg(long, value_name = "DIR", default_value = ".trimtab")]
    state: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Release {
    /// The plugin's name.
    name: String,
    /// State directory of the host.
    #[arg(long, value_name = "DIR", default_value = ".trimtab")]
    state: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Suspend {
    /// The plugin's name.
    name: String,
    /// State directory of the host.
    #[arg(long, value_name = "DIR", default_value = ".trimtab")]
    state: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The plugin's name.
    name: String,
    /// Without asking, after what changed was shown.
    #[arg(long)]
    yes: bool,
    /// State directory of the host.
    #[arg(long, value_name = "DIR", default_value = ".trimtab")]
    state: PathBuf,
}

impl Plugin {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        match self {
            Self::New(new) => new.run(),
            Self::Build(build) => build.run(),
            Self::Test(test) => test.run(),
            Self::Inspect(inspect) => inspect.run(),
            Self::Grant(grant) => grant.run(),
            Self::Keygen(keygen) => keygen.run(),
            Self::Sign(sign) => sign.run(),
            Self::Verify(verify) => verify.run(),
            Self::Release(release) => release.run(),
            Self::Suspend(it) => super::source::suspend(&it.state, Sort::Plugin, &it.name),
            Self::Resume(it) => super::source::resume(&it.state, Sort::Plugin, &it.name, it.yes),
            Self::List(list) => list.run(),
        }
    }
}

impl New {
    fn run(self) -> anyhow::Result<u8> {
        let sdk = self.sdk.map(Sdk::Path).or_else(Sdk::of_this_checkout).context(
            "the SDK crate is not where this trimtab was built: give its folder with --sdk",
        )?;
        let dir = PathBuf::from(&self.name);
        let sort = match self.policy {
            true => trimtab_author::Sort::Policy,
            false => trimtab_author::Sort::Reconciler,
        };
        for file in trimtab_author::create(&dir, &self.name, &sdk, sort)? {
            println!("wrote {}", file.display());
        }
        println!("next: cd {} && trimtab plugin test", self.name);
        Ok(0)
    }
}

impl Build {
    fn run(self) -> anyhow::Result<u8> {
        let built = trimtab_author::build(&self.crate_dir, &BuildOptions { out: self.out })?;
        if let Some(warning) = &built.warning {
            eprintln!("trimtab: {warning}");
        }
        println!(
            "{}: {} bytes, {}",
            built.file.display(),
            built.inspection.size,
            built.inspection.digest
        );
        Ok(0)
    }
}

impl Test {
    /// Exit status 1: a case failed.
    fn run(self) -> anyhow::Result<u8> {
        let schemas = Schemas::default();
        let facts = |gvk: &Gvk| schemas.facts(gvk);
        let report = trimtab_author::test(&self.crate_dir, &facts, &mut std::io::stdout())?;
        Ok(u8::from(!report.passed()))
    }
}

/// The bytes of a plugin file.
pub(super) fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Reads and inspects a plugin file.
fn inspected(file: &Path) -> anyhow::Result<Inspection> {
    let bytes = read(file)?;
    trimtab_wasm::inspect(&bytes).with_context(|| format!("{} is refused", file.display()))
}

impl Grant {
    fn run(self) -> anyhow::Result<u8> {
        let inspection = inspected(&self.file)?;
        let mode = match self.mode {
            ModeArg::Observe => Mode::Observe,
            ModeArg::Enforce => Mode::Enforce,
        };
        let narrowed = self.narrowed;
        match (inspection.wasi().next(), narrowed.wasi) {
            (None, true) => bail!("--wasi: {} imports no WASI: leave it out", self.file.display()),
            (Some(name), false) => eprintln!(
                "trimtab: the file imports {name} and is refused under this grant: allow that with --wasi"
            ),
            _ => {}
        }
        let (manifest, digest) = (&inspection.manifest, inspection.digest);
        let grant = match (inspection.reconciles(), inspection.reviews()) {
            (false, _) => grants::policy_proposal(manifest, digest, mode),
            (true, false) => grants::proposal(manifest, digest, mode, &narrowed),
            (true, true) => grants::proposal(manifest, digest, mode, &narrowed)
                .map(|grant| grant + &grants::policy_section(manifest, mode)),
        };
        print!("{}", grant.map_err(anyhow::Error::msg)?);
        Ok(0)
    }
}

impl List {
    fn run(self) -> anyhow::Result<u8> {
        let status = plugins::read_status(&self.state)?;
        if !is_running(&self.state) {
            eprintln!(
                "trimtab: no host runs on {}: this is how the last one left it",
                self.state.display()
            );
        }
        output::print(self.output.output, &status, || {
            let mut rows = vec![
                [
                    "FILE", "STATE", "SINCE", "PLUGIN", "DIGEST", "SIGNER", "CLAIMS", "POLICY",
                    "GRANT", "PASSES", "FAULTS", "REASON",
                ]
                .map(String::from)
                .to_vec(),
            ];
            for plugin in &status.plugins {
                rows.push(vec![
                    plugin.file.clone(),
                    plugin.state.clone(),
                    plugin.since.clone(),
                    format!("{} {}", plugin.name, plugin.version).trim().to_owned(),
                    plugin.digest.get(..19).unwrap_or_default().to_owned(),
                    plugin.signer.clone().unwrap_or_else(|| "-".into()),
                    plugin.claims.join(","),
                    plugin.policy.clone().unwrap_or_else(|| "-".into()),
                    plugin.grant.clone(),
                    plugin.passes.to_string(),
                    plugin.faults.sum().to_string(),
                    match (&plugin.last_fault, plugin.reason.is_empty()) {
                        (Some(fault), true) => format!("last fault: {fault}"),
                        _ => plugin.reason.clone(),
                    }
                    .replace('\n', "; "),
                ]);
            }
            let mut text = output::table(&rows);
            if let Some(problem) = &status.grants_problem {
                text.push_str(&format!("the newest grants are not in use: {problem}\n"));
            }
            text
        })?;
        Ok(0)
    }
}

impl Release {
    fn run(self) -> anyhow::Result<u8> {
        let status = plugins::read_status(&self.state)?;
        let Some(plugin) = status.plugins.iter().find(|plugin| plugin.name == self.name) else {
            bail!("no plugin {:?} is in service: `trimtab plugin list` has their names", self.name);
        };
        if !matches!(plugin.state.as_str(), "quarantined" | "refused") {
            bail!("plugin {} is not held back: it is {}", plugin.name, plugin.state);
        }
        let file = crate::engine::release_file(&self.state, &plugin.name);
        std::fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))?;
        if !is_running(&self.state) {
            println!(
                "plugin {} is called again by the next host that runs on {}",
                plugin.name,
                self.state.display()
            );
            return Ok(0);
        }
        let start = std::time::Instant::now();
        while file.exists() {
            if start.elapsed() > RELEASE_PATIENCE {
                std::fs::remove_file(&file).ok();
                bail!("the host did not take it up within {RELEASE_PATIENCE:?}: see its log");
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        println!("plugin {} is called again", plugin.name);
        Ok(0)
    }
}

/// How long a host may take to see that a plugin is released.
const RELEASE_PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

//! `trimtab plan`: what a host would do, in the order in which it would, and nothing of it done.
//!
//! Every object goes the way of a pass through the same core, with its own plugin and grant, under
//! terms that write nothing; what left its source is planned from the inventory. `made.rs` puts the
//! answer together, `shown.rs` shows it. The digest is over exactly the changes that would be
//! written, so that `--approve` does these or says what moved.

mod made;
mod shown;

use self::made::{Item, Made};
use super::run::{HostArgs, Pulse};
use crate::cli::runtime;
use crate::config::{Place, SourceConfig};
use crate::engine::Approvals;
use crate::output::{self, Format};
use crate::requests::{Ask, ask, is_running};
use crate::round::{self, Judges};
use anyhow::{Context as _, bail, ensure};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use trimtab_core::grant::Mode;
use trimtab_core::identity::Digest;
use trimtab_core::object::Revision;
use trimtab_core::redact::Redactor;
use trimtab_core::terms::SourceTerms;
use trimtab_source::git::Reference;

/// Plans that are kept to say what moved since: the newest ones.
const PLANS_KEPT: usize = 20;
/// How long a running host may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Show what a host would do, in order, with a digest by which it can be approved.
///
/// Writes nothing to the cluster, but with --approve. Exit status: 0 nothing is to be done, 1 there
/// are changes, 2 something could not be read or judged, or the plan that was approved is another
/// one by now. With --approve: as `run --once`.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    host: HostArgs,
    /// Another state of a source of Git: a branch, a tag, 40 hex digits of a commit, or a whole
    /// reference such as refs/pull/7/merge. With several such sources: NAME=REVISION.
    #[arg(long, value_name = "[NAME=]REVISION")]
    revision: Vec<String>,
    /// Do exactly the plan of this digest, or refuse and say what moved.
    #[arg(long, value_name = "DIGEST")]
    approve: Option<String>,
    /// With --approve: the longest time that it may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// How the plan looks.
    #[arg(short, long, value_enum, default_value = "table")]
    output: View,
}

/// `-o`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum View {
    /// For people: object by object, field by field.
    Table,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// For a comment on a pull request.
    Markdown,
}

impl Plan {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let approved = match &self.approve {
            Some(text) => Some(Digest::parse(text).with_context(|| {
                format!("--approve {text:?} is no digest: sha256: and 64 hexadecimal digits")
            })?),
            None => None,
        };
        runtime()?.block_on(async {
            let plan = self.make().await?;
            match approved {
                Some(digest) => self.carry_out(&plan, digest).await,
                None => self.show(&plan),
            }
        })
    }

    fn show(&self, plan: &Made) -> anyhow::Result<u8> {
        keep(&self.host.state, plan)?;
        match self.output {
            View::Table => output::write(&shown::table(plan))?,
            View::Markdown => output::write(&shown::markdown(plan))?,
            View::Json => output::print(Format::Json, plan, String::new)?,
            View::Yaml => output::print(Format::Yaml, plan, String::new)?,
        }
        Ok(match plan.errors.is_empty() {
            true => u8::from(plan.changes.iter().any(Item::is_one)),
            false => 2,
        })
    }

    async fn make(&self) -> anyhow::Result<Made> {
        let mut config = self.host.source.read_some()?;
        for text in &self.revision {
            at_revision(&mut config.sources, text)?;
        }
        std::fs::create_dir_all(&self.host.state)
            .with_context(|| format!("--state {}", self.host.state.display()))?;
        let key = crate::state::own_key(&self.host.state.join("redaction.key"))?;
        let registry = self.host.plugins()?.borrow().clone();
        let mut plan = Made::default();
        let mut revisions: Vec<(Arc<SourceConfig>, Revision)> = Vec::new();
        let read = crate::sources::read_and_judge(&config.sources, &self.host.state)?;
        for ((source, read), refusal) in read {
            match read {
                Ok(revision) => {
                    plan.source(&source, &revision, refusal);
                    revisions.push((source, revision));
                }
                Err(error) => plan.error(format!("source {}: {error}", source.name)),
            }
        }
        for (file, why) in &registry.refused {
            plan.error(format!("plugin {file}: {why}"));
        }
        let server = super::connect(&self.host.cluster).await?;
        let watching: Vec<(Arc<SourceConfig>, Revision)> = revisions
            .iter()
            .map(|(source, revision)| (Arc::new(observing(source)), revision.clone()))
            .collect();
        let judges = Judges::Plugins(registry.clone());
        let redactor = Redactor::new(key).with(&config.redact);
        let round = round::observe(server, watching, &judges, &redactor).await?;
        plan.looked(&round, &config.sources, &registry);
        plan.pruned(&round, &revisions, &self.host.inventory_namespace).await;
        plan.finish();
        Ok(plan)
    }

    async fn carry_out(&self, plan: &Made, digest: Digest) -> anyhow::Result<u8> {
        if plan.digest != digest.to_string() {
            let moved = moved(&self.host.state, &digest, plan)?;
            bail!("the plan is another one by now, and nothing was done:\n{moved}");
        }
        ensure!(plan.errors.is_empty(), "the plan has errors: {}", plan.errors.join("; "));
        let approved = plan.approved();
        if is_running(&self.host.state) {
            let text = |digests: &mut dyn Iterator<Item = &Digest>| -> Vec<String> {
                digests.map(ToString::to_string).collect()
            };
            let asked = Ask::Changes {
                changes: text(&mut approved.changes.iter()),
                deletions: text(&mut approved.deletions.iter()),
                held: plan.held(),
            };
            println!("{}", ask(&self.host.state, &asked, PATIENCE)?);
            return Ok(0);
        }
        ensure!(
            plan.held().is_empty(),
            "deletions of it are held, and only a running host takes a word for them: start one, and give --approve again"
        );
        let approvals = Approvals { only: true, ..approved };
        let once = Some(Duration::from_secs(self.timeout));
        let summary = self.host.run(once, approvals, Arc::new(Pulse::default())).await?;
        output::write(&summary.told())?;
        Ok(summary.status())
    }
}

/// The same source, of which nothing is written.
fn observing(source: &SourceConfig) -> SourceConfig {
    let terms = SourceTerms { mode: Mode::Observe, ..(*source.terms).clone() };
    SourceConfig { terms: Arc::new(terms), ..source.clone() }
}

/// Has one source of Git read at another revision.
fn at_revision(sources: &mut [Arc<SourceConfig>], text: &str) -> anyhow::Result<()> {
    let (name, revision) = match text.split_once('=') {
        Some((name, revision)) => (Some(name), revision),
        None => (None, text),
    };
    let reference =
        Reference::parse(revision).map_err(|why| anyhow::anyhow!("--revision {text:?}: {why}"))?;
    let is_meant = |source: &&mut Arc<SourceConfig>| {
        matches!(source.place, Place::Git(_)) && name.is_none_or(|name| source.name == name)
    };
    let mut meant: Vec<&mut Arc<SourceConfig>> = sources.iter_mut().filter(is_meant).collect();
    match meant.as_mut_slice() {
        [source] => {
            if let Place::Git(options) = &mut Arc::make_mut(source).place {
                options.reference = reference;
            }
            Ok(())
        }
        [] => bail!("--revision {text:?}: no such source of Git is followed"),
        _ => bail!("--revision {text:?}: several sources are of Git: write NAME=REVISION"),
    }
}

fn folder(state: &Path) -> PathBuf {
    state.join("plans")
}

/// Keeps the plan, so that what moved since can be told; the oldest ones go.
fn keep(state: &Path, plan: &Made) -> anyhow::Result<()> {
    let folder = folder(state);
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut file = tempfile::NamedTempFile::new_in(&folder)?;
    serde_json::to_writer(&mut file, plan)?;
    file.persist(file_of(&folder, &plan.digest))?;
    let mut files: Vec<(std::time::SystemTime, PathBuf)> = std::fs::read_dir(&folder)?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
        })
        .collect();
    files.sort();
    for (_, old) in files.iter().take(files.len().saturating_sub(PLANS_KEPT)) {
        std::fs::remove_file(old)?;
    }
    Ok(())
}

fn file_of(folder: &Path, digest: &str) -> PathBuf {
    folder.join(format!("{}.json", digest.trim_start_matches("sha256:")))
}

/// What is other than in the plan of this digest.
fn moved(state: &Path, digest: &Digest, now: &Made) -> anyhow::Result<String> {
    let Ok(bytes) = std::fs::read(file_of(&folder(state), &digest.to_string())) else {
        return Ok(format!(
            "  the plan of {digest} is not kept in {}, so what moved cannot be said; the plan is now {}",
            state.display(),
            now.digest
        ));
    };
    let then: Made = serde_json::from_slice(&bytes).context("a plan that was kept")?;
    Ok(now.moved_since(&then))
}

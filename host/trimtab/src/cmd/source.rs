//! `trimtab source`: how the sources of a host stand, and what to do with them.

use crate::cli::OutputArgs;
use crate::engine::{SourceStatus, read_sources};
use crate::output;
use crate::requests::{Ask, ask, is_running};
use crate::suspension::{self, Sort};
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trimtab_source::git::trust::{Commit, Memory};

/// How long a host may take for what it does at once.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it may take to look at a source: a fetch may take two minutes.
const SYNC_PATIENCE_SECONDS: u64 = 150;
/// How long it may take to look at every object of what is suspended.
const PREVIEW_PATIENCE: Duration = Duration::from_secs(300);

/// The sources of a running host: how they stand, and what to do with them.
#[derive(Debug, Subcommand)]
pub(crate) enum Source {
    /// What is in force of each source, and what is wrong with it.
    List(List),
    /// Everything about one source.
    Show(Show),
    /// Have the host look at a source now, and wait until it has.
    Sync(Sync),
    /// Have the host do deletions that it holds, by their digest.
    Approve(Approve),
    /// Say what becomes of the objects of a source that is configured no more.
    Remove(Box<super::remove::Remove>),
    /// Have the host look no more at the objects of a source.
    Suspend(Suspend),
    /// Have the host look at them again, once it was shown what changed meanwhile.
    Resume(Resume),
    /// Let one revision be taken, once, although it is a step back in history.
    Allow(Allow),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The source's name.
    name: String,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Sync {
    /// The source's name.
    name: String,
    /// How long to wait, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = SYNC_PATIENCE_SECONDS)]
    timeout: u64,
    #[command(flatten)]
    state: StateArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// The source's name.
    name: String,
    /// The digest under which they are held, as `trimtab source show` has it.
    digest: String,
    #[command(flatten)]
    state: StateArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Suspend {
    /// The source's name.
    name: String,
    #[command(flatten)]
    state: StateArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The source's name.
    name: String,
    /// Without asking, after what changed was shown.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    state: StateArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Allow {
    /// The source's name.
    name: String,
    /// The commit, by all its 40 hexadecimal digits.
    revision: Commit,
    #[command(flatten)]
    state: StateArgs,
}

#[derive(Debug, Args)]
struct StateArgs {
    /// State directory of the host.
    #[arg(long, value_name = "DIR", default_value = ".trimtab")]
    state: PathBuf,
}

impl Source {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        match self {
            Self::List(list) => list.run(),
            Self::Show(show) => show.run(),
            Self::Sync(sync) => sync.run(),
            Self::Approve(it) => it.run(),
            Self::Remove(it) => it.run(),
            Self::Suspend(it) => suspend(&it.state.state, Sort::Source, &it.name),
            Self::Resume(it) => resume(&it.state.state, Sort::Source, &it.name, it.yes),
            Self::Allow(allow) => allow.run(),
        }
    }
}

impl List {
    /// Exit status 1: something of a source is not in force.
    fn run(self) -> anyhow::Result<u8> {
        let state = &self.state.state;
        let status = read_sources(state)?;
        tell_whether_running(state);
        output::print(self.output.output, &status, || {
            let mut rows = vec![
                ["NAME", "MODE", "REVISION", "SINCE", "OBJECTS", "REFUSED", "LOCATION", "PROBLEM"]
                    .map(String::from)
                    .to_vec(),
            ];
            for source in &status.sources {
                rows.push(vec![
                    source.name.clone(),
                    source.mode.clone(),
                    short(source.revision.as_deref().unwrap_or("-")).to_owned(),
                    source.since.clone().unwrap_or_else(|| "-".into()),
                    source.objects.to_string(),
                    source.refused.len().to_string(),
                    source.location.clone(),
                    match &source.problem {
                        Some(told) => {
                            format!("since {}: {}", told.since, told.message.replace('\n', "; "))
                        }
                        None => "-".into(),
                    },
                ]);
            }
            let mut text = output::table(&rows);
            if let Some(told) = &status.config_problem {
                let _ = writeln!(
                    text,
                    "the newest configuration is not in use since {}: {}",
                    told.since, told.message
                );
            }
            text
        })?;
        let sound = |it: &SourceStatus| it.problem.is_none() && it.refused.is_empty();
        let all = status.config_problem.is_none() && status.sources.iter().all(sound);
        Ok(u8::from(!all))
    }
}

impl Show {
    fn run(self) -> anyhow::Result<u8> {
        let state = &self.state.state;
        let status = read_sources(state)?;
        let source = status.sources.iter().find(|source| source.name == self.name);
        let Some(source) = source else { bail!(unknown(&self.name)) };
        tell_whether_running(state);
        output::print(self.output.output, source, || story(source))?;
        Ok(u8::from(source.problem.is_some() || !source.refused.is_empty()))
    }
}

fn story(source: &SourceStatus) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "{name:<18}{value}");
        }
    };
    let or = |value: &Option<String>, other: &str| value.clone().unwrap_or_else(|| other.into());
    line("name", &source.name);
    line("location", &source.location);
    line("mode", &source.mode);
    line("suspension", &or(&source.suspension, ""));
    line("interval", &format!("{} s", source.interval_seconds));
    let before = if source.from_before { " (from before the host started)" } else { "" };
    line("revision", &format!("{}{before}", or(&source.revision, "none")));
    line("since", &or(&source.since, ""));
    line("author", &or(&source.author, ""));
    line("signer", &or(&source.signer, ""));
    line("objects", &source.objects.to_string());
    line("target namespace", &or(&source.target_namespace, "any"));
    line("service account", &or(&source.service_account, "the host's own"));
    line("prune", if source.prune { "yes" } else { "no" });
    line("made", &source.made.to_string());
    line("depends on", &source.depends_on.join(", "));
    if let Some(told) = &source.problem {
        let _ = writeln!(text, "not in force since {}:\n  {}", told.since, indented(&told.message));
    }
    for held in &source.held {
        let _ = writeln!(text, "held: {held}");
    }
    for refused in &source.refused {
        let _ = writeln!(
            text,
            "not taken: {} ({}): {}",
            refused.object,
            refused.origin,
            indented(&refused.reason)
        );
    }
    text
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n  ")
}

impl Sync {
    /// Exit status 2: the source cannot be used, or the host did not answer in time.
    fn run(self) -> anyhow::Result<u8> {
        let asked = Ask::Sync { source: self.name };
        let patience = Duration::from_secs(self.timeout);
        println!("{}", ask(&self.state.state, &asked, patience)?);
        Ok(0)
    }
}

impl Approve {
    fn run(self) -> anyhow::Result<u8> {
        let asked = Ask::Approve { source: self.name, digest: self.digest };
        println!("{}", ask(&self.state.state, &asked, PATIENCE)?);
        Ok(0)
    }
}

impl Allow {
    /// With a running host it is looked at at once; else the next one finds it.
    fn run(self) -> anyhow::Result<u8> {
        let state = &self.state.state;
        let name = self.name;
        if !read_sources(state)?.sources.iter().any(|source| source.name == name) {
            bail!(unknown(&name));
        }
        Memory::new(crate::sources::folder(state, &name)).allow(self.revision)?;
        println!("source {name}: commit {} may be taken once", self.revision);
        if is_running(state) {
            let patience = Duration::from_secs(SYNC_PATIENCE_SECONDS);
            println!("{}", ask(state, &Ask::Sync { source: name }, patience)?);
        }
        Ok(0)
    }
}

/// Suspends: through the host if one runs, else for the next one.
pub(super) fn suspend(state: &Path, sort: Sort, name: &str) -> anyhow::Result<u8> {
    if is_running(state) {
        let asked = Ask::Suspend { sort, name: name.to_owned() };
        println!("{}", ask(state, &asked, PATIENCE)?);
        return Ok(0);
    }
    if sort == Sort::Plugin {
        bail!("no host runs on {}: there is nobody to suspend a plugin", state.display());
    }
    if !read_sources(state)?.sources.iter().any(|source| source.name == name) {
        bail!(unknown(name));
    }
    suspension::set(state, sort, name)?;
    println!("source {name} is suspended, from the next start of a host on");
    Ok(0)
}

/// Shows what differs, and ends the suspension once that was seen.
pub(super) fn resume(state: &Path, sort: Sort, name: &str, yes: bool) -> anyhow::Result<u8> {
    let name = name.to_owned();
    print!("{}", ask(state, &Ask::Preview { sort, name: name.clone() }, PREVIEW_PATIENCE)?);
    std::io::stdout().flush()?;
    if !yes {
        if !std::io::stdin().is_terminal() {
            bail!(
                "this is what the host will correct as far as it may; nothing was resumed: give --yes once it is meant"
            );
        }
        eprint!("have the host look at these objects again, and correct them? [y/N] ");
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            bail!("nothing was resumed");
        }
    }
    println!("{}", ask(state, &Ask::Resume { sort, name }, PATIENCE)?);
    Ok(0)
}

fn tell_whether_running(state: &Path) {
    if !is_running(state) {
        eprintln!("trimtab: no host runs on {}: this is how the last one left it", state.display());
    }
}

fn unknown(name: &str) -> String {
    format!("there is no source {name:?}: `trimtab source list` has their names")
}

fn short(revision: &str) -> &str {
    match revision.strip_prefix("sha256:") {
        Some(_) => revision.get(..19).unwrap_or(revision),
        None => revision.get(..12).unwrap_or(revision),
    }
}

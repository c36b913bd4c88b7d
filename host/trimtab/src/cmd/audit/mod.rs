//! `trimtab audit`: what the host found and did, and whether its record is whole.

mod filter;
mod told;

pub(crate) use self::filter::time;

use self::filter::Filter;
use self::told::told;
use crate::cli::{ClusterArgs, OutputArgs};
use crate::journal::{self, Event, Line, SourceLine, Trust, Verdict};
use crate::output::{self, Format};
use clap::{Args, Subcommand};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often `--follow` looks for more.
const FOLLOW_EVERY: Duration = Duration::from_millis(200);

/// What the host found and did.
#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// One object's whole story, as a timeline.
    Explain(Explain),
    /// Lines of the audit log, oldest first.
    Show(Show),
    /// Whether the audit log is the one that its host wrote; names the first bad record.
    ///
    /// Exit status: 0 it is, 1 something is wrong with it, 2 it cannot be read.
    Verify(Verify),
    /// The public key by which the host's checkpoints are verified: keep it elsewhere.
    Key(StateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    /// State directory of the host.
    #[arg(long, value_name = "DIR", default_value = ".trimtab")]
    state: PathBuf,
}

/// One object's whole story, as a timeline.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The object: KIND/NAME, where KIND may carry its group (Deployment.apps/web).
    object: String,
    /// Its namespace; without one: the object of that name in any namespace.
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Lines of the audit log, oldest first.
#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    filter: filter::FilterArgs,
    /// Go on with what is added, until interrupted. JSON is one line each then.
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Whether the audit log is the one that its host wrote.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    state: StateArgs,
    /// The host's public key as `trimtab audit key` printed it, kept where the log's keeper cannot
    /// change it.
    #[arg(long, value_name = "KEY")]
    public_key: Option<String>,
    /// File with copies of checkpoints; may be given several times. Those of the state directory
    /// count in any case.
    #[arg(long, value_name = "FILE")]
    checkpoints: Vec<PathBuf>,
    /// The checkpoint that the host keeps in the cluster counts too: it is read from there.
    #[arg(long)]
    cluster: bool,
    /// Namespace of the host's inventory, where it lies.
    #[arg(long, value_name = "NAME", default_value = crate::made::NAMESPACE)]
    inventory_namespace: String,
    #[command(flatten)]
    access: ClusterArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Audit {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        match self {
            Self::Explain(explain) => explain.run(),
            Self::Show(show) => show.run(),
            Self::Verify(verify) => verify.run(),
            Self::Key(args) => {
                anyhow::ensure!(
                    args.state.is_dir(),
                    "there is no state directory {}: give the --state of the host that ran",
                    args.state.display()
                );
                output::write(&format!("{}\n", journal::HostKey::open(&args.state)?.public()))?;
                Ok(0)
            }
        }
    }
}

impl Explain {
    fn run(self) -> anyhow::Result<u8> {
        let filter = Filter::object(&self.object, self.namespace.as_deref())?;
        let state = &self.state.state;
        let mut sources: Vec<Line> = Vec::new();
        let mut lines: Vec<Line> = Vec::new();
        each(state, &|bytes| filter.may_match(bytes) || is_source(bytes), &mut |line| {
            match line.event {
                Event::Source(_) => sources.push(line),
                _ if filter.matches(&line) => lines.push(line),
                _ => {}
            }
            Ok(())
        })?;
        if lines.is_empty() {
            anyhow::bail!(
                "the audit log of {} tells nothing of {}: it never differed while this host ran, or the name is another",
                state.display(),
                self.object
            );
        }
        let story = story(sources, lines);
        output::print(self.output.output, &story, || story.iter().map(told).collect())?;
        Ok(0)
    }
}

/// The object's lines, each revision's own line before the first that is of it. An intent whose
/// pass ended is told by the pass.
fn story(sources: Vec<Line>, lines: Vec<Line>) -> Vec<Line> {
    let mut declared: HashMap<(String, String), Line> = HashMap::new();
    for line in sources {
        if let Event::Source(SourceLine { source, revision, .. }) = &line.event
            && !revision.is_empty()
        {
            declared.entry((source.clone(), revision.clone())).or_insert(line);
        }
    }
    let mut story: Vec<Line> = Vec::with_capacity(lines.len());
    let mut ends: HashSet<usize> = HashSet::new();
    let mut open: Option<usize> = None;
    for (at, line) in lines.iter().enumerate() {
        match line.event {
            Event::Intent(_) => open = Some(at),
            // What is found is told while the pass ends.
            Event::Finding(_) => {}
            _ => ends.extend(open.take()),
        }
    }
    for (at, line) in lines.into_iter().enumerate() {
        if matches!(line.event, Event::Intent(_)) && (ends.contains(&at) || open != Some(at)) {
            continue;
        }
        if let Event::Pass(pass) = &line.event
            && let Some(source) = declared.remove(&(pass.source.clone(), pass.revision.clone()))
        {
            story.push(source);
        }
        story.push(line);
    }
    story.sort_by_key(|line| line.seq);
    story
}

impl Show {
    fn run(self) -> anyhow::Result<u8> {
        let filter = self.filter.read()?;
        let state = &self.state.state;
        if self.follow {
            return self.follow(state, &filter);
        }
        let may = |bytes: &[u8]| filter.may_match(bytes);
        if self.output.output == Format::Table {
            // As it is read: the log may be larger than memory.
            each(state, &may, &mut |line| match filter.matches(&line) {
                true => output::write(&told(&line)),
                false => Ok(()),
            })?;
            return Ok(0);
        }
        let mut lines = Vec::new();
        each(state, &may, &mut |line| {
            if filter.matches(&line) {
                lines.push(line);
            }
            Ok(())
        })?;
        output::print(self.output.output, &lines, String::new)?;
        Ok(0)
    }

    /// All that is there, then what is added.
    fn follow(&self, state: &Path, filter: &Filter) -> anyhow::Result<u8> {
        let show = |line: &Line| match (filter.matches(line), self.output.output) {
            (false, _) => Ok(()),
            (true, Format::Table) => output::write(&told(line)),
            (true, Format::Json) => output::write(&(serde_json::to_string(line)? + "\n")),
            (true, Format::Yaml) => anyhow::bail!("--follow prints a table or JSON lines"),
        };
        // Opened first: what is added while the files are read is in it.
        let mut tail = journal::Tail::of(state);
        tail.next()?;
        let mut next = 0;
        each(state, &|_| true, &mut |line| {
            next = line.seq + 1;
            show(&line)
        })?;
        loop {
            while let Some(bytes) = tail.next()? {
                match serde_json::from_slice::<Line>(&bytes) {
                    Ok(line) if line.seq >= next => show(&line)?,
                    Ok(_) => {}
                    Err(error) => eprintln!("trimtab: a line is damaged: {error}"),
                }
            }
            std::thread::sleep(FOLLOW_EVERY);
        }
    }
}

impl Verify {
    fn run(self) -> anyhow::Result<u8> {
        let state = &self.state.state;
        if let Some(key) = &self.public_key {
            journal::public_key(key)?;
        }
        let mut copies = journal::own_copies(state);
        copies.extend(self.checkpoints.iter().cloned());
        let in_cluster = match self.cluster {
            true => Some(self.in_cluster()?),
            false => None,
        };
        copies.extend(in_cluster.iter().map(|file| file.path().to_owned()));
        let trust = Trust { key: self.public_key.clone(), copies };
        let verdict = journal::verify(journal::files_of(state)?, &trust)?;
        output::print(self.output.output, &verdict, || told_verdict(&verdict))?;
        Ok(u8::from(verdict.problem.is_some()))
    }
}

impl Verify {
    /// The checkpoints in the cluster that are by this host's key, as a file.
    fn in_cluster(&self) -> anyhow::Result<tempfile::NamedTempFile> {
        let key = match &self.public_key {
            Some(key) => key.clone(),
            None => journal::HostKey::open(&self.state.state)?.public().to_owned(),
        };
        let lines = crate::cli::runtime()?.block_on(async {
            let server = crate::cmd::connect(&self.access).await?;
            let (store, _events) =
                trimtab_kube::Store::start(server, trimtab_kube::Options::default());
            let lines = store.checkpoints(&self.inventory_namespace).await;
            lines.map_err(|error| {
                anyhow::anyhow!("the checkpoints in the cluster cannot be read: {error}")
            })
        })?;
        let by_it = |line: &&String| match serde_json::from_str::<Line>(line) {
            Ok(Line { event: Event::Checkpoint(checkpoint), .. }) => checkpoint.key == key,
            // What is none any more is evidence.
            _ => true,
        };
        let lines: Vec<&String> = lines.iter().filter(by_it).collect();
        anyhow::ensure!(
            !lines.is_empty(),
            "namespace {} has no checkpoint by the key {key}: give the host's --inventory-namespace; a host writes one once it has made something",
            self.inventory_namespace
        );
        let mut file = tempfile::Builder::new().prefix("checkpoint-in-the-cluster-").tempfile()?;
        for line in lines {
            std::io::Write::write_all(&mut file, format!("{line}\n").as_bytes())?;
        }
        Ok(file)
    }
}

fn told_verdict(verdict: &Verdict) -> String {
    let mut text = match &verdict.problem {
        Some(problem) => format!("NOT WHOLE. The first bad record: {problem}\n"),
        None => format!(
            "whole: {} lines of log {}, {} checkpoints signed by {}\n",
            verdict.lines, verdict.log, verdict.checkpoints, verdict.key
        ),
    };
    for note in &verdict.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

/// Gives every line that may be wanted. One that does not parse is named on stderr: it is evidence,
/// and no reason to hide the rest.
fn each(
    state: &Path,
    may: &dyn Fn(&[u8]) -> bool,
    take: &mut dyn FnMut(Line) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut lines = journal::Lines::of(journal::files_of(state)?);
    let mut bytes = Vec::new();
    while let Some(place) = lines.next_into(&mut bytes)? {
        if !may(&bytes) {
            continue;
        }
        match serde_json::from_slice(&bytes) {
            Ok(line) => take(line)?,
            // The host is writing it.
            Err(_) if !place.whole => {}
            Err(error) => eprintln!(
                "trimtab: {}:{} is damaged: {error}",
                lines.file().display(),
                place.number
            ),
        }
    }
    Ok(())
}

fn is_source(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, br#""type":"source""#).is_some()
}

//! `trimtab audit`: what the host found and did, from its journal.

use crate::cli::OutputArgs;
use crate::journal::{self, Event, Line, ObjectLine, PassLine};
use crate::output;
use clap::{Args, Subcommand};
use std::fmt::Write as _;
use std::path::PathBuf;
use trimtab_core::identity::ObjectKey;

/// What the host found and did.
#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// One object's whole story, as a timeline.
    Explain(Explain),
    /// Every line, oldest first.
    Show(Show),
}

/// One object's whole story, as a timeline.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The object: KIND/NAME, where KIND may carry its group (Deployment.apps/web).
    object: String,
    /// Its namespace; without one: the object of that name in any namespace.
    #[arg(short, long)]
    namespace: Option<String>,
    /// State directory of the host.
    #[arg(long, value_name = "DIR", default_value = ".trimtab")]
    state: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

/// Every line, oldest first.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// State directory of the host.
    #[arg(long, value_name = "DIR", default_value = ".trimtab")]
    state: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

impl Audit {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        match self {
            Self::Explain(explain) => explain.run(),
            Self::Show(show) => show.run(),
        }
    }
}

impl Explain {
    fn run(self) -> anyhow::Result<u8> {
        let (kind, name) = self.object.split_once('/').ok_or_else(|| {
            anyhow::anyhow!("{:?} is not KIND/NAME, such as Deployment/web", self.object)
        })?;
        let matches = |object: &ObjectLine| {
            let full = format!("{}.{}", object.kind, object.group);
            object.name == name
                && (object.kind.eq_ignore_ascii_case(kind) || full.eq_ignore_ascii_case(kind))
                && self.namespace.as_ref().is_none_or(|namespace| *namespace == object.namespace)
        };
        let lines: Vec<Line> = read(&self.state)?
            .into_iter()
            .filter(|line| object_of(line).is_some_and(matches))
            .collect();
        if lines.is_empty() {
            anyhow::bail!(
                "the journal of {} tells nothing of {}: it never differed while this host ran, or the name is another",
                self.state.display(),
                self.object
            );
        }
        output::print(self.output.output, &lines, || {
            let mut text = String::new();
            for line in &lines {
                text.push_str(&told(line));
            }
            text
        })?;
        Ok(0)
    }
}

impl Show {
    fn run(self) -> anyhow::Result<u8> {
        let lines = read(&self.state)?;
        output::print(self.output.output, &lines, || lines.iter().map(told).collect())?;
        Ok(0)
    }
}

/// Lines that do not parse are named on stderr: they are evidence, and no reason to hide the rest.
fn read(state: &std::path::Path) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for line in journal::read(state)? {
        match line {
            Ok(line) => lines.push(line),
            Err((number, error)) => {
                eprintln!("trimtab: line {number} of the journal is damaged: {error}");
            }
        }
    }
    Ok(lines)
}

fn object_of(line: &Line) -> Option<&ObjectLine> {
    match &line.event {
        Event::Pass(pass) => Some(&pass.object),
        Event::Intent(intent) => Some(&intent.object),
        Event::Prune(prune) => Some(&prune.object),
        Event::Host(_) | Event::Source(_) | Event::Plugin(_) => None,
    }
}

fn told(line: &Line) -> String {
    let time = &line.time;
    match &line.event {
        Event::Pass(pass) => format!("{time}  {}", told_pass(pass)),
        Event::Intent(intent) => format!(
            "{time}  about to {} {}, as {} {} decided\n",
            intent.action.action,
            name(&intent.object),
            intent.plugin.name,
            intent.plugin.version
        ),
        Event::Prune(prune) => format!(
            "{time}  prune {} {}{}  (source {}, revision {})\n",
            prune.step.as_str(),
            ObjectKey::from(&prune.object),
            if prune.message.is_empty() { String::new() } else { format!(": {}", prune.message) },
            prune.source,
            prune.revision,
        ),
        Event::Host(host) => format!("{time}  host {} {}\n", host.event, host.message),
        Event::Source(source) if source.problems.is_empty() => {
            format!("{time}  source {} at {}\n", source.source, short(&source.revision))
        }
        Event::Source(source) => {
            format!("{time}  source refused: {}\n", source.problems.join("; "))
        }
        Event::Plugin(plugin) => {
            let colon = if plugin.message.is_empty() { "" } else { ": " };
            format!("{time}  plugin {} {}{colon}{}\n", plugin.file, plugin.event, plugin.message)
        }
    }
}

fn told_pass(pass: &PassLine) -> String {
    let mut text = format!("{} {}", pass.outcome, name(&pass.object));
    if let Some(ms) = pass.since_event_ms {
        let _ = write!(text, ", {ms:.0} ms after the event");
    }
    if !pass.message.is_empty() {
        let _ = write!(text, ": {}", pass.message);
    }
    text.push('\n');
    let mut detail = |line: String| {
        let _ = writeln!(text, "    {line}");
    };
    detail(format!("looked because of: {}", pass.trigger));
    for difference in &pass.differences {
        let value = |json: &Option<serde_json::Value>| {
            json.as_ref().map_or("absent".to_owned(), |json| shortened(&json.to_string()))
        };
        let path = if difference.path.is_empty() { "the object" } else { &difference.path };
        detail(format!(
            "{path} {}: live {}, declared {}",
            difference.kind,
            value(&difference.live),
            value(&difference.desired)
        ));
        for manager in &difference.managers {
            detail(format!("    {}: a hint, not a proof", manager.told()));
        }
    }
    for action in &pass.actions {
        let paths = if action.paths.is_empty() {
            String::new()
        } else {
            format!(" {}", action.paths.join(", "))
        };
        detail(format!("decided: {}{paths} ({})", action.action, pass.mode));
        for taken in &action.takes {
            detail(format!("    it takes {taken}"));
        }
    }
    for refusal in &pass.refusals {
        detail(format!("refused by the gate: {}: {}", refusal.reason, refusal.message));
    }
    for finding in &pass.findings {
        detail(format!("finding {} ({}): {}", finding.name, finding.severity, finding.message));
    }
    detail(format!(
        "by plugin {} {} {}",
        pass.plugin.name,
        pass.plugin.version,
        short(&pass.plugin.digest)
    ));
    detail(format!("declared in {} of {} at {}", pass.origin, pass.source, short(&pass.revision)));
    text
}

fn name(object: &ObjectLine) -> String {
    let kind = if object.group.is_empty() {
        object.kind.clone()
    } else {
        format!("{}.{}", object.kind, object.group)
    };
    if object.namespace.is_empty() {
        format!("{kind} {}", object.name)
    } else {
        format!("{kind} {}/{}", object.namespace, object.name)
    }
}

fn shortened(json: &str) -> String {
    const CHARS_AT_MOST: usize = 120;
    if json.chars().count() <= CHARS_AT_MOST {
        return json.to_owned();
    }
    json.chars().take(CHARS_AT_MOST).chain(['…']).collect()
}

fn short(digest: &str) -> &str {
    digest.get(..19).unwrap_or(digest)
}

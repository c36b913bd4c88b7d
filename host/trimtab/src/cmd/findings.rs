//! `trimtab findings`: what somebody should look at.

use crate::cli::OutputArgs;
use crate::findings::{self, FindingLine};
use crate::output::{self, Format};
use anyhow::Context as _;
use clap::Args;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;
use trimtab_core::signals::Name;

/// How often `--follow` looks for more.
const FOLLOW_EVERY: Duration = Duration::from_millis(200);
/// Longest message in a table, in characters.
const MESSAGE_AT_MOST: usize = 100;

/// What somebody should look at, the newest first.
///
/// Exit status: 0 nothing is found, 1 something is, 2 it cannot be read.
#[derive(Debug, Args)]
pub(crate) struct Findings {
    /// Findings about this object: KIND/NAME, where KIND may carry its group (Deployment.apps/web).
    object: Option<String>,
    /// Findings about objects in this namespace.
    #[arg(short, long)]
    namespace: Option<String>,
    /// Findings of this name; may be given several times.
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Vec<Name>,
    /// Findings that are at least so severe: info, warning, critical.
    #[arg(long, value_name = "SEVERITY", default_value = "info", value_parser = severity)]
    severity: trimtab_core::decision::Severity,
    /// Findings that were seen since then: RFC 3339, or how long ago (90s, 15m, 2h, 3d).
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Go on with what is found from now on, until interrupted. JSON is one line each then.
    #[arg(short, long)]
    follow: bool,
    /// State directory of the host.
    #[arg(long, value_name = "DIR", default_value = ".trimtab")]
    state: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

fn name(word: &str) -> Result<Name, String> {
    let names: Vec<&str> = Name::ALL.iter().map(|name| name.as_str()).collect();
    Name::parse(word).ok_or_else(|| format!("it is none of {}", names.join(", ")))
}

fn severity(word: &str) -> Result<trimtab_core::decision::Severity, String> {
    findings::severity(word).ok_or_else(|| "it is none of info, warning, critical".to_owned())
}

impl Findings {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let filter = self.filter()?;
        if self.follow {
            return self.follow(&filter);
        }
        let mut file = findings::read(&self.state)?;
        file.findings.retain(|finding| filter.matches(finding));
        output::print(self.output.output, &file, || table(&file.findings))?;
        Ok(u8::from(!file.findings.is_empty()))
    }

    fn filter(&self) -> anyhow::Result<Filter> {
        let object = match &self.object {
            Some(text) => {
                let parts = text
                    .split_once('/')
                    .filter(|(kind, name)| !kind.is_empty() && !name.is_empty());
                let (kind, name) = parts.with_context(|| {
                    format!("{text:?} is not KIND/NAME, such as Deployment/web")
                })?;
                Some((kind.to_owned(), name.to_owned()))
            }
            None => None,
        };
        Ok(Filter {
            object,
            namespace: self.namespace.clone(),
            names: self.name.iter().map(|name| name.as_str()).collect(),
            severity: self.severity,
            since: self.since.as_deref().map(super::audit::time).transpose()?,
        })
    }

    /// All that is there, then each that is new or was seen again.
    fn follow(&self, filter: &Filter) -> anyhow::Result<u8> {
        anyhow::ensure!(
            self.output.output != Format::Yaml,
            "--follow prints a table or JSON lines"
        );
        let mut told: HashMap<String, u64> = HashMap::new();
        let mut first = true;
        loop {
            match findings::read(&self.state) {
                Ok(file) => {
                    for finding in file.findings.iter().rev().filter(|it| filter.matches(it)) {
                        if told.insert(finding.id.clone(), finding.count) == Some(finding.count) {
                            continue;
                        }
                        match self.output.output {
                            Format::Json => {
                                output::write(&(serde_json::to_string(finding)? + "\n"))?
                            }
                            _ => output::write(&format!("{}  {}", finding.last, finding.told()))?,
                        }
                    }
                    told.retain(|id, _| file.findings.iter().any(|finding| finding.id == *id));
                }
                Err(error) if first => return Err(error),
                Err(error) => eprintln!("trimtab: {error:#}"),
            }
            first = false;
            std::thread::sleep(FOLLOW_EVERY);
        }
    }
}

/// Which findings somebody wants to see.
struct Filter {
    object: Option<(String, String)>,
    namespace: Option<String>,
    names: Vec<&'static str>,
    severity: trimtab_core::decision::Severity,
    since: Option<String>,
}

impl Filter {
    fn matches(&self, finding: &FindingLine) -> bool {
        let object = finding.object.as_ref();
        let is_kind = |wanted: &str| {
            object.is_some_and(|it| {
                it.kind.eq_ignore_ascii_case(wanted)
                    || format!("{}.{}", it.kind, it.group).eq_ignore_ascii_case(wanted)
            })
        };
        self.object.as_ref().is_none_or(|(kind, name)| {
            is_kind(kind) && object.is_some_and(|object| object.name == *name)
        }) && self
            .namespace
            .as_ref()
            .is_none_or(|namespace| object.is_some_and(|object| object.namespace == *namespace))
            && (self.names.is_empty() || self.names.contains(&finding.name.as_str()))
            && findings::severity(&finding.severity).is_none_or(|it| it >= self.severity)
            && self.since.as_ref().is_none_or(|since| finding.last >= *since)
    }
}

fn table(all: &[FindingLine]) -> String {
    if all.is_empty() {
        return "nothing is found\n".into();
    }
    let heading = ["LAST", "NAME", "SEVERITY", "COUNT", "ABOUT", "MESSAGE"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    for finding in all {
        let mut message: String = finding.message.chars().take(MESSAGE_AT_MOST).collect();
        if message.len() < finding.message.len() {
            message.push('…');
        }
        if let Some(ended) = &finding.ended {
            message = format!("(over at {ended}) {message}");
        }
        rows.push(vec![
            finding.last.clone(),
            finding.name.clone(),
            finding.severity.clone(),
            finding.count.to_string(),
            finding.subject(),
            message.replace('\n', "; "),
        ]);
    }
    output::table(&rows)
}

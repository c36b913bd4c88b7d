//! `trimtab diff`: what differs between desired and live, by meaning. Writes nothing.
//!
//! Against a cluster it is a pass of every object that may not write; on files it is the
//! comparison alone, with the schemas that come with the files. This file asks and says how it
//! ended; `files.rs` judges files, `answer.rs` is the answer, `table.rs` and `unified.rs` show it.

mod answer;
mod files;
mod paint;
mod table;
mod unified;

use self::answer::{Answer, Judged, Verdict};
use self::paint::Paint;
use crate::cli::{ClusterArgs, runtime};
use crate::config::SourceArgs;
use crate::output::{self, Format};
use crate::round::{self, Judges, Looked};
use clap::Args;
use std::path::PathBuf;
use trimtab_core::redact::Redactor;

/// Show what differs between desired and live, by meaning. Writes nothing.
///
/// Exit status: 0 nothing differs, 1 there are differences, 2 something could not be read or
/// judged.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    #[command(flatten)]
    source: SourceArgs,
    /// Desired state as a file (- for stdin), compared without a cluster.
    #[arg(
        long,
        value_name = "FILE",
        requires = "live",
        conflicts_with_all = ["source", "config"],
        required_unless_present_any = ["source", "config"]
    )]
    desired: Option<PathBuf>,
    /// Live state as a file (- for stdin).
    #[arg(long, value_name = "FILE", requires = "desired")]
    live: Option<PathBuf>,
    /// Files with CustomResourceDefinitions, for comparisons without a cluster.
    #[arg(long, value_name = "FILE", requires = "desired")]
    schemas: Vec<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// How the answer looks.
    #[arg(short, long, value_enum, default_value = "table")]
    output: View,
    /// Colours, for table and unified: auto is on a terminal, unless NO_COLOR is set.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    color: clap::ColorChoice,
}

/// `-o`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum View {
    /// For people: field by field, with who wrote it and when.
    Table,
    /// A unified diff from live to desired, as kubectl's.
    Unified,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

impl Diff {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let redactor = Redactor::new(random_key()?);
        let (mut answer, redactor) = match (&self.desired, &self.live) {
            (Some(desired), Some(live)) => {
                let source = self.source.for_files()?;
                files::judge(&source, desired, live, &self.schemas, &redactor)?
            }
            _ => runtime()?.block_on(self.against_cluster(&redactor))?,
        };
        answer.objects.sort_by(|a, b| a.object.cmp(&b.object));
        for rule in answer.idle_rules() {
            eprintln!("trimtab: ignore rule {rule} leads to no field of any object");
        }
        let paint = Paint::new(self.color);
        match self.output {
            View::Table => output::write(&table::table(&answer, paint))?,
            View::Unified => {
                for line in unified::remarks(&answer) {
                    eprintln!("trimtab: {line}");
                }
                output::write(&unified::unified(&answer, &redactor, paint)?)?;
            }
            View::Json => output::print(Format::Json, &answer, String::new)?,
            View::Yaml => output::print(Format::Yaml, &answer, String::new)?,
        }
        let has = |is: fn(&Judged) -> bool| answer.objects.iter().any(is);
        Ok(match (answer.errors.is_empty(), has(|judged| judged.verdict == Verdict::Unknown)) {
            (true, false) => u8::from(has(|judged| judged.verdict != Verdict::InSync)),
            _ => 2,
        })
    }

    async fn against_cluster(&self, redactor: &Redactor) -> anyhow::Result<(Answer, Redactor)> {
        let config = self.source.read_some()?;
        let redactor = &redactor.with(&config.redact);
        let mut answer = Answer::with_rules(config.sources.iter().flat_map(|it| &it.ignore));
        let mut revisions = Vec::new();
        for (source, read) in crate::sources::read_once(&config.sources)? {
            match read {
                Ok(revision) => revisions.push((source, revision)),
                Err(error) => answer.refused(&error),
            }
        }
        if revisions.is_empty() {
            return Ok((answer, redactor.clone()));
        }
        let server = super::connect(&self.cluster).await?;
        let round = round::observe(server, revisions, &Judges::Generic, redactor).await?;
        answer.errors.extend(round.errors.iter().map(Into::into));
        answer.errors.extend(round.refused.iter().map(Into::into));
        answer.objects.extend(
            round
                .unplaced
                .iter()
                .map(|(manifest, reason)| Judged::of(manifest, Verdict::Unknown, reason.clone())),
        );
        for looked in round.looked {
            answer.ignored(&looked.record.ignored);
            answer.objects.push(looked.into());
        }
        Ok((answer, round.redactor))
    }
}

/// What these looks found, as `trimtab diff` shows it without colours.
pub(crate) fn shown(looked: Vec<Looked>) -> String {
    let mut answer = Answer::default();
    answer.objects = looked.into_iter().map(Into::into).collect();
    answer.objects.sort_by(|a, b| a.object.cmp(&b.object));
    table::table(&answer, Paint::new(clap::ColorChoice::Never))
}

/// A key for one command's fingerprints.
fn random_key() -> anyhow::Result<[u8; 32]> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(key)
}

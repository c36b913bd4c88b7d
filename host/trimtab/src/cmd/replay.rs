//! `trimtab plugin replay`: asks a plugin again what it was asked in a pass.

use crate::cli::OutputArgs;
use crate::journal::{self, Event, Line};
use crate::output;
use crate::replay::{Inputs, Replayed, replay};
use anyhow::{Context as _, bail};
use clap::Args;
use similar::TextDiff;
use std::path::{Path, PathBuf};
use trimtab_core::identity::Digest;
use trimtab_core::ownership::FIELD_MANAGER;
use trimtab_wasm::{Plugin, Sandbox, SandboxOptions};

/// Ask a plugin again what it was asked in a pass of the audit log, or ask another build.
///
/// Nothing is read from a cluster and nothing is written. Exit status 0: every answer is the recorded
/// one. 1: an answer differs, and how.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The pass: the number (`seq`) of its line in the audit log, the digest of its inputs, or a file
    /// of inputs.
    record: String,
    /// Ask this build instead of the one that answered.
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
    /// Where the build that answered is looked for.
    #[arg(long, value_name = "DIR", default_value = "plugins")]
    plugins: PathBuf,
    /// State directory of the host.
    #[arg(long, value_name = "DIR", default_value = ".trimtab")]
    state: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

impl Replay {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let inputs = self.inputs()?;
        let bytes = self.build(&inputs)?;
        let sandbox = Sandbox::new(SandboxOptions {
            cache_dir: None,
            compiler: crate::cli::compiler()?,
            field_manager: FIELD_MANAGER.into(),
            ..SandboxOptions::default()
        })?;
        let plugin = Plugin::load_with_wasi(&bytes, &sandbox)?;
        let replayed = replay(&inputs, &plugin)?;
        output::print(self.output.output, &replayed, || told(&inputs, &plugin, &replayed))?;
        Ok(u8::from(!replayed.is_same()))
    }

    fn inputs(&self) -> anyhow::Result<Inputs> {
        let record = &self.record;
        if let Some(digest) = Digest::parse(record) {
            return Inputs::of(&self.state, &digest);
        }
        if let Ok(seq) = record.parse() {
            return Inputs::of(&self.state, &self.digest(seq)?);
        }
        let bytes = std::fs::read(record).with_context(|| {
            format!("{record} is no number of a line, no digest, and no file that can be read")
        })?;
        Inputs::read(&bytes).with_context(|| record.clone())
    }

    /// Of the inputs of the pass with this number.
    fn digest(&self, seq: u64) -> anyhow::Result<Digest> {
        let mut lines = journal::Lines::of(journal::files_of(&self.state)?);
        let mut bytes = Vec::new();
        let number = format!(r#""seq":{seq},"#);
        while lines.next_into(&mut bytes)?.is_some() {
            if memchr::memmem::find(&bytes, number.as_bytes()).is_none() {
                continue;
            }
            match serde_json::from_slice::<Line>(&bytes) {
                Ok(Line { seq: found, event: Event::Pass(pass), .. }) if found == seq => {
                    let inputs = pass.inputs.as_deref().and_then(Digest::parse);
                    return inputs.with_context(|| {
                        format!(
                            "nothing was kept of pass {seq}: it saw a Secret, its plugin gave no answer, or the host keeps nothing (--keep-inputs)"
                        )
                    });
                }
                Ok(line) if line.seq == seq => bail!("line {seq} of the audit log is no pass"),
                _ => {}
            }
        }
        bail!("the audit log of {} has no line {seq} (any more)", self.state.display())
    }

    fn build(&self, inputs: &Inputs) -> anyhow::Result<Vec<u8>> {
        match &self.with {
            Some(file) => super::plugin::read(file),
            None => found(&self.plugins, &inputs.plugin.digest)?.with_context(|| {
                format!(
                    "{} {} {} is not in {}: give its folder with --plugins, or another build with --with",
                    inputs.plugin.name,
                    inputs.plugin.version,
                    inputs.plugin.digest,
                    self.plugins.display()
                )
            }),
        }
    }
}

/// The plugin file with this digest.
fn found(folder: &Path, digest: &str) -> anyhow::Result<Option<Vec<u8>>> {
    let wrong = || format!("cannot look for the plugin in {}", folder.display());
    for entry in std::fs::read_dir(folder).with_context(wrong)? {
        let path = entry.with_context(wrong)?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            let bytes = super::plugin::read(&path)?;
            if Digest::of(&bytes).to_string() == digest {
                return Ok(Some(bytes));
            }
        }
    }
    Ok(None)
}

fn told(inputs: &Inputs, plugin: &Plugin, replayed: &Replayed) -> String {
    let build = plugin.identity();
    let then = &inputs.plugin;
    let object = &inputs.object;
    let mut text = format!(
        "{} {}{}{}, by {} {} {}\n",
        object.kind,
        object.namespace,
        if object.namespace.is_empty() { "" } else { "/" },
        object.name,
        then.name,
        then.version,
        then.digest
    );
    if build.digest.to_string() != then.digest {
        text.push_str(&format!("asked: {} {} {}\n", build.name, build.version, build.digest));
    }
    let mut show = |question: &str, recorded: &serde_json::Value, now: &serde_json::Value| {
        if recorded == now {
            text.push_str(&format!("{question}: the same answer\n"));
            return;
        }
        let pretty = |value| serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
        let (recorded, now) = (pretty(recorded), pretty(now));
        text.push_str(&format!("{question}: another answer\n"));
        let diff = TextDiff::from_lines(&recorded, &now);
        text.push_str(&diff.unified_diff().header("recorded", "now").to_string());
    };
    show("compare", &replayed.comparison.recorded, &replayed.comparison.now);
    if let Some(decision) = &replayed.decision {
        show("decide", &decision.recorded, &decision.now);
    }
    for read in &replayed.other_reads {
        text.push_str(&format!(
            "it read {read}, which was not read then: answered as unavailable\n"
        ));
    }
    text
}

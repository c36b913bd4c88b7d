//! Sources as flags: `--source`, or `--config` with the file that names them.

use super::file::{self, ModeWord};
use super::{Config, Place, SourceConfig, checked_name, duration};
use anyhow::Context as _;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use trimtab_core::ignore::{Rule, Scoped};
use trimtab_core::terms::SourceTerms;
use trimtab_source::git::GitOptions;
use trimtab_source::{Location, parse_location};

/// Which sources.
#[derive(Clone, Debug, Args)]
pub struct SourceArgs {
    /// Where desired state comes from: a directory, one file, or a repository of Git as
    /// URL#REFERENCE:FOLDER. May be given several times; NAME= before it names the source, else its
    /// last path element does.
    #[arg(long, value_name = "[NAME=]LOCATION")]
    source: Vec<String>,
    /// Configuration file that names the sources instead, and what to ignore in them; `run` looks
    /// at it while it runs.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["source", "namespace", "interval", "mode", "prune"])]
    pub config: Option<PathBuf>,
    /// Namespace of namespaced objects that name none; `default` if nothing is said.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// How often each --source is looked at without any hint: 30s for directories and 1m for Git if
    /// nothing is said.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    interval: Option<Duration>,
    /// What becomes of each --source: enforce if nothing is said.
    #[arg(long, value_enum, value_name = "MODE")]
    mode: Option<ModeWord>,
    /// What each --source declares no more may be deleted.
    #[arg(long)]
    prune: bool,
    /// Ignore rule for every object: PATH, PATH by MANAGER, or by MANAGER. May be given several
    /// times.
    #[arg(long, value_name = "RULE")]
    ignore: Vec<String>,
}

impl SourceArgs {
    /// What was asked for; no sources where none were named.
    ///
    /// # Errors
    /// A location, rule or file that cannot be read, with its place.
    pub fn read(&self) -> anyhow::Result<Config> {
        let config = match &self.config {
            Some(file) => file::read(file)?,
            None => {
                let sources: Result<Vec<SourceConfig>, String> =
                    self.source.iter().map(|text| self.one(text)).collect();
                sources.and_then(Config::of).map_err(anyhow::Error::msg).context("--source")?
            }
        };
        let rules = self.rules()?;
        let with_rules = |source: Arc<SourceConfig>| {
            let mut source = Arc::unwrap_or_clone(source);
            source.ignore.extend(rules.iter().cloned());
            Arc::new(source)
        };
        let sources = config.sources.into_iter().map(with_rules).collect();
        Ok(Config { sources, ..config })
    }

    /// The same; none is an error.
    ///
    /// # Errors
    /// As [`SourceArgs::read`].
    pub fn read_some(&self) -> anyhow::Result<Config> {
        let config = self.read()?;
        anyhow::ensure!(
            !config.sources.is_empty(),
            "there is no source: give --source LOCATION, or --config FILE with a file that names some"
        );
        Ok(config)
    }

    /// What counts for files that a command names itself: namespace and rules.
    ///
    /// # Errors
    /// A rule that cannot be read.
    pub fn for_files(&self) -> anyhow::Result<SourceConfig> {
        let mut config = SourceConfig::new("file".into(), Place::Directory(PathBuf::new()));
        if let Some(namespace) = &self.namespace {
            config.namespace.clone_from(namespace);
        }
        config.ignore = self.rules()?;
        Ok(config)
    }

    fn rules(&self) -> anyhow::Result<Vec<Scoped>> {
        let rule = |text: &String| Rule::parse(text, "--ignore").map(Scoped::everywhere);
        self.ignore.iter().map(rule).collect::<Result<_, _>>().map_err(anyhow::Error::msg)
    }

    fn one(&self, text: &str) -> Result<SourceConfig, String> {
        let (name, location) = match named(text) {
            Some((name, location)) => (Some(checked_name(name)?), location),
            None => (None, text),
        };
        let location = parse_location(location).map_err(|error| error.to_string())?;
        let name = name.unwrap_or_else(|| name_of(&location));
        let place = match location {
            Location::Directory(path) => Place::Directory(path),
            Location::Git { url, reference, path } => {
                Place::Git(Box::new(GitOptions { reference, path, ..GitOptions::new(url) }))
            }
        };
        let mut source = SourceConfig::new(name, place);
        source.interval = self.interval.unwrap_or(source.interval);
        if let Some(namespace) = &self.namespace {
            source.namespace.clone_from(namespace);
        }
        let mode = self.mode.unwrap_or_default();
        source.suspend = mode == ModeWord::Suspend;
        source.terms = Arc::new(SourceTerms {
            mode: mode.mode(),
            prune: self.prune,
            ..SourceTerms::default()
        });
        Ok(source)
    }
}

/// `NAME=LOCATION`, where what stands before `=` could be a name; `./a=b` is a directory.
fn named(text: &str) -> Option<(&str, &str)> {
    let (name, location) = text.split_once('=')?;
    let is_name =
        !name.is_empty() && name.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '-');
    is_name.then_some((name, location))
}

/// A source's name where none is given: its last path element, as far as that makes one.
fn name_of(location: &Location) -> String {
    let text = match location {
        // `.` and `..` have no name of their own.
        Location::Directory(path) => match path.file_name() {
            Some(_) => path.clone(),
            None => std::path::absolute(path).unwrap_or_default(),
        }
        .to_string_lossy()
        .into_owned(),
        Location::Git { url, path, .. } if path.is_empty() => url.to_string(),
        Location::Git { path, .. } => path.clone(),
    };
    let last = text.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    let last = last.strip_suffix(".git").unwrap_or(last);
    let last = last.strip_suffix(".yaml").or(last.strip_suffix(".yml")).unwrap_or(last);
    let dashed =
        |sign: char| if sign.is_ascii_alphanumeric() { sign.to_ascii_lowercase() } else { '-' };
    let name: String = last.chars().map(dashed).take(super::NAME_BYTES_AT_MOST).collect();
    match name.trim_matches('-') {
        "" => "source".into(),
        name => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> String {
        name_of(&parse_location(text).unwrap())
    }

    #[test]
    fn a_source_is_named_by_its_last_path_element() {
        assert_eq!(name("deploy/Shop_2/"), "shop-2");
        assert_eq!(name("deploy/app.yaml"), "app");
        assert_eq!(name("https://example.com/team/infra.git"), "infra");
        assert_eq!(name("https://example.com/team/infra.git#main:clusters/prod"), "prod");
        assert_eq!(name("git@example.com:infra.git"), "infra");
        assert_eq!(name("/"), "source");
    }

    #[test]
    fn a_name_stands_before_the_location_and_a_path_with_a_sign_of_equality_is_one() {
        assert_eq!(named("shop=deploy"), Some(("shop", "deploy")));
        assert_eq!(named("shop=https://h/r?a=b"), Some(("shop", "https://h/r?a=b")));
        assert_eq!(named("./a=b"), None);
        assert_eq!(named("https://h/r?a=b"), None);
    }
}

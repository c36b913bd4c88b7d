//! Which sources a host follows, and how: from flags, or from a configuration file.
//!
//! `flags.rs` reads the command line and `file.rs` a file (its words are part of the product's
//! contract: docs/configuration.md), both into the values of this file. `reload.rs` looks at the
//! file while the host runs.

mod duration;
mod file;
mod flags;
mod git;
mod ignore;
mod reload;

pub use self::file::{parse, read};
pub use self::flags::SourceArgs;
pub use self::reload::{ConfigUpdate, follow};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use trimtab_core::ignore::Scoped;
use trimtab_core::redact::Sensitive;
use trimtab_core::terms::{SourceTerms, is_label};
use trimtab_source::git::GitOptions;

/// Namespace of namespaced objects that name none, where nothing else is said.
const DEFAULT_NAMESPACE: &str = "default";
/// How often a directory is looked at without any hint that it changed.
const DIRECTORY_INTERVAL: Duration = Duration::from_secs(30);
/// How often a repository is asked whether its reference moved.
const GIT_INTERVAL: Duration = Duration::from_secs(60);
/// Longest name of a source: with what is put around it, it is a label in Kubernetes.
const NAME_BYTES_AT_MOST: usize = 40;

/// Every source, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// In the order of their names; no two have the same.
    pub sources: Vec<Arc<SourceConfig>>,
    /// Values that are hidden as a Secret's are.
    pub redact: Vec<Sensitive>,
}

/// One source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceConfig {
    /// Its name: a label of RFC 1123.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// How long until the next look without any hint.
    pub interval: Duration,
    /// Its objects are not looked at, by what the configuration says.
    pub suspend: bool,
    /// Namespace of namespaced objects that name none.
    pub namespace: String,
    /// What its objects are held to. Another value whenever anything in the configuration of the
    /// source is another.
    pub terms: Arc<SourceTerms>,
    /// Sources that come before it.
    pub depends_on: Vec<String>,
    /// What to ignore, in which objects.
    pub ignore: Vec<Scoped>,
}

/// Where a source is.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// A directory, or one file.
    Directory(PathBuf),
    /// A folder of a repository of Git.
    Git(Box<GitOptions>),
}

impl SourceConfig {
    /// The source at this place, and everything else as it is where nothing is said.
    fn new(name: String, place: Place) -> Self {
        let interval = match place {
            Place::Directory(_) => DIRECTORY_INTERVAL,
            Place::Git(_) => GIT_INTERVAL,
        };
        Self {
            name,
            place,
            interval,
            suspend: false,
            namespace: DEFAULT_NAMESPACE.into(),
            terms: Arc::default(),
            depends_on: Vec::new(),
            ignore: Vec::new(),
        }
    }

    /// Where it is, for people: without credentials.
    pub fn location(&self) -> String {
        match &self.place {
            Place::Directory(path) => path.display().to_string(),
            Place::Git(options) => git::location(options),
        }
    }
}

impl Config {
    /// These sources, in order.
    ///
    /// # Errors
    /// Two with one name, or a source that waits for one that is not there, or for itself.
    fn of(sources: Vec<SourceConfig>) -> Result<Self, String> {
        let mut sources: Vec<Arc<SourceConfig>> = sources.into_iter().map(Arc::new).collect();
        sources.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = sources.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(format!("two sources are named {:?}: name one otherwise", pair[0].name));
        }
        let config = Self { sources, redact: Vec::new() };
        for source in &config.sources {
            if let Some(missing) = source.depends_on.iter().find(|it| config.get(it).is_none()) {
                return Err(format!(
                    "source {:?} depends on {missing:?}, and there is no such source",
                    source.name
                ));
            }
            config.no_circle(source, &mut vec![&source.name])?;
        }
        Ok(config)
    }

    fn no_circle<'c>(
        &'c self,
        from: &'c SourceConfig,
        way: &mut Vec<&'c String>,
    ) -> Result<(), String> {
        for name in &from.depends_on {
            if way.contains(&name) {
                let way: Vec<&str> = way.iter().chain([&name]).map(|it| it.as_str()).collect();
                return Err(format!("sources wait for each other: {}", way.join(" → ")));
            }
            if let Some(next) = self.get(name) {
                way.push(name);
                self.no_circle(next, way)?;
                way.pop();
            }
        }
        Ok(())
    }

    /// One source, of this directory or file.
    pub fn of_directory(path: &Path) -> Self {
        let source = SourceConfig::new("source".into(), Place::Directory(path.to_owned()));
        Self { sources: vec![Arc::new(source)], redact: Vec::new() }
    }

    /// The source of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<SourceConfig>> {
        self.sources.iter().find(|source| source.name == name)
    }

    /// The same, with those sources that are as they were in `old` being the very same values.
    pub fn after(mut self, old: &Self) -> Self {
        for source in &mut self.sources {
            if let Some(same) = old.get(&source.name).filter(|before| **before == *source) {
                *source = same.clone();
            }
        }
        self
    }
}

/// What a source may be named.
///
/// # Errors
/// What is wrong with the name.
fn checked_name(name: &str) -> Result<String, String> {
    if is_label(name) && name.len() <= NAME_BYTES_AT_MOST {
        return Ok(name.to_owned());
    }
    Err(format!(
        "the source's name {name:?} is not made of a-z, 0-9 and dashes within, {NAME_BYTES_AT_MOST} at most"
    ))
}

#[cfg(test)]
mod tests;

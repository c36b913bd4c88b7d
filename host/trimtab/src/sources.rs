//! A configured source as something to read: the one place that knows which kinds there are.

use crate::config::{Place, SourceConfig};
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trimtab_core::object::Revision;
use trimtab_source::git::Git;
use trimtab_source::git::trust::Memory;
use trimtab_source::{Directory, Kept, Source, SourceError};

/// The folder of a source within the state directory: what it remembers.
pub(crate) fn folder(state: &Path, name: &str) -> PathBuf {
    state.join("sources").join(name)
}

/// The source, with its memory in this state directory.
///
/// # Errors
/// Its options are no use, and why.
pub(crate) fn open(config: &SourceConfig, state: &Path) -> Result<Arc<dyn Source>, SourceError> {
    let folder = folder(state, &config.name);
    match &config.place {
        Place::Directory(path) => {
            let directory = Directory::new(&config.name, path, &config.namespace);
            Ok(Arc::new(Kept::new(directory, &config.location(), &folder)))
        }
        Place::Git(options) => {
            let git = Git::open(&config.name, (**options).clone(), state, &config.namespace)?;
            Ok(Arc::new(git))
        }
    }
}

/// A source that was read once, and what came of it.
pub(crate) type Once = (Arc<SourceConfig>, Result<Revision, SourceError>);

/// Reads each source once, for a command that ends. What has to be fetched is fetched into a folder
/// that is gone afterwards: a host's own state is the host's.
///
/// # Errors
/// No folder can be made; that a source cannot be read is part of the answer.
pub(crate) fn read_once(sources: &[Arc<SourceConfig>]) -> anyhow::Result<Vec<Once>> {
    let all = read_with(sources, |_, _| None)?;
    Ok(all.into_iter().map(|(once, _)| once).collect())
}

/// The same; and of what a host with this state directory would not take, since it steps back in
/// history, why.
///
/// # Errors
/// As [`read_once`].
pub(crate) fn read_and_judge(
    sources: &[Arc<SourceConfig>],
    state: &Path,
) -> anyhow::Result<Vec<(Once, Option<String>)>> {
    read_with(sources, |config, source| {
        let memory = Memory::new(folder(state, &config.name));
        let accepted = match memory.accepted() {
            Ok(accepted) => accepted?,
            Err(error) => return Some(error.to_string()),
        };
        source.remembered_elsewhere(&accepted.commit.to_string());
        match source.read() {
            Err(error @ SourceError::SteppedBack { .. }) => Some(error.to_string()),
            _ => None,
        }
    })
}

fn read_with(
    sources: &[Arc<SourceConfig>],
    judge: impl Fn(&SourceConfig, &dyn Source) -> Option<String>,
) -> anyhow::Result<Vec<(Once, Option<String>)>> {
    let scratch = tempfile::tempdir().context("cannot make a folder to fetch into")?;
    let read = |config: &Arc<SourceConfig>| {
        let read = open(config, scratch.path()).and_then(|source| {
            let revision = source.read()?;
            Ok((revision, judge(config, &*source)))
        });
        match read {
            Ok((revision, judged)) => ((config.clone(), Ok(revision)), judged),
            Err(error) => ((config.clone(), Err(error)), None),
        }
    };
    Ok(sources.iter().map(read).collect())
}

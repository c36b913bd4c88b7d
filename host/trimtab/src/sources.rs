//! A configured source as something to read: the one place that knows which kinds there are.

use crate::config::{Place, SourceConfig};
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trimtab_core::object::Revision;
use trimtab_source::git::Git;
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
    let scratch = tempfile::tempdir().context("cannot make a folder to fetch into")?;
    let read = |config: &Arc<SourceConfig>| {
        let revision = open(config, scratch.path()).and_then(|source| source.read());
        (config.clone(), revision)
    };
    Ok(sources.iter().map(read).collect())
}

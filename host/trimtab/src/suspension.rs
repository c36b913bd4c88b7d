//! What a person suspended, as the state directory remembers it: one small file for each source or
//! plugin, there as long as the suspension lasts.

use crate::timestamp::now_ms;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Since when something is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Suspension {
    /// Milliseconds since the Unix epoch.
    pub(crate) since_ms: u64,
}

/// What can be suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sort {
    /// A source.
    Source,
    /// A plugin.
    Plugin,
}

impl Sort {
    /// The word for people.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Sort::Source => "source",
            Sort::Plugin => "plugin",
        }
    }
}

fn file(state: &Path, sort: Sort, name: &str) -> PathBuf {
    state.join("suspended").join(format!("{}-{name}", sort.as_str()))
}

/// The suspension, if there is one. A file that cannot be read counts: somebody wanted it.
pub(crate) fn of(state: &Path, sort: Sort, name: &str) -> Option<Suspension> {
    let file = file(state, sort, name);
    let since_ms = match std::fs::read(&file) {
        Ok(text) => serde_json::from_slice(&text).map(|it: Suspension| it.since_ms).ok(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(_) => None,
    };
    Some(Suspension { since_ms: since_ms.unwrap_or_default() })
}

/// The suspension of a source, if there is one.
pub(crate) fn of_source(state: &Path, name: &str) -> Option<Suspension> {
    of(state, Sort::Source, name)
}

/// Suspends; what is suspended already stays so since then.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn set(state: &Path, sort: Sort, name: &str) -> anyhow::Result<Suspension> {
    if let Some(suspension) = of(state, sort, name) {
        return Ok(suspension);
    }
    let suspension = Suspension { since_ms: now_ms() };
    let path = file(state, sort, name);
    let folder = path.parent().unwrap_or(state);
    std::fs::create_dir_all(folder)?;
    let mut beside = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer(&mut beside, &suspension)?;
    beside.as_file().sync_all()?;
    beside.persist(&path)?;
    Ok(suspension)
}

/// Ends a suspension.
///
/// # Errors
/// The file cannot be removed.
pub(crate) fn end(state: &Path, sort: Sort, name: &str) -> io::Result<()> {
    match std::fs::remove_file(file(state, sort, name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

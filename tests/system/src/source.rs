//! Manifests on disk: copied, counted, named.

use crate::Id;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Copies a folder with all that is in it.
///
/// # Errors
/// A file cannot be read or written.
pub fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    for file in files(from)? {
        let target = to.join(file.strip_prefix(from)?);
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::copy(&file, &target)
            .with_context(|| format!("cannot copy {} to {}", file.display(), target.display()))?;
    }
    Ok(())
}

/// The objects that the YAML files of a folder declare, in the files' own words.
///
/// # Errors
/// A file that does not parse. For our own plain files: no Lists, and YAML as everybody reads it.
pub fn objects_in(folder: &Path) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for file in files(folder)? {
        if file.extension().is_some_and(|extension| extension == "yaml") {
            let text = std::fs::read_to_string(&file)?;
            all.extend(documents(&text).with_context(|| file.display().to_string())?);
        }
    }
    Ok(all)
}

/// The documents of a YAML text.
///
/// # Errors
/// It does not parse.
pub fn documents(text: &str) -> Result<Vec<Value>> {
    let all: Vec<Value> = serde_saphyr::from_multiple(text)?;
    Ok(all.into_iter().filter(|value| !value.is_null()).collect())
}

/// The names of the objects in a folder, as [`objects_in`] reads it.
///
/// # Errors
/// As [`objects_in`].
pub fn objects(folder: &Path) -> Result<Vec<Id>> {
    let named = |object: &Value| {
        Id::of(object).with_context(|| format!("a document without a name in {}", folder.display()))
    };
    objects_in(folder)?.iter().map(named).collect()
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

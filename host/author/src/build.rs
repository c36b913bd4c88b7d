//! From a crate to one plugin file.

use crate::manifest::Plugin;
use crate::{Error, cargo, component};
use std::fs;
use std::path::{Path, PathBuf};
use trimtab_wasm::{Inspection, inspect};

/// What a plugin's file should stay below, in bytes: larger ones work, and take longer to compile.
/// The SDK's generic comparison is some 70 KB, and goes with what overrides `compare`.
pub const SIZE_GOAL_BYTES: usize = 100 << 10;

/// How to build.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions {
    /// Folder for the file; `None`: the crate's own. It is made where it is missing.
    pub out: Option<PathBuf>,
}

/// A plugin's file that was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// The file.
    pub file: PathBuf,
    /// What it says of itself.
    pub inspection: Inspection,
    /// What the author should know, though the file works.
    pub warning: Option<String>,
}

/// Builds the crate in `dir` into one file `NAME.wasm`.
///
/// # Flow
/// Check the manifest and the target, compile with cargo, strip, encode as a component, add the
/// manifest, inspect the result as a host would, write it in one step.
///
/// # Guarantees
/// The file is replaced only by a whole one that [`inspect`] accepts. The user's own cargo
/// settings stay in force.
///
/// # Errors
/// What failed, and what to do; see [`Error`].
pub fn build(dir: &Path, options: &BuildOptions) -> Result<Built, Error> {
    let (name, bytes, inspection) = build_bytes(dir)?;
    let out = options.out.as_deref().unwrap_or(dir);
    fs::create_dir_all(out).map_err(Error::file(out))?;
    let file = out.join(format!("{name}.wasm"));
    // Hidden until it is whole: a host that watches the folder passes over hidden files.
    let partial = out.join(format!(".{name}.{}.partial", std::process::id()));
    fs::write(&partial, &bytes).map_err(Error::file(&partial))?;
    fs::rename(&partial, &file).map_err(Error::file(&file))?;
    let warning = (bytes.len() > SIZE_GOAL_BYTES).then(|| {
        format!(
            "{} has {} KiB, and the goal is {}: set opt-level = \"z\", and look for large dependencies (serde, regex, chrono)",
            file.display(),
            bytes.len() >> 10,
            SIZE_GOAL_BYTES >> 10
        )
    });
    Ok(Built { file, inspection, warning })
}

/// The plugin's name, its file's bytes, and what a host reads in them.
pub(crate) fn build_bytes(dir: &Path) -> Result<(String, Vec<u8>, Inspection), Error> {
    let package = cargo::package(dir)?;
    let plugin = Plugin::read(&package.manifest_path)?;
    // Before minutes of compiling: what can be told from the manifest alone.
    plugin.to_json(&package, "0.0.0")?;
    cargo::check_target(dir)?;
    let core = cargo::compile(&package)?;
    let core = fs::read(&core).map_err(Error::file(&core))?;
    let component = component::encode(&package.name, &core)?;
    let wit = trimtab_wasm::wit_version(&component)?;
    let bytes = component::with_manifest(&component, &plugin.to_json(&package, &wit)?);
    let inspection = inspect(&bytes)?;
    Ok((plugin.name(&package).to_owned(), bytes, inspection))
}

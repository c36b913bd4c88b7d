//! What a plugin says of itself, from its `Cargo.toml` to the JSON in its file.
//!
//! Name, version and description come from `[package]`; `[package.metadata.trimtab]` adds claims,
//! reads and actions, and may give the plugin a name of its own. Unknown keys are refused there,
//! with their line.

use crate::Error;
use crate::cargo::Package;
use std::path::Path;

/// The parts of a `Cargo.toml` that are read here; cargo checks the rest.
#[derive(serde::Deserialize)]
struct CargoToml {
    package: CargoPackage,
}

#[derive(serde::Deserialize)]
struct CargoPackage {
    metadata: Option<Metadata>,
}

#[derive(serde::Deserialize)]
struct Metadata {
    trimtab: Option<Plugin>,
}

/// `[package.metadata.trimtab]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plugin {
    /// Where it is not the package's.
    name: Option<String>,
    claims: Vec<String>,
    #[serde(default)]
    reads: Vec<String>,
    #[serde(default)]
    actions: Vec<String>,
}

/// The manifest as the file carries it.
#[derive(serde::Serialize)]
struct Wire<'a> {
    name: &'a str,
    version: &'a str,
    description: &'a str,
    wit: &'a str,
    claims: &'a [String],
    reads: &'a [String],
    actions: &'a [String],
}

impl Plugin {
    /// Reads the table from a crate's `Cargo.toml`.
    pub(crate) fn read(cargo_toml: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(cargo_toml).map_err(Error::file(cargo_toml))?;
        let failed = |message: String| Error::Manifest { path: cargo_toml.to_owned(), message };
        let read: CargoToml = toml::from_str(&text)
            .map_err(|error| failed(error.to_string().trim_end().to_owned()))?;
        read.package.metadata.and_then(|metadata| metadata.trimtab).ok_or_else(|| {
            failed(
                "there is no [package.metadata.trimtab]: add it, with for example claims = [\"Deployment.apps\"] and actions = [\"apply-desired\"]"
                    .into(),
            )
        })
    }

    /// The plugin's name.
    pub(crate) fn name<'a>(&'a self, package: &'a Package) -> &'a str {
        self.name.as_deref().unwrap_or(&package.name)
    }

    /// The JSON that the file carries, checked as a host checks it.
    pub(crate) fn to_json(&self, package: &Package, wit: &str) -> Result<Vec<u8>, Error> {
        let wire = Wire {
            name: self.name(package),
            version: &package.version,
            description: package.description.as_deref().unwrap_or_default(),
            wit,
            claims: &self.claims,
            reads: &self.reads,
            actions: &self.actions,
        };
        let json =
            serde_json::to_vec(&wire).map_err(|error| Error::CargoAnswer(error.to_string()))?;
        trimtab_wasm::read_manifest(&json).map_err(|error| Error::Manifest {
            path: package.manifest_path.clone(),
            message: match error {
                trimtab_wasm::Error::Manifest(message) => message,
                other => other.to_string(),
            },
        })?;
        Ok(json)
    }
}

//! What `make build` leaves behind, found or asked for.

use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};

/// The binary and the plugins under test.
#[derive(Clone, Debug)]
pub struct Built {
    /// `trimtab`.
    pub trimtab: PathBuf,
    /// The folder with our plugins, such as `generic.wasm`.
    pub plugins: PathBuf,
}

impl Built {
    /// `TRIMTAB_BIN` and `TRIMTAB_PLUGINS`, or else what is in the workspace's `target` folder.
    ///
    /// # Errors
    /// Something is not there; the message says to run `make build`.
    pub fn find() -> Result<Self> {
        let target = workspace().join("target");
        let place = |variable: &str, usual: &str| {
            std::env::var_os(variable).map_or_else(|| target.join(usual), PathBuf::from)
        };
        let built = Self {
            trimtab: place("TRIMTAB_BIN", "bin/trimtab"),
            plugins: place("TRIMTAB_PLUGINS", "plugins"),
        };
        for needed in [built.trimtab.clone(), built.plugin("generic")] {
            if !needed.is_file() {
                bail!("{} is not there: run `make build` first", needed.display());
            }
        }
        Ok(built)
    }

    /// Every plugin of ours that reconciles, by name: the crates under `plugins/` that are no
    /// policies.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn ours() -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(workspace().join("plugins"))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !name.starts_with("policy-") {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// The file of one of our plugins.
    pub fn plugin(&self, name: &str) -> PathBuf {
        self.plugins.join(format!("{name}.wasm"))
    }

    /// The bytes of one of our plugins.
    ///
    /// # Errors
    /// The file is not there.
    pub fn plugin_bytes(&self, name: &str) -> Result<Vec<u8>> {
        let file = self.plugin(name);
        std::fs::read(&file)
            .with_context(|| format!("cannot read {}: run `make build` first", file.display()))
    }

    /// Runs the binary to its end with these arguments; stdout as text.
    ///
    /// # Errors
    /// It cannot be run or does not end with status 0; its stderr is in the message.
    pub fn output(&self, arguments: &[&std::ffi::OsStr]) -> Result<String> {
        let output = std::process::Command::new(&self.trimtab)
            .args(arguments)
            .env_remove("KUBECONFIG")
            .output()
            .with_context(|| format!("cannot run {}", self.trimtab.display()))?;
        if !output.status.success() {
            bail!(
                "trimtab {:?} ended with {}: {}{}",
                arguments,
                output.status,
                String::from_utf8_lossy(&output.stderr),
                String::from_utf8_lossy(&output.stdout)
            );
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// The checkout that this crate was built in.
pub fn workspace() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().and_then(Path::parent).unwrap_or(here)
}

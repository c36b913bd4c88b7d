//! `trimtab plugin keygen`, `sign` and `verify`: who vouches for a plugin's file.

use super::plugin::read;
use crate::signing::{self, Keys, SecretKey};
use anyhow::Context as _;
use clap::Args;
use std::path::{Path, PathBuf};
use trimtab_core::identity::Digest;

#[derive(Debug, Args)]
pub(crate) struct Keygen {
    /// Whose key it is: NAME.key and NAME.pub are written, and a host that requires it shows NAME.
    name: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Sign {
    /// A minisign or OpenSSH Ed25519 secret key without a password.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The plugin file.
    file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// A file of minisign or OpenSSH public keys, or a folder of them.
    #[arg(long, value_name = "PATH")]
    keys: PathBuf,
    /// The plugin file.
    file: PathBuf,
}

impl Keygen {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let [secret_file, public_file] = ["key", "pub"].map(|extension| {
            let mut name = self.name.as_os_str().to_owned();
            name.push(".");
            name.push(extension);
            PathBuf::from(name)
        });
        let (secret, public) =
            trimtab_signature::minisign::generate().map_err(anyhow::Error::msg)?;
        write_new(&secret_file, &secret, 0o600)?;
        write_new(&public_file, &public, 0o644)?;
        println!(
            "{}: secret, and no password protects it: keep it to yourself",
            secret_file.display()
        );
        println!("{}: for whoever requires your signature", public_file.display());
        Ok(0)
    }
}

impl Sign {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let key = SecretKey::read(&self.key)?;
        let bytes = read(&self.file)?;
        trimtab_wasm::inspect(&bytes)
            .with_context(|| format!("{} is no plugin, and is not signed", self.file.display()))?;
        let now = crate::timestamp::now_ms() / 1000;
        let (file, text) = key.sign(&self.file, &bytes, now);
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        println!("{}: signs {}", file.display(), Digest::of(&bytes));
        Ok(0)
    }
}

impl Verify {
    /// Exit status 1: no key vouches for it.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let keys = Keys::read(&self.keys).context("--keys")?;
        let bytes = read(&self.file)?;
        match signing::verify(&self.file, &bytes, &keys) {
            Ok(signer) => {
                println!(
                    "{}: signed by {}, {}",
                    self.file.display(),
                    signer.name,
                    Digest::of(&bytes)
                );
                Ok(0)
            }
            Err(problem) => {
                println!("{}: {problem}", self.file.display());
                Ok(1)
            }
        }
    }
}

/// Never over a key that is there.
fn write_new(file: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let options = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(file);
    let mut file_there = options
        .with_context(|| format!("cannot make {}: a key is never written over", file.display()))?;
    file_there.write_all(text.as_bytes())?;
    file_there.sync_all()?;
    Ok(())
}

//! The key that signs: made here, by minisign, or by ssh-keygen.

use super::{SSH_NAMESPACE, files};
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use trimtab_signature::{Pair, minisign, ssh};

/// A secret key, ready to sign in its own form.
pub(crate) enum SecretKey {
    Minisign(minisign::SecretKey),
    Ssh(Pair),
}

impl SecretKey {
    /// Reads a minisign or OpenSSH secret key.
    ///
    /// # Errors
    /// The file is none, or a password protects it.
    pub(crate) fn read(file: &Path) -> anyhow::Result<Self> {
        let wrong = || format!("--key {}", file.display());
        let text = super::read(file).map_err(anyhow::Error::msg).with_context(wrong)?;
        let text = text.context("there is no such file").with_context(wrong)?;
        Self::parse(&text).map_err(anyhow::Error::msg).with_context(wrong)
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if ssh::is_private_key(text) {
            ssh::private_key(text).map(Self::Ssh)
        } else {
            minisign::SecretKey::parse(text).map(Self::Minisign)
        }
    }

    /// Signs these bytes of this file: where the signature belongs, and its text.
    pub(crate) fn sign(&self, plugin: &Path, bytes: &[u8], now: u64) -> (PathBuf, String) {
        let [by_minisign, by_ssh] = files(plugin);
        match self {
            Self::Ssh(pair) => (by_ssh, ssh::sign(pair, SSH_NAMESPACE, bytes)),
            Self::Minisign(key) => {
                let file = super::name(plugin).replace(|c: char| c.is_control(), "?");
                let about = format!("timestamp:{now}\tfile:{file}\thashed");
                (by_minisign, key.sign(bytes, &about))
            }
        }
    }
}

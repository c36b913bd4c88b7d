//! The key that signs: made here, by minisign, or by ssh-keygen.

use super::minisign::{self, KeyId};
use super::{PublicKey, files, ssh};
use anyhow::Context as _;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use std::path::{Path, PathBuf};

/// A secret key, ready to sign.
pub(crate) struct SecretKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
    /// minisign's number of it; `None`: an SSH key, which signs in SSH's form.
    id: Option<KeyId>,
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
        let (id, seed, public) = if ssh::is_private_key(text) {
            let (seed, public) = ssh::private_key(text)?;
            (None, seed, public)
        } else {
            let mut lines = text.lines();
            let line = match (lines.next(), lines.next()) {
                (Some(first), Some(line)) if first.starts_with(minisign::COMMENT.trim_end()) => {
                    line
                }
                _ => return Err("it is neither a minisign nor an OpenSSH secret key".into()),
            };
            let (id, seed, public) = minisign::secret_key(line.trim_end())?;
            (Some(id), seed, public)
        };
        let pair = Ed25519KeyPair::from_seed_and_public_key(&seed, &public.0)
            .map_err(|_| "its two halves do not belong together: the file is damaged")?;
        Ok(Self { pair, public, id })
    }

    /// Signs these bytes of this file: where the signature belongs, and its text.
    pub(crate) fn sign(&self, plugin: &Path, bytes: &[u8], now: u64) -> (PathBuf, String) {
        let [by_minisign, by_ssh] = files(plugin);
        let sign = |message: &[u8]| {
            let mut signature = [0; 64];
            signature.copy_from_slice(self.pair.sign(message).as_ref());
            signature
        };
        match self.id {
            None => (by_ssh, ssh::sign(&self.public, sign, bytes)),
            Some(id) => {
                let file = super::name(plugin).replace(|c: char| c.is_control(), "?");
                let about = format!("timestamp:{now}\tfile:{file}\thashed");
                (by_minisign, minisign::sign(id, sign, bytes, &about))
            }
        }
    }
}

/// A new key pair in minisign's form: the texts of its secret and its public file.
pub(crate) fn generate() -> anyhow::Result<(String, String)> {
    let (mut id, mut seed) = ([0; 8], [0; 32]);
    for bytes in [&mut id[..], &mut seed[..]] {
        getrandom::fill(bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    }
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed)
        .map_err(|error| anyhow::anyhow!("no key can be made: {error}"))?;
    let mut public = [0; 32];
    public.copy_from_slice(pair.public_key().as_ref());
    let public = PublicKey(public);
    Ok((minisign::secret_key_text(id, &seed, &public), minisign::public_key_text(id, &public)))
}

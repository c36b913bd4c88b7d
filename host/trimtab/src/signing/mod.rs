//! Signatures beside plugin files, and the keys that a host is told to trust.
//!
//! Takes a file's bytes and the texts of its signatures, and says which named key vouches for
//! exactly these bytes; the caller compiles the same bytes. Two forms are read and written:
//! `X.wasm.minisig` (minisign) and `X.wasm.sig` (SSHSIG, as `ssh-keygen -Y sign -n trimtab-plugin`
//! writes). Ed25519 alone, by `ring`, which TLS uses too.

mod keys;
mod minisign;
mod secret;
mod ssh;

pub(crate) use keys::{Keys, Signer};
pub(crate) use secret::{SecretKey, generate};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::path::{Path, PathBuf};

/// What an SSH signature has to be made for: one for a commit or a letter counts for nothing here.
pub(crate) const SSH_NAMESPACE: &str = "trimtab-plugin";

/// Largest signature or key file that is read: ours have some 300 bytes.
const FILE_BYTES_AT_MOST: u64 = 64 * 1024;

/// Where the signatures of this plugin file are looked for: minisign's and SSH's.
pub(crate) fn files(plugin: &Path) -> [PathBuf; 2] {
    ["minisig", "sig"].map(|extension| {
        let mut name = plugin.as_os_str().to_owned();
        name.push(".");
        name.push(extension);
        PathBuf::from(name)
    })
}

/// Which key vouches for exactly these bytes, by a signature beside `plugin`.
///
/// # Errors
/// That nothing does, and why each signature that is there does not count.
pub(crate) fn verify<'k>(
    plugin: &Path,
    bytes: &[u8],
    keys: &'k Keys,
) -> Result<&'k Signer, String> {
    let [by_minisign, by_ssh] = files(plugin);
    let mut problems = Vec::new();
    for (file, is_ssh) in [(by_minisign, false), (by_ssh, true)] {
        let text = match read(&file) {
            Ok(None) => continue,
            Ok(Some(text)) => text,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        let verified = if is_ssh {
            ssh::verify(&text, bytes, keys)
        } else {
            minisign::verify(&text, bytes, keys)
        };
        match verified {
            Ok(signer) => return Ok(signer),
            Err(problem) => problems.push(format!("{}: {problem}", name(&file))),
        }
    }
    if problems.is_empty() {
        let [minisig, sig] = files(plugin).map(|file| name(&file));
        return Err(format!(
            "it is not signed, and signatures are required: put {minisig} or {sig} beside it (`trimtab plugin sign`)"
        ));
    }
    Err(format!("no signature counts: {}", problems.join("; ")))
}

/// The file's text; `None` if it is not there.
fn read(file: &Path) -> Result<Option<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
        Ok(metadata) if metadata.len() > FILE_BYTES_AT_MOST => {
            return Err(format!("{}: larger than {FILE_BYTES_AT_MOST} bytes", file.display()));
        }
        Ok(_) => {}
    }
    std::fs::read_to_string(file).map(Some).map_err(failed)
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// An Ed25519 public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PublicKey([u8; 32]);

impl PublicKey {
    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, &self.0)
            .verify(message, signature)
            .is_ok()
    }
}

fn decode(text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|error| format!("its base64 is damaged ({error})"))
}

fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The next `N` bytes, and what follows.
fn split<const N: usize>(bytes: &[u8]) -> Option<([u8; N], &[u8])> {
    bytes.split_first_chunk::<N>().map(|(head, rest)| (*head, rest))
}

#[cfg(test)]
mod tests;

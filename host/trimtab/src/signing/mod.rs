//! Signatures beside plugin files, and the keys that a host is told to trust.
//!
//! Takes a file's bytes and the texts of its signatures, and says which named key vouches for
//! exactly these bytes; the caller compiles the same bytes. Two forms count: `X.wasm.minisig`
//! (minisign) and `X.wasm.sig` (SSHSIG, as `ssh-keygen -Y sign -n trimtab-plugin` writes). The forms
//! themselves are `host/signature`'s.

mod keys;
mod secret;

pub(crate) use keys::{Keys, Signer};
pub(crate) use secret::SecretKey;

use std::path::{Path, PathBuf};
use trimtab_signature::{Fault, minisign, ssh};

/// What an SSH signature has to be made for: one for a commit or a letter counts for nothing here.
pub(crate) const SSH_NAMESPACE: &str = "trimtab-plugin";

/// How the words for a file without any signature begin, and for one whose signatures are none of
/// its bytes by a key that counts.
pub(crate) const UNSIGNED: &str = "it is not signed";
pub(crate) const NO_SIGNATURE_COUNTS: &str = "no signature counts";

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
            by_ssh_key(&text, bytes, keys)
        } else {
            by_minisign_key(&text, bytes, keys)
        };
        match verified {
            Ok(signer) => return Ok(signer),
            Err(fault) => problems.push(format!("{}: {fault}", name(&file))),
        }
    }
    if problems.is_empty() {
        let [minisig, sig] = files(plugin).map(|file| name(&file));
        return Err(format!(
            "{UNSIGNED}, and signatures are required: put {minisig} or {sig} beside it (`trimtab plugin sign`)"
        ));
    }
    Err(format!("{NO_SIGNATURE_COUNTS}: {}", problems.join("; ")))
}

fn by_minisign_key<'k>(text: &str, bytes: &[u8], keys: &'k Keys) -> Result<&'k Signer, String> {
    let signature = minisign::Signature::parse(text).map_err(|fault| fault.to_string())?;
    let (signer, key) = keys.minisign(signature.key)?;
    signature.verify(bytes, key).map_err(|fault| told(fault, signer))?;
    Ok(signer)
}

fn by_ssh_key<'k>(text: &str, bytes: &[u8], keys: &'k Keys) -> Result<&'k Signer, String> {
    let signature = ssh::Signature::parse(text).map_err(|fault| fault.to_string())?;
    let signer = keys.ssh(signature.key())?;
    signature.verify(bytes, SSH_NAMESPACE).map_err(|fault| told(fault, signer))?;
    Ok(signer)
}

/// With the name that the administrator gave, and what to do.
fn told(fault: Fault, signer: &Signer) -> String {
    match fault {
        Fault::OtherBytes { .. } => {
            format!("it names the key of {}, and is not for this file", signer.name)
        }
        Fault::OtherPurpose { .. } => format!("{fault}: sign with -n {SSH_NAMESPACE}"),
        other => other.to_string(),
    }
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

#[cfg(test)]
mod tests;

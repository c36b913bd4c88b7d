//! The keys that may vouch for plugins: a file, or a folder of files, of public keys with names.
//!
//! A line is a minisign public key, an OpenSSH public key, or a line of OpenSSH's allowed signers.
//! A minisign key is named after its file, an SSH key by its principal or comment. Half a set of
//! keys is never used.

use super::SSH_NAMESPACE;
use std::path::{Path, PathBuf};
use trimtab_signature::{minisign, ssh};

/// A key that may vouch, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signer {
    /// As the administrator named it.
    pub(crate) name: String,
    key: Key,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Key {
    Minisign(minisign::PublicKey),
    Ssh(ssh::PublicKey),
}

/// Every key that may vouch; never none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keys(Vec<Signer>);

/// Why keys could not be read. Each line names a file.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub(crate) struct KeysError(pub(crate) Vec<String>);

impl Keys {
    /// The keys in a file, or in the files of a folder (hidden ones aside).
    ///
    /// # Errors
    /// All problems together; one bad line spoils the set, and so does an empty one.
    pub(crate) fn read(path: &Path) -> Result<Self, KeysError> {
        let mut signers: Vec<Signer> = Vec::new();
        let mut problems = Vec::new();
        for file in files(path).map_err(|problem| KeysError(vec![problem]))? {
            match super::read(&file)
                .and_then(|text| text.ok_or(format!("{}: it is gone", file.display())))
            {
                Err(problem) => problems.push(problem),
                Ok(text) => match parse(&text, &stem(&file)) {
                    Ok(found) => signers.extend(found),
                    Err(problem) => problems.push(format!("{}:{problem}", file.display())),
                },
            }
        }
        if signers.is_empty() && problems.is_empty() {
            problems.push(format!(
                "{}: no key is in it: put minisign or OpenSSH public keys there",
                path.display()
            ));
        }
        if problems.is_empty() { Ok(Self(signers)) } else { Err(KeysError(problems)) }
    }

    /// Whether this signer's key still may vouch, under whatever name.
    pub(crate) fn has(&self, signer: &Signer) -> bool {
        self.0.iter().any(|known| known.key == signer.key)
    }

    /// The key of this number, and whose it is.
    pub(super) fn minisign(
        &self,
        id: minisign::KeyId,
    ) -> Result<(&Signer, &minisign::PublicKey), String> {
        let found = self.0.iter().find_map(|signer| match &signer.key {
            Key::Minisign(key) if key.id == id => Some((signer, key)),
            _ => None,
        });
        found.ok_or_else(|| missing(&format!("minisign key {}", minisign::id_text(id))))
    }

    /// Whose this key is.
    pub(super) fn ssh(&self, key: &ssh::PublicKey) -> Result<&Signer, String> {
        let is = |signer: &&Signer| matches!(&signer.key, Key::Ssh(known) if known == key);
        self.0.iter().find(is).ok_or_else(|| missing(&key.named()))
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|signer| signer.name.as_str()).collect()
    }
}

fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| {
        format!("{}: {error}: give a file of public keys, or a folder of them", path.display())
    };
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.is_file() && !super::name(&file).starts_with('.') {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The keys of this text; an error begins with its line's number.
pub(super) fn parse(text: &str, file: &str) -> Result<Vec<Signer>, String> {
    let mut signers = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || minisign::is_comment(line) {
            continue;
        }
        let read = if line.starts_with("-----BEGIN") {
            Err("this is a private key: keep it elsewhere, and put its public key here".into())
        } else if line.contains(char::is_whitespace) {
            ssh_line(line, file)
        } else {
            minisign::PublicKey::parse(line)
                .map(|key| Signer { name: printable(file), key: Key::Minisign(key) })
                .map_err(|fault| fault.to_string())
        };
        signers.push(read.map_err(|what| format!("{}: {what}", index + 1))?);
    }
    Ok(signers)
}

/// `KIND KEY [COMMENT]`, or a line of allowed signers.
fn ssh_line(line: &str, file: &str) -> Result<Signer, String> {
    if let Some((key, comment)) = ssh::PublicKey::from_line(line)? {
        let name = if comment.is_empty() { file } else { comment };
        return Ok(Signer { name: printable(name), key: Key::Ssh(key) });
    }
    let line = ssh::Line::parse(line)?;
    // A date would be looked at once, when the file is read, and never again.
    if line.valid_after.is_some() || line.valid_before.is_some() {
        return Err(
            "valid-after and valid-before are not kept here: take the key out in time".into()
        );
    }
    line.holds(SSH_NAMESPACE, &[]).map_err(|fault| fault.to_string())?;
    Ok(Signer { name: printable(&line.principals), key: Key::Ssh(line.key) })
}

fn missing(key: &str) -> String {
    format!("it is by {key}, which is not among the required keys")
}

fn printable(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(100).collect()
}

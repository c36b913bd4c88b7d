//! The keys that may vouch for plugins: a file, or a folder of files, of public keys with names.
//!
//! A line is a minisign public key, an OpenSSH public key, or a line of OpenSSH's allowed signers.
//! A minisign key is named after its file, an SSH key by its principal or comment. Half a set of
//! keys is never used.

use super::minisign::{self, KeyId};
use super::{PublicKey, SSH_NAMESPACE, decode, ssh};
use std::path::{Path, PathBuf};

/// A key that may vouch, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signer {
    /// As the administrator named it.
    pub(crate) name: String,
    /// The key.
    pub(super) key: PublicKey,
    /// minisign's number of it; an SSH key has none.
    id: Option<KeyId>,
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
        self.by_key(signer.key).is_some()
    }

    pub(super) fn by_key(&self, key: PublicKey) -> Option<&Signer> {
        self.0.iter().find(|signer| signer.key == key)
    }

    pub(super) fn by_id(&self, id: KeyId) -> Option<&Signer> {
        self.0.iter().find(|signer| signer.id == Some(id))
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
        let wrong = |what: String| format!("{}: {what}", index + 1);
        if line.is_empty() || line.starts_with('#') || line.starts_with("untrusted comment:") {
            continue;
        }
        if line.starts_with("-----BEGIN") {
            return Err(wrong(
                "this is a private key: keep it elsewhere, and put its public key here".into(),
            ));
        }
        let words = words(line);
        signers.push(match words.as_slice() {
            [key] => {
                let (id, key) = minisign::public_key(key).map_err(wrong)?;
                Signer { name: printable(file), key, id: Some(id) }
            }
            words => ssh_line(words, file).map_err(wrong)?,
        });
    }
    Ok(signers)
}

/// `ssh-ed25519 KEY [COMMENT]`, or `PRINCIPALS [OPTIONS] ssh-ed25519 KEY [COMMENT]`.
fn ssh_line(words: &[String], file: &str) -> Result<Signer, String> {
    let at = words.iter().position(|word| word == ssh::ED25519).ok_or_else(|| {
        format!("this is no minisign key and no {} key: other kinds are not read", ssh::ED25519)
    })?;
    let (before, after) = words.split_at(at);
    let blob = after.get(1).ok_or("the key is missing")?;
    let key = ssh::public_key(&decode(blob)?).ok_or("this is no Ed25519 key")?;
    let name = match before {
        [] if after.len() > 2 => after[2..].join(" "),
        [] => file.to_owned(),
        [principals] => principals.clone(),
        [principals, options] => {
            check_options(options)?;
            principals.clone()
        }
        _ => {
            return Err(
                "before the key, a line of allowed signers has principals and options".into()
            );
        }
    };
    Ok(Signer { name: printable(&name), key, id: None })
}

/// An option that we would not keep would be a promise that nobody keeps.
fn check_options(options: &str) -> Result<(), String> {
    match options.strip_prefix("namespaces=") {
        Some(list) if list.split(',').any(|namespace| namespace == SSH_NAMESPACE) => Ok(()),
        Some(list) => Err(format!("the key is for {list:?} and not for {SSH_NAMESPACE:?}")),
        None => Err(format!("the option {options:?} is not known here: namespaces alone is")),
    }
}

/// Words between blanks; quotes keep blanks together and are taken off.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => words.push(String::new()),
            c => words.last_mut().into_iter().for_each(|word| word.push(c)),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn printable(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(100).collect()
}

//! Whose signatures count: key files in, "who signed this" out.

use super::commit::Payload;
use super::limits::{Limit, Paths};
use super::{Reason, Verification};
use sha2::Digest as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use trimtab_signature::{Fault, openpgp, ssh};

/// What an SSH signature of Git's is made for.
const NAMESPACE: &str = "git";

/// Bytes of one key file, and files of one folder: keys have kilobytes.
const FILE_BYTES_AT_MOST: u64 = 4 << 20;
const FILES_AT_MOST: usize = 1_000;

/// Lines at which a signature of any form that Git knows begins.
pub(super) const BEGINNINGS: [&str; 4] =
    [ssh::BEGIN, openpgp::BEGIN, "-----BEGIN PGP MESSAGE-----", "-----BEGIN SIGNED MESSAGE-----"];

/// Where keys of signers are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignerSource {
    /// A file in OpenSSH's form `allowed_signers`.
    AllowedSigners(PathBuf),
    /// OpenPGP public keys, armoured or binary: a file, or a folder of files (hidden ones aside).
    OpenPgp(PathBuf),
}

/// Who signed, by the key: never by a name in the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// As the list of allowed keys names the key's owner; the fingerprint where nothing does.
    pub principal: String,
    /// The key that signed: `SHA256:…` for SSH, capital hexadecimal digits for OpenPGP.
    pub fingerprint: String,
    /// The signature's form.
    pub format: Format,
}

/// Forms of signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// SSHSIG.
    Ssh,
    /// OpenPGP.
    OpenPgp,
}

impl Format {
    /// As records show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Ssh => "ssh",
            Format::OpenPgp => "openpgp",
        }
    }
}

/// A signer with what they may change.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) shown: Signer,
    /// All of these hold; none: everything may be changed.
    pub(super) paths: Vec<Paths>,
}

/// All keys that count, read for one verification.
pub(super) struct Signers {
    ssh: Vec<ssh::AllowedSigners>,
    openpgp: Vec<openpgp::Certificate>,
    limits: Vec<(String, Paths)>,
    now: u64,
}

impl Signers {
    /// Reads all keys; half of them are never used.
    pub(super) fn read(wanted: &Verification, now: SystemTime) -> Result<Self, Reason> {
        let now = now
            .duration_since(UNIX_EPOCH)
            .map_err(|_| Reason::Signers("the clock stands before 1970".into()))?
            .as_secs();
        let mut all = Self { ssh: vec![], openpgp: vec![], limits: vec![], now };
        let mut problems = Vec::new();
        for source in &wanted.signers {
            let read = match source {
                SignerSource::AllowedSigners(file) => all.read_ssh(file),
                SignerSource::OpenPgp(path) => all.read_openpgp(path),
            };
            problems.extend(read.err().into_iter().flatten());
        }
        for limit in &wanted.limits {
            match Paths::new(limit) {
                Ok(paths) => all.limits.push((limit.principal.clone(), paths)),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() {
            problems.extend(all.missing(&wanted.limits));
        }
        if problems.is_empty() { Ok(all) } else { Err(Reason::Signers(problems.join("; "))) }
    }

    fn read_ssh(&mut self, file: &Path) -> Result<(), Vec<String>> {
        let bytes = bytes(file).map_err(|problem| vec![problem])?;
        let in_file = |problem: String| format!("{}:{problem}", file.display());
        let text = String::from_utf8(bytes).map_err(|_| vec![in_file(" it is no text".into())])?;
        let signers = ssh::AllowedSigners::parse(&text)
            .map_err(|problems| problems.into_iter().map(in_file).collect::<Vec<_>>())?;
        for line in signers.skipped() {
            tracing::warn!("{}:{line}; the line counts for nobody", file.display());
        }
        self.ssh.push(signers);
        Ok(())
    }

    fn read_openpgp(&mut self, path: &Path) -> Result<(), Vec<String>> {
        let mut problems = Vec::new();
        for file in files(path).map_err(|problem| vec![problem])? {
            match bytes(&file).and_then(|bytes| {
                openpgp::read(&bytes).map_err(|problem| format!("{}: {problem}", file.display()))
            }) {
                Ok(found) => self.openpgp.extend(found),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// No key at all, and limits that hold nobody: each is a slip that would go unseen.
    fn missing(&self, limits: &[Limit]) -> Vec<String> {
        let lines = || self.ssh.iter().flat_map(|file| file.lines());
        if lines().next().is_none() && self.openpgp.is_empty() {
            let skipped: Vec<&str> =
                self.ssh.iter().flat_map(|file| file.skipped()).map(String::as_str).collect();
            let but = if skipped.is_empty() { "" } else { " that counts; line " };
            return vec![format!("no key is in them{but}{}", skipped.join("; line "))];
        }
        let held = |principal: &str| {
            lines().any(|line| ssh_is(line, principal))
                || self.openpgp.iter().any(|key| openpgp_is(key, principal))
        };
        limits
            .iter()
            .filter(|limit| !held(&limit.principal))
            .map(|limit| {
                format!(
                    "the limit for {:?} holds no key: no allowed signer has that name",
                    limit.principal
                )
            })
            .collect()
    }

    /// Who signed these bytes.
    pub(super) fn who(&self, payload: &Payload, signature: &str) -> Result<Found, Reason> {
        let found = if signature.starts_with(ssh::BEGIN) {
            self.who_ssh(payload, signature)
        } else if signature.starts_with(openpgp::BEGIN) {
            self.who_openpgp(&payload.bytes, signature)
        } else if BEGINNINGS.iter().any(|begin| signature.starts_with(begin)) {
            Err(Fault::Unsupported("of a form other than SSH's and OpenPGP's (X.509?)".into()))
        } else {
            Err(Fault::Damaged("it begins as no signature does".into()))
        };
        found.map_err(Reason::Signature)
    }

    fn who_ssh(&self, payload: &Payload, signature: &str) -> Result<Found, Fault> {
        let signature = ssh::Signature::parse(signature)?;
        let key = signature.key();
        // An SSH signature has no time; the commit's is its maker's word. It may make things
        // stricter, and never younger: the clock has to agree.
        let made = u64::try_from(payload.made).unwrap_or(0);
        let mut line = Err(Fault::UnknownKey { key: key.named() });
        for file in &self.ssh {
            match file.find(key, NAMESPACE, &[self.now, made]) {
                Err(Fault::UnknownKey { .. }) => {}
                other => line = other,
            }
            if line.is_ok() {
                break;
            }
        }
        let line = line?;
        signature.verify(&payload.bytes, NAMESPACE)?;
        // Whoever is named beside this key anywhere may be who it is.
        let lines = || self.ssh.iter().flat_map(|file| file.lines()).filter(|it| it.key == *key);
        let is = |principal: &str| lines().any(|line| ssh_is(line, principal));
        Ok(Found {
            shown: Signer {
                principal: printable(&line.principals),
                fingerprint: key.fingerprint(),
                format: Format::Ssh,
            },
            paths: self.paths(is),
        })
    }

    fn who_openpgp(&self, bytes: &[u8], signature: &str) -> Result<Found, Fault> {
        let signature = openpgp::Signature::parse(signature)?;
        let vouched = openpgp::verify(&self.openpgp, &signature, bytes, self.now)?;
        let principal = vouched.certificate.principals(self.now).into_iter().next();
        let fingerprint = vouched.fingerprint();
        let is = |principal: &str| {
            openpgp_is(vouched.certificate, principal) || principal == fingerprint
        };
        Ok(Found {
            paths: self.paths(is),
            shown: Signer {
                principal: principal.unwrap_or_else(|| vouched.certificate.fingerprint()),
                fingerprint,
                format: Format::OpenPgp,
            },
        })
    }

    fn paths(&self, is: impl Fn(&str) -> bool) -> Vec<Paths> {
        let mine = self.limits.iter().filter(|(principal, _)| is(principal));
        mine.map(|(_, paths)| paths.clone()).collect()
    }
}

/// Whether a name in a limit is this line's key: by its principals, or its fingerprint.
fn ssh_is(line: &ssh::Line, principal: &str) -> bool {
    line.names(principal) || line.key.fingerprint() == principal
}

/// By a whole user ID, the address in it, or the fingerprint. User IDs that are no more in force
/// count here: a limit must not go when one of them does.
fn openpgp_is(key: &openpgp::Certificate, principal: &str) -> bool {
    let address = |user: &str| {
        user.rsplit_once('<').and_then(|(_, rest)| rest.strip_suffix('>')) == Some(principal)
    };
    key.fingerprint() == principal || key.users().any(|user| user == principal || address(&user))
}

/// See [`Verification::state`].
pub(super) fn state(wanted: &Verification) -> [u8; 32] {
    let mut sum = sha2::Sha256::new();
    let mut add = |bytes: &[u8]| {
        sum.update((bytes.len() as u64).to_be_bytes());
        sum.update(bytes);
    };
    add(format!("{wanted:?}").as_bytes());
    for source in &wanted.signers {
        let (SignerSource::AllowedSigners(path) | SignerSource::OpenPgp(path)) = source;
        for file in files(path).unwrap_or_else(|_| vec![path.clone()]) {
            add(file.as_os_str().as_encoded_bytes());
            match bytes(&file) {
                Ok(bytes) => add(&bytes),
                Err(problem) => add(problem.as_bytes()),
            }
        }
    }
    sum.finalize().into()
}

fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !hidden && entry.path().is_file() {
            files.push(entry.path());
        }
        if files.len() > FILES_AT_MOST {
            return Err(format!("{}: more than {FILES_AT_MOST} files", path.display()));
        }
    }
    files.sort();
    Ok(files)
}

fn bytes(file: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read as _;
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let mut bytes = Vec::new();
    let open = std::fs::File::open(file).map_err(failed)?;
    open.take(FILE_BYTES_AT_MOST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_AT_MOST {
        return Err(format!("{}: larger than {FILE_BYTES_AT_MOST} bytes", file.display()));
    }
    Ok(bytes)
}

fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

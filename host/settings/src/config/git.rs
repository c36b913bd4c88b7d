//! `git` of a source: where a repository is, what lets us in, whom we believe.

use super::duration;
use super::file::At;
use serde::Deserialize;
use serde_saphyr::Spanned;
use std::path::PathBuf;
use trimtab_source::git::location::Url;
use trimtab_source::git::trust::{Commit, HistoryPolicy, Limit, Mode, SignerSource, Verification};
use trimtab_source::git::{Credentials, GitOptions, Reference};
use trimtab_source::{Location, parse_location};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Git {
    url: Spanned<String>,
    branch: Option<Spanned<String>>,
    tag: Option<Spanned<String>>,
    commit: Option<Spanned<String>>,
    #[serde(default)]
    path: Option<Spanned<String>>,
    credentials: Option<Spanned<Access>>,
    ca_file: Option<PathBuf>,
    #[serde(default)]
    plain_http: bool,
    verify: Option<Spanned<Verify>>,
    #[serde(default)]
    history: HistoryWord,
    timeout: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Access {
    token_file: Option<PathBuf>,
    ssh_key: Option<PathBuf>,
    known_hosts: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Verify {
    mode: VerifyWord,
    allowed_signers: Option<PathBuf>,
    openpgp_keys: Option<PathBuf>,
    #[serde(default)]
    tags: bool,
    since: Option<Spanned<String>>,
    #[serde(default)]
    signers: Vec<Spanned<SignerWords>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SignerWords {
    principal: String,
    paths: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum VerifyWord {
    Head,
    Every,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum HistoryWord {
    /// A step back waits for a person.
    #[default]
    Forward,
    /// Any commit is taken.
    Any,
}

impl Git {
    /// What it says, if it can be meant.
    ///
    /// # Errors
    /// What is wrong, with its line.
    pub(super) fn options(self, at: &At<'_>) -> Result<GitOptions, String> {
        if self.url.value.contains('#') {
            return Err(at.wrong(
                &self.url,
                "write branch, tag or commit and path as keys of their own, not behind #",
            ));
        }
        let url = Url::parse(&self.url.value).map_err(|why| at.wrong(&self.url, &why))?;
        let mut options = GitOptions::new(url);
        options.reference = self.reference(at)?;
        if let Some(path) = &self.path {
            options.path = folder(&path.value).map_err(|why| at.wrong(path, &why))?;
        }
        if let Some(access) = &self.credentials {
            options.credentials = credentials(&access.value, at)
                .map_err(|why| at.wrong(access, &format!("credentials: {why}")))?;
        }
        options.ca_file = self.ca_file.map(|file| at.beside(file));
        options.allow_plain_http = self.plain_http;
        if let Some(verify) = &self.verify {
            options.verify = Some(
                verification(&verify.value, at)
                    .map_err(|why| at.wrong(verify, &format!("verify: {why}")))?,
            );
        }
        options.history = match self.history {
            HistoryWord::Forward => HistoryPolicy::ForwardOnly,
            HistoryWord::Any => HistoryPolicy::Any,
        };
        if let Some(text) = &self.timeout {
            options.timeout = duration::parse(&text.value)
                .map_err(|why| at.wrong(text, &format!("timeout: {why}")))?;
        }
        Ok(options)
    }

    fn reference(&self, at: &At<'_>) -> Result<Reference, String> {
        let (text, prefix) = match (&self.branch, &self.tag, &self.commit) {
            (None, None, None) => return Ok(Reference::Default),
            (Some(branch), None, None) => (branch, "refs/heads/"),
            (None, Some(tag), None) => (tag, "refs/tags/"),
            (None, None, Some(commit)) => (commit, ""),
            (_, Some(one), _) | (_, _, Some(one)) => {
                return Err(at.wrong(one, "name one of branch, tag and commit"));
            }
        };
        let reference = Reference::parse(&format!("{prefix}{}", text.value))
            .map_err(|why| at.wrong(text, &why))?;
        match (&reference, &self.commit) {
            (Reference::Commit(_), _) | (_, None) => Ok(reference),
            _ => Err(at.wrong(text, "a commit is its 40 hex digits")),
        }
    }
}

fn credentials(access: &Access, at: &At<'_>) -> Result<Credentials, String> {
    match (&access.token_file, &access.ssh_key, &access.known_hosts) {
        (Some(file), None, None) => Ok(Credentials::TokenFile(at.beside(file.clone()))),
        (None, Some(key), Some(hosts)) => Ok(Credentials::SshKey {
            private_key: at.beside(key.clone()),
            known_hosts: at.beside(hosts.clone()),
        }),
        (None, Some(_), None) => {
            Err("sshKey needs knownHosts beside it: else anybody may answer as the host".into())
        }
        _ => Err("name tokenFile, or sshKey and knownHosts".into()),
    }
}

fn verification(verify: &Verify, at: &At<'_>) -> Result<Verification, String> {
    let ssh = verify.allowed_signers.iter().cloned();
    let openpgp = verify.openpgp_keys.iter().cloned();
    let signers: Vec<SignerSource> = ssh
        .map(|file| SignerSource::AllowedSigners(at.beside(file)))
        .chain(openpgp.map(|file| SignerSource::OpenPgp(at.beside(file))))
        .collect();
    if signers.is_empty() {
        return Err("name allowedSigners, openpgpKeys or both: without them nobody may sign".into());
    }
    if let Some(since) = verify.since.as_ref().filter(|_| verify.mode == VerifyWord::Head) {
        return Err(at.wrong(since, "since has a meaning with mode: every alone"));
    }
    Ok(Verification {
        mode: match verify.mode {
            VerifyWord::Head => Mode::Head,
            VerifyWord::Every => Mode::Every,
        },
        signers,
        limits: verify.signers.iter().map(|words| limit(words, at)).collect::<Result<_, _>>()?,
        tags: verify.tags,
        since: verify.since.as_ref().map(|since| commit(since, at)).transpose()?,
    })
}

fn limit(words: &Spanned<SignerWords>, at: &At<'_>) -> Result<Limit, String> {
    let SignerWords { principal, paths } = &words.value;
    if principal.is_empty() || paths.is_empty() {
        return Err(at.wrong(words, "a signer's limit has a principal and paths"));
    }
    Ok(Limit { principal: principal.clone(), paths: paths.clone() })
}

fn commit(text: &Spanned<String>, at: &At<'_>) -> Result<Commit, String> {
    text.value.parse().map_err(|why| at.wrong(text, &format!("{why}")))
}

/// The folder, as the grammar of locations has it.
fn folder(path: &str) -> Result<String, String> {
    match parse_location(&format!("https://host/repository#:{path}")) {
        Ok(Location::Git { path, .. }) => Ok(path),
        Ok(Location::Directory(_)) => Err(format!("{path:?} is no folder of a repository")),
        Err(error) => Err(error.reason),
    }
}

/// A repository as `--source` writes it, for people.
pub(super) fn location(options: &GitOptions) -> String {
    let reference = match &options.reference {
        Reference::Default => String::new(),
        Reference::Branch(name) => name.clone(),
        Reference::Tag(name) => format!("refs/tags/{name}"),
        Reference::Commit(id) => id.clone(),
    };
    match (reference.as_str(), options.path.as_str()) {
        ("", "") => options.url.to_string(),
        (reference, "") => format!("{}#{reference}", options.url),
        (reference, path) => format!("{}#{reference}:{path}", options.url),
    }
}

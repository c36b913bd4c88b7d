//! Where a source is: the text that a person writes, taken apart.
//!
//! The grammar, which docs/sources.md has with examples:
//!
//! ```text
//! LOCATION  = DIRECTORY | URL [ "#" [REFERENCE] [ ":" FOLDER ] ]
//! URL       = https://… | http://… | ssh://… | file://… | USER@HOST:PATH | path of a repository
//! REFERENCE = name of a branch | vN.N.N (a tag) | refs/heads/… | refs/tags/… | 40 hex digits
//! ```
//!
//! A local path is a directory, unless it is followed by `#` and is a repository of Git.

use super::Reference;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A directory of manifests, or one file.
    Directory(PathBuf),
    /// A folder in a repository of Git.
    Git {
        /// Where the repository is.
        url: Url,
        /// Which of its states.
        reference: Reference,
        /// The folder in its tree, with `/`; empty for the root.
        path: String,
    },
}

/// Why a text is no location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{location} is no location of a source: {reason}")]
pub struct LocationError {
    /// The text, without a password.
    pub location: String,
    /// What is wrong with it, and what to do.
    pub reason: String,
}

/// The address of a repository. Shown without what stands before the host, but for ssh's user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// How it is reached.
    pub(crate) scheme: Scheme,
    /// Who to be there.
    pub(crate) user: Option<String>,
    /// Host and, behind a colon, port; empty for a file.
    pub(crate) authority: String,
    /// What follows.
    pub(crate) path: String,
}

/// How a repository is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP over TLS.
    Https,
    /// HTTP without: refused unless it is allowed by name.
    Http,
    /// The `ssh` program.
    Ssh,
    /// A repository on this machine.
    File,
}

impl Url {
    /// Reads an address.
    ///
    /// # Errors
    /// What is wrong with it, and what to do. Never holds a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.chars().any(|sign| sign.is_control() || sign == '\\') || text.contains(' ') {
            return Err("it holds a space, a backslash or a control character: write them as %20 \
                        or the like"
                .into());
        }
        let url = match text.split_once("://") {
            Some((scheme, rest)) => Self::with_scheme(scheme, rest)?,
            None => match scp_like(text) {
                Some((user, host, path)) => Self {
                    scheme: Scheme::Ssh,
                    user: (!user.is_empty()).then(|| user.to_owned()),
                    authority: host.to_ascii_lowercase(),
                    path: path.to_owned(),
                },
                None => Self {
                    scheme: Scheme::File,
                    user: None,
                    authority: String::new(),
                    path: text.to_owned(),
                },
            },
        };
        url.check()?;
        Ok(url)
    }

    fn with_scheme(scheme: &str, rest: &str) -> Result<Self, String> {
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "https" => Scheme::Https,
            "http" => Scheme::Http,
            "ssh" | "git+ssh" | "ssh+git" => Scheme::Ssh,
            "file" => Scheme::File,
            "git" => {
                return Err(
                    "git:// proves neither who answers nor what: use https:// or ssh://".into()
                );
            }
            other => {
                return Err(format!(
                    "{other}:// is not known: use https://, ssh://, file:// or a path"
                ));
            }
        };
        let (before, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if scheme == Scheme::File {
            if !before.is_empty() && before != "localhost" {
                return Err("a file:// address names no host: write file:///path".into());
            }
            return Ok(Self { scheme, user: None, authority: String::new(), path: path.into() });
        }
        let (user, authority) = match before.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, before),
        };
        if user.is_some_and(|user| user.contains(':')) {
            return Err("it holds a password, which whoever sees the address can read: take it \
                        out and name a file that holds it as the source's credentials"
                .into());
        }
        Ok(Self {
            scheme,
            user: user.filter(|user| !user.is_empty()).map(str::to_owned),
            authority: authority.to_ascii_lowercase(),
            path: path.to_owned(),
        })
    }

    /// A part that begins with a dash would be an option to the program that it is handed to.
    fn check(&self) -> Result<(), String> {
        let host = self.host();
        if self.scheme != Scheme::File && host.is_empty() {
            return Err("it names no host".into());
        }
        if self.path.is_empty() || (self.path == "/" && self.scheme != Scheme::File) {
            return Err("it names no repository on the host".into());
        }
        let parts = [self.user.as_deref().unwrap_or_default(), host, self.path.as_str()];
        if parts.iter().any(|part| part.starts_with('-')) {
            return Err(
                "its user, host or path begins with a dash: write the path from the root, \
                        or with ./ before it"
                    .into(),
            );
        }
        let is_of_host = |sign: char| sign.is_ascii_alphanumeric() || "-._:[]".contains(sign);
        if !self.authority.chars().all(is_of_host) {
            return Err("its host is no name and no address".into());
        }
        if self.port().is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err("its port is no number up to 65535".into());
        }
        let is_of_user = |sign: char| sign.is_ascii_alphanumeric() || "-._+~".contains(sign);
        if !self.user.iter().all(|user| user.chars().all(is_of_user)) {
            return Err("its user is no plain name".into());
        }
        Ok(())
    }

    /// The host without its port.
    pub(crate) fn host(&self) -> &str {
        let bare = self.authority.as_str();
        match bare.rfind(':') {
            // The colons of an IPv6 address stand in brackets.
            Some(at) if !bare.get(at..).unwrap_or_default().contains(']') => {
                bare.get(..at).unwrap_or_default()
            }
            _ => bare,
        }
    }

    /// The port as written.
    pub(crate) fn port(&self) -> Option<&str> {
        self.authority.get(self.host().len()..)?.strip_prefix(':')
    }

    /// Whether the host is this machine by an address that nobody else can have.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host() == "localhost"
            || self
                .host()
                .trim_matches(['[', ']'])
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    }

    /// The address for HTTP, without a user.
    pub(crate) fn http(&self) -> String {
        let scheme = if self.scheme == Scheme::Https { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scheme {
            Scheme::Https | Scheme::Http => f.write_str(&self.http()),
            Scheme::Ssh => {
                let user = self.user.as_deref().map(|user| format!("{user}@")).unwrap_or_default();
                let slash = if self.path.starts_with('/') { "" } else { ":" };
                let scheme = if slash.is_empty() { "ssh://" } else { "" };
                write!(f, "{scheme}{user}{}{slash}{}", self.authority, self.path)
            }
            Scheme::File => f.write_str(&self.path),
        }
    }
}

/// `user@host:path`: a colon before any slash. Without a user it could be a path.
fn scp_like(text: &str) -> Option<(&str, &str, &str)> {
    let (before, path) = text.split_once(':')?;
    let (user, host) = before.split_once('@')?;
    (!before.contains('/')).then_some((user, host, path))
}

/// Takes a location apart.
///
/// # Errors
/// [`LocationError`] says what is wrong and what to write.
pub fn parse_location(text: &str) -> Result<Location, LocationError> {
    let refuse = |reason: String| LocationError { location: without_password(text), reason };
    let (address, rest) = match text.split_once('#') {
        Some((address, rest)) => (address, Some(rest)),
        None => (text, None),
    };
    let is_local = !address.contains("://") && scp_like(address).is_none();
    if text.is_empty() {
        return Err(refuse("it is empty: name a directory or a repository".into()));
    }
    if is_local && (rest.is_none() || !is_repository(Path::new(address))) {
        return Ok(Location::Directory(text.into()));
    }
    let url = if is_local {
        // From here on the path is looked at by another program, from another folder.
        let path = std::path::absolute(address).map_err(|error| refuse(error.to_string()))?;
        let path = path.to_str().ok_or_else(|| refuse("the path is not UTF-8".into()))?;
        Url { scheme: Scheme::File, user: None, authority: String::new(), path: path.into() }
    } else {
        Url::parse(address).map_err(refuse)?
    };
    let (reference, path) = match rest.unwrap_or_default().split_once(':') {
        Some((reference, path)) => (reference, path),
        None => (rest.unwrap_or_default(), ""),
    };
    Ok(Location::Git {
        url,
        reference: Reference::parse(reference).map_err(refuse)?,
        path: folder(path).map_err(refuse)?,
    })
}

/// The text with what stands between `//` and `@` cut short, for messages.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let authority = rest.split(['/', '#']).next().unwrap_or_default();
    match authority.rfind('@') {
        Some(at) => format!("{scheme}://…@{}", rest.get(at + 1..).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Whether Git would take this path for a repository.
fn is_repository(path: &Path) -> bool {
    [path.join(".git"), path.to_owned()]
        .iter()
        .any(|folder| folder.join("HEAD").is_file() && folder.join("objects").is_dir())
}

/// A folder in a tree, by names from the root.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn folder(path: &str) -> Result<String, String> {
    let names: Vec<&str> =
        path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    for name in &names {
        if let Err(fault) = super::names::check(name.as_bytes()) {
            return Err(format!("the folder {path:?} cannot be one in a repository: {fault}"));
        }
    }
    Ok(names.join("/"))
}

impl Reference {
    /// Reads a reference; an empty text is the repository's own default.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() || text == "HEAD" {
            return Ok(Reference::Default);
        }
        if let Some(name) = text.strip_prefix("refs/heads/") {
            return Ok(Reference::Branch(checked(name)?));
        }
        if let Some(name) = text.strip_prefix("refs/tags/") {
            return Ok(Reference::Tag(checked(name)?));
        }
        if text.starts_with("refs/") {
            return Err(format!(
                "{text:?} is neither a branch (refs/heads/…) nor a tag (refs/tags/…)"
            ));
        }
        if text.len() >= 7 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            if text.len() == 40 {
                return Ok(Reference::Commit(text.to_ascii_lowercase()));
            }
            return Err(format!(
                "{text:?} looks like a part of a commit's id: write all 40 digits, or \
                 refs/heads/{text} for a branch"
            ));
        }
        let name = checked(text)?;
        Ok(if is_version(text) { Reference::Tag(name) } else { Reference::Branch(name) })
    }
}

/// The name of a branch or tag, by Git's own rules.
fn checked(name: &str) -> Result<String, String> {
    match gix::validate::reference::name(format!("refs/heads/{name}").as_str().into()) {
        Ok(_) if !name.starts_with('-') => Ok(name.to_owned()),
        Ok(_) => Err(format!("{name:?} begins with a dash")),
        Err(fault) => Err(format!("{name:?} is no name of a branch or tag: {fault}")),
    }
}

/// `v1.2.3`, with anything behind it: how releases are tagged, and no branch is called.
fn is_version(text: &str) -> bool {
    let Some(numbers) = text.strip_prefix('v') else { return false };
    let core = numbers.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = core.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(is_number)
}

#[cfg(test)]
mod tests;

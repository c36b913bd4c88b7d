//! Image references, read as registries' clients read them: `REGISTRY/REPOSITORY:TAG@DIGEST`, with
//! Docker Hub where no registry is named.
//!
//! The grammar is that of the distribution project's `reference` package, and of the OCI
//! distribution specification for tags and digests.

use core::fmt;
use std::borrow::Cow;

/// A reference, in its whole form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference<'a> {
    /// Host and port, in lower case: `docker.io` where none is named.
    pub registry: Cow<'a, str>,
    /// The name within the registry: `library/nginx` for `nginx`.
    pub repository: Cow<'a, str>,
    /// The tag, if one is stated.
    pub tag: Option<&'a str>,
    /// The digest, algorithm included, if one is stated.
    pub digest: Option<&'a str>,
}

/// Why a text is no reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReference {
    /// What follows the `@` is no digest.
    Digest,
    /// What follows the last `:` is no tag.
    Tag,
    /// The repository has upper case letters.
    UpperCase,
    /// The repository's name is none.
    Repository,
    /// The registry's name is none.
    Registry,
    /// Registry and repository are too long.
    Length,
}

impl fmt::Display for NoReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoReference::Digest => "a digest is an algorithm, ':' and its whole hexadecimal value (64 digits for sha256)",
            NoReference::Tag => "a tag has letters, digits, '_', '.' and '-', 128 at most, and begins with none of the last two",
            NoReference::UpperCase => "a repository's name is in lower case",
            NoReference::Repository => "a repository's name has parts of lower case letters and digits, joined by '.', '_', '__' or '-', between slashes",
            NoReference::Registry => "a registry is a host name or address, and a port after ':'",
            NoReference::Length => "registry and repository together have 255 characters at most",
        })
    }
}

/// How long registry and repository are together, at most.
const MAX_NAME: usize = 255;
/// How long a tag is, at most.
const MAX_TAG: usize = 128;
/// How many digits a digest has, at least.
const MIN_DIGEST: usize = 32;

impl<'a> Reference<'a> {
    /// Reads a reference as it stands in a manifest.
    ///
    /// # Errors
    /// [`NoReference`]: a container's runtime would refuse it too.
    pub fn read(text: &'a str) -> Result<Self, NoReference> {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) if is_digest(digest) => (name, Some(digest)),
            Some(_) => return Err(NoReference::Digest),
            None => (text, None),
        };
        // A port's colon has a slash behind it.
        let (name, tag) = match name.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (name, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(NoReference::Tag);
        }
        let (registry, repository) = match name.split_once('/') {
            Some((first, rest)) if is_registry(first) => (first, rest),
            _ => ("docker.io", name),
        };
        if !is_host(registry) {
            return Err(NoReference::Registry);
        }
        if repository.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(NoReference::UpperCase);
        }
        if !repository.split('/').all(is_component) {
            return Err(NoReference::Repository);
        }
        let registry = match registry {
            "index.docker.io" => Cow::Borrowed("docker.io"),
            other if other.bytes().any(|byte| byte.is_ascii_uppercase()) => {
                Cow::Owned(other.to_ascii_lowercase())
            }
            other => Cow::Borrowed(other),
        };
        let repository = if registry == "docker.io" && !repository.contains('/') {
            // A bare image id is not a name.
            if repository.len() == 64 && repository.bytes().all(is_hex) {
                return Err(NoReference::Repository);
            }
            Cow::Owned(format!("library/{repository}"))
        } else {
            Cow::Borrowed(repository)
        };
        if registry.len() + 1 + repository.len() > MAX_NAME {
            return Err(NoReference::Length);
        }
        Ok(Self { registry, repository, tag, digest })
    }
}

/// Whether the first part of a name is a registry and not the first part of a repository.
pub(crate) fn is_registry(first: &str) -> bool {
    first.contains(['.', ':'])
        || first == "localhost"
        || first.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn is_host(registry: &str) -> bool {
    let (host, port) = match registry.strip_prefix('[') {
        Some(rest) => {
            let Some((address, port)) = rest.split_once(']') else { return false };
            if !address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':') {
                return false;
            }
            ("a", port.strip_prefix(':').or((!port.is_empty()).then_some("?")))
        }
        None => match registry.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (registry, None),
        },
    };
    let label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let number = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    host.split('.').all(label) && port.is_none_or(number)
}

/// Letters and digits, joined by `.`, one or two `_`, or any number of `-`.
fn is_component(component: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let joins =
        |join: &str| matches!(join, "." | "_" | "__") || join.bytes().all(|byte| byte == b'-');
    let ends = |byte: Option<&u8>| byte.copied().is_some_and(word);
    ends(component.as_bytes().first())
        && ends(component.as_bytes().last())
        && component.split(|it: char| it.is_ascii_lowercase() || it.is_ascii_digit()).all(joins)
}

fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= MAX_TAG
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|byte| word(byte) || matches!(byte, b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, value)) = digest.split_once(':') else { return false };
    let digits = match algorithm {
        "sha256" => value.len() == 64,
        "sha384" => value.len() == 96,
        "sha512" => value.len() == 128,
        _ => value.len() >= MIN_DIGEST,
    };
    let part = |part: &str| {
        part.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    digits && value.bytes().all(is_hex) && algorithm.split(['+', '.', '_', '-']).all(part)
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

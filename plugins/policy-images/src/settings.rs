//! The configuration: which tags move, whether digests are wanted, and which registries are allowed.

use crate::Reference;
use crate::reference::is_registry;
use trimtab_sdk::rules::{Bad, Effect, Keys, any, glob};
use trimtab_sdk::{Step, Value};

/// The configuration, read.
pub(crate) struct Settings<'v> {
    mutable_tags: Vec<&'v str>,
    pub(crate) digest: Effect,
    pub(crate) allowed: Vec<Prefix<'v>>,
    pub(crate) denied: Vec<Prefix<'v>>,
    exempt_namespaces: Vec<&'v str>,
    exempt_images: Vec<Prefix<'v>>,
    pub(crate) effect: Effect,
    pub(crate) unseen: Effect,
}

const KEYS: [&str; 8] = [
    "mutableTags",
    "digest",
    "allowed",
    "denied",
    "exemptNamespaces",
    "exemptImages",
    "effect",
    "unseen",
];

impl<'v> Settings<'v> {
    pub(crate) fn read(configuration: &'v Value<'_>) -> Result<Self, Bad> {
        let keys = Keys::of(configuration, &KEYS)?;
        let digest = keys.word("digest", &["optional", "wanted", "required"])?.unwrap_or(0);
        let digest = [Effect::Allow, Effect::Warn, Effect::Deny].get(digest).copied();
        let prefixes = |key: &str| -> Result<Vec<Prefix<'v>>, Bad> {
            let texts = keys.texts(key)?.unwrap_or_default();
            let read = |(index, text)| {
                Prefix::read(text)
                    .map_err(|why| Bad::new(keys.path(key).join(Step::Index(index)), why))
            };
            texts.into_iter().enumerate().map(read).collect()
        };
        Ok(Self {
            mutable_tags: keys.texts("mutableTags")?.unwrap_or_else(|| vec!["latest"]),
            digest: digest.unwrap_or(Effect::Allow),
            allowed: prefixes("allowed")?,
            denied: prefixes("denied")?,
            exempt_namespaces: keys.texts("exemptNamespaces")?.unwrap_or_default(),
            exempt_images: prefixes("exemptImages")?,
            effect: keys.effect("effect")?.unwrap_or(Effect::Deny),
            unseen: keys.effect("unseen")?.unwrap_or(Effect::Warn),
        })
    }

    /// The pattern by which a tag counts as one that moves.
    pub(crate) fn mutable(&self, tag: &str) -> Option<&'v str> {
        self.mutable_tags.iter().copied().find(|pattern| glob(pattern, tag))
    }

    pub(crate) fn exempts_namespace(&self, namespace: &str) -> bool {
        any(self.exempt_namespaces.iter().copied(), namespace)
    }

    pub(crate) fn exempts_image(&self, reference: &Reference<'_>) -> bool {
        self.exempt_images.iter().any(|prefix| prefix.holds(reference))
    }
}

/// A registry, or the beginning of a repository's name, whole components of it.
pub(crate) struct Prefix<'v> {
    /// As it is written.
    pub(crate) text: &'v str,
    registry: String,
    /// Empty for all of a registry.
    repository: String,
}

impl<'v> Prefix<'v> {
    fn read(text: &'v str) -> Result<Self, String> {
        let bare = text.strip_suffix('/').unwrap_or(text);
        let wildcard = bare.strip_prefix("*.").filter(|rest| !rest.contains('*'));
        let (registry, rest) = bare.split_once('/').unwrap_or((bare, ""));
        if (is_registry(registry) && !registry.contains('*')) || wildcard.is_some() {
            let repository = rest.to_owned();
            let example =
                format!("registry.example.com/{}", if rest.is_empty() { "a" } else { rest });
            return match Reference::read(&example) {
                Ok(read)
                    if read.tag.is_none() && read.digest.is_none() && !repository.contains('*') =>
                {
                    Ok(Self { text, registry: reference_registry(registry), repository })
                }
                _ => Err(wanted(text)),
            };
        }
        match Reference::read(bare) {
            Ok(read) if read.tag.is_none() && read.digest.is_none() => {
                let repository = read.repository.into_owned();
                Ok(Self { text, registry: read.registry.into_owned(), repository })
            }
            _ => Err(wanted(text)),
        }
    }

    /// Whether the reference lies in it.
    pub(crate) fn holds(&self, reference: &Reference<'_>) -> bool {
        let rest = reference.repository.strip_prefix(self.repository.as_str());
        let within =
            |rest: &str| self.repository.is_empty() || rest.is_empty() || rest.starts_with('/');
        glob(&self.registry, &reference.registry) && rest.is_some_and(within)
    }
}

fn reference_registry(registry: &str) -> String {
    if registry == "index.docker.io" {
        "docker.io".to_owned()
    } else {
        registry.to_ascii_lowercase()
    }
}

fn wanted(text: &str) -> String {
    format!(
        "{text:?} is neither a registry (registry.example.com, *.example.com, docker.io) nor the \
         beginning of a repository (registry.example.com/team, or team/app on docker.io), without a tag"
    )
}

//! The configuration: what each find leads to, what is allowed, and the salt of fingerprints.

use crate::sha256;
use trimtab_sdk::rules::{Bad, Effect, Keys, any, glob, kind};
use trimtab_sdk::{ObjectId, Value};

/// How many digits of a digest a fingerprint has: enough to tell values apart, and too few to be sure
/// of a guess.
const FINGERPRINT: usize = 12;

/// The configuration, read.
pub(crate) struct Settings<'v> {
    /// Of tokens that are known by their shape.
    pub(crate) tokens: Effect,
    pub(crate) private_keys: Effect,
    pub(crate) url_passwords: Effect,
    /// Of values under a secret's name that look random.
    pub(crate) guesses: Effect,
    /// Of a Secret whose values stand in desired state.
    pub(crate) secret_data: Effect,
    allow: Vec<Allow<'v>>,
    salt: &'v str,
}

/// What has to fit, all of it, for a find to be allowed.
struct Allow<'v> {
    paths: Vec<&'v str>,
    kinds: Vec<&'v str>,
    namespaces: Vec<&'v str>,
    names: Vec<&'v str>,
    shapes: Vec<&'v str>,
    fingerprints: Option<Vec<&'v str>>,
}

const KEYS: [&str; 7] =
    ["tokens", "privateKeys", "urlPasswords", "guesses", "secretData", "allow", "salt"];
const ALLOW: [&str; 6] = ["paths", "kinds", "namespaces", "names", "shapes", "fingerprints"];

impl<'v> Settings<'v> {
    pub(crate) fn read(configuration: &'v Value<'_>) -> Result<Self, Bad> {
        let keys = Keys::of(configuration, &KEYS)?;
        let mut allow = Vec::new();
        for one in keys.list("allow", &ALLOW)?.unwrap_or_default() {
            let stated = |key| one.texts(key);
            if ALLOW.iter().all(|key| stated(key).is_ok_and(|list| list.is_none())) {
                let message = "this would allow everything: state paths, fingerprints, or what else it is about";
                return Err(Bad::new(keys.path("allow"), message));
            }
            let patterns = |key| Ok(stated(key)?.unwrap_or_else(|| vec!["*"]));
            allow.push(Allow {
                paths: patterns("paths")?,
                kinds: patterns("kinds")?,
                namespaces: patterns("namespaces")?,
                names: patterns("names")?,
                shapes: patterns("shapes")?,
                fingerprints: stated("fingerprints")?,
            });
        }
        let effect = |key, usual| Ok(keys.effect(key)?.unwrap_or(usual));
        Ok(Self {
            tokens: effect("tokens", Effect::Deny)?,
            private_keys: effect("privateKeys", Effect::Deny)?,
            url_passwords: effect("urlPasswords", Effect::Deny)?,
            guesses: effect("guesses", Effect::Warn)?,
            secret_data: effect("secretData", Effect::Warn)?,
            allow,
            salt: keys.text("salt")?.unwrap_or_default(),
        })
    }

    /// What stands for a value in what people read.
    pub(crate) fn fingerprint(&self, value: &[u8]) -> String {
        let mut digest = sha256::hex(&[self.salt.as_bytes(), &[0], value].concat());
        digest.truncate(FINGERPRINT);
        digest
    }

    pub(crate) fn allows(
        &self,
        id: &ObjectId<'_>,
        path: &str,
        shape: &str,
        fingerprint: &str,
    ) -> bool {
        self.allow.iter().any(|allow| {
            any(allow.namespaces.iter().copied(), id.namespace)
                && any(allow.names.iter().copied(), id.name)
                && any(allow.shapes.iter().copied(), shape)
                && allow.paths.iter().any(|pattern| glob(pattern, path))
                && allow.kinds.iter().any(|pattern| kind(pattern, id))
                && allow.fingerprints.as_ref().is_none_or(|list| list.contains(&fingerprint))
        })
    }
}

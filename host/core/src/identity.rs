//! Which object: the canonical identity that every stage uses.
//!
//! An [`ObjectKey`] has no version and no alias: two manifests of one object in two API versions
//! have one key. It is made from discovery's word (group, kind, scope), never from a plugin's.

use std::fmt;
use std::sync::Arc;

/// API group and kind, such as `apps` and `Deployment`; the core group is the empty string.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    /// API group, without version.
    pub group: Arc<str>,
    /// Kind, in CamelCase.
    pub kind: Arc<str>,
}

impl GroupKind {
    /// A group and kind from their parts.
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

impl fmt::Display for GroupKind {
    /// `Deployment.apps`, or `Service` for the core group, as kubectl prints them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            write!(f, "{}", self.kind)
        } else {
            write!(f, "{}.{}", self.kind, self.group)
        }
    }
}

/// API group, version and kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gvk {
    /// API group, without version; the core group is the empty string.
    pub group: Arc<str>,
    /// Version within the group, such as `v1`.
    pub version: Arc<str>,
    /// Kind, in CamelCase.
    pub kind: Arc<str>,
}

impl Gvk {
    /// From an object's `apiVersion` (`v1`, `apps/v1`) and `kind`.
    pub fn from_api_version(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// The `apiVersion` as objects spell it.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Without the version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version(), self.kind)
    }
}

/// The identity of one object in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// What it is.
    pub group_kind: GroupKind,
    /// Where it is; `None` for a cluster-scoped kind.
    pub namespace: Option<Arc<str>>,
    /// Its `metadata.name`.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// A key from its parts; an empty namespace means cluster-scoped.
    pub fn new(group_kind: GroupKind, namespace: &str, name: &str) -> Self {
        Self {
            group_kind,
            namespace: (!namespace.is_empty()).then(|| namespace.into()),
            name: name.into(),
        }
    }

    /// The namespace as text; empty for a cluster-scoped object.
    pub fn namespace_str(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for ObjectKey {
    /// `Deployment.apps shop/web`, or `Namespace shop` for a cluster-scoped object.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {}/{}", self.group_kind, namespace, self.name),
            None => write!(f, "{} {}", self.group_kind, self.name),
        }
    }
}

/// A SHA-256 digest: of a plugin file, of desired bytes, of a grant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// From `sha256:` and 64 hexadecimal digits; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?;
        if hex.len() != 64 {
            return None;
        }
        let mut bytes = [0u8; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            let digit = |c: u8| (c as char).to_digit(16);
            *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
        }
        Some(Self(bytes))
    }

    /// The first twelve hexadecimal digits, for people.
    pub fn short(&self) -> String {
        self.to_string()[7..19].to_owned()
    }

    /// The 32 bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

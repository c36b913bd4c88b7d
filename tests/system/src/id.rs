//! One object's name, as tests write it.

use serde_json::Value;
use std::fmt;

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// Such as `apps/v1`.
    pub api_version: String,
    /// Such as `Deployment`.
    pub kind: String,
    /// Empty for a cluster-scoped object.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

impl Id {
    /// From its parts.
    pub fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// What an object says of itself; `None` if it says too little.
    pub fn of(object: &Value) -> Option<Self> {
        let metadata = object.get("metadata")?;
        let text = |value: Option<&Value>| Some(value?.as_str()?.to_owned());
        Some(Self {
            api_version: text(object.get("apiVersion"))?,
            kind: text(object.get("kind"))?,
            namespace: text(metadata.get("namespace")).unwrap_or_default(),
            name: text(metadata.get("name"))?,
        })
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, name, .. } = self;
        if namespace.is_empty() {
            write!(f, "{kind} {name}")
        } else {
            write!(f, "{kind} {namespace}/{name}")
        }
    }
}

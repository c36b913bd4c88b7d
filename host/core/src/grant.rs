//! What the administrator allows one plugin, and the power that comes of it.
//!
//! Effective power = manifest ∩ grant ∩ hard denials (∩ RBAC, which the API server sees to).
//! Without a grant a plugin observes: it says what it would do and nothing is written.

use crate::budget::Budgets;
use crate::decision::ActionKind;
use crate::denial::Denial;
use crate::fields::Fields;
use crate::identity::{Digest, ObjectKey};
use crate::plugin::{KindPattern, PluginIdentity, PluginManifest};
use crate::policy::PolicyTerms;
use crate::redact::is_sensitive;
use std::collections::BTreeSet;
use std::fmt;

/// Whether a plugin's changes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Decisions are recorded; nothing is written.
    Observe,
    /// Granted changes are written.
    Enforce,
}

impl Mode {
    /// The word used in grants and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Enforce => "enforce",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Namespaces that a grant reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// Every namespace.
    All,
    /// These.
    Only(BTreeSet<String>),
}

/// What the administrator allows one plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The plugin's name.
    pub plugin: String,
    /// SHA-256 of the file that this was granted to; another file of that name gets nothing.
    pub digest: Digest,
    /// Whether changes are written.
    pub mode: Mode,
    /// Kinds, narrowing the manifest's claims.
    pub kinds: Vec<KindPattern>,
    /// Namespaces of namespaced objects.
    pub namespaces: Namespaces,
    /// Whether cluster-scoped objects are reached too.
    pub cluster_scoped: bool,
    /// Actions, narrowing the manifest's.
    pub actions: BTreeSet<ActionKind>,
    /// Field managers of client-side tools whose place we take on objects that are adopted,
    /// besides [`crate::succession::PREDECESSORS`].
    pub predecessors: BTreeSet<String>,
    /// What it says beyond kinds, places and actions.
    pub terms: Terms,
    /// Where the grant was read: file, for messages.
    pub origin: String,
}

/// The terms of a grant; each has a default that is safe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Fields that may change.
    pub fields: Fields,
    /// Hard denials that it lifts.
    pub allow: BTreeSet<Denial>,
    /// How much may be written.
    pub budgets: Budgets,
    /// What one call may use.
    pub limits: Limits,
    /// Kinds that the plugin may read, narrowing the manifest's; `None`: those that it may write.
    pub reads: Option<Vec<KindPattern>>,
    /// Whether its file may import WASI, which is closed.
    pub wasi: bool,
    /// What it may do as a policy; `None`: it observes as one.
    pub policy: Option<PolicyTerms>,
}

/// What one call of the plugin may use; `None`: the sandbox's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Wall time, in milliseconds.
    pub wall_time_ms: Option<u64>,
    /// Linear memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Bytes of an answer.
    pub output_bytes: Option<u64>,
    /// Lines of log.
    pub log_lines: Option<u64>,
    /// Bytes of log.
    pub log_bytes: Option<u64>,
    /// Reads.
    pub lookups: Option<u64>,
    /// Bytes that reads hand over.
    pub lookup_bytes: Option<u64>,
}

/// Why the gate did not let an action through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Stable CamelCase reason, such as `ActionNotGranted`.
    pub reason: &'static str,
    /// What was asked, and what to do about it.
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

/// A plugin together with what it is allowed.
#[derive(Clone, Debug)]
pub struct Power {
    /// Which code.
    pub plugin: PluginIdentity,
    /// What it says of itself.
    pub manifest: PluginManifest,
    /// What it was granted; `None`: it observes.
    pub grant: Option<Grant>,
}

impl Power {
    /// Observe or enforce, for this object: outside the grant's reach a plugin observes.
    pub fn mode_for(&self, key: &ObjectKey) -> Mode {
        match &self.grant {
            Some(grant) if self.reaches(key).is_ok() => grant.mode,
            _ => Mode::Observe,
        }
    }

    /// Whether the grant reaches this object at all.
    ///
    /// # Errors
    /// The refusal that says why not.
    pub fn reaches(&self, key: &ObjectKey) -> Result<&Grant, Refusal> {
        let grant = self.grant()?;
        if !grant.kinds.iter().any(|kind| kind.covers(&key.group_kind)) {
            return Err(Refusal {
                reason: "KindNotGranted",
                message: format!("the grant in {} does not name {}", grant.origin, key.group_kind),
            });
        }
        within(grant, key).map(|()| grant)
    }

    fn grant(&self) -> Result<&Grant, Refusal> {
        self.grant.as_ref().ok_or_else(|| Refusal {
            reason: "NoGrant",
            message: format!(
                "plugin {} has no grant: run `trimtab plugin grant` on its file and put the result where --grants points",
                self.plugin.name
            ),
        })
    }

    /// Kinds that the plugin may read, as far as its manifest's reads name them too: those of its
    /// grant; without one, those that it claims.
    pub fn readable(&self) -> &[KindPattern] {
        match &self.grant {
            Some(grant) => grant.terms.reads.as_deref().unwrap_or(&grant.kinds),
            None => &self.manifest.claims,
        }
    }

    /// Whether the plugin may read this object: inside its manifest's reads and its grant's.
    /// Without a grant it reads no Secret.
    pub fn may_read(&self, key: &ObjectKey) -> bool {
        let covers = |patterns: &[KindPattern]| {
            patterns.iter().any(|pattern| pattern.covers(&key.group_kind))
        };
        covers(&self.manifest.reads)
            && covers(self.readable())
            && match &self.grant {
                Some(grant) => within(grant, key).is_ok(),
                None => !is_sensitive(&key.group_kind),
            }
    }

    /// Whether this kind of action on this object lies inside manifest and grant.
    ///
    /// # Errors
    /// The refusal that says why not.
    pub fn allows(&self, key: &ObjectKey, action: ActionKind) -> Result<&Grant, Refusal> {
        let name = &self.plugin.name;
        if self.manifest.claim_for(&key.group_kind).is_none() {
            return Err(Refusal {
                reason: "KindNotClaimed",
                message: format!("plugin {name} does not claim {}", key.group_kind),
            });
        }
        if !self.manifest.actions.contains(&action) {
            return Err(Refusal {
                reason: "ActionNotDeclared",
                message: format!(
                    "plugin {name} asks for {action}, which its manifest does not declare"
                ),
            });
        }
        if !is_canonical(key) {
            return Err(Refusal {
                reason: "NameNotCanonical",
                message: format!(
                    "{:?} is not a name of RFC 1123, by which alone objects are written",
                    key.name
                ),
            });
        }
        let grant = self.reaches(key)?;
        if !grant.actions.contains(&action) {
            return Err(Refusal {
                reason: "ActionNotGranted",
                message: format!("the grant in {} does not allow {action}", grant.origin),
            });
        }
        Ok(grant)
    }
}

/// Whether the object lies in the places that the grant names.
fn within(grant: &Grant, key: &ObjectKey) -> Result<(), Refusal> {
    match (&key.namespace, &grant.namespaces) {
        (None, _) if !grant.cluster_scoped => Err(Refusal {
            reason: "ClusterScopeNotGranted",
            message: format!(
                "{key} is cluster-scoped and the grant in {} has clusterScoped: false",
                grant.origin
            ),
        }),
        (Some(namespace), Namespaces::Only(only)) if !only.contains(&**namespace) => Err(Refusal {
            reason: "NamespaceNotGranted",
            message: format!("the grant in {} does not name namespace {namespace}", grant.origin),
        }),
        _ => Ok(()),
    }
}

/// Whether a name is one that a path of the API cannot bend: an RFC 1123 subdomain, or for the
/// kinds that take any segment of a path (roles and addresses) one in plain ASCII.
pub(crate) fn is_canonical(key: &ObjectKey) -> bool {
    let name = &*key.name;
    let free = matches!(
        (&*key.group_kind.group, &*key.group_kind.kind),
        ("rbac.authorization.k8s.io", _) | ("networking.k8s.io", "IPAddress")
    );
    let segment = name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'%'));
    let end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |label: &str| {
        let bytes = label.as_bytes();
        let ends = bytes.first().is_some_and(|byte| end(*byte))
            && bytes.last().is_some_and(|byte| end(*byte));
        ends && bytes.iter().all(|byte| end(*byte) || *byte == b'-')
    };
    let shape =
        if free { segment && name != "." && name != ".." } else { name.split('.').all(label) };
    let namespace =
        key.namespace.as_deref().is_none_or(|namespace| namespace.len() <= 63 && label(namespace));
    !name.is_empty() && name.len() <= 253 && shape && namespace
}

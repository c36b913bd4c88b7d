//! What the administrator allows one plugin, and the power that comes of it.
//!
//! Effective power = manifest ∩ grant. Without a grant a plugin observes: it says what it would
//! do and nothing is written. (Hard denials, field paths, budgets and limits have their place
//! here too.)

use crate::decision::ActionKind;
use crate::identity::{Digest, ObjectKey};
use crate::plugin::{KindPattern, PluginIdentity, PluginManifest};
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
    /// Where the grant was read: file, for messages.
    pub origin: String,
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
        let name = &self.plugin.name;
        let Some(grant) = &self.grant else {
            return Err(Refusal {
                reason: "NoGrant",
                message: format!(
                    "plugin {name} has no grant: run `trimtab plugin grant` on its file and put the result where --grants points"
                ),
            });
        };
        if !grant.kinds.iter().any(|kind| kind.covers(&key.group_kind)) {
            return Err(Refusal {
                reason: "KindNotGranted",
                message: format!("the grant in {} does not name {}", grant.origin, key.group_kind),
            });
        }
        match (&key.namespace, &grant.namespaces) {
            (None, _) if !grant.cluster_scoped => Err(Refusal {
                reason: "ClusterScopeNotGranted",
                message: format!(
                    "{key} is cluster-scoped and the grant in {} has clusterScoped: false",
                    grant.origin
                ),
            }),
            (Some(namespace), Namespaces::Only(only)) if !only.contains(&**namespace) => {
                Err(Refusal {
                    reason: "NamespaceNotGranted",
                    message: format!(
                        "the grant in {} does not name namespace {namespace}",
                        grant.origin
                    ),
                })
            }
            _ => Ok(grant),
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

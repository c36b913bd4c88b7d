//! Hard denials: what no grant allows by naming kinds and actions alone.
//!
//! A pure function of the canonical identity, the live object before and the object after a change.
//! Each denial has a name, and a grant lifts it by that name (`allow`), as a second word beside
//! kinds and actions. Kinds that hand out power are denied as they are; of pods it is judged what
//! their templates hold.

mod pods;

use crate::grant::Refusal;
use crate::identity::{GroupKind, ObjectKey};
use crate::plugin::KindPattern;
use std::collections::BTreeSet;
use std::fmt;
use trimtab_json::Value;

/// Service accounts that a source declares.
pub type Accounts = BTreeSet<ObjectKey>;

/// The refusal's reason.
pub(crate) const REFUSED: &str = "HardDenial";

/// One hard denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Denial {
    /// Roles and their bindings.
    Rbac,
    /// Admission webhooks, policies and their bindings.
    Admission,
    /// Custom resource definitions.
    Definitions,
    /// API services.
    ApiServices,
    /// Certificate signing requests and trust bundles.
    Certificates,
    /// Persistent volumes.
    PersistentVolumes,
    /// A namespace's pod-security labels.
    PodSecurityLabels,
    /// Pod templates beyond the baseline of the Pod Security Standards.
    PrivilegedPods,
    /// Pod templates that run as a service account that the source does not declare.
    ServiceAccounts,
    /// Secrets that are credentials of the cluster.
    TokenSecrets,
}

impl Denial {
    /// Every denial, in the order in which they are listed to people.
    pub const ALL: [Denial; 10] = [
        Self::Rbac,
        Self::Admission,
        Self::Definitions,
        Self::ApiServices,
        Self::Certificates,
        Self::PersistentVolumes,
        Self::PodSecurityLabels,
        Self::PrivilegedPods,
        Self::ServiceAccounts,
        Self::TokenSecrets,
    ];

    /// The word used in grants.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rbac => "rbac",
            Self::Admission => "admission",
            Self::Definitions => "definitions",
            Self::ApiServices => "api-services",
            Self::Certificates => "certificates",
            Self::PersistentVolumes => "persistent-volumes",
            Self::PodSecurityLabels => "pod-security-labels",
            Self::PrivilegedPods => "privileged-pods",
            Self::ServiceAccounts => "service-accounts",
            Self::TokenSecrets => "token-secrets",
        }
    }

    /// The denial with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|denial| denial.as_str() == word)
    }

    /// Whether an object of these kinds could be concerned: lifting what cannot be is a mistake.
    pub fn can_concern(self, kinds: &[KindPattern], cluster_scoped: bool) -> bool {
        let group = |wanted: &str| {
            kinds.iter().any(|kind| match kind {
                KindPattern::Any => true,
                KindPattern::Group(group) => group == wanted,
                KindPattern::Exact(exact) => &*exact.group == wanted,
            })
        };
        let core = |wanted: &str| {
            let kind = GroupKind::new("", wanted);
            kinds.iter().any(|pattern| pattern.covers(&kind))
        };
        match self {
            Self::Rbac => group("rbac.authorization.k8s.io"),
            Self::Certificates => group("certificates.k8s.io"),
            Self::Admission => cluster_scoped && group("admissionregistration.k8s.io"),
            Self::Definitions => cluster_scoped && group("apiextensions.k8s.io"),
            Self::ApiServices => cluster_scoped && group("apiregistration.k8s.io"),
            Self::PersistentVolumes => cluster_scoped && core("PersistentVolume"),
            Self::PodSecurityLabels => cluster_scoped && core("Namespace"),
            Self::TokenSecrets => core("Secret"),
            Self::PrivilegedPods | Self::ServiceAccounts => {
                pods::KINDS.iter().any(|(group, kind, _)| {
                    let kind = GroupKind::new(group, kind);
                    kinds.iter().any(|pattern| pattern.covers(&kind))
                })
            }
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) denial: Denial,
    /// What it is about, for people: names and paths, no values of a Secret.
    what: String,
}

impl Denied {
    /// As the gate refuses it; `origin` is the grant's file.
    pub(crate) fn refusal(&self, key: &ObjectKey, origin: &str) -> Refusal {
        let Self { denial, what } = self;
        Refusal {
            reason: REFUSED,
            message: format!(
                "{key}: {what}: that takes a second word; the grant in {origin} lifts it with {denial} under allow"
            ),
        }
    }

    /// As pruning refuses it.
    pub(crate) fn refusal_to_prune(&self, key: &ObjectKey) -> Refusal {
        let Self { denial, what } = self;
        Refusal {
            reason: REFUSED,
            message: format!(
                "{key}: {what}: its deletion takes a second word; its source lifts it with {denial} under deletion.allow"
            ),
        }
    }
}

/// Whether objects of this kind are judged by what they become, or searched for templates.
pub(crate) fn concerns(key: &ObjectKey) -> bool {
    let group = &*key.group_kind.group;
    let built_in = group.ends_with(".k8s.io") || !group.contains('.');
    depends_on_before(key) || !built_in || of_kind(key).is_some() || pods::holds(&key.group_kind)
}

/// Whether what was there before can make a denial, and not only excuse what stays as it was.
pub(crate) fn depends_on_before(key: &ObjectKey) -> bool {
    key.group_kind.group.is_empty() && matches!(&*key.group_kind.kind, "Secret" | "Namespace")
}

/// What a change from `before` to `after` touches that is denied; `None` is an absent object.
pub(crate) fn judge(
    key: &ObjectKey,
    before: Option<&Value<'_>>,
    after: Option<&Value<'_>>,
    accounts: &Accounts,
) -> Vec<Denied> {
    let mut denied = Vec::new();
    denied.extend(of_kind(key));
    if key.group_kind.group.is_empty() && &*key.group_kind.kind == "Secret" {
        denied.extend(before.and_then(token).or_else(|| after.and_then(token)));
    }
    let Some(after) = after else { return denied };
    if key.group_kind.group.is_empty() && &*key.group_kind.kind == "Namespace" {
        denied.extend(security_labels(before, after));
    }
    pods::judge(key, before, after, accounts, &mut denied);
    denied
}

/// What of an object's pod template goes beyond the baseline, each by its place.
pub(crate) fn beyond_baseline(key: &ObjectKey, object: &Value<'_>) -> Vec<String> {
    pods::beyond_baseline(key, object)
}

/// Whether objects of this kind hold a pod template, and so the name of a service account.
pub fn runs_pods(kind: &GroupKind) -> bool {
    pods::holds(kind)
}

/// Where a custom resource holds what looks like a pod template: nobody judged it.
pub(crate) fn unjudged_template(key: &ObjectKey, after: &Value<'_>) -> Option<String> {
    pods::unjudged(key, after)
}

fn of_kind(key: &ObjectKey) -> Option<Denied> {
    let (denial, what) = match (&*key.group_kind.group, &*key.group_kind.kind) {
        ("rbac.authorization.k8s.io", _) => (Denial::Rbac, "it says who may do what"),
        ("admissionregistration.k8s.io", _) => {
            (Denial::Admission, "it decides what the API server admits")
        }
        ("apiextensions.k8s.io", _) => (Denial::Definitions, "it defines a kind"),
        ("apiregistration.k8s.io", _) => {
            (Denial::ApiServices, "it hands a part of the API to another server")
        }
        ("certificates.k8s.io", _) => {
            (Denial::Certificates, "it asks for, or vouches for, an identity")
        }
        ("", "PersistentVolume") => {
            (Denial::PersistentVolumes, "it opens a path or device outside any namespace")
        }
        _ => return None,
    };
    Some(Denied { denial, what: what.into() })
}

/// Tokens of service accounts, and those by which nodes join.
fn token(secret: &Value<'_>) -> Option<Denied> {
    let held = secret.str_at(&["type"])?;
    matches!(held, "kubernetes.io/service-account-token" | "bootstrap.kubernetes.io/token").then(
        || Denied {
            denial: Denial::TokenSecrets,
            what: format!("a Secret of type {held} is a credential of the cluster"),
        },
    )
}

/// What weakens or moves the standard that a namespace's pods are held to: set, changed or removed.
fn security_labels(before: Option<&Value<'_>>, after: &Value<'_>) -> Option<Denied> {
    let labels = |object: Option<&Value<'_>>| -> Vec<(String, String)> {
        let labels = object.and_then(|object| object.at(&["metadata", "labels"]));
        let mut held: Vec<_> = labels
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(trimtab_json::Object::iter)
            .filter(|(name, _)| name.starts_with("pod-security.kubernetes.io/"))
            .map(|(name, value)| {
                (name.to_owned(), value.scalar_text().unwrap_or_default().to_owned())
            })
            .collect();
        held.sort();
        held
    };
    let (before, after) = (labels(before), labels(Some(after)));
    let moved = before.iter().find(|label| !after.contains(label));
    let (name, _) = moved.or_else(|| after.iter().find(|label| !before.contains(label)))?;
    Some(Denied {
        denial: Denial::PodSecurityLabels,
        what: format!("the label {name} says what its pods may do"),
    })
}

#[cfg(test)]
mod tests;

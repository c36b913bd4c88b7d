//! Who scales a workload: a HorizontalPodAutoscaler that names it, or whoever wrote its replicas
//! through the `scale` subresource, which the API server records in `managedFields`.

use crate::replicas;
use trimtab_sdk::lookup::{self, LookupError};
use trimtab_sdk::{Finding, Snapshot, Unknown, Value, managed_fields};

/// Names under which the autoscaler's own controller writes.
const AUTOSCALING: [&str; 2] = ["kube-controller-manager", "horizontal-pod-autoscaler"];

/// Who owns the replicas.
pub(crate) enum Scaler {
    /// An autoscaler by this name, within these bounds.
    Autoscaler { name: String, min: i64, max: i64 },
    /// This manager, by the `scale` subresource.
    Manager(String),
}

/// What could be found out.
pub(crate) struct Found {
    pub(crate) scaler: Option<Scaler>,
    /// Autoscalers may not be read: only what `managedFields` tell is known.
    pub(crate) unread: bool,
}

/// Whether workloads of this kind are scaled at all.
pub(crate) fn is_scalable(snapshot: &Snapshot<'_>) -> bool {
    matches!(snapshot.id().kind, "Deployment" | "StatefulSet" | "ReplicaSet")
}

/// The replicas that desired states.
pub(crate) fn stated<'s>(snapshot: &'s Snapshot<'_>) -> Option<&'s Value<'s>> {
    snapshot.desired()?.at(&["spec", "replicas"])
}

/// Who scales this workload. A workload that is not there is scaled by nobody, nor is one that is
/// declared with 0 replicas: that is how a person pauses an autoscaler.
///
/// # Errors
/// Autoscalers could be read, and cannot be told now.
pub(crate) fn of(snapshot: &Snapshot<'_>) -> Result<Found, Unknown> {
    let none = Found { scaler: None, unread: false };
    let Some(live) = snapshot.live() else { return Ok(none) };
    if stated(snapshot).and_then(Value::as_i64) == Some(0) {
        return Ok(none);
    }
    let id = snapshot.id();
    let unread = match lookup::find("autoscaling", "HorizontalPodAutoscaler", id.namespace) {
        Ok(autoscalers) => {
            for autoscaler in &autoscalers {
                let autoscaler = autoscaler.value()?;
                if targets(&autoscaler, snapshot) {
                    return Ok(Found { scaler: Some(bounds(&autoscaler)), unread: false });
                }
            }
            false
        }
        Err(LookupError::Denied | LookupError::Undeclared) => true,
        Err(error) => return Err(error.into()),
    };
    let scaled_by = |entry: &managed_fields::Entry<'_>| {
        entry.subresource == Some("scale")
            // Scaling by hand is drift like any other edit.
            && !entry.manager.starts_with("kubectl")
            // No autoscaler names the workload any more.
            && (unread || !AUTOSCALING.contains(&entry.manager))
    };
    let writer = managed_fields::managers_of(live, &replicas()).find(scaled_by);
    Ok(Found { scaler: writer.map(|entry| Scaler::Manager(entry.manager.to_owned())), unread })
}

fn targets(autoscaler: &Value<'_>, snapshot: &Snapshot<'_>) -> bool {
    let id = snapshot.id();
    let target = |name: &str| autoscaler.str_at(&["spec", "scaleTargetRef", name]);
    let group = target("apiVersion").unwrap_or_default().split_once('/').map_or("", |it| it.0);
    target("kind") == Some(id.kind) && target("name") == Some(id.name) && group == id.group
}

fn bounds(autoscaler: &Value<'_>) -> Scaler {
    let number = |name: &str| autoscaler.at(&["spec", name]).and_then(Value::as_i64);
    Scaler::Autoscaler {
        name: autoscaler.str_at(&["metadata", "name"]).unwrap_or_default().to_owned(),
        min: number("minReplicas").unwrap_or(1),
        max: number("maxReplicas").unwrap_or(i64::MAX),
    }
}

impl Scaler {
    /// Whether what desired states lies outside of what the autoscaler allows.
    pub(crate) fn contradicts(&self, snapshot: &Snapshot<'_>) -> bool {
        match (self, stated(snapshot).and_then(Value::as_i64)) {
            (Self::Autoscaler { min, max, .. }, Some(stated)) => !(*min..=*max).contains(&stated),
            _ => false,
        }
    }

    /// What a person should know about replicas that are stated and left alone.
    pub(crate) fn finding(&self, snapshot: &Snapshot<'_>) -> Finding {
        match (self, stated(snapshot).and_then(Value::as_i64)) {
            (Self::Autoscaler { name, min, max }, Some(stated)) if self.contradicts(snapshot) => {
                Finding::warning(
                    "replicas-outside-autoscaler",
                    format!(
                        "{stated} replicas are declared, and autoscaler {name} keeps from {min} to {max}: they are left to it; take them out of the manifest, or change the autoscaler"
                    ),
                )
            }
            _ => Finding::info(
                "field-owned-by-autoscaler",
                format!(
                    "{} scales this workload: replicas are left to it; take them out of the manifest to end this message",
                    self.name()
                ),
            ),
        }
        .at(replicas())
    }

    fn name(&self) -> String {
        match self {
            Self::Autoscaler { name, .. } => format!("autoscaler {name}"),
            Self::Manager(name) => name.clone(),
        }
    }
}

/// Replicas are corrected without knowing whether an autoscaler owns them.
pub(crate) fn not_readable() -> Finding {
    Finding::info(
        "autoscalers-not-readable",
        "whether an autoscaler owns the replicas is known only from who wrote them: name HorizontalPodAutoscaler.autoscaling in the grant's kinds",
    )
    .at(replicas())
}

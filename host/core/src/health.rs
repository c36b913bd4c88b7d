//! Readiness: whether an object does what it is there for, read from the object alone.
//!
//! The rules are those of kstatus (`sigs.k8s.io/cli-utils`, `pkg/kstatus`), which kubectl's
//! successors and Flux wait by, so that *ready* means here what it means there. Two are stricter,
//! because what waits for such an object waits for its end: a Job is ready when it is complete
//! (not when it has started), and a Pod that failed is failed. Knows no clock: for how long
//! something has not been ready is the caller's to say.

use crate::identity::Gvk;
use std::fmt;
use trimtab_json::Value;

/// Whether an object does what it is there for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It does.
    Ready,
    /// Not yet, and what is missing.
    InProgress(String),
    /// It will not by itself, and why.
    Failed(String),
    /// It is being deleted.
    Terminating,
    /// It cannot be told, and why.
    Unknown(String),
}

impl Readiness {
    /// Whether others may rely on the object.
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }
}

impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::InProgress(what) => write!(f, "not ready: {what}"),
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::Terminating => f.write_str("being deleted"),
            Self::Unknown(why) => write!(f, "not known: {why}"),
        }
    }
}

/// Reads the readiness of a live object from its JSON text.
pub fn readiness(gvk: &Gvk, live: &[u8]) -> Readiness {
    let object = match trimtab_json::parse(live) {
        Ok(object) => object,
        Err(error) => return Readiness::Unknown(error.to_string()),
    };
    if object.at(&["metadata", "deletionTimestamp"]).is_some_and(|at| !at.is_null()) {
        return Readiness::Terminating;
    }
    let verdict = observed(&object)
        .and_then(|()| standard_conditions(&object))
        .and_then(|()| of_kind(gvk, &object));
    verdict.err().unwrap_or(Readiness::Ready)
}

/// `Err`: not ready, and how.
type Check = Result<(), Readiness>;

fn in_progress(what: impl Into<String>) -> Check {
    Err(Readiness::InProgress(what.into()))
}

fn failed(why: impl Into<String>) -> Check {
    Err(Readiness::Failed(why.into()))
}

/// Whoever tells which generation it has seen has seen this one.
fn observed(object: &Value<'_>) -> Check {
    let generation = number(object, &["metadata", "generation"]);
    let observed = number(object, &["status", "observedGeneration"]);
    match (generation, observed) {
        (Some(generation), Some(observed)) if generation != observed => {
            in_progress(format!("its controller has seen generation {observed} of {generation}"))
        }
        _ => Ok(()),
    }
}

/// The two conditions that mean the same on every kind.
fn standard_conditions(object: &Value<'_>) -> Check {
    if let Some(stalled) = condition(object, "Stalled").filter(|it| it.is("True")) {
        return failed(stalled.words());
    }
    match condition(object, "Reconciling").filter(|it| it.is("True")) {
        Some(reconciling) => in_progress(reconciling.words()),
        None => Ok(()),
    }
}

fn of_kind(gvk: &Gvk, object: &Value<'_>) -> Check {
    match (&*gvk.group, &*gvk.kind) {
        ("apps", "Deployment") => deployment(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("apps", "ReplicaSet") => replica_set(object),
        ("", "ReplicationController") => replica_set(object),
        ("", "Pod") => pod(object),
        ("", "PersistentVolumeClaim") => phase(object, "Bound"),
        ("", "Namespace") => phase(object, "Active"),
        ("", "Service") => service(object),
        ("batch", "Job") => job(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        ("apiregistration.k8s.io", "APIService") => must_be_true(object, "Available"),
        _ if is_built_in(&gvk.group) => Ok(()),
        _ => custom(object),
    }
}

/// Whether a group is Kubernetes' own: its other kinds are ready as soon as they are there, and
/// their conditions say other things than readiness.
fn is_built_in(group: &str) -> bool {
    const OWN: [&str; 17] = [
        "admissionregistration",
        "apiextensions",
        "apiregistration",
        "authentication",
        "authorization",
        "certificates",
        "coordination",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "internal.apiserver",
        "networking",
        "node",
        "rbac.authorization",
        "resource",
        "scheduling",
        "storage",
    ];
    !group.contains('.') || group.strip_suffix(".k8s.io").is_some_and(|it| OWN.contains(&it))
}

/// A custom resource: by the first of the usual conditions that it has. One without a status says
/// nothing against itself.
fn custom(object: &Value<'_>) -> Check {
    match ["Ready", "Available", "Established", "Succeeded"]
        .into_iter()
        .find_map(|name| condition(object, name))
    {
        Some(found) if found.is("True") => found.is_of_this_generation(object),
        Some(found) => in_progress(found.words()),
        None => Ok(()),
    }
}

fn must_be_true(object: &Value<'_>, name: &str) -> Check {
    match condition(object, name) {
        Some(found) if found.is("True") => Ok(()),
        Some(found) => in_progress(found.words()),
        None => in_progress(format!("it has no condition {name} yet")),
    }
}

fn deployment(object: &Value<'_>) -> Check {
    let progressing = condition(object, "Progressing");
    if let Some(late) = progressing.as_ref().filter(|it| it.reason == "ProgressDeadlineExceeded") {
        return failed(late.words());
    }
    let wanted = number(object, &["spec", "replicas"]).unwrap_or(1);
    let has = |name: &str| status(object, name);
    enough("replicas", has("replicas"), wanted)?;
    enough("updated replicas", has("updatedReplicas"), wanted)?;
    no_more("replicas", has("replicas"), wanted)?;
    enough("available replicas", has("availableReplicas"), has("updatedReplicas"))?;
    enough("ready replicas", has("readyReplicas"), wanted)?;
    // Without a deadline its controller says nothing of its progress.
    let deadline = number(object, &["spec", "progressDeadlineSeconds"]);
    let rolled_out =
        progressing.is_some_and(|it| it.is("True") && it.reason == "NewReplicaSetAvailable");
    if deadline.is_some_and(|seconds| seconds != i64::from(i32::MAX)) && !rolled_out {
        return in_progress("its new ReplicaSet is not available yet");
    }
    must_be_true(object, "Available")
}

fn stateful_set(object: &Value<'_>) -> Check {
    let strategy = ["spec", "updateStrategy"];
    if object.at(&strategy).and_then(|it| it.str_at(&["type"])) == Some("OnDelete") {
        return Ok(());
    }
    let wanted = number(object, &["spec", "replicas"]).unwrap_or(1);
    let has = |name: &str| status(object, name);
    enough("replicas", has("replicas"), wanted)?;
    enough("ready replicas", has("readyReplicas"), wanted)?;
    no_more("replicas", has("replicas"), wanted)?;
    let partition = object.at(&strategy).and_then(|it| number(it, &["rollingUpdate", "partition"]));
    if let Some(partition) = partition.filter(|partition| *partition > 0) {
        return enough("updated replicas", has("updatedReplicas"), wanted - partition);
    }
    enough("current replicas", has("currentReplicas"), wanted)?;
    let revision = |name| object.str_at(&["status", name]);
    if revision("currentRevision") != revision("updateRevision") {
        return in_progress("some Pods are of the revision before");
    }
    Ok(())
}

fn daemon_set(object: &Value<'_>) -> Check {
    let Some(wanted) = number(object, &["status", "desiredNumberScheduled"]) else {
        return in_progress("its controller has not counted the nodes yet");
    };
    if number(object, &["status", "observedGeneration"]).is_none() {
        return in_progress("its controller has not seen it yet");
    }
    let has = |name: &str| status(object, name);
    enough("scheduled Pods", has("currentNumberScheduled"), wanted)?;
    let strategy = object.str_at(&["spec", "updateStrategy", "type"]);
    if strategy != Some("OnDelete") {
        enough("updated Pods", has("updatedNumberScheduled"), wanted)?;
    }
    enough("available Pods", has("numberAvailable"), wanted)?;
    enough("ready Pods", has("numberReady"), wanted)
}

fn replica_set(object: &Value<'_>) -> Check {
    if let Some(failure) = condition(object, "ReplicaFailure").filter(|it| it.is("True")) {
        return in_progress(failure.words());
    }
    let wanted = number(object, &["spec", "replicas"]).unwrap_or(1);
    let has = |name: &str| status(object, name);
    enough("labelled replicas", has("fullyLabeledReplicas"), wanted)?;
    enough("available replicas", has("availableReplicas"), wanted)?;
    enough("ready replicas", has("readyReplicas"), wanted)?;
    no_more("replicas", has("replicas"), wanted)
}

fn pod(object: &Value<'_>) -> Check {
    match object.str_at(&["status", "phase"]).unwrap_or_default() {
        "Succeeded" => Ok(()),
        "Failed" => failed("its containers ended with an error"),
        "Running" => {
            if condition(object, "Ready").is_some_and(|it| it.is("True")) {
                return Ok(());
            }
            match crash_looping(object) {
                Some(name) => failed(format!("container {name} crashes again and again")),
                None => in_progress("it runs and is not ready"),
            }
        }
        phase => {
            let unscheduled = condition(object, "PodScheduled")
                .filter(|it| it.is("False") && it.reason == "Unschedulable");
            match unscheduled {
                Some(why) => in_progress(why.words()),
                None => in_progress(format!("its phase is {:?}", or_none(phase))),
            }
        }
    }
}

fn crash_looping<'v>(pod: &'v Value<'_>) -> Option<&'v str> {
    let containers = pod.at(&["status", "containerStatuses"])?.as_array()?;
    containers
        .iter()
        .find(|it| it.str_at(&["state", "waiting", "reason"]) == Some("CrashLoopBackOff"))?
        .str_at(&["name"])
}

fn service(object: &Value<'_>) -> Check {
    let is_balanced = object.str_at(&["spec", "type"]) == Some("LoadBalancer");
    let address = object.str_at(&["spec", "clusterIP"]).unwrap_or_default();
    if is_balanced && address.is_empty() {
        return in_progress("it has no cluster IP yet");
    }
    Ok(())
}

fn job(object: &Value<'_>) -> Check {
    if let Some(failure) = condition(object, "Failed").filter(|it| it.is("True")) {
        return failed(failure.words());
    }
    if condition(object, "Complete").is_some_and(|it| it.is("True")) {
        return Ok(());
    }
    match condition(object, "Suspended").filter(|it| it.is("True")) {
        Some(suspended) => in_progress(suspended.words()),
        None => in_progress(format!(
            "{} of its Pods have succeeded and it is not complete",
            status(object, "succeeded")
        )),
    }
}

fn definition(object: &Value<'_>) -> Check {
    if let Some(taken) = condition(object, "NamesAccepted").filter(|it| it.is("False")) {
        return failed(taken.words());
    }
    match condition(object, "Established") {
        Some(found) if found.is("True") => Ok(()),
        // Its first state, while the API server makes ready to serve it.
        Some(found) if found.reason == "Installing" => in_progress("not established"),
        Some(found) => failed(found.words()),
        None => in_progress("not established"),
    }
}

fn phase(object: &Value<'_>, wanted: &str) -> Check {
    let phase = object.str_at(&["status", "phase"]).unwrap_or_default();
    if phase == wanted {
        return Ok(());
    }
    in_progress(format!("its phase is {} and not {wanted}", or_none(phase)))
}

fn or_none(phase: &str) -> &str {
    if phase.is_empty() { "not set" } else { phase }
}

fn enough(what: &str, has: i64, wanted: i64) -> Check {
    if has < wanted { in_progress(format!("{has} of {wanted} {what}")) } else { Ok(()) }
}

fn no_more(what: &str, has: i64, wanted: i64) -> Check {
    if has > wanted {
        return in_progress(format!("{} {what} too many are still there", has - wanted));
    }
    Ok(())
}

fn number(object: &Value<'_>, names: &[&str]) -> Option<i64> {
    object.at(names)?.as_i64()
}

/// A count of the status; what is not there is zero, as its controllers write it.
fn status(object: &Value<'_>, name: &str) -> i64 {
    number(object, &["status", name]).unwrap_or(0)
}

struct Condition<'v> {
    name: &'v str,
    status: &'v str,
    reason: &'v str,
    message: &'v str,
    observed: Option<i64>,
}

impl Condition<'_> {
    fn is(&self, status: &str) -> bool {
        self.status == status
    }

    fn words(&self) -> String {
        let said = if self.message.is_empty() { self.reason } else { self.message };
        let colon = if said.is_empty() { "" } else { ": " };
        format!("{} is {}{colon}{said}", self.name, self.status)
    }

    /// A condition that says of which generation it speaks speaks of this one.
    fn is_of_this_generation(&self, object: &Value<'_>) -> Check {
        let generation = number(object, &["metadata", "generation"]);
        match (self.observed, generation) {
            (Some(observed), Some(generation)) if observed < generation => in_progress(format!(
                "its condition {} is of generation {observed} of {generation}",
                self.name
            )),
            _ => Ok(()),
        }
    }
}

fn condition<'v>(object: &'v Value<'_>, name: &'v str) -> Option<Condition<'v>> {
    let all = object.at(&["status", "conditions"])?.as_array()?;
    let found = all.iter().find(|it| it.str_at(&["type"]) == Some(name))?;
    let text = |field| found.str_at(&[field]).unwrap_or_default();
    Some(Condition {
        name,
        status: text("status"),
        reason: text("reason"),
        message: text("message"),
        observed: number(found, &["observedGeneration"]),
    })
}

#[cfg(test)]
mod tests;

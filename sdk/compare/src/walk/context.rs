//! Defaults that depend on a neighbour, and what admission injects.

use crate::facts::Node;
use crate::trail::Trail;
use trimtab_json::{Object, Value};

/// Whether live's member is what the server makes of its siblings.
///
/// Sources: `SetDefaults_Container` (pull policy by tag), `SetDefaults_Service` (target port),
/// `SetDefaults_CustomResourceDefinitionSpec` (names),
/// `SetDefaults_NetworkPolicy` (policy types), `SetDefaults_Subject` (API group),
/// `SetDefaults_LimitRangeItem`, `SetDefaults_HorizontalPodAutoscaler`, `SetDefaults_Volume`, `SetDefaults_Pod` (requests from limits, host ports).
pub(super) fn is_default(
    name: &str,
    live: &Value<'_>,
    siblings: &Object<'_>,
    node: &Node<'_>,
) -> bool {
    if !node.is_go() {
        return false;
    }
    let sibling = |name: &str| siblings.get(name).and_then(Value::as_str);
    match name {
        "imagePullPolicy" => {
            live.as_str() == Some(pull_policy(sibling("image").unwrap_or_default()))
        }
        "pullPolicy" => {
            live.as_str() == Some(pull_policy(sibling("reference").unwrap_or_default()))
        }
        "allocateLoadBalancerNodePorts" => {
            sibling("type") == Some("LoadBalancer") && live.as_bool() == Some(true)
        }
        "requests" => siblings.get("limits") == Some(live),
        "apiGroup" => {
            matches!(sibling("kind"), Some("User" | "Group"))
                && live.as_str() == Some("rbac.authorization.k8s.io")
        }
        "count" => {
            sibling("allocationMode") == Some("ExactCount")
                && matches!(live, Value::Number(n) if n == "1")
        }
        "emptyDir" => live.as_object().is_some_and(Object::is_empty),
        "stabilizationWindowSeconds" => matches!(live, Value::Number(n) if n == "0"),
        "policies" => live.as_array().unwrap_or_default().iter().all(is_default_policy),
        "default" => is_from(live, siblings, &["max"]),
        "defaultRequest" => is_from(live, siblings, &["default", "min"]),
        "targetPort" => siblings.get("port") == Some(live),
        "hostPort" => siblings.get("containerPort") == Some(live),
        "singular" => sibling("kind")
            .is_some_and(|kind| live.as_str().is_some_and(|name| name.eq_ignore_ascii_case(kind))),
        "podReplacementPolicy" => {
            live.as_str() == Some("Failed") && siblings.get("podFailurePolicy").is_some()
        }
        "policyTypes" => is_policy_types(live, siblings.get("egress").is_some()),
        "tolerations" => live.as_array().unwrap_or_default().iter().all(is_default_toleration),
        _ => false,
    }
}

/// The same of a member that desired states as empty or lets go; `depth` is how many steps lead to
/// what holds it. (Host ports are filled in for pods alone, since 1.28: in a template they only are
/// never stray.)
pub(super) fn is_default_of_stated(
    name: &str,
    live: &Value<'_>,
    siblings: &Object<'_>,
    node: &Node<'_>,
    depth: usize,
) -> bool {
    (name != "hostPort" || depth <= POD_PORT) && is_default(name, live, siblings, node)
}

/// How many steps lead to a container's port in a pod itself.
const POD_PORT: usize = 5;

/// Whether the default at this place is there whenever it holds: where it is not there, stating it asks
/// for something. A Service that nobody reaches from outside has no external traffic policy.
pub(super) fn is_told_where_it_holds(trail: &Trail<'_>, node: &Node<'_>) -> bool {
    is_only_meant(trail, node)
        || node.is_go() && trail.depth() == 2 && trail.is_field("externalTrafficPolicy")
}

/// Whether the default at this place is what its absence means to a controller, and is never put
/// there: a pod has `enableServiceLinks` filled in and a pod's template has not (`SetDefaults_Pod`
/// against `SetDefaults_PodSpec`), and so it is with a Job and its template.
pub(super) fn is_only_meant(trail: &Trail<'_>, node: &Node<'_>) -> bool {
    node.is_go()
        && match trail.name() {
            Some("enableServiceLinks" | "manualSelector") => trail.depth() > 2,
            Some("nodeAffinityPolicy" | "nodeTaintsPolicy") => true,
            _ => false,
        }
}

/// What the autoscaler's defaults allow in a quarter of a minute.
fn is_default_policy(policy: &Value<'_>) -> bool {
    let number = |name: &str| match policy.get(name) {
        Some(Value::Number(text)) => &**text,
        _ => "",
    };
    let rule = (policy.str_at(&["type"]).unwrap_or_default(), number("value"));
    matches!(rule, ("Pods", "4") | ("Percent", "100")) && number("periodSeconds") == "15"
}

/// Whether each amount is that of the same resource in the first of these siblings that has it.
fn is_from(live: &Value<'_>, siblings: &Object<'_>, sources: &[&str]) -> bool {
    let source = |name: &str| sources.iter().find_map(|from| siblings.get(from)?.get(name));
    let amounts = live.as_object().into_iter().flat_map(Object::iter);
    sources.iter().any(|from| siblings.get(from).is_some())
        && amounts.into_iter().all(|(name, amount)| source(name) == Some(amount))
}

/// `Ingress`, and `Egress` if the policy has egress rules.
fn is_policy_types(live: &Value<'_>, egress: bool) -> bool {
    let mut types = live.as_array().unwrap_or_default().iter().map(Value::as_str);
    types.next() == Some(Some("Ingress"))
        && types.next() == egress.then_some(Some("Egress"))
        && types.next().is_none()
}

/// What the admission plugin DefaultTolerationSeconds and the DaemonSet controller add to pods.
fn is_default_toleration(toleration: &Value<'_>) -> bool {
    toleration.str_at(&["operator"]) == Some("Exists")
        && toleration.str_at(&["key"]).is_some_and(|key| key.starts_with("node.kubernetes.io/"))
}

/// `Always` for the tag `latest` and for none, unless a digest is given.
fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = match image.split_once('@') {
        Some((name, _)) => (name, true),
        None => (image, false),
    };
    let last = name.rsplit('/').next().unwrap_or_default();
    match last.split_once(':') {
        Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
        None if digest => "IfNotPresent",
        None => "Always",
    }
}

/// Names of annotations and labels that are instructions or marks rather than state.
pub(super) fn is_injected(name: &str) -> bool {
    matches!(
        name,
        "kubectl.kubernetes.io/restartedAt"
            | "kubectl.kubernetes.io/last-applied-configuration"
            | "kubectl.kubernetes.io/default-container"
            | "deprecated.daemonset.template.generation"
            | "controller-uid"
            | "job-name"
            | "batch.kubernetes.io/controller-uid"
            | "batch.kubernetes.io/job-name"
    )
}

/// A pod's own tolerations without those that the admission plugin DefaultTolerationSeconds appends.
pub(super) fn without_admission<'v>(
    wanted: &[Value<'_>],
    held: &'v [Value<'v>],
    node: &Node<'_>,
    trail: &Trail<'_>,
) -> &'v [Value<'v>] {
    match held.split_at_checked(wanted.len()) {
        Some((own, added))
            if node.is_go()
                && trail.depth() == 2
                && trail.is_field("tolerations")
                && added.iter().all(is_default_toleration) =>
        {
            own
        }
        _ => held,
    }
}

/// Elements that the service account admission plugin adds to pods.
pub(super) fn is_injected_element(element: &Value<'_>) -> bool {
    let says = |name: &str, test: &dyn Fn(&str) -> bool| element.str_at(&[name]).is_some_and(test);
    says("name", &|name| name.starts_with("kube-api-access-"))
        || says("mountPath", &|path| path == "/var/run/secrets/kubernetes.io/serviceaccount")
}

#[cfg(test)]
mod tests {
    use super::pull_policy;

    #[test]
    fn pull_policy_follows_the_tag() {
        for (image, policy) in [
            ("web", "Always"),
            ("web:latest", "Always"),
            ("web:1", "IfNotPresent"),
            ("registry:5000/web", "Always"),
            ("registry:5000/web:1", "IfNotPresent"),
            ("web@sha256:00", "IfNotPresent"),
            ("web:1@sha256:00", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}

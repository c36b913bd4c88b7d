//! Paths of requests: from a kind and names to a path that the server reads as exactly those.
//!
//! Takes discovery's word on group, version, plural and scope. Never lets a name choose another
//! path: what Kubernetes itself forbids in a path segment is refused, the rest percent-encoded.

use crate::discovery::ApiKind;
use std::fmt::Write as _;

/// The longest name of any object, in bytes: a DNS subdomain, of which some kinds allow less.
/// <https://kubernetes.io/docs/concepts/overview/working-with-objects/names/>
const MAX_NAME_BYTES: usize = 253;

/// Why names make no path: for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadName(String);

/// Path of all objects of a kind, in one namespace or in all.
pub(crate) fn collection(kind: &ApiKind, namespace: Option<&str>) -> String {
    let mut path = if kind.gvk.group.is_empty() {
        "/api/".to_owned()
    } else {
        format!("/apis/{}/", encoded(&kind.gvk.group))
    };
    path.push_str(&encoded(&kind.gvk.version));
    if let Some(namespace) = namespace {
        path.push_str("/namespaces/");
        path.push_str(&encoded(namespace));
    }
    path.push('/');
    path.push_str(&encoded(&kind.plural));
    path
}

/// Path of one object.
///
/// # Errors
/// The names are no names, or the namespace does not fit the kind's scope.
pub(crate) fn object(
    kind: &ApiKind,
    namespace: Option<&str>,
    name: &str,
) -> Result<String, BadName> {
    match (kind.namespaced, namespace) {
        (true, None) => {
            return Err(BadName(format!(
                "{} {name} states no namespace, and its kind is namespaced",
                kind.gvk.kind
            )));
        }
        (false, Some(namespace)) => {
            return Err(BadName(format!(
                "{} {name} states the namespace {namespace}, and its kind is cluster-scoped: remove metadata.namespace",
                kind.gvk.kind
            )));
        }
        _ => {}
    }
    if let Some(namespace) = namespace {
        check_segment("namespace", namespace)?;
    }
    check_segment("name", name)?;
    Ok(format!("{}/{}", collection(kind, namespace), encoded(name)))
}

/// Percent-encoded for a path segment or a query value.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        // RFC 3986 "unreserved", and the colon of names such as `system:node`.
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            out.push(byte as char);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// What `IsValidPathSegmentName` in k8s.io/apimachinery asks, and a length.
fn check_segment(what: &str, text: &str) -> Result<(), BadName> {
    let shown = || text.escape_debug().to_string();
    if text.is_empty() || text.len() > MAX_NAME_BYTES {
        return Err(BadName(format!(
            "the {what} has {} bytes: 1 to {MAX_NAME_BYTES} are allowed",
            text.len()
        )));
    }
    if text == "." || text == ".." || text.contains(['/', '%']) || text.contains(char::is_control) {
        return Err(BadName(format!("{} is no {what} that Kubernetes allows", shown())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_core::identity::Gvk;

    fn kind(api_version: &str, name: &str, plural: &str, namespaced: bool) -> ApiKind {
        ApiKind {
            gvk: Gvk::from_api_version(api_version, name),
            plural: plural.into(),
            namespaced,
            verbs: vec![],
            has_status: false,
        }
    }

    #[test]
    fn paths_are_those_of_the_api_server() {
        let deployment = kind("apps/v1", "Deployment", "deployments", true);
        let role = kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", false);
        assert_eq!(collection(&deployment, None), "/apis/apps/v1/deployments");
        assert_eq!(
            object(&deployment, Some("shop"), "web").unwrap(),
            "/apis/apps/v1/namespaces/shop/deployments/web"
        );
        assert_eq!(
            object(&role, None, "system:node").unwrap(),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"
        );
        let pod = kind("v1", "Pod", "pods", true);
        assert_eq!(object(&pod, Some("a"), "é x").unwrap(), "/api/v1/namespaces/a/pods/%C3%A9%20x");
    }

    #[test]
    fn a_name_cannot_choose_another_path() {
        let pod = kind("v1", "Pod", "pods", true);
        for name in ["", ".", "..", "a/b", "a%2fb", "a\0b", &"a".repeat(254)] {
            assert!(object(&pod, Some("shop"), name).is_err(), "name {name:?}");
            assert!(object(&pod, Some(name), "a").is_err(), "namespace {name:?}");
        }
        assert!(object(&pod, None, "a").is_err());
        let node = kind("v1", "Node", "nodes", false);
        assert!(object(&node, Some("shop"), "a").is_err());
    }
}

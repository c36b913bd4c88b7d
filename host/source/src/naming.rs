//! The shapes of names in the Kubernetes API, as its own validation has them
//! (`apimachinery/pkg/util/validation` and `apimachinery/pkg/api/validation/path`).

/// Kinds of the built-in groups that belong to the whole cluster. Discovery decides (in the core's
/// placing); here they only tell, before any cluster is asked, that two manifests are one object.
const CLUSTER_SCOPED: [(&str, &str); 20] = [
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("networking.k8s.io", "IngressClass"),
    ("node.k8s.io", "RuntimeClass"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "VolumeAttachment"),
];

/// Groups whose names are only bound to be one segment of a URL: roles are called `system:node`,
/// addresses `2001:db8::1`, image tags `web:v1`.
fn has_free_names(group: &str, kind: &str) -> bool {
    match group {
        "rbac.authorization.k8s.io" | "certificates.k8s.io" => true,
        "networking.k8s.io" => kind == "IPAddress",
        _ => group.ends_with(".openshift.io"),
    }
}

/// Whether the kind is known to be cluster-scoped without asking a cluster.
pub(crate) fn is_cluster_scoped(group: &str, kind: &str) -> bool {
    CLUSTER_SCOPED.contains(&(group, kind))
}

/// What is wrong with an object's name; `None` if nothing is.
pub(crate) fn name_fault(group: &str, kind: &str, name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("must not be empty")
    } else if (group, kind) == ("", "Namespace") {
        namespace_fault(name)
    } else if name.len() > 253 {
        Some("must have at most 253 characters")
    } else if has_free_names(group, kind) {
        let one_segment = name != "." && name != ".." && !name.contains(['/', '%']);
        (!one_segment).then_some("must not be '.' or '..' and must not hold '/' or '%'")
    } else {
        (!is_subdomain(name)).then_some(
            "must be of lower-case letters, digits, '-' and '.', a letter or digit at both ends",
        )
    }
}

/// What is wrong with a namespace's name; `None` if nothing is.
pub(crate) fn namespace_fault(name: &str) -> Option<&'static str> {
    (!is_label(name)).then_some(
        "must be of at most 63 lower-case letters, digits and '-', a letter or digit at both ends",
    )
}

/// Whether this is an `apiVersion`: `v1`, or a group's domain, a slash and a version.
pub(crate) fn is_api_version(text: &str) -> bool {
    match text.split_once('/') {
        None => is_label(text),
        Some((group, version)) => is_subdomain(group) && is_label(version),
    }
}

/// Whether this is a kind: a letter, then letters, digits and dashes.
pub(crate) fn is_kind(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// An RFC 1123 subdomain.
fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_part)
}

/// An RFC 1123 label.
fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_part(text)
}

fn is_part(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_their_kind() {
        for (group, kind, name, fits) in [
            ("", "ConfigMap", "harbour.lights-2", true),
            ("", "ConfigMap", "Harbour", false),
            ("", "ConfigMap", "a_b", false),
            ("", "ConfigMap", "-a", false),
            ("", "ConfigMap", "a..b", false),
            ("", "ConfigMap", "", false),
            ("", "Namespace", "port", true),
            ("", "Namespace", "port.side", false),
            ("rbac.authorization.k8s.io", "ClusterRole", "system:pilot", true),
            ("rbac.authorization.k8s.io", "ClusterRole", "a/b", false),
            ("networking.k8s.io", "IPAddress", "2001:db8::1", true),
            ("networking.k8s.io", "Ingress", "a:b", false),
        ] {
            assert_eq!(name_fault(group, kind, name).is_none(), fits, "{kind} {name:?}");
        }
        assert!(name_fault("", "ConfigMap", &"a".repeat(254)).is_some());
        assert!(namespace_fault(&"a".repeat(64)).is_some());
    }

    #[test]
    fn api_versions_and_kinds_have_their_shapes() {
        for (text, fits) in [
            ("v1", true),
            ("apps/v1", true),
            ("a.own.test/v1alpha1", true),
            ("", false),
            ("apps/", false),
            ("a/b/c", false),
            ("Apps/v1", false),
        ] {
            assert_eq!(is_api_version(text), fits, "{text:?}");
        }
        for (text, fits) in [("APIService", true), ("Foo2", true), ("", false), ("a b", false)] {
            assert_eq!(is_kind(text), fits, "{text:?}");
        }
    }
}

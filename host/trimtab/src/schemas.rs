//! What is known of types without a cluster: from CustomResourceDefinitions among the inputs.

use std::collections::HashMap;
use std::sync::Arc;
use trimtab_core::identity::Gvk;
use trimtab_core::object::Manifest;
use trimtab_core::placing::Scope;
use trimtab_json::Value;

/// Kinds of Kubernetes itself whose objects belong to the whole cluster.
const CLUSTER_SCOPED: [(&str, &str); 21] = [
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
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
];

/// Facts and scopes by kind.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    facts: HashMap<Gvk, Arc<[u8]>>,
    scopes: HashMap<Gvk, Scope>,
}

impl Schemas {
    /// From the definitions among these manifests; others are passed over.
    pub(crate) fn of<'m>(manifests: impl Iterator<Item = &'m Manifest>) -> Self {
        let mut schemas = Self::default();
        for manifest in manifests {
            if &*manifest.gvk.kind == "CustomResourceDefinition" {
                if let Ok(definition) = trimtab_json::parse(&manifest.json) {
                    schemas.define(&definition);
                }
            }
        }
        schemas
    }

    fn define(&mut self, definition: &Value<'_>) {
        let text = |names: &[&str]| definition.str_at(names);
        let (Some(group), Some(kind)) =
            (text(&["spec", "group"]), text(&["spec", "names", "kind"]))
        else {
            return;
        };
        let scope = match text(&["spec", "scope"]) {
            Some("Cluster") => Scope::Cluster,
            _ => Scope::Namespaced,
        };
        let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array);
        for version in versions.unwrap_or_default().iter().filter_map(|v| v.str_at(&["name"])) {
            let gvk = Gvk { group: group.into(), version: version.into(), kind: kind.into() };
            if let Ok(facts) = trimtab_compare::facts::build_crd(definition, version) {
                self.facts.insert(gvk.clone(), facts.into());
            }
            self.scopes.insert(gvk, scope);
        }
    }

    /// Facts of a kind; empty where nothing is known.
    pub(crate) fn facts(&self, gvk: &Gvk) -> Arc<[u8]> {
        self.facts.get(gvk).cloned().unwrap_or_default()
    }

    /// Scope of a kind; of one that nothing is known of, what the manifest suggests.
    pub(crate) fn scope(&self, gvk: &Gvk, states_namespace: bool) -> Scope {
        if let Some(scope) = self.scopes.get(gvk) {
            return *scope;
        }
        if CLUSTER_SCOPED.contains(&(&*gvk.group, &*gvk.kind)) {
            return Scope::Cluster;
        }
        let built_in =
            gvk.group.is_empty() || !gvk.group.contains('.') || gvk.group.ends_with(".k8s.io");
        if built_in || states_namespace { Scope::Namespaced } else { Scope::Cluster }
    }
}

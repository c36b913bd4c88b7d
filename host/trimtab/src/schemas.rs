//! What is known of types without a cluster: Kubernetes' own from a table that comes with the
//! host (made by `tests/system/src/bin/schemas.rs` from a running API server), others from
//! CustomResourceDefinitions among the inputs.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};
use trimtab_core::identity::{GroupKind, Gvk};
use trimtab_core::object::Manifest;
use trimtab_core::placing::Scope;
use trimtab_json::Value;

/// Kubernetes' own types.
struct BuiltIn {
    document: Value<'static>,
    cluster_scoped: HashSet<&'static str>,
}

static BUILT_IN: LazyLock<BuiltIn> = LazyLock::new(|| {
    static TEXT: &str = include_str!("../schemas/kubernetes.json");
    // A test reads the table; a host in which it is broken was never released.
    let document = trimtab_json::parse(TEXT.as_bytes()).unwrap_or_default();
    let cluster_scoped = TEXT
        .lines()
        .next()
        .into_iter()
        .flat_map(|line| line.split('"').skip(3).step_by(2))
        .collect();
    BuiltIn { document, cluster_scoped }
});

/// Facts and scopes by kind.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    facts: HashMap<Gvk, Arc<[u8]>>,
    scopes: HashMap<Gvk, Scope>,
    resources: HashMap<GroupKind, (String, Scope)>,
}

impl Schemas {
    /// From the definitions among these manifests; others are passed over.
    pub(crate) fn of<'m>(manifests: impl Iterator<Item = &'m Manifest>) -> Self {
        let mut schemas = Self::default();
        for manifest in manifests {
            if &*manifest.gvk.kind == "CustomResourceDefinition"
                && let Ok(definition) = trimtab_json::parse(&manifest.json)
            {
                schemas.define(&definition);
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
        if let Some(plural) = text(&["spec", "names", "plural"]) {
            self.resources.insert(GroupKind::new(group, kind), (plural.to_owned(), scope));
        }
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
        if let Some(facts) = self.facts.get(gvk) {
            return facts.clone();
        }
        trimtab_compare::facts::build(&BUILT_IN.document, &gvk.group, &gvk.version, &gvk.kind)
            .map(Into::into)
            .unwrap_or_default()
    }

    /// How RBAC rules and paths name a kind (its plural), and its scope; `None`: it is not known.
    pub(crate) fn resource(&self, kind: &GroupKind) -> Option<(String, Scope)> {
        if let Some(resource) = self.resources.get(kind) {
            return Some(resource.clone());
        }
        let name = kind.to_string();
        let plural = BUILT_IN.document.str_at(&["resources", &name])?;
        let scope = match BUILT_IN.cluster_scoped.contains(name.as_str()) {
            true => Scope::Cluster,
            false => Scope::Namespaced,
        };
        Some((plural.to_owned(), scope))
    }

    /// Scope of a kind; of one that nothing is known of, what the manifest suggests.
    pub(crate) fn scope(&self, gvk: &Gvk, states_namespace: bool) -> Scope {
        if let Some(scope) = self.scopes.get(gvk) {
            return *scope;
        }
        if BUILT_IN.cluster_scoped.contains(gvk.group_kind().to_string().as_str()) {
            return Scope::Cluster;
        }
        let built_in =
            gvk.group.is_empty() || !gvk.group.contains('.') || gvk.group.ends_with(".k8s.io");
        if built_in || states_namespace { Scope::Namespaced } else { Scope::Cluster }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_own_types_are_known_without_a_cluster() {
        let schemas = Schemas::default();
        for (version, kind) in [
            ("apps/v1", "Deployment"),
            ("v1", "Service"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ] {
            let gvk = Gvk::from_api_version(version, kind);
            assert!(!schemas.facts(&gvk).is_empty(), "{gvk}");
        }
        assert!(schemas.facts(&Gvk::from_api_version("ex.io/v1", "Foo")).is_empty());
    }

    #[test]
    fn plurals_are_known_without_a_cluster() {
        let plural = |group, kind| {
            Schemas::default().resource(&GroupKind::new(group, kind)).map(|(plural, _)| plural)
        };
        assert_eq!(
            plural("networking.k8s.io", "NetworkPolicy").as_deref(),
            Some("networkpolicies")
        );
        assert_eq!(plural("", "Endpoints").as_deref(), Some("endpoints"));
        assert_eq!(plural("ex.io", "Foo"), None);
    }

    #[test]
    fn scopes_are_known_without_a_cluster() {
        let scope = |version, kind, states| {
            Schemas::default().scope(&Gvk::from_api_version(version, kind), states)
        };
        assert_eq!(scope("v1", "Namespace", true), Scope::Cluster);
        assert_eq!(scope("rbac.authorization.k8s.io/v1", "ClusterRole", true), Scope::Cluster);
        assert_eq!(scope("apps/v1", "Deployment", false), Scope::Namespaced);
        assert_eq!(scope("ex.io/v1", "Foo", true), Scope::Namespaced);
    }
}

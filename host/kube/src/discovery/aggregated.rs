//! Aggregated discovery: `APIGroupDiscoveryList` of `apidiscovery.k8s.io/v2`.

use super::{ApiKind, Kinds};
use serde::Deserialize;
use trimtab_core::identity::Gvk;

#[derive(Deserialize)]
struct GroupList {
    kind: String,
    #[serde(default)]
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    #[serde(default)]
    resources: Vec<Resource>,
    #[serde(default)]
    freshness: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    resource: String,
    #[serde(default)]
    response_kind: Kind,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    subresources: Vec<Subresource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Kind {
    kind: String,
}

#[derive(Deserialize)]
struct Subresource {
    subresource: String,
}

/// Adds what the document says. Gives false if it is not an aggregated document.
pub(super) fn add(kinds: &mut Kinds, body: &[u8]) -> bool {
    let Ok(list) = serde_json::from_slice::<GroupList>(body) else { return false };
    if list.kind != "APIGroupDiscoveryList" {
        return false;
    }
    for group in list.items {
        let name = group.metadata.name;
        for version in group.versions {
            kinds.add_version(&name, &version.version);
            // The resources of a stale version are those that were known last, if any: what is
            // listed is served as far as anyone knows, and what is not cannot be told.
            if version.freshness == "Stale" {
                let reason = format!(
                    "the API server cannot reach what serves {name}/{}: see `kubectl get apiservice {}.{name}`",
                    version.version, version.version
                );
                kinds.add_unknown(&name, &version.version, reason);
            }
            for resource in version.resources {
                kinds.add(kind(&name, &version.version, resource));
            }
        }
    }
    true
}

fn kind(group: &str, version: &str, resource: Resource) -> ApiKind {
    ApiKind {
        // An object is addressed by where it is served, whatever group its answer states.
        gvk: Gvk {
            group: group.into(),
            version: version.into(),
            kind: resource.response_kind.kind.into(),
        },
        plural: resource.resource.into(),
        namespaced: resource.scope == "Namespaced",
        verbs: resource.verbs.into_iter().map(Into::into).collect(),
        has_status: resource.subresources.iter().any(|it| it.subresource == "status"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Lookup;
    use super::*;
    use trimtab_core::identity::GroupKind;

    const DOCUMENT: &[u8] = br#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
      {"metadata":{"name":"autoscaling","creationTimestamp":null},"versions":[
        {"version":"v2","freshness":"Current","resources":[
          {"resource":"horizontalpodautoscalers","responseKind":{"group":"autoscaling","version":"v2","kind":"HorizontalPodAutoscaler"},
           "scope":"Namespaced","singularResource":"horizontalpodautoscaler","verbs":["get","list","patch","watch"],
           "subresources":[{"subresource":"status","responseKind":{"group":"autoscaling","version":"v2","kind":"HorizontalPodAutoscaler"},"verbs":["get"]}]}]},
        {"version":"v1","freshness":"Current","resources":[
          {"resource":"horizontalpodautoscalers","responseKind":{"group":"","version":"","kind":"HorizontalPodAutoscaler"},"scope":"Namespaced","verbs":["get"]}]}]},
      {"metadata":{"name":"metrics.k8s.io"},"versions":[{"version":"v1beta1","freshness":"Stale"}]}]}"#;

    fn shown(lookup: Lookup<'_>) -> String {
        match lookup {
            Lookup::Found(kind) => format!("{} {} {}", kind.gvk, kind.plural, kind.has_status),
            Lookup::NotServed => "not served".into(),
            Lookup::Unknown(reason) => reason.into(),
        }
    }

    #[test]
    fn a_stale_version_is_unknown_and_an_absent_one_is_not_served() {
        let mut kinds = Kinds::default();
        assert!(add(&mut kinds, DOCUMENT));
        let look =
            |api_version, kind| shown(kinds.lookup(&Gvk::from_api_version(api_version, kind)));
        let hpa = "HorizontalPodAutoscaler";
        assert_eq!(
            look("autoscaling/v2", hpa),
            "autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers true"
        );
        assert!(look("autoscaling/v1", hpa).ends_with("horizontalpodautoscalers false"));
        assert_eq!(look("autoscaling/v9", hpa), "not served");
        assert_eq!(look("autoscaling/v2", "Scale"), "not served");
        assert!(
            look("metrics.k8s.io/v1beta1", "NodeMetrics")
                .contains("kubectl get apiservice v1beta1.metrics.k8s.io")
        );
        let preferred = |group, kind| shown(kinds.preferred(&GroupKind::new(group, kind)));
        assert!(preferred("autoscaling", hpa).starts_with("autoscaling/v2"));
        assert!(preferred("metrics.k8s.io", "NodeMetrics").contains("cannot reach"));
        assert_eq!(preferred("nobody.example", "Thing"), "not served");
        assert_eq!(kinds.unknown().next().unwrap().0, "metrics.k8s.io/v1beta1");
    }

    #[test]
    fn another_document_is_not_taken_for_an_aggregated_one() {
        assert!(!add(&mut Kinds::default(), br#"{"kind":"APIGroupList","groups":[]}"#));
        assert!(!add(&mut Kinds::default(), b"not json"));
    }
}

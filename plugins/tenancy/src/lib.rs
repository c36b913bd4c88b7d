//! Tenancy: Namespace, ResourceQuota and LimitRange.
//!
//! What is special about them: the API server names each Namespace in a label of its own, a quota's
//! scopes are part of what it is, and a Namespace that goes takes everything in it along. What the
//! API server fills in (a Namespace's finalizers, a limit's defaults) is the comparison's
//! knowledge.

use trimtab_sdk::{Comparison, NoComparison, Path, Reconciler, Snapshot};

/// The label by which the API server names each Namespace.
const NAME: &str = "kubernetes.io/metadata.name";

/// Reconciles what divides a cluster.
pub struct Tenancy;

impl Reconciler for Tenancy {
    fn compare<'s>(snapshot: &'s Snapshot<'_>) -> Result<Comparison<'s>, NoComparison> {
        let id = snapshot.id();
        let stated =
            snapshot.desired().and_then(|desired| desired.str_at(&["metadata", "labels", NAME]));
        if let Some(stated) = stated.filter(|name| id.kind == "Namespace" && *name != id.name) {
            return Err(NoComparison::Invalid(format!(
                "namespace_label: {NAME} is declared as {stated}, and the API server sets it to the Namespace's name: take it out of the manifest"
            )));
        }
        let comparison = trimtab_sdk::compare(snapshot)?;
        Ok(match id.kind {
            "ResourceQuota" => comparison.immutable(&[Path::fields(&["spec", "scopes"])]),
            "Namespace" => {
                let label = Path::fields(&["metadata", "labels", NAME]);
                comparison.except(|each| each.path == label)
            }
            _ => comparison,
        })
    }
}

trimtab_sdk::export!(Tenancy);

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_sdk::testing::Case;

    fn namespace(labels: &str) -> String {
        format!(
            r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"shop","labels":{{{labels}}}}}}}"#
        )
    }

    const OWN: &str = r#""kubernetes.io/metadata.name":"shop""#;

    #[test]
    fn the_label_that_names_a_namespace_is_the_api_servers() {
        for desired in ["", OWN] {
            let case = Case::new().desired(namespace(desired)).live(namespace(OWN));
            case.check::<Tenancy>("in-sync");
        }
        let other = OWN.replace("shop", "cart");
        let run = Case::new().desired(namespace(&other)).live(namespace(OWN)).run::<Tenancy>();
        assert!(run.starts_with("invalid: namespace_label: "), "{run}");
    }

    #[test]
    fn any_other_label_is_held() {
        let level = r#""pod-security.kubernetes.io/enforce":"restricted""#;
        let live = namespace(&format!("{OWN},{}", level.replace("restricted", "privileged")));
        let run = Case::new().desired(namespace(level)).live(live).run::<Tenancy>();
        assert!(run.ends_with("apply-desired\n"), "{run}");
    }

    #[test]
    fn what_a_quota_counts_cannot_change() {
        let quota = |scope: &str| {
            format!(
                r#"{{"apiVersion":"v1","kind":"ResourceQuota","metadata":{{"name":"a","namespace":"shop"}},
                "spec":{{"hard":{{"pods":"4"}},"scopes":["{scope}"]}}}}"#
            )
        };
        let run = Case::new().desired(quota("BestEffort")).live(quota("Terminating"));
        let run = run.run::<Tenancy>();
        assert!(run.contains("leave: immutable_field: /spec/scopes cannot change"), "{run}");
    }
}

//! Storage: PersistentVolumeClaim, PersistentVolume and StorageClass.
//!
//! What is special about them: what the binder fills in stays, nearly nothing can change once a
//! claim or a volume is there, and a claim never shrinks. None of it is recreated without a word
//! of its own, except a StorageClass, whose volumes live on without it.

use std::cmp::Ordering;
use trimtab_sdk::comparison::quantity_order;
use trimtab_sdk::{Comparison, NoComparison, Path, Reconciler, Snapshot};

/// Of a claim (core/validation, ValidatePersistentVolumeClaimUpdate).
const FIXED_OF_CLAIM: [&str; 7] = [
    "accessModes",
    "selector",
    "storageClassName",
    "volumeName",
    "volumeMode",
    "dataSource",
    "dataSourceRef",
];
/// Of a class (storage/validation, ValidateStorageClassUpdate).
const FIXED_OF_CLASS: [&str; 4] =
    ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"];
/// What of a volume can change; where the data lies cannot.
const FREE_OF_VOLUME: [&str; 7] = [
    "capacity",
    "accessModes",
    "persistentVolumeReclaimPolicy",
    "mountOptions",
    "storageClassName",
    "claimRef",
    "volumeAttributesClassName",
];

/// Reconciles storage.
pub struct Storage;

impl Reconciler for Storage {
    fn compare<'s>(snapshot: &'s Snapshot<'_>) -> Result<Comparison<'s>, NoComparison> {
        let comparison = trimtab_sdk::compare(snapshot)?;
        let Some(live) = snapshot.live() else { return Ok(comparison) };
        let fixed: Vec<Path> = match snapshot.id().kind {
            "PersistentVolumeClaim" => {
                smaller(snapshot).map_or(Ok(()), Err)?;
                let set = |name: &&&str| live.at(&["spec", name]).is_some();
                let fixed = FIXED_OF_CLAIM.iter().filter(set);
                fixed.map(|name| Path::fields(&["spec", name])).collect()
            }
            "StorageClass" => FIXED_OF_CLASS.iter().map(|name| Path::fields(&[name])).collect(),
            _ => {
                let fields = live.get("spec").and_then(|spec| spec.as_object()).into_iter();
                let names = fields.flat_map(|spec| spec.iter()).map(|(name, _)| name);
                let fixed = names.filter(|name| !FREE_OF_VOLUME.contains(name));
                fixed.map(|name| Path::fields(&["spec", name])).collect()
            }
        };
        Ok(comparison.immutable(&fixed))
    }
}

trimtab_sdk::export!(Storage);

/// Why the declared size cannot be had: the claim has more. Somebody may have let it grow.
fn smaller(snapshot: &Snapshot<'_>) -> Option<NoComparison> {
    let path = ["spec", "resources", "requests", "storage"];
    let desired = snapshot.desired()?.at(&path)?.scalar_text()?;
    let live = snapshot.live()?.at(&path)?.scalar_text()?;
    (quantity_order(desired, live)? == Ordering::Less).then(|| {
        NoComparison::Invalid(format!(
            "volume_shrink: {desired} are declared and the claim asks for {live} already: a claim never shrinks; declare {live} or more"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_sdk::testing::Case;

    fn claim(size: &str, class: &str, more: &str) -> String {
        format!(
            r#"{{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{{"name":"data",
            "namespace":"shop","annotations":{{"trimtab.dev/on-immutable":"recreate"}}}},
            "spec":{{"storageClassName":"{class}","resources":{{"requests":{{"storage":"{size}"}}}}{more}}}}}"#
        )
    }

    #[test]
    fn a_claim_grows_and_never_shrinks() {
        let case = Case::new().desired(claim("20Gi", "fast", ""));
        let run = case.live(claim("10Gi", "fast", "")).run::<Storage>();
        assert!(run.ends_with("apply-desired\n"), "{run}");
        let case = Case::new().desired(claim("10Gi", "fast", ""));
        let run = case.live(claim("20Gi", "fast", "")).run::<Storage>();
        assert!(run.starts_with("invalid: volume_shrink: 10Gi are declared"), "{run}");
    }

    #[test]
    fn a_claim_is_not_recreated_by_the_word_that_is_enough_for_others() {
        let run = Case::new().desired(claim("1Gi", "slow", "")).live(claim("1Gi", "fast", ""));
        let run = run.run::<Storage>();
        let expected = "leave: immutable_field_stateful: /spec/storageClassName cannot change";
        assert!(run.contains(expected), "{run}");
    }

    #[test]
    fn what_is_not_set_yet_can_be_set_once() {
        let unset = claim("1Gi", "fast", "").replace(r#""storageClassName":"fast","#, "");
        let run = Case::new().desired(claim("1Gi", "fast", "")).live(unset).run::<Storage>();
        assert!(run.ends_with("apply-desired\n"), "{run}");
    }

    #[test]
    fn where_a_volume_has_its_data_cannot_change_and_what_becomes_of_it_can() {
        let volume = |path: &str, policy: &str| {
            format!(
                r#"{{"apiVersion":"v1","kind":"PersistentVolume","metadata":{{"name":"v"}},"spec":
                {{"persistentVolumeReclaimPolicy":"{policy}","hostPath":{{"path":"{path}"}}}}}}"#
            )
        };
        let run = Case::new().desired(volume("/a", "Retain")).live(volume("/b", "Retain"));
        let run = run.run::<Storage>();
        assert!(run.contains("leave: immutable_field_stateful: /spec/hostPath cannot"), "{run}");
        let run = Case::new().desired(volume("/a", "Retain")).live(volume("/a", "Delete"));
        let run = run.run::<Storage>();
        assert!(run.ends_with("apply-desired\n"), "{run}");
    }

    #[test]
    fn a_class_is_recreated_where_it_says_so() {
        let class = |policy: &str| {
            format!(
                r#"{{"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{{"name":"c",
                "annotations":{{"trimtab.dev/on-immutable":"recreate"}}}},
                "provisioner":"a.b/c","reclaimPolicy":"{policy}"}}"#
            )
        };
        let run = Case::new().desired(class("Retain")).live(class("Delete")).run::<Storage>();
        assert!(run.contains("\nrecreate\n"), "{run}");
    }
}

//! An example for one kind: Deployments whose replicas may belong to an autoscaler.
//!
//! A manifest often states `spec.replicas` although a HorizontalPodAutoscaler scales the
//! Deployment. Applying it would undo the autoscaler's work every time. The API server records
//! who wrote a field, and through what: an autoscaler (and `kubectl scale`) writes replicas
//! through the `scale` subresource. Where it did, this plugin leaves replicas out and says so.

use std::time::Duration;
use trimtab_sdk::{
    Comparison, Decision, Difference, DifferenceKind, Finding, NoComparison, Path, Reconciler,
    Snapshot, Step, Value, Verdict, managed_fields,
};

/// How long to leave an object alone that waits for its finalizers.
const DELETION_WAIT: Duration = Duration::from_secs(10);

/// Reconciles Deployments.
pub struct Deployment;

impl Reconciler for Deployment {
    fn compare<'s>(snapshot: &'s Snapshot<'_>) -> Result<Comparison<'s>, NoComparison> {
        let comparison = trimtab_sdk::compare(snapshot)?;
        let scaled = scaler(snapshot.live()).is_some();
        Ok(comparison.except(|difference| scaled && difference.path == replicas()))
    }

    fn decide(snapshot: &Snapshot<'_>, differences: &[Difference<'_>]) -> Verdict {
        if snapshot.is_being_deleted() {
            return Verdict::defer(
                "the live Deployment is being deleted: it is made anew once it is gone",
                DELETION_WAIT,
            );
        }
        let strays = differences.iter().filter(|each| each.kind == DifferenceKind::Stray);
        let strays: Vec<Path> = strays.map(|each| each.path.clone()).collect();
        let mut decision = Decision::new();
        if differences.len() > strays.len() {
            decision = match (scaler(snapshot.live()), stated_replicas(snapshot)) {
                (Some(scaler), true) => decision
                    .apply_desired_without([replicas()])
                    .finding(owned_by_autoscaler(scaler)),
                _ => decision.apply_desired(),
            };
        }
        if !strays.is_empty() {
            decision = decision.remove_fields(strays);
        }
        decision.into()
    }
}

trimtab_sdk::export!(Deployment);

fn replicas() -> Path {
    Path::from(vec![Step::Field("spec".into()), Step::Field("replicas".into())])
}

fn stated_replicas(snapshot: &Snapshot<'_>) -> bool {
    snapshot.desired().and_then(|desired| desired.at(&["spec", "replicas"])).is_some()
}

/// The manager that wrote replicas through the `scale` subresource, if one did.
fn scaler<'v>(live: Option<&'v Value<'_>>) -> Option<&'v str> {
    let scaled = managed_fields::managers_of(live?, &replicas())
        .find(|writer| writer.subresource == Some("scale"))?;
    Some(scaled.manager)
}

fn owned_by_autoscaler(scaler: &str) -> Finding {
    Finding::info(
        "field-owned-by-autoscaler",
        format!(
            "{scaler} scales this Deployment: replicas are left to it; take them out of the manifest to end this message"
        ),
    )
    .at(replicas())
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_sdk::testing::Case;

    const DESIRED: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment",
        "metadata":{"name":"web","namespace":"shop"},
        "spec":{"replicas":2,"paused":true}}"#;

    /// Five replicas, which this manager wrote through the `scale` subresource or not.
    fn live(subresource: &str, paused: bool) -> String {
        format!(
            r#"{{"apiVersion":"apps/v1","kind":"Deployment",
            "metadata":{{"name":"web","namespace":"shop","managedFields":[
              {{"manager":"autoscaler","operation":"Update","subresource":"{subresource}",
               "apiVersion":"apps/v1","fieldsType":"FieldsV1",
               "fieldsV1":{{"f:spec":{{"f:replicas":{{}}}}}}}}]}},
            "spec":{{"replicas":5,"paused":{paused}}}}}"#
        )
    }

    #[test]
    fn replicas_that_an_autoscaler_wrote_are_no_difference() {
        Case::new().desired(DESIRED).live(live("scale", true)).check::<Deployment>("in-sync");
    }

    #[test]
    fn replicas_that_anyone_else_wrote_are_corrected() {
        Case::new().desired(DESIRED).live(live("", true)).check::<Deployment>(
            "
            changed /spec/replicas 2 <- 5
            apply-desired
            ",
        );
    }

    #[test]
    fn another_drift_is_corrected_without_the_autoscalers_replicas() {
        Case::new().desired(DESIRED).live(live("scale", false)).check::<Deployment>(
            "
            changed /spec/paused true <- false
            apply-desired without /spec/replicas
            finding info field-owned-by-autoscaler /spec/replicas
            ",
        );
    }

    #[test]
    fn replicas_that_are_not_stated_need_not_be_left_out() {
        let desired = DESIRED.replace(r#""replicas":2,"#, "");
        Case::new().desired(desired).live(live("scale", false)).check::<Deployment>(
            "
            changed /spec/paused true <- false
            apply-desired
            ",
        );
    }
}

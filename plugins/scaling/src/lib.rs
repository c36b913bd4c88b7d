//! Scaling: HorizontalPodAutoscaler and PodDisruptionBudget.
//!
//! What is special about them: they look right each by itself, and do harm together with others.
//! Two autoscalers of one workload undo each other's work; a budget that allows nothing to be
//! evicted keeps every node from being drained. The order of metrics, which the autoscaler's own
//! controller changes, is the comparison's knowledge.

use trimtab_sdk::{Difference, Finding, Path, Reconciler, Snapshot, Value, Verdict, lookup};

/// Reconciles what bounds the number of Pods.
pub struct Scaling;

impl Reconciler for Scaling {
    fn decide(snapshot: &Snapshot<'_>, differences: &[Difference<'_>]) -> Verdict {
        let verdict = trimtab_sdk::decide(snapshot, differences);
        let finding = match snapshot.id().kind {
            "HorizontalPodAutoscaler" => rival(snapshot),
            _ => blocks_evictions(snapshot),
        };
        match finding {
            Some(finding) => verdict.finding(finding),
            None => verdict,
        }
    }
}

trimtab_sdk::export!(Scaling);

/// Another autoscaler of the same workload. Where others cannot be read nothing is claimed: it is
/// no reason not to correct this one.
fn rival(snapshot: &Snapshot<'_>) -> Option<Finding> {
    let target = target(snapshot.desired()?)?;
    let id = snapshot.id();
    let others = lookup::find("autoscaling", "HorizontalPodAutoscaler", id.namespace).ok()?;
    others.iter().find_map(|other| {
        let other = other.value().ok()?;
        let name = other.str_at(&["metadata", "name"]).filter(|name| *name != id.name)?;
        (self::target(&other)? == target).then(|| {
            let [group, kind, workload] = &target;
            let dot = if group.is_empty() { "" } else { "." };
            Finding::warning(
                "two-autoscalers",
                format!(
                    "autoscaler {name} scales {kind}{dot}{group} {workload} as well: the two undo each other's work"
                ),
            )
            .at(Path::fields(&["spec", "scaleTargetRef"]))
        })
    })
}

/// Group, kind and name of what an autoscaler scales.
fn target(autoscaler: &Value<'_>) -> Option<[String; 3]> {
    let text = |name: &str| autoscaler.str_at(&["spec", "scaleTargetRef", name]);
    let group = text("apiVersion").unwrap_or_default().split_once('/').map_or("", |it| it.0);
    Some([group.to_owned(), text("kind")?.to_owned(), text("name")?.to_owned()])
}

/// Whether the budget as declared lets no Pod go at all.
fn blocks_evictions(snapshot: &Snapshot<'_>) -> Option<Finding> {
    let value = |name: &str| snapshot.desired()?.at(&["spec", name])?.scalar_text();
    let field = match (value("maxUnavailable"), value("minAvailable")) {
        (Some("0" | "0%"), _) => "maxUnavailable",
        (_, Some("100%")) => "minAvailable",
        _ => return None,
    };
    Some(
        Finding::warning(
            "evictions-blocked",
            "this budget lets no Pod be evicted: a node on which one of them runs cannot be drained",
        )
        .at(Path::fields(&["spec", field])),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_sdk::lookup::LookupError;
    use trimtab_sdk::testing::Case;

    fn autoscaler(name: &str, target: &str, max: u32) -> String {
        format!(
            r#"{{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler",
            "metadata":{{"name":"{name}","namespace":"shop"}},"spec":{{"maxReplicas":{max},
            "scaleTargetRef":{{"apiVersion":"apps/v1","kind":"Deployment","name":"{target}"}}}}}}"#
        )
    }

    #[test]
    fn two_autoscalers_of_one_workload_are_told_and_corrected_all_the_same() {
        let case = Case::new().desired(autoscaler("a", "web", 3)).live(autoscaler("a", "web", 4));
        let case = case.related("autoscaling", autoscaler("a", "web", 4));
        let plain = "
            changed /spec/maxReplicas 3 <- 4
            apply-desired
        ";
        case.clone().related("autoscaling", autoscaler("b", "cart", 4)).check::<Scaling>(plain);
        case.clone().no_answer(LookupError::Denied).check::<Scaling>(plain);
        case.related("autoscaling", autoscaler("b", "web", 4)).check::<Scaling>(
            "
            changed /spec/maxReplicas 3 <- 4
            apply-desired
            finding warning two-autoscalers /spec/scaleTargetRef
            ",
        );
    }

    #[test]
    fn a_budget_that_lets_no_pod_go_is_told() {
        for (spec, field) in [
            (r#"{"maxUnavailable":0}"#, Some("maxUnavailable")),
            (r#"{"minAvailable":"100%"}"#, Some("minAvailable")),
            (r#"{"minAvailable":1}"#, None),
        ] {
            let budget = format!(
                r#"{{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{{"name":"a","namespace":"shop"}},"spec":{spec}}}"#
            );
            let run = Case::new().desired(budget).run::<Scaling>();
            let expected =
                field.map(|field| format!("finding warning evictions-blocked /spec/{field}\n"));
            assert!(run.ends_with(&expected.unwrap_or("apply-desired\n".into())), "{run}");
        }
    }
}

//! Networking: Service, Ingress, IngressClass and NetworkPolicy.
//!
//! What is special about them: a Service's own address cannot change, and one that a load balancer
//! has given out is lost with the Service; and what a NetworkPolicy is in force for
//! (`policyTypes`) is worked out once, when it is made, and then no longer follows its rules.
//! Allocated addresses and ports, and defaults, are the comparison's knowledge.

use std::borrow::Cow;
use trimtab_sdk::{
    Comparison, Difference, Finding, NoComparison, Path, Reconciler, Snapshot, Value, Verdict,
    usual,
};

/// Reconciles what connects workloads.
pub struct Networking;

impl Reconciler for Networking {
    fn compare<'s>(snapshot: &'s Snapshot<'_>) -> Result<Comparison<'s>, NoComparison> {
        let mut comparison = trimtab_sdk::compare(snapshot)?;
        match snapshot.id().kind {
            "Service" if has_address(snapshot) => {
                let fixed = ["clusterIP", "clusterIPs", "loadBalancerClass"];
                comparison = comparison.immutable(&fixed.map(|name| Path::fields(&["spec", name])));
            }
            "NetworkPolicy" => {
                if let Some(types) = outdated_types(snapshot)
                    && !comparison.touches(&policy_types())
                {
                    comparison
                        .differences
                        .push(Difference::stray(policy_types(), Cow::Borrowed(types)));
                }
            }
            _ => {}
        }
        Ok(comparison)
    }

    fn decide(snapshot: &Snapshot<'_>, differences: &[Difference<'_>]) -> Verdict {
        if snapshot.id().kind == "Service"
            && is_given_out(snapshot)
            && let Some(decision) = usual::on_immutable(
                snapshot,
                differences,
                Some("it gets another address from its load balancer"),
            )
        {
            return decision.into();
        }
        let verdict = trimtab_sdk::decide(snapshot, differences);
        if !differences.iter().any(|each| each.path == policy_types()) {
            return verdict;
        }
        verdict.finding(
            Finding::info(
                "policy-types-outdated",
                "policyTypes is not declared, and the one that was worked out when the policy was made does not fit its rules: it is removed, so that the API server works it out anew; declare it to end this",
            )
            .at(policy_types()),
        )
    }
}

trimtab_sdk::export!(Networking);

fn policy_types() -> Path {
    Path::fields(&["spec", "policyTypes"])
}

/// Whether the live Service has an address of its own that cannot change. One that only names
/// something outside has none, before and after.
fn has_address(snapshot: &Snapshot<'_>) -> bool {
    let external = |object: Option<&Value<'_>>| {
        object.and_then(|it| it.str_at(&["spec", "type"])) == Some("ExternalName")
    };
    let address = snapshot.live().and_then(|live| live.str_at(&["spec", "clusterIP"]));
    address.is_some_and(|address| !address.is_empty())
        && !external(snapshot.desired())
        && !external(snapshot.live())
}

/// Whether a load balancer has given the live Service an address.
fn is_given_out(snapshot: &Snapshot<'_>) -> bool {
    let given = snapshot.live().and_then(|live| live.at(&["status", "loadBalancer", "ingress"]));
    given.and_then(Value::as_array).is_some_and(|given| !given.is_empty())
}

/// The live policy types, if desired states none and they are not those that the API server works
/// out of desired's rules: `Ingress`, and `Egress` if there are rules for that
/// (networking/v1 defaults).
fn outdated_types<'s>(snapshot: &'s Snapshot<'_>) -> Option<&'s Value<'s>> {
    let desired = snapshot.desired()?.get("spec")?;
    let types = snapshot.live()?.at(&["spec", "policyTypes"])?;
    let items = |value: Option<&Value<'_>>| {
        value.and_then(Value::as_array).is_some_and(|items| !items.is_empty())
    };
    let has = |name: &str| {
        types.as_array().is_some_and(|items| items.iter().any(|item| item.as_str() == Some(name)))
    };
    let fit = has("Ingress") && has("Egress") == items(desired.get("egress"));
    (!items(desired.get("policyTypes")) && !fit).then_some(types)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_sdk::testing::Case;

    fn service(policy: &str, spec: &str, status: &str) -> String {
        format!(
            r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"web","namespace":"shop",
            "annotations":{{"trimtab.dev/on-immutable":"{policy}"}}}},"spec":{spec}{status}}}"#
        )
    }

    #[test]
    fn an_address_cannot_change_and_a_service_without_one_is_free() {
        let case = Case::new().desired(service("leave", r#"{"clusterIP":"None"}"#, ""));
        let run =
            case.live(service("leave", r#"{"clusterIP":"10.0.0.9"}"#, "")).run::<Networking>();
        assert!(run.contains("leave: immutable_field: /spec/clusterIP"), "{run}");
        let external = r#"{"type":"ExternalName","clusterIP":""}"#;
        let case = Case::new().desired(service("leave", r#"{"clusterIP":"None"}"#, ""));
        let run = case.live(service("leave", external, "")).run::<Networking>();
        assert!(run.contains("apply-desired"), "{run}");
    }

    #[test]
    fn a_service_whose_address_was_given_out_is_recreated_only_on_the_stronger_word() {
        let given = r#","status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}"#;
        for (policy, expected) in [
            ("recreate", "leave: immutable_field_stateful: /spec/clusterIP"),
            ("recreate-stateful", "recreate\n"),
        ] {
            let case = Case::new().desired(service(policy, r#"{"clusterIP":"None"}"#, ""));
            let live = service(policy, r#"{"clusterIP":"10.0.0.9"}"#, given);
            let run = case.live(live).run::<Networking>();
            assert!(run.contains(expected), "{run}");
        }
    }

    fn policy(spec: &str) -> String {
        format!(
            r#"{{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy",
            "metadata":{{"name":"web","namespace":"shop"}},"spec":{{"podSelector":{{}}{spec}}}}}"#
        )
    }

    #[test]
    fn policy_types_that_do_not_fit_the_rules_any_more_are_worked_out_anew() {
        let expected = r#"
            stray /spec/policyTypes <- ["Ingress","Egress"]
            remove-fields /spec/policyTypes
            finding info policy-types-outdated /spec/policyTypes
        "#;
        let live = policy(r#","policyTypes":["Ingress","Egress"]"#);
        Case::new().desired(policy("")).live(live).check::<Networking>(expected);
    }

    #[test]
    fn policy_types_that_fit_or_are_declared_are_as_they_should_be() {
        let rule = r#","egress":[{}]"#;
        for (desired, live) in [
            ("", r#","policyTypes":["Ingress"]"#.to_owned()),
            (rule, format!(r#"{rule},"policyTypes":["Ingress","Egress"]"#)),
            (r#","policyTypes":["Egress"]"#, r#","policyTypes":["Egress"]"#.to_owned()),
        ] {
            Case::new().desired(policy(desired)).live(policy(&live)).check::<Networking>("in-sync");
        }
    }
}

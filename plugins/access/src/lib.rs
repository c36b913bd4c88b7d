//! Access: ServiceAccount, Role, ClusterRole, RoleBinding and ClusterRoleBinding.
//!
//! What is special about them: controllers add the secrets that they make to a ServiceAccount, the
//! rules of an aggregated ClusterRole are put together by its controller, and the API server adds
//! to its own default roles. Subjects' defaults and `roleRef` are the comparison's knowledge.

use trimtab_sdk::{
    Comparison, Difference, Finding, NoComparison, Path, Reconciler, Snapshot, Value, Verdict,
    managed_fields, usual,
};

/// By which the API server marks the roles that it brings along, and puts right when it starts.
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// Lists of a ServiceAccount that controllers add to.
const ADDED_TO: [&str; 2] = ["secrets", "imagePullSecrets"];

/// Reconciles who may do what.
pub struct Access;

impl Reconciler for Access {
    fn compare<'s>(snapshot: &'s Snapshot<'_>) -> Result<Comparison<'s>, NoComparison> {
        let comparison = trimtab_sdk::compare(snapshot)?;
        let theirs = theirs(snapshot);
        Ok(comparison
            .except(|each| theirs.iter().any(|path| each.path.starts_with(path)))
            .immutable(&[Path::fields(&["roleRef"])]))
    }

    fn decide(snapshot: &Snapshot<'_>, differences: &[Difference<'_>]) -> Verdict {
        let mut verdict = trimtab_sdk::decide_without(snapshot, differences, &theirs(snapshot));
        let stated = |name: &str| {
            let value = snapshot.desired().and_then(|desired| desired.get(name));
            value.and_then(Value::as_array).is_some_and(|items| !items.is_empty())
        };
        if is_aggregated(snapshot) && stated("rules") {
            verdict = verdict.finding(
                Finding::warning(
                    "aggregated-rules-declared",
                    "the rules of a ClusterRole with an aggregationRule are put together from other roles: those that are declared here have no effect",
                )
                .at(Path::fields(&["rules"])),
            );
        }
        if usual::annotation(snapshot.live(), AUTO_UPDATE) == Some("true") {
            verdict = verdict.finding(Finding::info(
                "default-role",
                format!(
                    "this role comes with the API server, which puts back what it is to have whenever it starts: set {AUTO_UPDATE}: \"false\" to keep what is declared"
                ),
            ));
        }
        verdict
    }
}

trimtab_sdk::export!(Access);

/// Fields that are left to controllers.
fn theirs(snapshot: &Snapshot<'_>) -> Vec<Path> {
    match snapshot.id().kind {
        "ClusterRole" if is_aggregated(snapshot) && snapshot.live().is_some() => {
            vec![Path::fields(&["rules"])]
        }
        "ServiceAccount" => ADDED_TO
            .iter()
            .filter(|name| is_added_to(snapshot, name))
            .map(|name| Path::fields(&[name]))
            .collect(),
        _ => vec![],
    }
}

fn is_aggregated(snapshot: &Snapshot<'_>) -> bool {
    let rule = snapshot.desired().and_then(|desired| desired.get("aggregationRule"));
    rule.is_some_and(|rule| !rule.is_null())
}

/// Whether live has all that desired states in this list, and somebody who is neither we nor a
/// person has put more there.
fn is_added_to(snapshot: &Snapshot<'_>, name: &str) -> bool {
    let (Some(desired), Some(live)) = (snapshot.desired(), snapshot.live()) else { return false };
    let names = |object: &Value<'_>| -> Vec<String> {
        let items = object.get(name).and_then(Value::as_array).unwrap_or_default();
        items.iter().filter_map(|item| item.str_at(&["name"])).map(str::to_owned).collect()
    };
    let (stated, held) = (names(desired), names(live));
    if stated.is_empty() || held.len() <= stated.len() || !stated.iter().all(|it| held.contains(it))
    {
        return false;
    }
    let ours = snapshot.field_manager();
    managed_fields::managers_of(live, &Path::fields(&[name]))
        .any(|writer| writer.manager != ours && !writer.manager.starts_with("kubectl"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_sdk::testing::Case;

    fn account(manager: &str, secrets: &str) -> String {
        format!(
            r#"{{"apiVersion":"v1","kind":"ServiceAccount","metadata":{{"name":"a","namespace":"shop",
            "managedFields":[{{"manager":"{manager}","operation":"Update","apiVersion":"v1",
            "fieldsType":"FieldsV1","fieldsV1":{{"f:imagePullSecrets":{{}}}}}}]}},
            "imagePullSecrets":[{secrets}]}}"#
        )
    }

    #[test]
    fn secrets_that_a_controller_added_to_an_account_stay() {
        let desired = account("x", r#"{"name":"registry"}"#);
        let more = r#"{"name":"registry"},{"name":"a-dockercfg"}"#;
        let case = Case::new().desired(&desired);
        case.clone().live(account("openshift-controller-manager", more)).check::<Access>("in-sync");
        let by_hand = case.clone().live(account("kubectl-edit", more)).run::<Access>();
        assert!(by_hand.contains("/imagePullSecrets"), "{by_hand}");
        // One that is declared and not there is put there.
        let other = case.live(account("controller", r#"{"name":"b"},{"name":"c"}"#));
        let other = other.run::<Access>();
        assert!(other.ends_with("apply-desired\n"), "{other}");
    }

    fn role(labels: &str, rules: &str, annotations: &str) -> String {
        format!(
            r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":
            {{"name":"a","labels":{{"a":"{labels}"}},"annotations":{{{annotations}}}}},
            "aggregationRule":{{"clusterRoleSelectors":[]}},"rules":[{rules}]}}"#
        )
    }

    #[test]
    fn the_rules_of_an_aggregated_role_are_its_controllers() {
        let put_together = r#"{"verbs":["get"],"resources":["pods"],"apiGroups":[""]}"#;
        let case = Case::new().desired(role("1", "", ""));
        case.clone().live(role("1", put_together, "")).check::<Access>("in-sync");
        case.live(role("2", put_together, "")).check::<Access>(
            r#"
            changed /metadata/labels/a "1" <- "2"
            apply-desired without /rules
            "#,
        );
        let case = Case::new().desired(role("1", put_together, "")).live(role("2", "", ""));
        let run = case.run::<Access>();
        assert!(run.ends_with("finding warning aggregated-rules-declared /rules\n"), "{run}");
    }

    #[test]
    fn a_role_that_the_api_server_keeps_itself_is_told() {
        let auto = r#""rbac.authorization.kubernetes.io/autoupdate":"true""#;
        let run = Case::new().desired(role("1", "", "")).live(role("2", "", auto));
        let run = run.run::<Access>();
        assert!(run.ends_with("finding info default-role\n"), "{run}");
    }

    #[test]
    fn a_binding_keeps_its_role_until_it_is_made_anew() {
        let binding = |role: &str| {
            format!(
                r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding",
                "metadata":{{"name":"a","namespace":"shop"}},
                "roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"{role}"}}}}"#
            )
        };
        let run = Case::new().desired(binding("view")).live(binding("edit")).run::<Access>();
        assert!(run.contains("leave: immutable_field: /roleRef cannot change"), "{run}");
    }
}

//! Which webhooks and policies are named, and with which words.

use super::*;
use trimtab_core::identity::Gvk;

fn kind(api_version: &str, kind: &str, plural: &str, namespaced: bool) -> ApiKind {
    ApiKind {
        gvk: Gvk::from_api_version(api_version, kind),
        plural: plural.into(),
        namespaced,
        verbs: vec![],
        has_status: false,
    }
}

fn labels(pairs: &[(&str, &str)], all: bool) -> Labels {
    let known = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Labels { known: known.collect(), all }
}

/// Who is named for an update in a namespace with these labels.
fn named(all: &[Mutator], kind: &ApiKind, around: Option<Labels>, own: [Labels; 2]) -> Vec<String> {
    let namespace = around.as_ref().and_then(|it| it.known.get(NAMESPACE_NAME)).cloned();
    let namespace = namespace.unwrap_or_default();
    let asked = Asked {
        group: &kind.gvk.group,
        version: &kind.gvk.version,
        kind: &kind.gvk.kind,
        resource: &kind.plural,
        namespace: &namespace,
        name: "web",
    };
    let update = Update { kind, asked, around, own };
    all.iter().filter_map(|mutator| mutator.named(&update)).collect()
}

fn in_namespace(all: &[Mutator], kind: &ApiKind, name: &str) -> Vec<String> {
    let none = || labels(&[], true);
    named(all, kind, Some(labels(&[(NAMESPACE_NAME, name)], true)), [none(), none()])
}

fn items(json: &str) -> Vec<Item> {
    serde_json::from_str(json).unwrap()
}

#[test]
fn what_matches_by_its_rules_is_named_and_what_cannot_match_is_not() {
    let all = of_webhooks(items(
        r#"[{"metadata":{"name":"m"},"webhooks":[
            {"name":"a","rules":[{"apiGroups":["apps"],"apiVersions":["v1"],"resources":["deployments"],"operations":["CREATE","UPDATE"]}],
             "namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["kube-system"]}]}},
            {"name":"b","rules":[{"apiGroups":["*"],"apiVersions":["*"],"resources":["*"],"operations":["*"],"scope":"Cluster"}]},
            {"name":"c","matchPolicy":"Exact","rules":[{"apiGroups":["apps"],"apiVersions":["v1beta1"],"resources":["*/*"],"operations":["UPDATE"]}]},
            {"name":"d","rules":[{"apiGroups":["apps"],"apiVersions":["v1"],"resources":["deployments"],"operations":["CREATE"]}]}]}]"#,
    ));
    let deployment = kind("apps/v1", "Deployment", "deployments", true);
    assert_eq!(
        in_namespace(&all, &deployment, "shop"),
        ["MutatingWebhookConfiguration m (webhook a)"]
    );
    assert!(in_namespace(&all, &deployment, "kube-system").is_empty());
    let node = kind("v1", "Node", "nodes", false);
    let none = || labels(&[], true);
    assert_eq!(
        named(&all, &node, None, [none(), none()]),
        ["MutatingWebhookConfiguration m (webhook b)"]
    );
}

#[test]
fn selectors_by_labels_count_and_what_cannot_be_read_is_said() {
    let rules = r#""rules":[{"apiGroups":["apps"],"apiVersions":["v1"],"resources":["deployments"],"operations":["UPDATE"]}]"#;
    let all = of_webhooks(items(&format!(
        r#"[{{"metadata":{{"name":"m"}},"webhooks":[
            {{"name":"n",{rules},"namespaceSelector":{{"matchLabels":{{"inject":"yes"}}}}}},
            {{"name":"o",{rules},"objectSelector":{{"matchLabels":{{"inject":"yes"}}}}}},
            {{"name":"c",{rules},"matchConditions":[{{"name":"x","expression":"object.spec.paused"}}]}},
            {{"name":"never",{rules},"matchConditions":[{{"name":"x","expression":"request.name == 'x'"}}]}}]}}]"#
    )));
    let deployment = kind("apps/v1", "Deployment", "deployments", true);
    let ask = |around: Labels, before: &[(&str, &str)], after: &[(&str, &str)]| {
        let own = [labels(before, true), labels(after, true)];
        named(&all, &deployment, Some(around), own)
    };
    let perhaps = "MutatingWebhookConfiguration m (webhook c) (perhaps: its match conditions are not evaluated here)";
    assert_eq!(ask(labels(&[], true), &[], &[]), [perhaps]);
    assert_eq!(
        ask(labels(&[("inject", "yes")], true), &[("inject", "yes")], &[]),
        [
            "MutatingWebhookConfiguration m (webhook n)",
            "MutatingWebhookConfiguration m (webhook o)",
            perhaps
        ]
    );
    let unread = ask(labels(&[], false), &[], &[("inject", "yes")]);
    assert!(
        unread[0].starts_with("MutatingWebhookConfiguration m (webhook n) (perhaps: it goes by")
    );
    assert_eq!(unread[1], "MutatingWebhookConfiguration m (webhook o)");
}

#[test]
fn a_policy_is_named_with_each_binding_that_puts_it_in_force() {
    let policies = items(
        r#"[{"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["UPDATE"]}],
             "excludeResourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["*"],"resourceNames":["spared"]}]}}},
            {"metadata":{"name":"unbound"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["*"],"apiVersions":["*"],"resources":["*"],"operations":["*"]}]}}}]"#,
    );
    let bindings = items(
        r#"[{"metadata":{"name":"everywhere"},"spec":{"policyName":"p"}},
            {"metadata":{"name":"elsewhere"},"spec":{"policyName":"p","matchResources":{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"other"}}}}}]"#,
    );
    let all = of_policies(policies, &bindings);
    let map = kind("v1", "ConfigMap", "configmaps", true);
    assert_eq!(
        in_namespace(&all, &map, "shop"),
        ["MutatingAdmissionPolicy p (MutatingAdmissionPolicyBinding everywhere)"]
    );
    assert_eq!(in_namespace(&all, &map, "other").len(), 2);
    assert!(in_namespace(&all, &kind("v1", "Secret", "secrets", true), "shop").is_empty());
}

//! Who may change an object on its way in: admission webhooks and policies that mutate.
//!
//! Takes a kind. Gives the names of those whose rules match an update of it: candidates for
//! people. Rules, namespaces by name and exact versions are looked at; selectors by labels and
//! match conditions are not, so that one that is named may still be innocent.

use crate::address;
use crate::counts::Verb;
use crate::discovery::{ApiKind, Lookup};
use crate::request::Call;
use crate::store::Store;
use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use trimtab_core::identity::GroupKind;

/// How long a list is believed: many objects may ask at once.
const BELIEVED: Duration = Duration::from_secs(10);
const GROUP: &str = "admissionregistration.k8s.io";
/// The kinds that mutate; the second is not served by older servers.
const WEBHOOKS: &str = "MutatingWebhookConfiguration";
const POLICIES: &str = "MutatingAdmissionPolicy";
/// The label that every namespace has, with its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

type Listed = Result<Arc<[Mutator]>, String>;

/// The lists, read when they are asked for.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    known: Mutex<Option<(Instant, Listed)>>,
}

/// One webhook or policy.
#[derive(Debug)]
struct Mutator {
    name: String,
    rules: Vec<Rule>,
    exact: bool,
    namespaces: Selector,
}

impl Suspects {
    /// Those that may change an update of an object of this kind.
    pub(crate) async fn of(
        &self,
        store: &Store,
        kind: &ApiKind,
        namespace: Option<&str>,
    ) -> Result<Vec<String>, String> {
        let all = self.listed(store).await?;
        let matching = all.iter().filter(|mutator| mutator.matches(kind, namespace));
        Ok(matching.map(|mutator| mutator.name.clone()).collect())
    }

    async fn listed(&self, store: &Store) -> Listed {
        let mut known = self.known.lock().await;
        match &*known {
            Some((at, listed)) if at.elapsed() < BELIEVED => listed.clone(),
            _ => {
                let listed = list(store).await;
                *known = Some((Instant::now(), listed.clone()));
                listed
            }
        }
    }
}

async fn list(store: &Store) -> Listed {
    let mut all = Vec::new();
    for name in [WEBHOOKS, POLICIES] {
        let kinds = store.kinds();
        let served = kinds.as_deref().map(|kinds| kinds.preferred(&GroupKind::new(GROUP, name)));
        let Some(Lookup::Found(kind)) = served else { continue };
        let path = address::collection(kind, None);
        let answer = store.server().call(Call::get(Verb::List, path)).await;
        let answer = answer.map_err(|error| format!("they cannot be listed: {error}"))?;
        let list: List = serde_json::from_slice(&answer.body)
            .map_err(|error| format!("the list of {name} is not understood: {error}"))?;
        all.extend(list.items.into_iter().flat_map(|item| mutators(name, item)));
    }
    Ok(all.into())
}

fn mutators(kind: &str, item: Item) -> Vec<Mutator> {
    let owner = item.metadata.name;
    let policy = item.spec.map(|spec| Mutator {
        name: format!("{kind} {owner}"),
        exact: spec.match_constraints.match_policy.as_deref() == Some("Exact"),
        rules: spec.match_constraints.resource_rules,
        namespaces: spec.match_constraints.namespace_selector,
    });
    let webhook = |webhook: Webhook| Mutator {
        name: format!("{kind} {owner} (webhook {})", webhook.name),
        exact: webhook.match_policy.as_deref() == Some("Exact"),
        rules: webhook.rules,
        namespaces: webhook.namespace_selector,
    };
    item.webhooks.into_iter().map(webhook).chain(policy).collect()
}

impl Mutator {
    fn matches(&self, kind: &ApiKind, namespace: Option<&str>) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|it| it == "*" || it == wanted);
        let matches = |rule: &Rule| {
            let scope = match rule.scope.as_deref() {
                Some("Namespaced") => kind.namespaced,
                Some("Cluster") => !kind.namespaced,
                _ => true,
            };
            scope
                && has(&rule.api_groups, &kind.gvk.group)
                // By default a webhook sees an object in whichever version it is written.
                && (!self.exact || has(&rule.api_versions, &kind.gvk.version))
                && has(&rule.operations, "UPDATE")
                && rule.resources.iter().any(|it| it == "*" || it == "*/*" || **it == *kind.plural)
        };
        self.rules.iter().any(matches)
            && namespace.is_none_or(|name| self.namespaces.may_select(name))
    }
}

impl Selector {
    /// Whether a namespace of this name can be selected, whatever its other labels are.
    fn may_select(&self, name: &str) -> bool {
        let by_label = self.match_labels.get(NAMESPACE_NAME).is_none_or(|wanted| wanted == name);
        by_label
            && self.match_expressions.iter().filter(|it| it.key == NAMESPACE_NAME).all(|it| {
                let named = it.values.iter().any(|value| value == name);
                match it.operator.as_str() {
                    "In" => named,
                    "NotIn" => !named,
                    "DoesNotExist" => false,
                    _ => true,
                }
            })
    }
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
    #[serde(default)]
    webhooks: Vec<Webhook>,
    spec: Option<Spec>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Webhook {
    name: String,
    #[serde(default)]
    rules: Vec<Rule>,
    match_policy: Option<String>,
    #[serde(default)]
    namespace_selector: Selector,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    match_constraints: Constraints,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Constraints {
    #[serde(default)]
    resource_rules: Vec<Rule>,
    match_policy: Option<String>,
    #[serde(default)]
    namespace_selector: Selector,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    #[serde(default)]
    api_groups: Vec<String>,
    #[serde(default)]
    api_versions: Vec<String>,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    operations: Vec<String>,
    scope: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Selector {
    #[serde(default)]
    match_labels: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    match_expressions: Vec<Expression>,
}

#[derive(Debug, Deserialize)]
struct Expression {
    key: String,
    operator: String,
    #[serde(default)]
    values: Vec<String>,
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn what_matches_by_its_rules_is_named_and_what_cannot_match_is_not() {
        let item: Item = serde_json::from_str(
            r#"{"metadata":{"name":"m"},"webhooks":[
                {"name":"a","rules":[{"apiGroups":["apps"],"apiVersions":["v1"],"resources":["deployments"],"operations":["CREATE","UPDATE"]}],
                 "namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["kube-system"]}]}},
                {"name":"b","rules":[{"apiGroups":["*"],"apiVersions":["*"],"resources":["*"],"operations":["*"],"scope":"Cluster"}]},
                {"name":"c","matchPolicy":"Exact","rules":[{"apiGroups":["apps"],"apiVersions":["v1beta1"],"resources":["*/*"],"operations":["UPDATE"]}]},
                {"name":"d","rules":[{"apiGroups":["apps"],"apiVersions":["v1"],"resources":["deployments"],"operations":["CREATE"]}]}]}"#,
        )
        .unwrap();
        let all = mutators(WEBHOOKS, item);
        let names = |kind: &ApiKind, namespace: Option<&str>| {
            let found = all.iter().filter(|mutator| mutator.matches(kind, namespace));
            found.map(|mutator| mutator.name.clone()).collect::<Vec<_>>()
        };
        let deployment = kind("apps/v1", "Deployment", "deployments", true);
        assert_eq!(
            names(&deployment, Some("shop")),
            ["MutatingWebhookConfiguration m (webhook a)"]
        );
        assert!(names(&deployment, Some("kube-system")).is_empty());
        let node = kind("v1", "Node", "nodes", false);
        assert_eq!(names(&node, None), ["MutatingWebhookConfiguration m (webhook b)"]);
    }
}

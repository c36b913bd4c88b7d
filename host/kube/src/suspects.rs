//! Who may change an object on its way in: admission webhooks and policies that mutate.
//!
//! Takes an object and what is applied to it. Gives the names of those that match an update of it, by
//! their rules, selectors and match conditions: candidates for people. Where that cannot be decided
//! (labels of a namespace that may not be read, a condition in free CEL), the name comes with that
//! word. `labels.rs` has selectors, `conditions.rs` conditions.

mod conditions;
mod labels;

use crate::address;
use crate::counts::Verb;
use crate::discovery::{ApiKind, Lookup};
use crate::request::Call;
use crate::store::Store;
use conditions::Asked;
use labels::{Answer, Labels, Selector};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use trimtab_core::gate::Target;
use trimtab_core::identity::GroupKind;

/// How long a list is believed: many objects may ask at once.
const BELIEVED: Duration = Duration::from_secs(10);
const GROUP: &str = "admissionregistration.k8s.io";
/// The kinds that mutate; policies and their bindings are not served by older servers.
const WEBHOOKS: &str = "MutatingWebhookConfiguration";
const POLICIES: &str = "MutatingAdmissionPolicy";
const BINDINGS: &str = "MutatingAdmissionPolicyBinding";
/// The label that every namespace has, with its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

type Listed = Result<Arc<[Mutator]>, String>;

/// The lists, read when they are asked for.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    known: Mutex<Option<(Instant, Listed)>>,
}

/// One webhook, or one policy by one of its bindings.
#[derive(Debug)]
struct Mutator {
    name: String,
    /// All of these have to match: a binding narrows its policy.
    matches: Vec<Match>,
    conditions: Vec<Condition>,
}

/// The update that is asked about.
struct Update<'a> {
    kind: &'a ApiKind,
    asked: Asked<'a>,
    /// Of its namespace; of a Namespace its own; of other cluster-scoped objects none.
    around: Option<Labels>,
    /// Before and after.
    own: [Labels; 2],
}

impl Suspects {
    /// Those that may change what is applied (JSON text) on its way into the live object (JSON
    /// text).
    pub(crate) async fn of(
        &self,
        store: &Store,
        kind: &ApiKind,
        target: &Target,
        live: Option<&[u8]>,
        applied: &[u8],
    ) -> Result<Vec<String>, String> {
        // What admits is not admitted by its own kind.
        if &*kind.gvk.group == GROUP {
            return Ok(Vec::new());
        }
        let all = self.listed(store).await?;
        let namespace = target.key.namespace.as_deref();
        let before = own_labels(live.unwrap_or_default());
        let mut after = before.clone();
        after.known.extend(own_labels(applied).known);
        let around = match namespace {
            Some(name) => Some(labels_of_namespace(store, name).await),
            None if kind.is_namespace() => Some(after.clone()),
            None => None,
        };
        let asked = Asked {
            group: &kind.gvk.group,
            version: &kind.gvk.version,
            kind: &kind.gvk.kind,
            resource: &kind.plural,
            namespace: namespace.unwrap_or_default(),
            name: &target.key.name,
        };
        let update = Update { kind, asked, around, own: [before, after] };
        Ok(all.iter().filter_map(|mutator| mutator.named(&update)).collect())
    }

    async fn listed(&self, store: &Store) -> Listed {
        let mut known = self.known.lock().await;
        match &*known {
            Some((at, listed)) if at.elapsed() < BELIEVED => listed.clone(),
            _ => {
                let listed = mutators(store).await;
                *known = Some((Instant::now(), listed.clone()));
                listed
            }
        }
    }
}

async fn mutators(store: &Store) -> Listed {
    let mut all = of_webhooks(list(store, WEBHOOKS).await?);
    let policies: Vec<Item> = list(store, POLICIES).await?;
    // Without a binding a policy does nothing.
    if !policies.is_empty() {
        all.extend(of_policies(policies, &list(store, BINDINGS).await?));
    }
    Ok(all.into())
}

/// All objects of one of these kinds; none where it is not served.
async fn list(store: &Store, name: &str) -> Result<Vec<Item>, String> {
    let kinds = store.kinds();
    let served = kinds.as_deref().map(|kinds| kinds.preferred(&GroupKind::new(GROUP, name)));
    let Some(Lookup::Found(kind)) = served else { return Ok(Vec::new()) };
    let path = address::collection(kind, None);
    let answer = store.server().call(Call::get(Verb::List, path)).await;
    let answer = answer.map_err(|error| format!("they cannot be listed: {error}"))?;
    let list: List = serde_json::from_slice(&answer.body)
        .map_err(|error| format!("the list of {name} is not understood: {error}"))?;
    Ok(list.items)
}

/// A namespace's labels; only its name, where it may not be read.
async fn labels_of_namespace(store: &Store, name: &str) -> Labels {
    let call = Call::get(Verb::Get, format!("/api/v1/namespaces/{}", address::encoded(name)));
    let mut labels = match store.server().call(call).await {
        Ok(answer) => own_labels(&answer.body),
        Err(_) => Labels::default(),
    };
    labels.known.insert(NAMESPACE_NAME.to_owned(), name.to_owned());
    labels
}

/// The labels of an object in JSON text; of text that is none they are not known.
fn own_labels(json: &[u8]) -> Labels {
    match serde_json::from_slice::<Labelled>(json) {
        Ok(object) => Labels { known: object.metadata.labels, all: true },
        Err(_) => Labels::default(),
    }
}

fn of_webhooks(items: Vec<Item>) -> Vec<Mutator> {
    let each = |Item { metadata, webhooks, .. }: Item| {
        webhooks.into_iter().map(move |Webhook { name, matches, conditions }| Mutator {
            name: format!("{WEBHOOKS} {} (webhook {name})", metadata.name),
            matches: vec![matches],
            conditions,
        })
    };
    // Without rules a webhook is never called.
    items.into_iter().flat_map(each).filter(|it| it.matches.iter().all(Match::has_rules)).collect()
}

fn of_policies(policies: Vec<Item>, bindings: &[Item]) -> Vec<Mutator> {
    let mut all = Vec::new();
    for Item { metadata: policy, spec, .. } in policies {
        let of_it = |binding: &&Item| binding.spec.policy_name == policy.name;
        for binding in bindings.iter().filter(of_it) {
            let mut matches = vec![spec.match_constraints.clone()];
            matches.extend(binding.spec.match_resources.clone());
            all.push(Mutator {
                name: format!("{POLICIES} {} ({BINDINGS} {})", policy.name, binding.metadata.name),
                matches,
                conditions: spec.conditions.clone(),
            });
        }
    }
    all
}

impl Mutator {
    /// Its name, if it matches; with a word where that is not certain.
    fn named(&self, update: &Update<'_>) -> Option<String> {
        let by_rules = self.matches.iter().map(|it| it.matches(update)).min();
        let holds = |it: &Condition| conditions::holds(&it.expression, &update.asked);
        let by_conditions = self.conditions.iter().map(holds).min();
        let open = |what| Some(format!("{} (perhaps: {what})", self.name));
        match (by_rules.unwrap_or(Answer::Yes), by_conditions.unwrap_or(Answer::Yes)) {
            (Answer::No, _) | (_, Answer::No) => None,
            (Answer::Yes, Answer::Yes) => Some(self.name.clone()),
            (Answer::Perhaps, _) => {
                open("it goes by labels of the namespace, which may not be read")
            }
            (Answer::Yes, Answer::Perhaps) => open("its match conditions are not evaluated here"),
        }
    }
}

impl Match {
    fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    fn matches(&self, update: &Update<'_>) -> Answer {
        let covers = |rules: &[Rule]| rules.iter().any(|rule| rule.covers(self, update));
        // A binding without rules of its own takes those of its policy.
        if !(self.rules.is_empty() || covers(&self.rules)) || covers(&self.excluded) {
            return Answer::No;
        }
        let by_namespace = match &update.around {
            Some(labels) => self.namespace_selector.selects(labels),
            None => Answer::Yes,
        };
        let [before, after] = update.own.each_ref().map(|it| self.object_selector.selects(it));
        by_namespace.min(before.max(after))
    }
}

impl Rule {
    fn covers(&self, within: &Match, update: &Update<'_>) -> bool {
        let ApiKind { gvk, plural, namespaced, .. } = update.kind;
        let has = |list: &[String], wanted: &str| list.iter().any(|it| it == "*" || it == wanted);
        let scope = match self.scope.as_deref() {
            Some("Namespaced") => *namespaced,
            Some("Cluster") => !namespaced,
            _ => true,
        };
        // By default an object is seen in whichever version it is written.
        let exact = within.match_policy.as_deref() == Some("Exact");
        scope
            && has(&self.api_groups, &gvk.group)
            && (!exact || has(&self.api_versions, &gvk.version))
            && has(&self.operations, "UPDATE")
            && self.resources.iter().any(|it| it == "*" || it == "*/*" || **it == **plural)
            && (self.resource_names.is_empty()
                || self.resource_names.iter().any(|name| name == update.asked.name))
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
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Labelled {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Webhook {
    name: String,
    #[serde(flatten)]
    matches: Match,
    #[serde(default, rename = "matchConditions")]
    conditions: Vec<Condition>,
}

/// Of a policy or of its binding.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    match_constraints: Match,
    #[serde(default, rename = "matchConditions")]
    conditions: Vec<Condition>,
    #[serde(default)]
    policy_name: String,
    match_resources: Option<Match>,
}

#[derive(Clone, Debug, Deserialize)]
struct Condition {
    expression: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Match {
    #[serde(default, alias = "resourceRules")]
    rules: Vec<Rule>,
    #[serde(default, rename = "excludeResourceRules")]
    excluded: Vec<Rule>,
    match_policy: Option<String>,
    #[serde(default)]
    namespace_selector: Selector,
    #[serde(default)]
    object_selector: Selector,
}

#[derive(Clone, Debug, Default, Deserialize)]
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
    #[serde(default)]
    resource_names: Vec<String>,
    scope: Option<String>,
}

#[cfg(test)]
#[path = "suspects_tests.rs"]
mod tests;

//! The objects that pairs are generated from, and the kinds that there are.

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use trimtab_system_tests::{Api, documents};

/// Kinds without a seed: of most of them the server keeps no object, so that nothing can differ.
const SEEDLESS: &[(&str, &str)] = &[
    ("Binding", "a request: it sets a pod's node"),
    ("ComponentStatus", "made up when asked for"),
    ("SelfSubjectReview", "a question"),
    ("TokenReview", "a question"),
    ("LocalSubjectAccessReview", "a question"),
    ("SelfSubjectAccessReview", "a question"),
    ("SelfSubjectRulesReview", "a question"),
    ("SubjectAccessReview", "a question"),
    ("Boat", "there for its definition, which is a seed"),
];

/// Where objects of these kinds go, lest they rule over the others.
pub(super) const APART: &str = "oracle-apart";
/// Where the others go.
pub(super) const NAMESPACE: &str = "oracle";

/// One object, and where its kind is served.
#[derive(Clone)]
pub(super) struct Seed {
    pub(super) object: Value,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    /// Path of the collection.
    pub(super) collection: String,
}

/// A kind as discovery lists it.
struct Served {
    group: String,
    version: String,
    kind: String,
    plural: String,
    namespaced: bool,
}

/// The seeds in the files of `tests/system/seeds`, in their order.
pub(super) fn objects() -> Result<Vec<Value>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let mut all = Vec::new();
    for file in ["core", "workloads", "cluster", "custom"] {
        let file = folder.join(format!("{file}.yaml"));
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        all.extend(documents(&text).with_context(|| file.display().to_string())?);
    }
    Ok(all)
}

/// What a List holds, or the object itself.
fn listed(mut object: Value) -> Vec<Value> {
    let is_list = object["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match object.get_mut("items").filter(|_| is_list).map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => vec![object],
    }
}

/// Places the objects where their kinds are served.
pub(super) async fn place(api: &Api, objects: Vec<Value>, namespace: &str) -> Result<Vec<Seed>> {
    let served = served(api).await?;
    let objects = objects.into_iter().flat_map(listed).collect::<Vec<_>>();
    let place = |mut object: Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        let found = served
            .iter()
            .find(|it| it.group == group && it.version == version && it.kind == kind)
            .with_context(|| format!("the server serves no {kind} in {group}/{version}"))?;
        let mut collection = root(group, version);
        if found.namespaced {
            let apart = matches!(kind.as_str(), "LimitRange" | "ResourceQuota");
            let stated = object["metadata"]["namespace"].as_str().map(str::to_owned);
            let usual = if apart && namespace == NAMESPACE { APART } else { namespace };
            let namespace = stated.as_deref().unwrap_or(usual);
            collection.push_str(&format!("/namespaces/{namespace}"));
            object["metadata"]["namespace"] = json!(namespace);
        }
        collection.push_str(&format!("/{}", found.plural));
        Ok(Seed { object, group: group.into(), version: version.into(), kind, collection })
    };
    objects.into_iter().map(place).collect()
}

/// Every kind that the server keeps has a seed; the others are named, each with the reason.
pub(super) async fn complete(api: &Api, seeds: &[Seed]) -> Result<usize> {
    let mut kinds = BTreeSet::new();
    for served in served(api).await? {
        let name = format!("{} in {}/{}", served.kind, served.group, served.version);
        let reason = SEEDLESS.iter().find(|(kind, _)| *kind == served.kind);
        let seed = seeds.iter().any(|seed| {
            seed.group == served.group && seed.version == served.version && seed.kind == served.kind
        });
        ensure!(seed || reason.is_some(), "no seed in tests/system/seeds: {name}");
        if seed {
            kinds.insert(name);
        }
    }
    Ok(kinds.len())
}

fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

async fn served(api: &Api) -> Result<Vec<Served>> {
    let mut lists = vec![(String::new(), "v1".to_owned())];
    let groups = api.send(Method::GET, "/apis", None, None).await?;
    for group in groups["groups"].as_array().into_iter().flatten() {
        for version in group["versions"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            lists.push((text(&group["name"]), text(&version["version"])));
        }
    }
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let services = api.send(Method::GET, services, None, None).await?;
    let mut all = Vec::new();
    for (group, version) in lists {
        let is = |service: &&Value| {
            let spec = &service["spec"];
            spec["group"] == *group && spec["version"] == *version && spec["service"].is_object()
        };
        // Another server's, which need not be there: the client would wait long for it.
        if services["items"].as_array().is_some_and(|all| all.iter().any(|it| is(&it))) {
            continue;
        }
        let list = api.send(Method::GET, &root(&group, &version), None, None).await?;
        for resource in list["resources"].as_array().into_iter().flatten() {
            let text = |name: &str| resource[name].as_str().unwrap_or_default().to_owned();
            if !text("name").contains('/') {
                all.push(Served {
                    group: group.clone(),
                    version: version.clone(),
                    kind: text("kind"),
                    plural: text("name"),
                    namespaced: resource["namespaced"] == true,
                });
            }
        }
    }
    Ok(all)
}

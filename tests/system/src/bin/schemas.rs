//! Makes `host/trimtab/schemas/kubernetes.json`: what a kube-apiserver says of its built-in types,
//! without a word of description. Run by hand for a new Kubernetes release:
//!
//! `cargo run --release -p trimtab-system-tests --bin schemas > host/trimtab/schemas/kubernetes.json`
//!
//! One line a schema, sorted, so that a new release shows as a readable difference.

use anyhow::Context as _;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use trimtab_dev::{Client, ControlPlane, Options, to_stderr};

/// What comparison reads of a schema; all else (descriptions above all) is left out.
const KEPT: [&str; 20] = [
    "$ref",
    "additionalProperties",
    "allOf",
    "default",
    "format",
    "items",
    "nullable",
    "pattern",
    "properties",
    "type",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-group-version-kind",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let plane = ControlPlane::start(Options::default(), &to_stderr).await?;
    let client = plane.client();
    let index = get(client, "/openapi/v3").await?;
    let mut schemas = BTreeMap::new();
    for entry in index["paths"].as_object().context("the index names no documents")?.values() {
        let address = entry["serverRelativeURL"].as_str().context("a document has no address")?;
        let document = get(client, address).await?;
        if let Some(found) = document["components"]["schemas"].as_object() {
            for (name, schema) in found {
                schemas.insert(name.clone(), pruned(name, schema));
            }
        }
    }
    let resources = resources(client).await?;
    let cluster_scoped: Vec<&String> =
        resources.iter().filter(|(_, (_, namespaced))| !namespaced).map(|(kind, _)| kind).collect();
    let plurals: BTreeMap<_, _> =
        resources.iter().map(|(kind, (plural, _))| (kind, plural)).collect();
    println!("{{\"clusterScoped\":{},", serde_json::to_string(&cluster_scoped)?);
    println!("\"resources\":{},", serde_json::to_string(&plurals)?);
    println!("\"components\":{{\"schemas\":{{");
    let last = schemas.len().saturating_sub(1);
    for (position, (name, schema)) in schemas.iter().enumerate() {
        let comma = if position == last { "" } else { "," };
        println!("{}:{}{comma}", serde_json::to_string(name)?, serde_json::to_string(schema)?);
    }
    println!("}}}}}}");
    plane.shutdown().await;
    Ok(())
}

async fn get(client: &Client, path: &str) -> anyhow::Result<Value> {
    let answer = client.get(path).await?;
    anyhow::ensure!(answer.status == 200, "{path}: status {}", answer.status);
    Ok(serde_json::from_str(&answer.body)?)
}

/// `Kind.group` of every kind, with its plural and whether its objects are in namespaces.
async fn resources(client: &Client) -> anyhow::Result<BTreeMap<String, (String, bool)>> {
    let mut kinds = BTreeMap::new();
    let mut lists = vec!["/api/v1".to_owned()];
    for group in get(client, "/apis").await?["groups"].as_array().into_iter().flatten() {
        for version in group["versions"].as_array().into_iter().flatten() {
            lists.push(format!("/apis/{}", version["groupVersion"].as_str().unwrap_or_default()));
        }
    }
    for list in lists {
        let answer = get(client, &list).await?;
        let group = list.strip_prefix("/apis/").and_then(|rest| rest.split('/').next());
        for resource in answer["resources"].as_array().into_iter().flatten() {
            let name = resource["name"].as_str().unwrap_or_default();
            if name.contains('/') {
                continue;
            }
            let kind = resource["kind"].as_str().unwrap_or_default();
            let kind = match group {
                Some(group) => format!("{kind}.{group}"),
                None => kind.to_owned(),
            };
            let namespaced = resource["namespaced"] != Value::Bool(false);
            kinds.insert(kind, (name.to_owned(), namespaced));
        }
    }
    Ok(kinds)
}

fn pruned(name: &str, schema: &Value) -> Value {
    let Value::Object(schema) = schema else { return schema.clone() };
    let mut kept = Map::new();
    for (key, value) in schema.iter().filter(|(key, _)| KEPT.contains(&key.as_str())) {
        let value = match (key.as_str(), value) {
            // Types of every group's (DeleteOptions, WatchEvent): a page of groups, read by no one.
            ("x-kubernetes-group-version-kind", _) if name.starts_with("io.k8s.apimachinery") => {
                continue;
            }
            ("properties", Value::Object(properties)) => properties
                .iter()
                .map(|(field, schema)| (field.clone(), pruned("", schema)))
                .collect::<Map<_, _>>()
                .into(),
            ("items" | "additionalProperties", schema) => pruned("", schema),
            ("allOf", Value::Array(all)) => all.iter().map(|it| pruned("", it)).collect(),
            (_, value) => value.clone(),
        };
        kept.insert(key.clone(), value);
    }
    Value::Object(kept)
}

//! What a deletion would take with it: for people, before it is done.
//!
//! Takes a live object. Asks the store for what names it as its owner, and the server for what
//! belongs to it by its kind. What cannot be seen is said, never left out.

use crate::address;
use crate::counts::Verb;
use crate::discovery::{ApiKind, Lookup};
use crate::request::Call;
use crate::store::Store;
use serde_json::Value;
use trimtab_core::identity::{GroupKind, ObjectKey};

/// Names that are listed; more are counted.
const NAMES_AT_MOST: usize = 5;

/// One text for each thing that goes with the object.
pub(crate) async fn dependents(store: &Store, key: &ObjectKey, live: &[u8]) -> Vec<String> {
    let Ok(live) = serde_json::from_slice::<Value>(live) else {
        return vec!["dependents that cannot be told: the object does not decode".into()];
    };
    let mut all = Vec::new();
    if let Some(uid) = live["metadata"]["uid"].as_str() {
        all.extend(named("declared objects that it owns", &store.owned_by(uid)));
    }
    match (&*key.group_kind.group, &*key.group_kind.kind) {
        ("", "Namespace") => {
            let within = named("of them declared", &store.within(&key.name));
            let within = within.map_or_else(String::new, |text| format!(" ({text})"));
            all.push(format!("everything in the namespace{within}"));
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            all.push(instances(store, &live).await);
        }
        ("", "PersistentVolumeClaim" | "PersistentVolume") => {
            all.push("the data on its volume, by the reclaim policy of that".into());
        }
        ("apps", "StatefulSet") => {
            let pods = pods(store, key, &live).await;
            all.push(format!("{pods}, which run on and are adopted if its successor selects them"));
        }
        ("apps", _) | ("batch", "Job") => all.push(pods(store, key, &live).await),
        ("batch", "CronJob") => all.push("its Jobs and their Pods".into()),
        _ => {}
    }
    all
}

fn named(what: &str, names: &[String]) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    let shown = names.iter().take(NAMES_AT_MOST).cloned().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(NAMES_AT_MOST);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("{what} ({}): {shown}{more}", names.len()))
}

/// How many objects of the kind that this definition makes there are.
async fn instances(store: &Store, definition: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = GroupKind::new(
        &text(&definition["spec"]["group"]),
        &text(&definition["spec"]["names"]["kind"]),
    );
    let kinds = store.kinds();
    let served = kinds.as_deref().map(|kinds| kinds.preferred(&kind));
    let Some(Lookup::Found(served)) = served else {
        return format!("every {kind}, of which it cannot be told how many there are");
    };
    match list(store, served, None, "limit=1").await {
        Ok(list) => {
            let first = list["items"].as_array().map_or(0, Vec::len) as u64;
            let more = list["metadata"]["remainingItemCount"].as_u64().unwrap_or_default();
            format!("every {kind}: {} now", first + more)
        }
        Err(reason) => format!("every {kind}, of which it cannot be told how many: {reason}"),
    }
}

/// The Pods that a workload selects.
async fn pods(store: &Store, key: &ObjectKey, workload: &Value) -> String {
    let labels = workload["spec"]["selector"]["matchLabels"].as_object();
    let selector: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    let kinds = store.kinds();
    let served = kinds.as_deref().map(|kinds| kinds.preferred(&GroupKind::new("", "Pod")));
    let Some(Lookup::Found(served)) = served.filter(|_| !selector.is_empty()) else {
        return "its Pods".into();
    };
    let query = format!("limit=100&labelSelector={}", address::encoded(&selector.join(",")));
    match list(store, served, key.namespace.as_deref(), &query).await {
        Ok(list) => {
            let names = list["items"].as_array().into_iter().flatten();
            let names: Vec<String> = names
                .filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned))
                .collect();
            named("its Pods", &names)
                .unwrap_or_else(|| "its Pods, of which there are none now".into())
        }
        Err(reason) => format!("its Pods, which cannot be listed: {reason}"),
    }
}

async fn list(
    store: &Store,
    kind: &ApiKind,
    namespace: Option<&str>,
    query: &str,
) -> Result<Value, String> {
    let path = format!("{}?{query}", address::collection(kind, namespace));
    let mut call = Call::get(Verb::List, path);
    call.accept =
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
    let answer = store.server().call(call).await.map_err(|error| error.to_string())?;
    serde_json::from_slice(&answer.body).map_err(|_| "the answer is not understood".into())
}

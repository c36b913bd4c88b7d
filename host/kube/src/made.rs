//! Reads for pruning: the inventory's ConfigMaps, an object as it is now, and what a namespace or a
//! definition would take with it.
//!
//! Nothing of it is watched: it is asked for when something left a source, which is seldom. A failed
//! read is said and is never "nothing".

use crate::address;
use crate::counts::Verb;
use crate::discovery::{ApiKind, Kinds, Lookup};
use crate::request::{Call, RequestError};
use crate::store::Store;
use serde_json::Value;
use std::sync::Arc;
use trimtab_core::gate;
use trimtab_core::identity::{GroupKind, Gvk, ObjectKey};
use trimtab_core::inventory;
use trimtab_core::object::LiveObject;
use trimtab_core::prune::{Contents, Seen};

/// Objects a page.
const PAGE: u32 = 500;
/// Pages that are read of one kind: more of it in one place is named as that many at least.
const PAGES_AT_MOST: u32 = 20;
/// Names that are told of what a deletion would take with it.
const NAMES_AT_MOST: usize = 5;
/// As page of metadata alone.
const METADATA: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// One shard of the inventory as it lies in the cluster.
#[derive(Clone, Debug)]
pub struct ShardObject {
    /// Name of the ConfigMap.
    pub name: String,
    /// The ConfigMap.
    pub live: LiveObject,
    /// The shard's text; empty where the ConfigMap has none.
    pub text: Vec<u8>,
}

impl Store {
    /// All shards of all sources in this namespace, from the server.
    ///
    /// # Errors
    /// They could not be listed whole, or one does not decode: nothing is known of any then.
    pub async fn shards(&self, namespace: &str) -> Result<Vec<ShardObject>, String> {
        let path = format!("/api/v1/namespaces/{}/configmaps", address::encoded(namespace));
        let query = format!("labelSelector={}", address::encoded(inventory::LABEL));
        let mut shards = Vec::new();
        let mut token = String::new();
        loop {
            // A shard has half a megabyte: few to a page.
            let mut page = format!("{path}?{query}&limit=20");
            if !token.is_empty() {
                page.push_str(&format!("&continue={}", address::encoded(&token)));
            }
            let mut call = Call::get(Verb::List, page);
            call.limit = 64 << 20;
            let answer = self.server().call(call).await.map_err(|error| error.to_string())?;
            let list = parsed(&answer.body)?;
            for item in items(&list)? {
                shards.push(shard(item)?);
            }
            token = list["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                return Ok(shards);
            }
        }
    }

    /// The checkpoints of audit logs that lie in this namespace, one line each.
    ///
    /// # Errors
    /// They could not be listed.
    pub async fn checkpoints(&self, namespace: &str) -> Result<Vec<String>, String> {
        let path = format!(
            "/api/v1/namespaces/{}/configmaps?labelSelector={}",
            address::encoded(namespace),
            address::encoded(gate::CHECKPOINT_LABEL)
        );
        let answer = self.server().call(Call::get(Verb::List, path)).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let list = parsed(&answer.body)?;
        let line = |item: &Value| item["data"][gate::CHECKPOINT_DATA].as_str().map(str::to_owned);
        Ok(items(&list)?.iter().filter_map(line).collect())
    }

    /// The object as the server has it now, in the version that the server prefers.
    pub async fn read_now(&self, key: &ObjectKey) -> (Option<Gvk>, Seen) {
        let Some(kinds) = self.kinds() else {
            return (None, Seen::Unknown("discovery has not been read yet".into()));
        };
        let kind = match kinds.preferred(&key.group_kind) {
            Lookup::Found(kind) => kind,
            Lookup::NotServed => return (None, Seen::Unserved),
            Lookup::Unknown(why) => return (None, Seen::Unknown(why.to_owned())),
        };
        let gvk = Some(kind.gvk.clone());
        let path = match address::object(kind, key.namespace.as_deref(), &key.name) {
            Ok(path) => path,
            Err(error) => return (gvk, Seen::Unknown(error.to_string())),
        };
        let seen = match self.server().call(Call::get(Verb::Get, path)).await {
            Ok(answer) => match LiveObject::read(answer.body[..].into()) {
                Some(live) => Seen::Live(live),
                None => Seen::Unknown("it does not decode".into()),
            },
            // The object's own 404 names it; the kind's does not.
            Err(error)
                if error.status().is_some_and(|it| it.code == 404 && *it.name == *key.name) =>
            {
                Seen::Absent
            }
            Err(error) => Seen::Unknown(with_rule(&error, kind)),
        };
        (gvk, seen)
    }

    /// What a namespace or a definition would take with it.
    pub async fn contents(&self, key: &ObjectKey, live: &LiveObject) -> Contents {
        let Some(kinds) = self.kinds() else {
            return Contents::Unknown("discovery has not been read yet".into());
        };
        let found = match &*key.group_kind.kind {
            "Namespace" => self.within_now(&kinds, &key.name).await,
            _ => self.instances(&kinds, live).await,
        };
        match found {
            Ok(found) if found.is_empty() => Contents::Nothing,
            Ok(found) => Contents::Some(named(&found)),
            Err(why) => Contents::Unknown(why),
        }
    }

    /// What is in a namespace, but for what Kubernetes puts into each and what is going anyway.
    async fn within_now(&self, kinds: &Kinds, namespace: &str) -> Result<Vec<String>, String> {
        if let Some((what, why)) = kinds.unknown().next() {
            return Err(format!("what is there of {what}: {why}"));
        }
        let mut listed: Vec<&ApiKind> = kinds
            .iter()
            .filter(|kind| kind.namespaced && kind.has_verb("list") && !is_derived(kind))
            .filter(|kind| {
                let preferred = kinds.preferred(&kind.gvk.group_kind());
                matches!(preferred, Lookup::Found(preferred) if preferred.gvk == kind.gvk)
            })
            .collect();
        listed.sort_by(|a, b| a.gvk.cmp(&b.gvk));
        let mut found = Vec::new();
        for kind in listed {
            found.extend(self.left_in(kind, Some(namespace)).await?);
        }
        Ok(found)
    }

    async fn instances(
        &self,
        kinds: &Kinds,
        definition: &LiveObject,
    ) -> Result<Vec<String>, String> {
        let tree = parsed(&definition.json)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind =
            GroupKind::new(&text(&tree["spec"]["group"]), &text(&tree["spec"]["names"]["kind"]));
        match kinds.preferred(&kind) {
            Lookup::Found(served) => self.left_in(served, None).await,
            Lookup::NotServed => Err(format!("{kind} is not served")),
            Lookup::Unknown(why) => Err(why.to_owned()),
        }
    }

    /// Objects of a kind that are not going by themselves: neither being deleted, nor a controlled
    /// object, which goes with its controller.
    async fn left_in(
        &self,
        kind: &ApiKind,
        namespace: Option<&str>,
    ) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        let mut token = String::new();
        for _ in 0..PAGES_AT_MOST {
            let mut path = format!("{}?limit={PAGE}", address::collection(kind, namespace));
            if !token.is_empty() {
                path.push_str(&format!("&continue={}", address::encoded(&token)));
            }
            let mut call = Call::get(Verb::List, path);
            call.accept = METADATA;
            let answer = match self.server().call(call).await {
                Ok(answer) => answer,
                // Discovery names it, and the server does not have it any more.
                Err(error) if error.code() == 404 => return Ok(found),
                Err(error) => return Err(with_rule(&error, kind)),
            };
            let list = parsed(&answer.body)?;
            for item in items(&list)? {
                let metadata = &item["metadata"];
                let name = metadata["name"].as_str().unwrap_or_default();
                if !goes_by_itself(metadata) && !is_in_every_namespace(kind, name) {
                    let namespace = metadata["namespace"].as_str().unwrap_or_default();
                    let key = ObjectKey::new(kind.gvk.group_kind(), namespace, name);
                    found.push(key.to_string());
                }
            }
            token = list["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                break;
            }
        }
        Ok(found)
    }
}

fn shard(item: &Value) -> Result<ShardObject, String> {
    let name = item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let text = item["data"][inventory::DATA].as_str().unwrap_or_default().as_bytes().to_vec();
    // Items of a list state no type, and nobody here asks for it.
    let json: Arc<[u8]> = item.to_string().into_bytes().into();
    let live = LiveObject::read(json).ok_or_else(|| format!("ConfigMap {name} does not decode"))?;
    Ok(ShardObject { name, live, text })
}

fn parsed(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|_| "the API server's answer is not understood".into())
}

/// The items of a list. Some lists of nothing have null there; what is no list is no empty one.
fn items(list: &Value) -> Result<&[Value], String> {
    let is_list = list["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match &list["items"] {
        Value::Array(items) if is_list => Ok(items),
        Value::Null if is_list => Ok(&[]),
        _ => Err("the API server's answer is no list".into()),
    }
}

fn goes_by_itself(metadata: &Value) -> bool {
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    metadata["deletionTimestamp"].is_string()
        || owners.into_iter().any(|owner| owner["controller"] == true)
}

/// What the control plane keeps about other objects, and takes away with them.
fn is_derived(kind: &ApiKind) -> bool {
    matches!(
        (&*kind.gvk.group, &*kind.gvk.kind),
        ("" | "events.k8s.io", "Event")
            | ("", "Endpoints")
            | ("discovery.k8s.io", "EndpointSlice")
            | ("metrics.k8s.io", _)
    )
}

/// What Kubernetes makes in every namespace.
fn is_in_every_namespace(kind: &ApiKind, name: &str) -> bool {
    kind.gvk.group.is_empty()
        && matches!(
            (&*kind.gvk.kind, name),
            ("ServiceAccount", "default") | ("ConfigMap", "kube-root-ca.crt")
        )
}

fn named(found: &[String]) -> String {
    let shown = found.iter().take(NAMES_AT_MOST).cloned().collect::<Vec<_>>().join(", ");
    let more = found.len().saturating_sub(NAMES_AT_MOST);
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// A failed read, with the RBAC that it lacks where that is why.
fn with_rule(error: &RequestError, kind: &ApiKind) -> String {
    if error.code() != 403 {
        return error.to_string();
    }
    format!(
        "{error}; RBAC has to allow: apiGroups: [\"{}\"], resources: [\"{}\"], verbs: [get, list]",
        kind.gvk.group, kind.plural
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_goes_by_itself_is_nobodys_to_lose() {
        let owned =
            |controller: bool| json!({"ownerReferences": [{"uid": "u", "controller": controller}]});
        assert!(goes_by_itself(&owned(true)) && !goes_by_itself(&owned(false)));
        assert!(goes_by_itself(&json!({"deletionTimestamp": "2026-01-01T00:00:00Z"})));
        assert!(!goes_by_itself(&json!({"name": "c"})));
    }

    #[test]
    fn what_is_no_list_is_no_empty_list() {
        assert!(items(&json!({"kind": "Status"})).is_err());
        assert!(items(&json!({"kind": "PodList", "items": {}})).is_err());
        for items_of_none in [json!([]), json!(null)] {
            let list = json!({"kind": "PartialObjectMetadataList", "items": items_of_none});
            assert!(items(&list).is_ok_and(<[Value]>::is_empty));
        }
    }
}

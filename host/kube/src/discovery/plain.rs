//! Discovery as servers before 1.26 and some proxies answer it: a list of groups, then one
//! `APIResourceList` a group-version, each of which may fail alone.

use super::{ApiKind, Kinds, MAX_BYTES, TIMEOUT};
use crate::address::encoded;
use crate::counts::Verb;
use crate::request::{ApiServer, Call, RequestError, RequestFailure};
use futures::StreamExt as _;
use serde::Deserialize;
use trimtab_core::identity::Gvk;

/// Group-versions asked at the same time: some 30 of them, a round trip each.
const CONCURRENT: usize = 4;

#[derive(Deserialize)]
struct Versions {
    versions: Vec<String>,
}

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    name: String,
    versions: Vec<GroupVersion>,
    #[serde(default)]
    preferred_version: Option<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

#[derive(Deserialize)]
struct Resources {
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    verbs: Vec<String>,
}

/// Adds what the root document `body` (of `/api` if `legacy`, else of `/apis`) names.
///
/// # Errors
/// The root document is no discovery document.
pub(super) async fn add(
    kinds: &mut Kinds,
    server: &ApiServer,
    legacy: bool,
    body: &[u8],
) -> Result<(), RequestError> {
    let wanted = group_versions(legacy, body).ok_or_else(|| RequestError {
        request: format!("read {}", if legacy { "/api" } else { "/apis" }),
        failure: RequestFailure::NotUnderstood("it is no discovery document".into()),
    })?;
    let answers: Vec<_> = futures::stream::iter(wanted)
        .map(|(group, version)| async move {
            let path = if legacy {
                format!("/api/{}", encoded(&version))
            } else {
                format!("/apis/{}/{}", encoded(&group), encoded(&version))
            };
            let mut call = Call::get(Verb::Discovery, path);
            call.timeout = TIMEOUT;
            call.limit = MAX_BYTES;
            (group, version, server.call(call).await)
        })
        .buffered(CONCURRENT)
        .collect()
        .await;
    for (group, version, answer) in answers {
        kinds.add_version(&group, &version);
        let resources = answer.map_err(|error| error.to_string()).and_then(|answer| {
            serde_json::from_slice::<Resources>(&answer.body)
                .map_err(|_| "its discovery document cannot be read".to_owned())
        });
        match resources {
            Ok(resources) => add_resources(kinds, &group, &version, &resources.resources),
            Err(reason) => kinds.add_unknown(&group, &version, reason),
        }
    }
    Ok(())
}

/// Groups and versions, the preferred version of each group first.
fn group_versions(legacy: bool, body: &[u8]) -> Option<Vec<(String, String)>> {
    if legacy {
        let versions: Versions = serde_json::from_slice(body).ok()?;
        return Some(versions.versions.into_iter().map(|it| (String::new(), it)).collect());
    }
    let groups: Groups = serde_json::from_slice(body).ok()?;
    let mut all = Vec::new();
    for group in groups.groups {
        let preferred = group.preferred_version.map(|it| it.version);
        let mut versions: Vec<String> = group.versions.into_iter().map(|it| it.version).collect();
        versions.sort_by_key(|version| Some(version) != preferred.as_ref());
        all.extend(versions.into_iter().map(|version| (group.name.clone(), version)));
    }
    Some(all)
}

fn add_resources(kinds: &mut Kinds, group: &str, version: &str, resources: &[Resource]) {
    let has_status = |plural: &str| {
        let status = format!("{plural}/status");
        resources.iter().any(|resource| resource.name == status)
    };
    for resource in resources.iter().filter(|resource| !resource.name.contains('/')) {
        kinds.add(ApiKind {
            gvk: Gvk {
                group: group.into(),
                version: version.into(),
                kind: resource.kind.as_str().into(),
            },
            plural: resource.name.as_str().into(),
            namespaced: resource.namespaced,
            verbs: resource.verbs.iter().map(|verb| verb.as_str().into()).collect(),
            has_status: has_status(&resource.name),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_version_of_a_group_comes_first() {
        let body = br#"{"kind":"APIGroupList","groups":[{"name":"a","versions":[
            {"groupVersion":"a/v1beta1","version":"v1beta1"},{"groupVersion":"a/v1","version":"v1"}],
            "preferredVersion":{"groupVersion":"a/v1","version":"v1"}}]}"#;
        let pair = |group: &str, version: &str| (group.to_owned(), version.to_owned());
        assert_eq!(group_versions(false, body), Some(vec![pair("a", "v1"), pair("a", "v1beta1")]));
        let legacy = br#"{"kind":"APIVersions","versions":["v1"]}"#;
        assert_eq!(group_versions(true, legacy), Some(vec![pair("", "v1")]));
        assert_eq!(group_versions(false, b"<html>"), None);
    }

    #[test]
    fn subresources_are_no_kinds_but_tell_of_status() {
        let resources: Resources = serde_json::from_str(
            r#"{"resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list"]},
                {"name":"pods/status","kind":"Pod","namespaced":true,"verbs":["get"]},
                {"name":"pods/eviction","kind":"Eviction","group":"policy","namespaced":true,"verbs":["create"]}]}"#,
        )
        .unwrap();
        let mut kinds = Kinds::default();
        add_resources(&mut kinds, "", "v1", &resources.resources);
        let all: Vec<&ApiKind> = kinds.iter().collect();
        assert_eq!(all.len(), 1);
        assert!(all[0].has_status && all[0].has_verb("list") && !all[0].has_verb("create"));
    }
}

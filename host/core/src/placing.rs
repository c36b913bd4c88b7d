//! Placing: from what a source says to where it stands in the cluster.
//!
//! Discovery says which scope a kind has; the manifest's word counts only within that. Fields
//! that a server owns are taken out, so that an exported manifest can be declared as it is.

use crate::identity::{Digest, ObjectKey};
use crate::ignore::Rules;
use crate::object::{Desired, Manifest, Origin, Revision};
use std::collections::HashMap;
use std::sync::Arc;
use trimtab_json::{Object, Value};

/// What an API server writes into `metadata` and a source may not state.
const SERVER_METADATA: [&str; 7] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "selfLink",
];

/// What the host knows of a kind's scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Objects live in namespaces.
    Namespaced,
    /// Objects belong to the whole cluster.
    Cluster,
}

/// Why a manifest could not be placed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacingError {
    /// Two manifests are one object.
    #[error("{key} is declared twice, in {first} and in {second}: remove one of them")]
    Duplicate {
        /// The object.
        key: Box<ObjectKey>,
        /// First declaration.
        first: Origin,
        /// Second declaration.
        second: Origin,
    },
    /// The manifest cannot be read as an object.
    #[error("{origin}: {message}")]
    Invalid {
        /// Where it is declared.
        origin: Origin,
        /// What is wrong with it.
        message: String,
    },
}

/// Places one manifest.
///
/// # Errors
/// [`PlacingError::Invalid`] for content that is no object with metadata.
pub fn place(
    revision: &Revision,
    manifest: &Manifest,
    scope: Scope,
    default_namespace: &str,
) -> Result<Desired, PlacingError> {
    let invalid =
        |message: String| PlacingError::Invalid { origin: manifest.origin.clone(), message };
    let mut object =
        trimtab_json::parse(&manifest.json).map_err(|error| invalid(error.to_string()))?;
    let Value::Object(root) = &mut object else {
        return Err(invalid("is not a JSON object".into()));
    };
    if let Some(why) = undeclarable(&manifest.gvk.kind, root) {
        return Err(invalid(why));
    }
    root.remove("status");
    drop_nulls(root);
    let Some(Value::Object(metadata)) = root.get_mut("metadata") else {
        return Err(invalid("has no metadata".into()));
    };
    for field in SERVER_METADATA {
        metadata.remove(field);
    }
    let namespace = match scope {
        Scope::Cluster => "",
        Scope::Namespaced => manifest.namespace.as_deref().unwrap_or(default_namespace),
    };
    set_namespace(metadata, namespace);
    let key = ObjectKey::new(manifest.gvk.group_kind(), namespace, &manifest.name);
    let ignore = Rules::annotated(metadata, &key);
    let mut json = Vec::with_capacity(manifest.json.len() + 32);
    trimtab_json::write(&object, &mut json);
    Ok(Desired {
        key,
        gvk: manifest.gvk.clone(),
        digest: Digest::of(&json),
        json: json.into(),
        source: revision.source.clone(),
        revision: revision.id.clone(),
        origin: manifest.origin.clone(),
        ignore,
    })
}

/// Takes out members that are null: they state nothing, and a server would store an empty text for
/// one in a map of texts, or refuse it.
fn drop_nulls(object: &mut Object<'_>) {
    object.retain(|_, value| {
        drop_nulls_below(value);
        !value.is_null()
    });
}

fn drop_nulls_below(value: &mut Value<'_>) {
    match value {
        Value::Object(members) => drop_nulls(members),
        Value::Array(items) => items.iter_mut().for_each(drop_nulls_below),
        _ => {}
    }
}

/// Why an object must not be applied as it stands, if so: it is encrypted, or carries the mask of
/// a tool that showed it. Nothing of its values is in the text.
fn undeclarable(kind: &str, root: &Object<'_>) -> Option<String> {
    let undecrypted = |what: &str| {
        format!(
            "secret_encrypted_not_decrypted: {what} encrypted by SOPS, and Trimtab does not decrypt: decrypt it where it is rendered, or use a controller that does"
        )
    };
    if root.get("sops").and_then(|sops| sops.get("mac")).is_some() {
        return Some(undecrypted("the document is"));
    }
    if let Some(path) = encrypted_value(root) {
        return Some(undecrypted(&format!("{path} is")));
    }
    if kind != "Secret" {
        return None;
    }
    ["data", "stringData"].into_iter().find_map(|field| {
        let values = root.get(field)?.as_object()?;
        let masked = values.iter().find(|(_, value)| value.as_str().is_some_and(is_mask))?;
        Some(format!(
            "secret_mask_placeholder: /{field}/{} holds the mask that a tool shows instead of a value: put the value there, or leave the key out",
            masked.0
        ))
    })
}

/// The path of a value that SOPS left encrypted without a word in the document's own metadata.
fn encrypted_value(object: &Object<'_>) -> Option<String> {
    object.iter().find_map(|(name, value)| {
        let below = encrypted(value)?;
        Some(format!("/{}{below}", name.replace('~', "~0").replace('/', "~1")))
    })
}

fn encrypted(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Object(members) => encrypted_value(members),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| Some(format!("/{index}{}", encrypted(item)?))),
        Value::String(text) if text.starts_with("ENC[AES256_GCM,") && text.ends_with(']') => {
            Some(String::new())
        }
        _ => None,
    }
}

/// Masks as tools print them, plain or in base64.
fn is_mask(value: &str) -> bool {
    let decoded =
        trimtab_compare::decode_base64(value).and_then(|bytes| String::from_utf8(bytes).ok());
    [Some(value), decoded.as_deref()].into_iter().flatten().any(|text| is_mask_text(text.trim()))
}

fn is_mask_text(text: &str) -> bool {
    const SIGNS: [char; 5] = ['*', '+', '-', '\u{2022}', '\u{25cf}'];
    let of_one_sign = |sign: char| text.chars().count() >= 3 && text.chars().all(|c| c == sign);
    // `*** (before)`, as flux and Pulumi have it; `++++++++ # (12 bytes)`, as helm diff has it.
    let remark = text.trim_start_matches(SIGNS);
    let remarked = text.len() >= remark.len() + 3
        && matches!(remark.trim(), "(before)" | "(after)")
        || remark.starts_with(" # (") && remark.ends_with(" bytes)");
    // Words that stand in brackets or between stars, and the one that nobody has for a password.
    let word = text.trim_matches(['<', '>', '[', ']', '(', ')', '*', '{', '}']);
    let bracketed = word.len() < text.len()
        && ["sops", "redacted", "hidden", "masked", "sensitive", "sensitive value", "secret"]
            .iter()
            .any(|mask| word.trim().eq_ignore_ascii_case(mask));
    SIGNS.into_iter().any(of_one_sign) || remarked || bracketed || text == "REDACTED"
}

fn set_namespace(metadata: &mut Object<'_>, namespace: &str) {
    if namespace.is_empty() {
        metadata.remove("namespace");
    } else if metadata.get("namespace").and_then(Value::as_str) != Some(namespace) {
        metadata.insert("namespace", namespace.to_owned());
    }
}

/// The objects by identity.
///
/// # Errors
/// One [`PlacingError::Duplicate`] for each identity that is declared again.
pub fn unique(placed: Vec<Desired>) -> Result<HashMap<ObjectKey, Arc<Desired>>, Vec<PlacingError>> {
    let mut by_key: HashMap<ObjectKey, Arc<Desired>> = HashMap::with_capacity(placed.len());
    let mut errors = Vec::new();
    for desired in placed {
        match by_key.get(&desired.key) {
            Some(first) => errors.push(PlacingError::Duplicate {
                key: Box::new(desired.key.clone()),
                first: first.origin.clone(),
                second: desired.origin.clone(),
            }),
            None => {
                by_key.insert(desired.key.clone(), Arc::new(desired));
            }
        }
    }
    if errors.is_empty() { Ok(by_key) } else { Err(errors) }
}

/// In which order kinds are looked at first: what others need comes before them, and admission
/// webhooks, which may call what is not there yet, come last.
pub fn rank(kind: &crate::identity::GroupKind) -> u8 {
    match (&*kind.group, &*kind.kind) {
        ("", "Namespace") => 0,
        ("apiextensions.k8s.io", _) => 1,
        ("scheduling.k8s.io" | "storage.k8s.io" | "node.k8s.io", _) => 2,
        (
            "" | "policy",
            "ServiceAccount" | "ResourceQuota" | "LimitRange" | "PodDisruptionBudget",
        ) => 3,
        ("rbac.authorization.k8s.io", _) => 4,
        ("", "Secret" | "ConfigMap" | "PersistentVolume" | "PersistentVolumeClaim" | "Service") => {
            5
        }
        ("admissionregistration.k8s.io" | "apiregistration.k8s.io", _) => 8,
        ("" | "apps" | "batch" | "networking.k8s.io" | "autoscaling", _) => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{GroupKind, Gvk};

    fn placed(json: &str, scope: Scope) -> Desired {
        let manifest = manifest(json, "a.yaml", 1);
        let revision = Revision {
            source: "s".into(),
            id: "r".into(),
            manifests: vec![manifest.clone()],
            provenance: Default::default(),
        };
        place(&revision, &manifest, scope, "default").unwrap()
    }

    fn manifest(json: &str, file: &str, line: u32) -> Manifest {
        let value = trimtab_json::parse(json.as_bytes()).unwrap();
        let text = |names: &[&str]| value.str_at(names).map(Arc::from);
        Manifest {
            gvk: Gvk::from_api_version(&text(&["apiVersion"]).unwrap(), &text(&["kind"]).unwrap()),
            namespace: text(&["metadata", "namespace"]),
            name: text(&["metadata", "name"]).unwrap(),
            json: json.as_bytes().into(),
            origin: Origin { file: file.into(), line },
        }
    }

    fn text(desired: &Desired) -> &str {
        std::str::from_utf8(&desired.json).unwrap()
    }

    #[test]
    fn a_namespaced_object_without_namespace_goes_to_the_default_one() {
        let desired = placed(
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}"#,
            Scope::Namespaced,
        );
        assert_eq!(desired.key.namespace_str(), "default");
        assert!(text(&desired).contains(r#""namespace":"default""#));
    }

    #[test]
    fn a_cluster_scoped_object_loses_the_namespace_that_its_manifest_states() {
        let desired = placed(
            r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r","namespace":"shop"}}"#,
            Scope::Cluster,
        );
        assert_eq!(desired.key.namespace, None);
        assert!(!text(&desired).contains("namespace"));
    }

    #[test]
    fn what_a_server_owns_is_not_desired() {
        let desired = placed(
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"n","uid":"u","resourceVersion":"9","creationTimestamp":null,"managedFields":[]},"status":{},"data":{"a":"b"}}"#,
            Scope::Namespaced,
        );
        assert_eq!(
            text(&desired),
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"n"},"data":{"a":"b"}}"#
        );
    }

    #[test]
    fn what_is_null_is_not_desired() {
        let desired = placed(
            r#"{"apiVersion":"v1","kind":"X","metadata":{"name":"c","namespace":"n","labels":{"a":null}},"data":null,"list":[{"a":null,"b":1},null]}"#,
            Scope::Namespaced,
        );
        assert_eq!(
            text(&desired),
            r#"{"apiVersion":"v1","kind":"X","metadata":{"name":"c","namespace":"n","labels":{}},"list":[{"b":1},null]}"#
        );
    }

    #[test]
    fn what_is_encrypted_or_masked_is_refused_without_its_values() {
        let secret = |content: &str| {
            let json = format!(
                r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"s","namespace":"n"}},{content}}}"#
            );
            let manifest = manifest(&json, "a.yaml", 1);
            let revision = Revision {
                source: "s".into(),
                id: "r".into(),
                manifests: vec![],
                provenance: Default::default(),
            };
            place(&revision, &manifest, Scope::Namespaced, "default").map(drop)
        };
        assert!(secret(r#""data":{"a":"aHVudGVyMg=="}"#).is_ok());
        for value in ["**", "*** per aspera", "secret", "[a] b", "----x"] {
            assert!(secret(&format!(r#""stringData":{{"a":"{value}"}}"#)).is_ok(), "{value}");
        }
        for (content, word) in [
            (r#""data":{"a":"x"},"sops":{"mac":"m"}"#, "secret_encrypted_not_decrypted"),
            (r#""data":{"a":"KioqKio="}"#, "secret_mask_placeholder"),
            (r#""stringData":{"a":"***"}"#, "secret_mask_placeholder"),
            (r#""stringData":{"a":"*** (after)"}"#, "secret_mask_placeholder"),
            (r#""stringData":{"a":"++++++++ # (12 bytes)"}"#, "secret_mask_placeholder"),
            (r#""stringData":{"a":"(sensitive value)"}"#, "secret_mask_placeholder"),
            (r#""stringData":{"a":"ENC[AES256_GCM,data:x]"}"#, "secret_encrypted_not_decrypted"),
        ] {
            let error = secret(content).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn two_declarations_of_one_object_are_refused_and_both_are_named() {
        let json = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"w","namespace":"n"}}"#;
        let old = json.replace("apps/v1", "apps/v1beta1");
        let revision = Revision {
            source: "s".into(),
            id: "r".into(),
            manifests: vec![],
            provenance: Default::default(),
        };
        let all = [manifest(json, "a.yaml", 1), manifest(&old, "b.yaml", 7)]
            .map(|m| place(&revision, &m, Scope::Namespaced, "default").unwrap());
        let errors = unique(all.to_vec()).unwrap_err();
        assert_eq!(
            errors[0].to_string(),
            "Deployment.apps n/w is declared twice, in a.yaml:1 and in b.yaml:7: remove one of them"
        );
    }

    #[test]
    fn namespaces_and_crds_come_first_and_webhooks_last() {
        let rank = |group, kind| rank(&GroupKind::new(group, kind));
        assert!(rank("", "Namespace") < rank("apiextensions.k8s.io", "CustomResourceDefinition"));
        assert!(rank("apps", "Deployment") < rank("ex.io", "Anything"));
        assert!(
            rank("ex.io", "Anything")
                < rank("admissionregistration.k8s.io", "ValidatingWebhookConfiguration")
        );
    }
}

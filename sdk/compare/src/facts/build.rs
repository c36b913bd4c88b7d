//! Where facts come from: an API server's OpenAPI v3 document, or a CRD.

use super::schema::Schemas;
use alloc::vec::Vec;
use core::fmt;
use trimtab_json::Value;

/// Why there are no facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The document has no `components.schemas`.
    NotOpenApi,
    /// The document describes no such group, version and kind.
    NoSuchKind,
    /// The object is no CRD, or it has no such version, or that version has no schema.
    NoSuchVersion,
    /// The schema is larger than a buffer can be (4 GiB).
    TooLarge,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BuildError::NotOpenApi => "the document is no OpenAPI v3 document",
            BuildError::NoSuchKind => "the document does not describe this kind",
            BuildError::NoSuchVersion => "the object is no CRD with a schema for this version",
            BuildError::TooLarge => "the schema is too large",
        })
    }
}

impl core::error::Error for BuildError {}

/// Facts of a type from the OpenAPI v3 document of its group and version, as the API server gives
/// it at `/openapi/v3/api/v1` and `/openapi/v3/apis/GROUP/VERSION`. `group` is empty for the core
/// group. Kubernetes' own types are completed by what their Go defaulting functions do.
///
/// # Errors
/// [`BuildError::NotOpenApi`] and [`BuildError::NoSuchKind`].
pub fn build(
    document: &Value<'_>,
    group: &str,
    version: &str,
    kind: &str,
) -> Result<Vec<u8>, BuildError> {
    let schemas = document
        .at(&["components", "schemas"])
        .and_then(Value::as_object)
        .ok_or(BuildError::NotOpenApi)?;
    let says = |entry: &Value<'_>, name: &str, wanted: &str| entry.str_at(&[name]) == Some(wanted);
    let is_kind = |schema: &Value<'_>| {
        let entries = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
        entries.unwrap_or_default().iter().any(|entry| {
            says(entry, "group", group)
                && says(entry, "version", version)
                && says(entry, "kind", kind)
        })
    };
    let (name, _) =
        schemas.iter().find(|(_, schema)| is_kind(schema)).ok_or(BuildError::NoSuchKind)?;
    Schemas::new(Some(schemas)).encode_named(name).ok_or(BuildError::TooLarge)
}

/// Facts of a custom resource from its CustomResourceDefinition (apiextensions.k8s.io/v1).
///
/// # Errors
/// [`BuildError::NoSuchVersion`].
pub fn build_crd(crd: &Value<'_>, version: &str) -> Result<Vec<u8>, BuildError> {
    let versions = crd.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
    let schema = versions
        .iter()
        .find(|entry| entry.str_at(&["name"]) == Some(version))
        .and_then(|entry| entry.at(&["schema", "openAPIV3Schema"]))
        .ok_or(BuildError::NoSuchVersion)?;
    let preserves = crd.at(&["spec", "preserveUnknownFields"]).and_then(Value::as_bool);
    Schemas::new(None).encode_custom(schema, preserves.unwrap_or(false)).ok_or(BuildError::TooLarge)
}

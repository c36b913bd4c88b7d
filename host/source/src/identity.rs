//! One object, one declaration: duplicates among the manifests of a source.

use crate::error::{Problem, ProblemCode};
use crate::naming::is_cluster_scoped;
use std::collections::HashMap;
use trimtab_core::object::Manifest;

/// One problem for each manifest whose object was declared before, by group, kind, namespace and
/// name; the version does not count. What states no namespace is in the default one.
///
/// The manifests' own words decide here, with the scope of built-in kinds; the core's placing
/// looks again with the cluster's discovery.
pub(crate) fn duplicates(manifests: &[Manifest], default_namespace: &str) -> Vec<Problem> {
    let mut declared: HashMap<_, &Manifest> = HashMap::with_capacity(manifests.len());
    let mut problems = Vec::new();
    for manifest in manifests {
        let (group, kind) = (&*manifest.gvk.group, &*manifest.gvk.kind);
        let namespace = if is_cluster_scoped(group, kind) {
            ""
        } else {
            manifest.namespace.as_deref().unwrap_or(default_namespace)
        };
        let Some(first) = declared.insert((group, kind, namespace, &*manifest.name), manifest)
        else {
            continue;
        };
        let name = if namespace.is_empty() {
            manifest.name.to_string()
        } else {
            format!("{namespace}/{}", manifest.name)
        };
        problems.push(Problem {
            code: ProblemCode::DuplicateIdentity,
            file: manifest.origin.file.clone(),
            line: Some(manifest.origin.line),
            path: None,
            message: format!(
                "{} {name} is declared before, in {}",
                manifest.gvk.group_kind(),
                first.origin
            ),
            remedy: "remove one of the two".to_owned(),
        });
    }
    problems
}

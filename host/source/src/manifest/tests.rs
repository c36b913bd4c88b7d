//! Documents in, manifests out: what counts as an object, and what is refused.

use crate::directory::read_documents;
use crate::error::SourceError;

/// The manifests, one a line: where, what, and the namespace and name that they state.
fn read(text: &str) -> String {
    match read_documents("fleet.yaml", text.as_bytes(), "default") {
        Ok(manifests) => {
            let line = |manifest: &trimtab_core::object::Manifest| {
                let namespace = manifest.namespace.as_deref().unwrap_or("-");
                format!("{} {} {namespace}/{}", manifest.origin.line, manifest.gvk, manifest.name)
            };
            manifests.iter().map(line).collect::<Vec<_>>().join("\n")
        }
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn refused(text: &str, code: &str, line: u32, path: Option<&str>) -> String {
    match read_documents("fleet.yaml", text.as_bytes(), "default") {
        Ok(manifests) => panic!("{text:?} was read: {manifests:?}"),
        Err(SourceError::Refused(problems)) => {
            let problem = &problems[0];
            let is = (problem.code.as_str(), problem.line, problem.path.as_deref());
            assert_eq!(is, (code, Some(line), path), "reading {text:?}: {problem}");
            problem.to_string()
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn objects_are_read_with_what_they_state() {
    assert_eq!(
        read(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lamps, namespace: pier}\n---\n\
             kind: Role\napiVersion: rbac.authorization.k8s.io/v1\nmetadata: {name: 'system:pilot'}\n---\n\
             {\"apiVersion\": \"own.test/v1\", \"kind\": \"Buoy\", \"metadata\": {\"name\": \"b1\", \"namespace\": \"\"}}\n"
        ),
        "1 v1 ConfigMap pier/lamps\n\
         5 rbac.authorization.k8s.io/v1 Role -/system:pilot\n\
         9 own.test/v1 Buoy -/b1"
    );
}

#[test]
fn a_mistyped_kind_is_an_error_and_no_removal() {
    let shown = refused(
        "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\napiVersion: v1\nkidn: Service\nmetadata: {name: b}\n",
        "not_a_kubernetes_object",
        5,
        None,
    );
    assert!(shown.contains("there is no kind, only: apiVersion, kidn, metadata"), "{shown}");
}

#[test]
fn what_is_no_object_is_refused_with_its_reason() {
    for (text, path, reason) in [
        ("kind: Service\nmetadata: {name: a}", None, "there is no apiVersion"),
        ("apiVersion: 1\nkind: Service\nmetadata: {name: a}", None, "write it in quotes"),
        ("apiVersion: a/b/c\nkind: Service\nmetadata: {name: a}", None, "apiVersion is neither"),
        ("apiVersion: v1\nkind: ''\nmetadata: {name: a}", None, "kind is empty"),
        ("apiVersion: v1\nkind: My Service\nmetadata: {name: a}", None, "not the name of a kind"),
        ("apiVersion: v1\nkind: Service", Some("/metadata"), "no metadata"),
        (
            "apiVersion: v1\nkind: Service\nmetadata: {labels: {}}",
            Some("/metadata/name"),
            "there is no name",
        ),
        (
            "apiVersion: v1\nkind: Service\nmetadata: {name: 7}",
            Some("/metadata/name"),
            "name is a number",
        ),
        (
            "apiVersion: v1\nkind: Service\nmetadata: {name: Pier}",
            Some("/metadata/name"),
            "lower-case",
        ),
        (
            "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: 7}",
            Some("/metadata/namespace"),
            "is a number",
        ),
        (
            "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: a.b}",
            Some("/metadata/namespace"),
            "63",
        ),
        ("- a\n- b", None, "the document is a array"),
        ("only words", None, "the document is a string"),
    ] {
        let shown = refused(text, "not_a_kubernetes_object", 1, path);
        assert!(shown.contains(reason), "{shown}");
    }
}

#[test]
fn a_document_that_says_null_declares_nothing() {
    assert_eq!(read("null\n---\n~\n"), "");
}

#[test]
fn a_generated_name_is_refused_unless_there_is_a_name() {
    let job =
        |metadata: &str| format!("apiVersion: batch/v1\nkind: Job\nmetadata: {{{metadata}}}\n");
    refused(
        &job("generateName: dive-"),
        "generate_name_unsupported",
        1,
        Some("/metadata/generateName"),
    );
    assert_eq!(read(&job("generateName: dive-, name: dive-1")), "1 batch/v1 Job -/dive-1");
}

#[test]
fn a_list_is_its_items_each_on_its_line() {
    assert_eq!(
        read(
            "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\nitems:\n\
             - apiVersion: v1\n  kind: Service\n  metadata: {name: a}\n\
             - kind: List\n  apiVersion: v1\n  items:\n  - {apiVersion: v1, kind: Secret, metadata: {name: s}}\n"
        ),
        "5 v1 Service -/a\n8 v1 Secret -/s"
    );
    assert_eq!(read("apiVersion: v1\nkind: List\nitems: []"), "");
}

#[test]
fn a_typed_list_lends_its_items_what_they_leave_out() {
    let text = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleList\nitems:\n- metadata: {name: a}\n  rules: []\n\
                - {kind: RoleBinding, metadata: {name: b}}\n";
    assert_eq!(
        read(text),
        "4 rbac.authorization.k8s.io/v1 Role -/a\n6 rbac.authorization.k8s.io/v1 RoleBinding -/b"
    );
    let manifests = read_documents("fleet.yaml", text.as_bytes(), "default").unwrap();
    assert_eq!(
        String::from_utf8_lossy(&manifests[0].json),
        r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a"},"rules":[]}"#
    );
}

#[test]
fn an_object_whose_kind_ends_in_list_is_an_object() {
    assert_eq!(
        read("apiVersion: own.test/v1\nkind: CrewList\nmetadata: {name: deck}\nitems: [a, b]"),
        "1 own.test/v1 CrewList -/deck"
    );
    refused("apiVersion: v1\nkind: List", "not_a_kubernetes_object", 1, None);
    refused("apiVersion: v1\nkind: List\nitems:", "not_a_kubernetes_object", 1, None);
    refused("apiVersion: v1\nkind: List\nitems:\n- 7", "not_a_kubernetes_object", 4, None);
    refused(
        "apiVersion: v1\nkind: List\nitems:\n- metadata: {name: a}",
        "not_a_kubernetes_object",
        4,
        None,
    );
}

#[test]
fn numbers_where_text_belongs_are_refused_not_quoted() {
    refused(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n  annotations:\n    own.test/depth: 12\n",
        "type_mismatch",
        6,
        Some("/metadata/annotations/own.test~1depth"),
    );
    refused(
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n  data:\n    lit: 'x'\n    lamps: true\n",
        "type_mismatch",
        9,
        Some("/data/lamps"),
    );
    refused(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pin: 1234}",
        "type_mismatch",
        4,
        Some("/stringData/pin"),
    );
    refused(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: [x]}",
        "type_mismatch",
        1,
        Some("/metadata/labels"),
    );
    assert_eq!(
        read(
            "apiVersion: own.test/v1\nkind: Buoy\nmetadata: {name: a, annotations: }\ndata: {depth: 7}"
        ),
        "1 own.test/v1 Buoy -/a"
    );
}

#[test]
fn one_object_declared_twice_names_both_places() {
    let object = |version: &str, kind: &str, namespace: &str| {
        format!(
            "apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a.own.test{namespace}}}\n---\n"
        )
    };
    for (first, second) in [
        (object("v1", "ConfigMap", ""), object("v1", "ConfigMap", "")),
        (object("v1", "ConfigMap", ""), object("v1", "ConfigMap", ", namespace: default")),
        (object("own.test/v1", "Buoy", ""), object("own.test/v2", "Buoy", "")),
        (
            object("apiregistration.k8s.io/v1", "APIService", ", namespace: north"),
            object("apiregistration.k8s.io/v1", "APIService", ", namespace: south"),
        ),
        (
            object("rbac.authorization.k8s.io/v1", "ClusterRole", ""),
            object("rbac.authorization.k8s.io/v1", "ClusterRole", ", namespace: south"),
        ),
    ] {
        let shown = refused(&format!("{first}{second}"), "duplicate_identity", 5, None);
        assert!(shown.contains("is declared before, in fleet.yaml:1"), "{shown}");
    }
    for (first, second) in [
        (object("v1", "ConfigMap", ""), object("v1", "ConfigMap", ", namespace: south")),
        (object("own.test/v1", "Buoy", ""), object("other.test/v1", "Buoy", "")),
        (object("v1", "ConfigMap", ""), object("v1", "Secret", "")),
    ] {
        assert_eq!(read(&format!("{first}{second}")).lines().count(), 2);
    }
}

#[test]
fn a_kustomization_is_known_by_its_content_too() {
    let kustomize =
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]";
    let shown = refused(kustomize, "not_rendered", 1, None);
    assert!(shown.contains("kubectl kustomize"), "{shown}");
    assert_eq!(
        read(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}"
        ),
        "1 kustomize.toolkit.fluxcd.io/v1 Kustomization -/a"
    );
}

#[test]
fn all_problems_of_a_text_are_told_in_order() {
    let text = "apiVersion: v1\nkind: Pod\n---\nkind: Pod\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: A}\n";
    let Err(SourceError::Refused(problems)) = read_documents("-", text.as_bytes(), "default")
    else {
        panic!("it was read");
    };
    let lines: Vec<_> = problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [Some(1), Some(4), Some(6)]);
}

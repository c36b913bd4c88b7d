//! What extends the API server: CustomResourceDefinition, APIService, and the two webhook
//! configurations.
//!
//! What is special about them: others inject the certificate by which the API server trusts the
//! backend, and a version in which objects are still stored cannot be taken out of a definition.
//! An unstated or empty `caBundle`, and what cannot change, are the comparison's knowledge.

use trimtab_sdk::{
    Comparison, Difference, Finding, NoComparison, Path, Reconciler, Snapshot, Step, Value,
    Verdict, usual,
};

/// Annotations by which an object asks somebody to inject its `caBundle`.
const INJECTED_BY: [&str; 4] = [
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
    "service.beta.openshift.io/inject-cabundle",
];

/// What stands in manifests where a certificate is to be injected: nothing, or one line break.
const PLACEHOLDERS: [&str; 3] = ["", "Cg==", "Cgo="];

/// Reconciles what extends the API server.
pub struct Extension;

impl Reconciler for Extension {
    fn compare<'s>(snapshot: &'s Snapshot<'_>) -> Result<Comparison<'s>, NoComparison> {
        if let Some(version) = stored_and_not_declared(snapshot) {
            return Err(NoComparison::Invalid(format!(
                "stored_version: objects are still stored as {version}, which is not declared any more: declare it with served: false, have every object written anew, and take {version} out of status.storedVersions first"
            )));
        }
        let injected = injected(snapshot);
        let comparison = trimtab_sdk::compare(snapshot)?;
        // A list whose keys no schema tells has positions in its paths.
        let place = |path: &Path| snapshot.desired().and_then(|desired| path.pointer(desired));
        let same = |a: &Path, b: &Path| a == b || place(a).is_some_and(|at| place(b) == Some(at));
        Ok(comparison.except(|each| injected.iter().any(|path| same(path, &each.path))))
    }

    fn decide(snapshot: &Snapshot<'_>, differences: &[Difference<'_>]) -> Verdict {
        let injected = injected(snapshot);
        let verdict = trimtab_sdk::decide_without(snapshot, differences, &injected);
        let stated = injected.into_iter().find(|path| {
            let value = snapshot.desired().and_then(|desired| path.resolve(desired));
            value.and_then(Value::as_str).is_some_and(|text| !PLACEHOLDERS.contains(&text))
        });
        match stated {
            Some(path) => verdict.finding(
                Finding::info(
                    "ca-bundle-injected",
                    "a certificate is declared, and an annotation has another one injected: it is left to whoever injects it; take one of the two out of the manifest",
                )
                .at(path),
            ),
            None => verdict,
        }
    }
}

trimtab_sdk::export!(Extension);

/// The `caBundle`s that are somebody else's: those of an object that asks for it, and those for
/// which desired has no more than a placeholder. None before the object is there.
fn injected(snapshot: &Snapshot<'_>) -> Vec<Path> {
    let Some(live) = snapshot.live() else { return vec![] };
    let asked = [snapshot.desired(), Some(live)]
        .into_iter()
        .any(|object| INJECTED_BY.iter().any(|name| usual::annotation(object, name).is_some()));
    let mut paths = bundles(snapshot);
    paths.retain(|path| {
        let text = |object: Option<&Value<'_>>| {
            object.and_then(|object| path.resolve(object)?.as_str().map(str::to_owned))
        };
        let held = text(Some(live)).is_some_and(|held| !held.is_empty());
        let placeholder = text(snapshot.desired()).is_some_and(|it| PLACEHOLDERS.contains(&&*it));
        held && (asked || placeholder)
    });
    paths
}

/// Where objects of this kind have a `caBundle`.
fn bundles(snapshot: &Snapshot<'_>) -> Vec<Path> {
    match snapshot.id().kind {
        "APIService" => vec![Path::fields(&["spec", "caBundle"])],
        "CustomResourceDefinition" => {
            vec![Path::fields(&["spec", "conversion", "webhook", "clientConfig", "caBundle"])]
        }
        _ => {
            let hooks = snapshot.desired().and_then(|desired| desired.get("webhooks"));
            let hooks = hooks.and_then(Value::as_array).unwrap_or_default();
            let names = hooks.iter().filter_map(|hook| hook.str_at(&["name"]));
            names
                .map(|name| {
                    Path::fields(&["webhooks"])
                        .join(Step::Keyed(vec![("name".into(), name.into())]))
                        .join(Step::Field("clientConfig".into()))
                        .join(Step::Field("caBundle".into()))
                })
                .collect()
        }
    }
}

/// A version in which objects of a definition are stored, and which desired does not have.
fn stored_and_not_declared(snapshot: &Snapshot<'_>) -> Option<String> {
    let stored = snapshot.live()?.at(&["status", "storedVersions"])?.as_array()?;
    let declared = snapshot.desired()?.at(&["spec", "versions"])?.as_array()?;
    let mut stored = stored.iter().filter_map(Value::as_str);
    let is_declared =
        |name: &str| declared.iter().any(|version| version.str_at(&["name"]) == Some(name));
    stored.find(|name| !is_declared(name)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_sdk::testing::Case;

    fn hook(annotations: &str, failure: &str, bundle: &str) -> String {
        format!(
            r#"{{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration",
            "metadata":{{"name":"a","annotations":{{{annotations}}}}},"webhooks":[{{"name":"a.b.c",
            "failurePolicy":"{failure}","clientConfig":{{"url":"https://a.b"{bundle}}}}}]}}"#
        )
    }

    const BUNDLE: &str = r#","caBundle":"TFMwdA==""#;
    const ASKS: &str = r#""cert-manager.io/inject-ca-from":"a/b""#;

    #[test]
    fn an_injected_certificate_stays_whatever_stands_in_its_place() {
        for bundle in ["", r#","caBundle":"""#, r#","caBundle":"Cg==""#] {
            for annotations in ["", ASKS] {
                let desired = hook(annotations, "Fail", bundle);
                let case = Case::new().desired(&desired).live(hook(annotations, "Fail", BUNDLE));
                case.check::<Extension>("in-sync");
            }
        }
    }

    #[test]
    fn another_drift_is_corrected_around_the_certificate() {
        let desired = hook(ASKS, "Fail", r#","caBundle":"Cg==""#);
        let run =
            Case::new().desired(desired).live(hook(ASKS, "Ignore", BUNDLE)).run::<Extension>();
        let expected = "apply-desired without /webhooks/[name=a.b.c]/clientConfig/caBundle\n";
        assert!(run.ends_with(expected), "{run}");
    }

    #[test]
    fn a_declared_certificate_is_held_unless_another_one_is_asked_for() {
        let declared = r#","caBundle":"QUFBQQ==""#;
        let case = Case::new().desired(hook("", "Fail", declared)).live(hook("", "Fail", BUNDLE));
        let run = case.run::<Extension>();
        assert!(run.ends_with("apply-desired\n"), "{run}");
        let case = Case::new().desired(hook(ASKS, "Fail", declared));
        let run = case.live(hook(ASKS, "Ignore", BUNDLE)).run::<Extension>();
        assert!(run.contains("finding info ca-bundle-injected"), "{run}");
    }

    #[test]
    fn a_certificate_is_applied_where_the_object_is_not_there_yet() {
        let run = Case::new().desired(hook(ASKS, "Fail", BUNDLE)).run::<Extension>();
        assert!(run.ends_with("apply-desired\n"), "{run}");
    }

    #[test]
    fn a_version_that_is_still_stored_cannot_be_taken_out() {
        let definition = |version: &str, status: &str| {
            format!(
                r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
                "metadata":{{"name":"as.b.c"}},"spec":{{"versions":[{{"name":"{version}"}}]}}{status}}}"#
            )
        };
        let live = definition("v1", r#","status":{"storedVersions":["v1"]}"#);
        let run = Case::new().desired(definition("v2", "")).live(&live).run::<Extension>();
        assert!(
            run.starts_with("invalid: stored_version: objects are still stored as v1"),
            "{run}"
        );
        Case::new().desired(definition("v1", "")).live(live).check::<Extension>("in-sync");
    }
}

//! Plugins that ask for what nobody granted them, with every action granted on what they may touch:
//! each does what it may and nothing besides.

use super::arena::{KINDS, TRIAL, Trial, Wants, trial};
use crate::world::Test;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use trimtab_system_tests::Id;

const OTHER_OBJECT: &str = "ContentOfAnotherObject";
const HOST_OWNED: &str = "HostOwnedField";
const DENIED: &str = "HardDenial";

fn counts(all: &[(&str, usize)]) -> BTreeMap<String, usize> {
    all.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect()
}

/// A trial object `a` whose guest asks for this: all but its own object is refused for these
/// reasons, so often. Gives the trial, and the object as the server has it.
async fn applied_alone(
    number: u8,
    behaviour: &str,
    reasons: &[(&str, usize)],
) -> Result<(Trial, Value)> {
    let mut trial = Trial::begin(number).await?;
    trial.serve(&Wants::default()).await?;
    let mut object = trial.object(TRIAL, "a", behaviour, "");
    object["spec"] = json!({"declared": true});
    trial.declare(std::slice::from_ref(&object)).await?;
    let found = trial.reasons(&object, "created").await?;
    ensure!(found == counts(reasons), "refused: {found:?}");
    let id = Id::of(&object).context("the object's name")?;
    let live = trial.cluster.api().require(&id).await?;
    ensure!(live["spec"] == object["spec"], "it is not as declared: {live}");
    ensure!(live["status"].is_null(), "nobody declared a status: {live}");
    Ok((trial, live))
}

fn trials(trial: &Trial) -> String {
    format!("trials.hostile.example {}/a", trial.name)
}

/// Objects of these kinds are asked for, and the gate denies each whole.
async fn denied(trial: &mut Trial, objects: &[Value], reasons: &[&str]) -> Result<()> {
    trial.declare(objects).await?;
    for object in objects {
        let found = trial.reasons(object, "refused").await?;
        let only = found.keys().all(|reason| reasons.contains(&reason.as_str()));
        ensure!(only && !found.is_empty(), "{object}: refused for {found:?}");
        let id = Id::of(object).context("a name")?;
        ensure!(trial.cluster.api().get(&id).await?.is_none(), "{id} is there");
    }
    Ok(())
}

#[test]
pub(super) fn a_kind_that_was_not_granted_is_not_written() -> Test {
    trial(async || {
        let mut trial = Trial::begin(17).await?;
        let wants = Wants { claims: &KINDS[..2], kinds: &[TRIAL], ..Wants::default() };
        trial.serve(&wants).await?;
        let granted = trial.object(TRIAL, "a", "ungranted-kind", "");
        let other = trial.object(KINDS[1], "a", "ungranted-kind", "");
        trial.declare(&[granted.clone(), other.clone()]).await?;
        let found = trial.reasons(&granted, "created").await?;
        ensure!(found == counts(&[(OTHER_OBJECT, 3)]), "refused: {found:?}");
        let found = trial.reasons(&other, "refused").await?;
        ensure!(found.contains_key("KindNotGranted"), "refused: {found:?}");
        let secret = Id::new("v1", "Secret", &trial.name, "a");
        ensure!(trial.cluster.api().get(&secret).await?.is_none(), "a Secret was made");
        let allowed = [trials(&trial)];
        trial.end(&allowed).await
    })
}

#[test]
pub(super) fn another_namespace_is_not_written() -> Test {
    trial(async || {
        let mut trial = Trial::begin(18).await?;
        trial.serve(&Wants::default()).await?;
        let inside = trial.object(TRIAL, "a", "cross-namespace", "");
        let mut outside = inside.clone();
        outside["metadata"]["namespace"] = format!("{}-out", trial.name).into();
        trial.declare(&[inside.clone(), outside.clone()]).await?;
        let found = trial.reasons(&inside, "created").await?;
        ensure!(found == counts(&[(OTHER_OBJECT, 4)]), "refused: {found:?}");
        let found = trial.reasons(&outside, "refused").await?;
        ensure!(found.contains_key("NamespaceNotGranted"), "refused: {found:?}");
        let allowed = [trials(&trial)];
        trial.end(&allowed).await
    })
}

#[test]
pub(super) fn a_namespace_does_not_bring_a_cluster_scoped_kind_within_reach() -> Test {
    trial(async || {
        let mut trial = Trial::begin(19).await?;
        let kind = "PriorityClass.scheduling.k8s.io";
        trial.serve(&Wants { claims: &[kind], ..Wants::default() }).await?;
        let mut class = trial.object(kind, &trial.name, "cluster-scope", "");
        class["value"] = json!(1);
        trial.declare(std::slice::from_ref(&class)).await?;
        let mut at_cluster = class.clone();
        at_cluster["metadata"]["namespace"] = "".into();
        let found = trial.reasons(&at_cluster, "refused").await?;
        ensure!(found == counts(&[("ClusterScopeNotGranted", 2)]), "refused: {found:?}");
        let there = trial.cluster.api().get(&Id::of(&class).context("a name")?).await?;
        ensure!(there.is_none(), "it is there: {there:?}");
        trial.end(&[]).await
    })
}

#[test]
pub(super) fn another_spelling_of_a_kind_or_a_subresource_is_another_object() -> Test {
    trial(async || {
        let (trial, live) =
            applied_alone(20, "aliases", &[(OTHER_OBJECT, 9), (HOST_OWNED, 2)]).await?;
        ensure!(live["spec"]["replicas"].is_null(), "{live}");
        let allowed = [trials(&trial)];
        trial.end(&allowed).await
    })
}

#[test]
pub(super) fn a_name_that_is_none_is_not_written_and_not_corrected_into_one() -> Test {
    trial(async || {
        let (trial, _) = applied_alone(21, "names", &[(OTHER_OBJECT, 10), (HOST_OWNED, 1)]).await?;
        let all = trial.cluster.api().list("hostile.example/v1", "Trial").await?;
        let named: Vec<_> = all.iter().map(|it| &it["metadata"]["name"]).collect();
        ensure!(!named.iter().any(|it| it.to_string().contains("victim")), "{named:?}");
        let allowed = [trials(&trial)];
        trial.end(&allowed).await
    })
}

#[test]
pub(super) fn a_list_around_an_object_is_refused_and_a_key_that_stands_twice_is_a_fault() -> Test {
    trial(async || {
        let mut trial = Trial::begin(22).await?;
        trial.serve(&Wants::default()).await?;
        let list = trial.object(TRIAL, "a", "wrappers", "list");
        let twice = trial.object(TRIAL, "b", "wrappers", "twice");
        trial.declare(&[list.clone(), twice.clone()]).await?;
        let found = trial.reasons(&list, "created").await?;
        ensure!(found == counts(&[(OTHER_OBJECT, 3)]), "refused: {found:?}");
        // The whole answer is refused: what was right in it is not done either.
        trial.faults(&twice, "twice").await?;
        let allowed = [trials(&trial)];
        trial.end(&allowed).await
    })
}

#[test]
pub(super) fn rights_are_not_written_without_a_second_word() -> Test {
    trial(async || {
        let mut trial = Trial::begin(23).await?;
        let rbac = "rbac.authorization.k8s.io";
        let kinds = ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]
            .map(|kind| format!("{kind}.{rbac}"));
        let claims = kinds.each_ref().map(|kind| &**kind);
        trial.serve(&Wants { claims: &claims, cluster_scoped: true, ..Wants::default() }).await?;
        let mut objects: Vec<Value> =
            kinds.iter().map(|kind| trial.object(kind, &trial.name, "escalation", "")).collect();
        for object in &mut objects {
            match object["kind"].as_str() {
                Some("Role" | "ClusterRole") => {
                    object["rules"] = json!([{"apiGroups": [""], "resources": ["pods"],
                        "verbs": ["get"]}]);
                }
                _ => {
                    object["roleRef"] =
                        json!({"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"});
                    object["subjects"] = json!([{"kind": "User", "apiGroup": rbac, "name": "eve"}]);
                }
            }
        }
        for object in &mut objects[2..] {
            object["metadata"].as_object_mut().context("metadata")?.remove("namespace");
        }
        denied(&mut trial, &objects, &[DENIED, "RecreateNotAllowed"]).await?;
        trial.end(&[]).await
    })
}

#[test]
pub(super) fn a_pod_that_gets_out_of_its_walls_is_not_written_in_any_place_of_a_template() -> Test {
    trial(async || {
        let mut trial = Trial::begin(24).await?;
        let kinds = ["Deployment.apps", "CronJob.batch", "Pod"];
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": trial.name}});
        trial.cluster.api().apply(&account).await?;
        trial.serve(&Wants { claims: &kinds, ..Wants::default() }).await?;
        let [mut web, mut job, mut pod] =
            kinds.map(|kind| trial.object(kind, "a", "privileged-pods", ""));
        let spec = json!({"containers": [{"name": "x", "image": "x"}]});
        let labels = json!({"app": "a"});
        let template = json!({"metadata": {"labels": labels}, "spec": spec});
        web["spec"] = json!({"selector": {"matchLabels": labels}, "template": template});
        let mut once = template.clone();
        once["spec"]["restartPolicy"] = "Never".into();
        job["spec"] = json!({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": once}}});
        pod["spec"] = spec;
        let objects = [web, job, pod];
        trial.declare(&objects).await?;
        for object in &objects {
            let found = trial.reasons(object, "created").await?;
            // Of each template's ways out, one refusal or more.
            let all = found.get(DENIED).copied().unwrap_or_default() >= 8 && found.len() == 1;
            ensure!(all, "{object}: refused for {found:?}");
            let live = trial.cluster.api().require(&Id::of(object).context("a name")?).await?;
            let text = live["spec"].to_string();
            for word in ["hostPID", "hostNetwork", "hostIPC", "hostPath", "privileged", "SYS_ADMIN"]
            {
                ensure!(
                    !text.contains(&format!("{word:?}:true")) && !text.contains("hostPath"),
                    "{live}"
                );
            }
        }
        let name = &trial.name;
        let allowed = [
            format!("deployments.apps {name}/a"),
            format!("cronjobs.batch {name}/a"),
            format!("pods {name}/a"),
        ];
        trial.end(&allowed).await
    })
}

#[test]
pub(super) fn somebody_elses_service_account_or_token_is_not_taken() -> Test {
    trial(async || {
        let mut trial = Trial::begin(25).await?;
        let kinds = ["Deployment.apps", "Secret"];
        trial.serve(&Wants { claims: &kinds, ..Wants::default() }).await?;
        let [mut web, mut secret] =
            kinds.map(|kind| trial.object(kind, "a", "foreign-identity", ""));
        let labels = json!({"app": "a"});
        web["spec"] = json!({"selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "x", "image": "x"}]}}});
        secret["data"] = json!({"a": "YQ=="});
        trial.declare(&[web.clone(), secret.clone()]).await?;
        let found = trial.reasons(&web, "created").await?;
        ensure!(found == counts(&[(DENIED, 2), (OTHER_OBJECT, 2)]), "refused: {found:?}");
        let found = trial.reasons(&secret, "created").await?;
        ensure!(found == counts(&[(DENIED, 2)]), "refused: {found:?}");
        let live = trial.cluster.api().require(&Id::of(&secret).context("a name")?).await?;
        ensure!(live["type"] == "Opaque", "{live}");
        let allowed =
            [format!("deployments.apps {}/a", trial.name), format!("secrets {}/a", trial.name)];
        trial.end(&allowed).await
    })
}

#[test]
pub(super) fn what_hands_out_power_is_not_written_without_a_second_word() -> Test {
    trial(async || {
        let mut trial = Trial::begin(26).await?;
        let kinds = [
            "ValidatingWebhookConfiguration.admissionregistration.k8s.io",
            "MutatingWebhookConfiguration.admissionregistration.k8s.io",
            "ValidatingAdmissionPolicy.admissionregistration.k8s.io",
            "CustomResourceDefinition.apiextensions.k8s.io",
            "APIService.apiregistration.k8s.io",
            "CertificateSigningRequest.certificates.k8s.io",
            "PersistentVolume",
        ];
        trial.serve(&Wants { claims: &kinds, cluster_scoped: true, ..Wants::default() }).await?;
        let objects: Vec<Value> = kinds
            .iter()
            .map(|kind| {
                let mut object = trial.object(kind, &trial.name, "power-kinds", "");
                if let Some(metadata) = object["metadata"].as_object_mut() {
                    metadata.remove("namespace");
                }
                object
            })
            .collect();
        denied(&mut trial, &objects, &[DENIED, "RecreateNotAllowed"]).await?;
        trial.end(&[]).await
    })
}

#[test]
pub(super) fn a_namespace_is_not_opened_for_privileged_pods() -> Test {
    trial(async || {
        let mut trial = Trial::begin(27).await?;
        trial
            .serve(&Wants { claims: &["Namespace"], cluster_scoped: true, ..Wants::default() })
            .await?;
        let label = "pod-security.kubernetes.io/enforce";
        let name = &format!("{}-held", trial.name);
        let held = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {label: "restricted"}}});
        trial.cluster.api().apply(&held).await?;
        let mut object = trial.object("Namespace", name, "namespace-labels", "");
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("namespace");
        }
        trial.declare(std::slice::from_ref(&object)).await?;
        let found = trial.reasons(&object, "corrected").await?;
        ensure!(found == counts(&[(DENIED, 4)]), "refused: {found:?}");
        let live = trial.cluster.api().require(&Id::of(&held).context("a name")?).await?;
        let labels = &live["metadata"]["labels"];
        ensure!(labels[label] == "restricted", "{live}");
        ensure!(labels["pod-security.kubernetes.io/warn"].is_null(), "{live}");
        // Of a namespace the audit log says that it lies in itself.
        trial.end(&[format!("namespaces {name}/{name}")]).await
    })
}

#[test]
pub(super) fn an_object_is_not_given_an_owner_by_a_plugin() -> Test {
    trial(async || {
        let (trial, live) = applied_alone(28, "owner-references", &[(HOST_OWNED, 3)]).await?;
        ensure!(live["metadata"]["ownerReferences"].is_null(), "{live}");
        let allowed = [trials(&trial)];
        trial.end(&allowed).await
    })
}

#[test]
pub(super) fn a_finalizer_is_neither_set_nor_taken_by_a_plugin() -> Test {
    trial(async || {
        let mut trial = Trial::begin(29).await?;
        trial.serve(&Wants::default()).await?;
        let mut object = trial.object(TRIAL, "a", "finalizers", "");
        object["spec"] = json!({"declared": true});
        let mut held = object.clone();
        held["metadata"]["finalizers"] = json!(["held.example/wait"]);
        held["spec"] = json!({"declared": false});
        let id = Id::of(&object).context("the object's name")?;
        trial.cluster.api().create(&held).await?;
        trial.declare(std::slice::from_ref(&object)).await?;
        let found = trial.reasons(&object, "corrected").await?;
        ensure!(found == counts(&[(HOST_OWNED, 3)]), "refused: {found:?}");
        let live = trial.cluster.api().require(&id).await?;
        ensure!(live["metadata"]["finalizers"] == json!(["held.example/wait"]), "{live}");
        ensure!(live["spec"]["declared"] == true, "{live}");
        let allowed = [trials(&trial)];
        trial.end(&allowed).await
    })
}

#[test]
pub(super) fn bookkeeping_that_a_plugin_writes_is_refused_and_told() -> Test {
    trial(async || {
        let (trial, live) = applied_alone(30, "bookkeeping", &[(HOST_OWNED, 8)]).await?;
        let annotations = live["metadata"]["annotations"].to_string();
        ensure!(!annotations.contains("trimtab.dev/"), "{live}");
        ensure!(live["metadata"]["labels"].is_null(), "{live}");
        let told = trial.lines()?.iter().any(|line| {
            let findings = line.0["findings"].as_array().into_iter().flatten();
            findings.filter(|it| it["name"] == "plugin-overstepped").count() >= 8
        });
        ensure!(told, "no finding says that the plugin overstepped");
        let allowed = [trials(&trial)];
        trial.end(&allowed).await
    })
}

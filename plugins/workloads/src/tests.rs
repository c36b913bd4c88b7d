//! What is special about workloads, on JSON text.

use crate::Workloads;
use trimtab_sdk::lookup::LookupError;
use trimtab_sdk::testing::Case;

fn desired(replicas: &str) -> String {
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"web","namespace":"shop"}},
        "spec":{{{replicas}"paused":true}}}}"#
    )
}

/// Five replicas, which this manager wrote through this subresource or not.
fn live(manager: &str, subresource: &str, paused: bool) -> String {
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment",
        "metadata":{{"name":"web","namespace":"shop","managedFields":[
          {{"manager":"{manager}","operation":"Update","subresource":"{subresource}",
           "apiVersion":"apps/v1","fieldsType":"FieldsV1",
           "fieldsV1":{{"f:spec":{{"f:replicas":{{}}}}}}}}]}},
        "spec":{{"replicas":5,"paused":{paused}}}}}"#
    )
}

fn autoscaler(target: &str) -> String {
    format!(
        r#"{{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler",
        "metadata":{{"name":"web-scaler","namespace":"shop"}},
        "spec":{{"scaleTargetRef":{{"apiVersion":"apps/v1","kind":"Deployment","name":"{target}"}},
        "minReplicas":2,"maxReplicas":9}}}}"#
    )
}

fn edited(replicas: &str) -> Case {
    Case::new().desired(desired(replicas)).live(live("kubectl-edit", "", true))
}

const CORRECTED: &str = "
    changed /spec/replicas 2 <- 5
    apply-desired
";

#[test]
fn replicas_of_a_workload_that_an_autoscaler_names_are_no_difference() {
    let case = edited(r#""replicas":2,"#);
    case.clone().related("autoscaling", autoscaler("web")).check::<Workloads>("in-sync");
    case.related("autoscaling", autoscaler("other")).check::<Workloads>(CORRECTED);
}

#[test]
fn replicas_that_somebody_wrote_through_the_scale_subresource_are_no_difference() {
    let case = Case::new().desired(desired(r#""replicas":2,"#));
    case.live(live("keda-like", "scale", true)).check::<Workloads>("in-sync");
}

#[test]
fn replicas_that_a_person_scaled_are_corrected() {
    let case = Case::new().desired(desired(r#""replicas":2,"#));
    case.live(live("kubectl", "scale", true)).check::<Workloads>(CORRECTED);
}

#[test]
fn replicas_that_an_autoscaler_left_behind_are_corrected_once_it_is_gone() {
    let case = Case::new().desired(desired(r#""replicas":2,"#));
    let case = case.live(live("kube-controller-manager", "scale", true));
    case.clone().check::<Workloads>(CORRECTED);
    // Who may not look cannot say that it is gone.
    case.no_answer(LookupError::Denied).check::<Workloads>("in-sync");
}

#[test]
fn another_drift_is_corrected_without_the_autoscalers_replicas() {
    let case = Case::new().desired(desired(r#""replicas":2,"#));
    let case = case.live(live("kubectl-edit", "", false));
    case.related("autoscaling", autoscaler("web")).check::<Workloads>(
        "
        changed /spec/paused true <- false
        apply-desired without /spec/replicas
        finding info field-owned-by-autoscaler /spec/replicas
        ",
    );
}

#[test]
fn replicas_that_are_not_stated_need_not_be_left_out() {
    let case = Case::new().desired(desired("")).live(live("x", "scale", false));
    case.check::<Workloads>(
        "
        changed /spec/paused true <- false
        apply-desired
        ",
    );
}

#[test]
fn replicas_outside_of_the_autoscalers_bounds_are_left_and_told() {
    let run = edited(r#""replicas":20,"#).related("autoscaling", autoscaler("web"));
    let run = run.run::<Workloads>();
    assert!(
        run.contains(
            "leave: 20 replicas are declared, and autoscaler web-scaler keeps from 2 to 9"
        ),
        "{run}"
    );
    assert!(run.ends_with("finding warning replicas-outside-autoscaler /spec/replicas\n"), "{run}");
}

#[test]
fn no_replicas_at_all_pause_an_autoscaler_and_are_held() {
    edited(r#""replicas":0,"#).related("autoscaling", autoscaler("web")).check::<Workloads>(
        "
        changed /spec/replicas 0 <- 5
        apply-desired
        ",
    );
}

#[test]
fn without_an_answer_replicas_are_unknown_and_everything_else_goes_on() {
    let unavailable = LookupError::Unavailable("it has not been listed yet".into());
    let run = edited(r#""replicas":2,"#).no_answer(unavailable.clone()).run::<Workloads>();
    assert!(run.starts_with("unknown: a related object could not be read"), "{run}");
    let case = Case::new().desired(desired(r#""replicas":5,"#)).live(live("x", "", false));
    case.no_answer(unavailable).check::<Workloads>(
        "
        changed /spec/paused true <- false
        apply-desired
        ",
    );
    edited(r#""replicas":2,"#).no_answer(LookupError::Denied).check::<Workloads>(
        "
        changed /spec/replicas 2 <- 5
        apply-desired
        finding info autoscalers-not-readable /spec/replicas
        ",
    );
}

#[test]
fn replicas_that_are_stated_no_longer_are_handed_to_the_autoscaler() {
    let ours = live("trimtab", "", true)
        .replace(r#""operation":"Update""#, r#""operation":"Apply""#)
        .replace(r#""subresource":"","#, "");
    let case = Case::new().desired(desired("")).live(ours);
    let run = case.related("autoscaling", autoscaler("web")).run::<Workloads>();
    assert!(run.ends_with("released /spec/replicas <- 5\napply-desired\n"), "{run}");
}

fn job(image: &str, more: &str) -> String {
    format!(
        r#"{{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"j","namespace":"shop",
        "annotations":{{"trimtab.dev/on-immutable":"recreate"}}}},
        "spec":{{{more}"template":{{"spec":{{"nodeSelector":{{"disk":"{image}"}},"restartPolicy":"Never"}}}}}}}}"#
    )
}

/// The type's facts as far as these tests need them.
fn job_facts() -> Vec<u8> {
    let schema = r##"{"components":{"schemas":{"io.k8s.api.batch.v1.Job":{"type":"object",
        "x-kubernetes-group-version-kind":[{"group":"batch","kind":"Job","version":"v1"}],
        "properties":{"spec":{"$ref":"#/components/schemas/io.k8s.api.batch.v1.JobSpec"}}},
        "io.k8s.api.batch.v1.JobSpec":{"type":"object","properties":{"template":{"type":"object",
        "x-kubernetes-preserve-unknown-fields":true}}}}}}"##;
    let schema = trimtab_sdk::json::parse(schema.as_bytes()).unwrap();
    trimtab_sdk::comparison::facts::build(&schema, "batch", "v1", "Job").unwrap()
}

#[test]
fn a_job_that_runs_is_not_made_anew_before_it_has_ended() {
    let case = Case::new().desired(job("ssd", "")).facts(job_facts());
    let run = case.clone().live(job("hdd", "")).run::<Workloads>();
    assert!(run.contains("\nrecreate\n"), "{run}");
    let running = job("hdd", "").replacen('{', r#"{"status":{"active":1},"#, 1);
    let run = case.live(running).run::<Workloads>();
    assert!(run.contains("leave: job_is_running"), "{run}");
}

#[test]
fn where_a_suspended_job_runs_can_still_change() {
    let case = Case::new().desired(job("ssd", r#""suspend":true,"#)).facts(job_facts());
    let run = case.live(job("hdd", r#""suspend":true,"#)).run::<Workloads>();
    assert!(run.ends_with("apply-desired\n"), "{run}");
}

#[test]
fn a_job_that_would_run_again_and_again_is_told() {
    let run = Case::new().desired(job("ssd", r#""ttlSecondsAfterFinished":60,"#));
    let run = run.run::<Workloads>();
    assert!(
        run.ends_with(
            "apply-desired\nfinding warning job-runs-again /spec/ttlSecondsAfterFinished\n"
        ),
        "{run}"
    );
}

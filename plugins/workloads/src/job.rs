//! Jobs: what cannot change while one is there, and what it means to make one anew.

use trimtab_sdk::{
    Comparison, Decision, Difference, Finding, Path, Snapshot, Value, Verdict, usual,
};

/// Fields that the API server does not let change, beyond those that the schema's facts name.
const FIXED: [&str; 3] = ["podFailurePolicy", "successPolicy", "manualSelector"];

/// What may change in the template of a Job that is suspended and never ran
/// (batch/validation, mutable scheduling directives).
const OF_SUSPENDED: [&[&str]; 6] = [
    &["spec", "template", "metadata", "labels"],
    &["spec", "template", "metadata", "annotations"],
    &["spec", "template", "spec", "nodeSelector"],
    &["spec", "template", "spec", "affinity"],
    &["spec", "template", "spec", "tolerations"],
    &["spec", "template", "spec", "schedulingGates"],
];

/// Says of each difference whether it can be applied to this Job.
pub(crate) fn with_what_cannot_change<'s>(
    snapshot: &'s Snapshot<'_>,
    comparison: Comparison<'s>,
) -> Comparison<'s> {
    let Some(live) = snapshot.live() else { return comparison };
    let mut fixed: Vec<Path> = FIXED.iter().map(|name| Path::fields(&["spec", name])).collect();
    if live.str_at(&["spec", "completionMode"]) != Some("Indexed") {
        fixed.push(Path::fields(&["spec", "completions"]));
    }
    let mut comparison = comparison.immutable(&fixed);
    let suspended = live.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true);
    if suspended && live.at(&["status", "startTime"]).is_none() {
        let free = OF_SUSPENDED.map(Path::fields);
        for difference in &mut comparison.differences {
            if free.iter().any(|path| difference.path.starts_with(path)) {
                difference.immutable = None;
            }
        }
    }
    comparison
}

/// As usual; a Job that runs is not made anew before it has ended, and one that is made may be
/// made again.
pub(crate) fn decide(snapshot: &Snapshot<'_>, differences: &[Difference<'_>]) -> Verdict {
    let running = snapshot.live().and_then(|live| live.at(&["status", "active"]));
    if running.and_then(Value::as_i64).is_some_and(|active| active > 0)
        && let Some(Decision { actions, .. }) = usual::on_immutable(snapshot, differences, None)
        && actions.contains(&trimtab_sdk::Action::Recreate)
    {
        let reason = "job_is_running: it is to be made anew, and its Pods would be killed: left until they have ended";
        return Decision::new().leave(reason).into();
    }
    let verdict = trimtab_sdk::decide(snapshot, differences);
    let short_lived = snapshot
        .desired()
        .is_some_and(|desired| desired.at(&["spec", "ttlSecondsAfterFinished"]).is_some());
    if snapshot.live().is_some() || !short_lived {
        return verdict;
    }
    verdict.finding(
        Finding::warning(
            "job-runs-again",
            "the Job is removed some time after it has ended (ttlSecondsAfterFinished) and is declared, so it is made and runs again each time: a CronJob says that better",
        )
        .at(Path::fields(&["spec", "ttlSecondsAfterFinished"])),
    )
}

//! Workloads: Deployment, StatefulSet, DaemonSet, ReplicaSet, Job and CronJob.
//!
//! What is special about them: somebody else may own `spec.replicas` (`scaler.rs`), and a Job's
//! template cannot change while the Job is there (`job.rs`). Selectors, claim templates and the
//! defaults of every field are the comparison's knowledge.

mod job;
mod scaler;

use trimtab_sdk::{
    Comparison, Decision, Difference, DifferenceKind, NoComparison, Path, Reconciler, Snapshot,
    Verdict,
};

/// Reconciles workloads.
pub struct Workloads;

impl Reconciler for Workloads {
    fn compare<'s>(snapshot: &'s Snapshot<'_>) -> Result<Comparison<'s>, NoComparison> {
        let comparison = trimtab_sdk::compare(snapshot)?;
        if snapshot.id().kind == "Job" {
            return Ok(job::with_what_cannot_change(snapshot, comparison));
        }
        let replicas = replicas();
        // Whoever asks nothing is not woken by every autoscaler.
        if !comparison.touches(&replicas) || !scaler::is_scalable(snapshot) {
            return Ok(comparison);
        }
        let scaler = scaler::of(snapshot)?.scaler;
        let theirs = |difference: &Difference<'_>| {
            difference.path == replicas && difference.kind != DifferenceKind::Released
        };
        Ok(match scaler {
            Some(scaler) if !scaler.contradicts(snapshot) => comparison.except(theirs),
            _ => comparison,
        })
    }

    fn decide(snapshot: &Snapshot<'_>, differences: &[Difference<'_>]) -> Verdict {
        if snapshot.id().kind == "Job" {
            return job::decide(snapshot, differences);
        }
        let replicas = replicas();
        let differ = differences.iter().find(|each| each.path == replicas);
        let stated = scaler::stated(snapshot).is_some();
        if !scaler::is_scalable(snapshot) || (differ.is_none() && !stated) {
            return trimtab_sdk::decide(snapshot, differences);
        }
        let found = match scaler::of(snapshot) {
            Ok(found) => found,
            Err(unknown) if differ.is_some() => return unknown.into(),
            // They are as stated: to apply them changes nothing, whoever owns them.
            Err(_) => return trimtab_sdk::decide(snapshot, differences),
        };
        let Some(scaler) = found.scaler else {
            let verdict = trimtab_sdk::decide(snapshot, differences);
            return match differ {
                Some(_) if found.unread => verdict.finding(scaler::not_readable()),
                _ => verdict,
            };
        };
        // The host hands them over as they are, so that nothing is set to 1 meanwhile.
        if differ.is_some_and(|each| each.kind == DifferenceKind::Released) {
            return trimtab_sdk::decide(snapshot, differences);
        }
        let finding = scaler.finding(snapshot);
        if differences.iter().all(|each| each.path == replicas) {
            return Decision::new().leave(finding.message.clone()).finding(finding).into();
        }
        let verdict = trimtab_sdk::decide_without(snapshot, differences, &[replicas]);
        if stated { verdict.finding(finding) } else { verdict }
    }
}

trimtab_sdk::export!(Workloads);

fn replicas() -> Path {
    Path::fields(&["spec", "replicas"])
}

#[cfg(test)]
mod tests;

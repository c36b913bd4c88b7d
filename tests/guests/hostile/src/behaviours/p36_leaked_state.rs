//! Keeps what it saw of one tenant, and tells another of it.

use std::sync::Mutex;
use trimtab_sdk::{Decision, Finding, Snapshot, Verdict};

static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    let id = snapshot.id();
    let desired = snapshot.desired();
    let canary = desired.and_then(|it| it.str_at(&["spec", "canary"])).unwrap_or_default();
    let Ok(mut seen) = SEEN.lock() else { return Verdict::unknown("poisoned") };
    let told = seen.join(" ");
    seen.push(format!("{}/{}: {canary}", id.namespace, id.name));
    let seen_now = format!("{} were seen before: {told}", seen.len() - 1);
    Decision::new().apply_desired().finding(Finding::info("seen", seen_now)).into()
}

//! Suspension: an object that a person wants left alone for a while.
//!
//! By an annotation of the object, desired or live, or because its source or its plugin is
//! suspended. What somebody changed meanwhile is told in a pass of its own before the first
//! correction, so that it is in the journal with who and when before it is gone.

use crate::decision::{Difference, Finding, Severity};
use crate::object::{Desired, LiveObject};
use crate::pass::{Bounds, LOOK_AGAIN_AT_LEAST};
use crate::record::{Outcome, Record};
use crate::snapshot::Snapshot;

/// The annotation: `suspended`, or `enabled` on the desired object, which a live one cannot undo.
const ANNOTATION: &str = "trimtab.dev/reconcile";
/// Name of the finding.
const CHANGED: &str = "changed-while-suspended";

/// Why the object is not looked at, if so.
pub(crate) fn of(snapshot: &Snapshot, bounds: &Bounds) -> Option<String> {
    if bounds.despite_suspension {
        return None;
    }
    if let Some(why) = &bounds.suspended {
        return Some(why.clone());
    }
    let Desired { json, origin, .. } = &*snapshot.desired;
    if let Some(value) = annotated(json) {
        return suspended(&value, &format!("in {origin}"));
    }
    let LiveObject { json, .. } = snapshot.live_object()?;
    suspended(&annotated(json)?, "on the live object")
}

/// Whoever writes another word means to have it left alone.
fn suspended(value: &str, place: &str) -> Option<String> {
    match value {
        "enabled" => None,
        "suspended" => Some(format!("annotation {ANNOTATION} {place} says so")),
        other => Some(format!(
            "annotation {ANNOTATION} {place} is {other:?}, which is neither suspended nor enabled: taken as suspended"
        )),
    }
}

/// The annotation's value. Most objects have none, and are not parsed for that.
fn annotated(json: &[u8]) -> Option<String> {
    let (first, name) = (ANNOTATION.as_bytes()[0], ANNOTATION.as_bytes());
    json.windows(name.len()).find(|window| window[0] == first && *window == name)?;
    let object = trimtab_json::parse(json).ok()?;
    object.str_at(&["metadata", "annotations", ANNOTATION]).map(str::to_owned)
}

/// Ends the first pass after a suspension with what somebody changed since `since` (RFC 3339, to
/// the second), if it is known that somebody did.
///
/// # Errors
/// The outcome of such a pass: the correction is the next one's.
pub(crate) fn tell(
    snapshot: &Snapshot,
    since: Option<&str>,
    record: &mut Record,
) -> Result<(), Outcome> {
    let Some(since) = since else { return Ok(()) };
    let what = match snapshot.live_object() {
        Some(_) => {
            let theirs: Vec<String> =
                record.differences.iter().filter_map(|it| by_others(it, since)).collect();
            theirs.join(", ")
        }
        None if snapshot.applied_uid.is_some() => "the object was deleted".into(),
        None => String::new(),
    };
    if what.is_empty() {
        return Ok(());
    }
    record.findings.push(Finding {
        name: CHANGED.into(),
        severity: Severity::Warning,
        message: format!("while it was suspended (since {since}): {what}"),
        path: record.differences.first().map(|difference| difference.path.clone()),
    });
    Err(Outcome::Deferred {
        reason: "what changed while it was suspended is told before it is corrected".into(),
        after: LOOK_AGAIN_AT_LEAST,
    })
}

/// The difference in words, if somebody else wrote it since. Times are to the second, in UTC.
fn by_others(difference: &Difference, since: &str) -> Option<String> {
    let writer = difference.managers.first().filter(|manager| !manager.is_ours())?;
    let path = if difference.path.is_empty() { "the object" } else { &difference.path };
    (writer.time.as_str() >= since).then(|| format!("{path} by {} at {}", writer.name, writer.time))
}

//! What a request that failed means to the pass.

use crate::decision::{Difference, Manager};
use crate::ports::{ApplyError, OwnedField};
use crate::record::Outcome;

/// A rehearsal that did not happen: the drift is not confirmed, so it is never corrected, and
/// the object is never called in sync.
pub(crate) fn not_confirmed(error: ApplyError, seen: &[Difference]) -> Outcome {
    match error {
        ApplyError::Forbidden(message) | ApplyError::NoDryRun(message) => {
            Outcome::Unknown(format!(
                "{} differences were seen and cannot be confirmed by a dry run: {message}",
                seen.len()
            ))
        }
        other => not_written(other, seen),
    }
}

pub(crate) fn not_written(error: ApplyError, seen: &[Difference]) -> Outcome {
    match error {
        ApplyError::Conflict(fields) => Outcome::Conflict(conflicting(&fields, seen)),
        ApplyError::Stale(_) => Outcome::Stale,
        ApplyError::NotYet(message) => Outcome::Waiting(message),
        ApplyError::Rejected(message)
        | ApplyError::NoDryRun(message)
        | ApplyError::ManagedInUnserved { message, .. }
        | ApplyError::Immutable { message, .. } => Outcome::Rejected(message),
        ApplyError::Forbidden(message) => {
            Outcome::Failed { message: format!("forbidden: {message}"), retry_after: None }
        }
        ApplyError::Unavailable { message, retry_after } => {
            Outcome::Failed { message, retry_after }
        }
    }
}

/// The managers that the server names, each once, with what managedFields tells of them.
fn conflicting(fields: &[OwnedField], seen: &[Difference]) -> Vec<Manager> {
    let mut managers: Vec<Manager> = Vec::new();
    for field in fields {
        if managers.iter().any(|manager| manager.name == field.manager) {
            continue;
        }
        let known = seen.iter().flat_map(|d| &d.managers).find(|m| m.name == field.manager);
        managers.push(known.cloned().unwrap_or_else(|| Manager {
            name: field.manager.clone(),
            operation: String::new(),
            subresource: String::new(),
            time: String::new(),
        }));
    }
    managers
}

//! Lines for people: what a pass found and did, and how a round ended.

use std::fmt::Write as _;
use std::time::Duration;
use trimtab_core::decision::Difference;
use trimtab_core::record::{Outcome, Record};

/// Longest value that is shown in a log line, in characters: a line stays a line.
const VALUE_CHARS_AT_MOST: usize = 60;
/// Differences that a log line shows; the journal has them all.
const DIFFERENCES_AT_MOST: usize = 4;

/// Logs a pass that found or did something.
pub(super) fn log(record: &Record, since_event: Option<Duration>) {
    let text = line(record, since_event);
    match &record.outcome {
        Outcome::InSync | Outcome::InSyncByServer | Outcome::Stale => tracing::debug!("{text}"),
        Outcome::Created
        | Outcome::Corrected
        | Outcome::Observed
        | Outcome::Left(_)
        | Outcome::Suspended(_)
        | Outcome::Deferred { .. }
        | Outcome::Waiting(_) => tracing::info!("{text}"),
        Outcome::Unknown(_)
        | Outcome::Refused
        | Outcome::Conflict(_)
        | Outcome::Rejected(_)
        | Outcome::Failed { .. }
        | Outcome::Fault(_)
        | Outcome::NotKept(_)
        | Outcome::OverBudget { .. }
        | Outcome::AwaitingApproval { .. }
        | Outcome::Denied { .. }
        | Outcome::Contested { .. } => tracing::warn!("{text}"),
    }
    for finding in &record.findings {
        tracing::warn!("finding {} on {}: {}", finding.name, record.key, finding.message);
    }
}

fn line(record: &Record, since_event: Option<Duration>) -> String {
    let verb = match record.outcome {
        Outcome::Observed if record.live_uid.is_none() => "would create",
        Outcome::Observed => "would correct",
        ref other => other.as_str(),
    };
    let mut text = format!("{verb} {}", record.key);
    if let Some(since) = since_event
        && record.outcome.converged()
    {
        let _ = write!(text, " {} ms after the event", since.as_millis());
    }
    let message = record.outcome.message();
    if !message.is_empty() {
        let _ = write!(text, ": {message}");
    }
    for refusal in &record.refusals {
        let _ = write!(text, "; {refusal}");
    }
    if record.outcome != Outcome::Created && record.live_uid.is_some() {
        for difference in record.differences.iter().take(DIFFERENCES_AT_MOST) {
            let _ = write!(text, "; {}", difference_text(difference));
        }
        let more = record.differences.len().saturating_sub(DIFFERENCES_AT_MOST);
        if more > 0 {
            let _ = write!(text, "; and {more} more");
        }
    }
    text
}

/// One difference on one line: path, values, who.
fn difference_text(difference: &Difference) -> String {
    let path = if difference.path.is_empty() { "the object" } else { &difference.path };
    let value = |json: &Option<Vec<u8>>| match json {
        Some(bytes) => shortened(&String::from_utf8_lossy(bytes)),
        None => "absent".into(),
    };
    let mut text = match (&difference.desired, difference.path.is_empty()) {
        (_, true) => format!("{path} is {}", difference.kind.as_str()),
        (None, _) => format!("{path} is {} and not declared", value(&difference.live)),
        _ => format!(
            "{path} is {} and should be {}",
            value(&difference.live),
            value(&difference.desired)
        ),
    };
    if let Some(manager) = difference.managers.first() {
        let us = if manager.is_ours() { "us, as " } else { "" };
        let _ = write!(text, " (written by {us}{}", manager.name);
        if !manager.time.is_empty() {
            let _ = write!(text, " at {}", manager.time);
        }
        text.push_str(", according to managedFields)");
    }
    text
}

fn shortened(value: &str) -> String {
    if value.chars().count() <= VALUE_CHARS_AT_MOST {
        return value.to_owned();
    }
    let mut short: String = value.chars().take(VALUE_CHARS_AT_MOST).collect();
    short.push('…');
    short
}

//! `fight`: two write one field in turns, and we have stopped (`crate::fight` decides when).

use super::{Name, Observation, Subject};
use crate::decision::Severity;
use crate::fight::Rounds;
use crate::record::{Outcome, Record};

/// What is told of a pass that stood off: who, over what, how often.
pub fn of_record(record: &Record, rounds: Option<Rounds>) -> Option<Observation> {
    let Outcome::Contested { reason, .. } = &record.outcome else { return None };
    let managers = record.differences.iter().flat_map(|difference| &difference.managers);
    let mut others: Vec<&str> =
        managers.filter(|it| !it.is_ours()).map(|it| it.name.as_str()).collect();
    others.sort_unstable();
    others.dedup();
    let paths: Vec<&str> = record.differences.iter().map(|it| it.path.as_str()).collect();
    let (who, paths) = (others.join(", "), paths.join(", "));
    let subject = Subject::Object(record.key.clone());
    let text = format!("{}: {reason}", record.key);
    let mut told = Observation::new(Name::Fight, Severity::Warning, subject, text, record.at_ms)
        .about(format!("{who} {paths}"))
        .with("paths", paths)
        .with("with", who)
        .with("uid", record.live_uid.as_deref().unwrap_or_default());
    if let Some(Rounds { count, first_ms, last_ms }) = rounds {
        let seconds = last_ms.saturating_sub(first_ms).div_ceil(1000);
        told = told.with("rounds", format!("{count} corrections within {seconds} s"));
    }
    Some(told)
}

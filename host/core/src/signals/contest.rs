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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::edit::samples::{difference, record};
    use std::time::Duration;

    #[test]
    fn a_standoff_is_told_with_the_others_the_paths_and_how_often_and_nothing_else_is() {
        let mut record = record();
        record.differences =
            vec![difference("/a", &["mallory", "trimtab"]), difference("/b", &["alice"])];
        let rounds = Some(Rounds { count: 10, first_ms: 1_000, last_ms: 61_500 });
        assert_eq!(of_record(&record, rounds), None);
        record.outcome =
            Outcome::Contested { reason: "again".into(), after: Duration::from_secs(1) };
        let told = of_record(&record, rounds).unwrap();
        let of = |name: &str| told.evidence.iter().find(|(it, _)| *it == name).map(|(_, it)| &**it);
        assert_eq!((of("with"), of("paths")), (Some("alice, mallory"), Some("/a, /b")));
        assert_eq!(of("rounds"), Some("10 corrections within 61 s"));
        assert_eq!(of("uid"), Some("u"));
    }
}

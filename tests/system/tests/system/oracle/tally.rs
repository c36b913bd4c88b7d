//! What came of the pairs: counted by kind, and the disagreements told so that they can be repeated.

use super::exceptions;
use super::schema::Schema;
use serde_json::Value;
use std::collections::BTreeMap;
use trimtab_json::{Path, Step};

/// In which direction we and the server disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wrong {
    /// We see a difference where an apply changes nothing.
    FalseAlarm,
    /// An apply changes something that we do not see.
    Missed,
    /// We call desired invalid, and the server takes it.
    Refused,
    /// The server refuses desired, and we see nothing that it could be about.
    Overlooked,
    /// Desired was applied, and we still see a difference.
    Left,
}

/// One disagreement.
pub(super) struct Case<'c> {
    pub(super) wrong: Wrong,
    pub(super) kind: &'c str,
    pub(super) path: &'c Path,
    /// All that desired states.
    pub(super) object: &'c Value,
    pub(super) desired: Option<&'c Value>,
    pub(super) live: Option<&'c Value>,
    /// What the dry run has there; or, as text, what either says of it.
    pub(super) answer: Option<&'c Value>,
    pub(super) text: &'c str,
    pub(super) schema: Option<Schema<'c>>,
    /// Who owns what of live.
    pub(super) managed: &'c Value,
    /// What was done to the seed.
    pub(super) mutations: &'c [String],
}

/// Counts of one kind.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) pairs: usize,
    pub(super) in_sync: usize,
    pub(super) drift: usize,
    pub(super) rejected: usize,
    /// Of those: we told that the field is fixed, unknown, or of a wrong type.
    pub(super) foretold: usize,
    pub(super) false_alarms: usize,
    pub(super) missed: usize,
    pub(super) excepted: usize,
    pub(super) in_sandbox: usize,
    pub(super) applied: usize,
}

/// All that came of it.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) kinds: BTreeMap<String, Counts>,
    pub(super) excepted: BTreeMap<&'static str, usize>,
    /// Where: an exception, a kind and the fields that lead to the place.
    places: BTreeMap<String, usize>,
    pub(super) disagreements: Vec<String>,
}

impl Tally {
    pub(super) fn of(&mut self, kind: &str) -> &mut Counts {
        self.kinds.entry(kind.to_owned()).or_default()
    }

    /// A disagreement: an exception, or one to be told.
    pub(super) fn disagree(&mut self, case: &Case<'_>) {
        if let Some(exception) = exceptions::ALL.iter().find(|exception| (exception.is)(case)) {
            *self.excepted.entry(exception.name).or_default() += 1;
            let place =
                format!("{}: {:?} {} {}", exception.name, case.wrong, case.kind, fields(case.path));
            *self.places.entry(place).or_default() += 1;
            self.of(case.kind).excepted += 1;
            return;
        }
        match case.wrong {
            Wrong::Missed | Wrong::Overlooked => self.of(case.kind).missed += 1,
            Wrong::FalseAlarm | Wrong::Refused | Wrong::Left => {
                self.of(case.kind).false_alarms += 1;
            }
        }
        let managed: String = case.managed.to_string().chars().take(2000).collect();
        let text = |value: Option<&Value>| match value {
            Some(value) => value.to_string().chars().take(300).collect(),
            None => String::from("-"),
        };
        self.disagreements.push(format!(
            "{:?} {} {}\n    desired {}\n    live    {}\n    server  {}\n    {}\n    made by: {}\n    managed {}",
            case.wrong,
            case.kind,
            case.path,
            text(case.desired),
            text(case.live),
            text(case.answer),
            case.text,
            case.mutations.join("; "),
            managed,
        ));
    }

    pub(super) fn add(&mut self, other: Tally) {
        for (kind, more) in other.kinds {
            let counts = self.of(&kind);
            for (held, more) in [
                (&mut counts.pairs, more.pairs),
                (&mut counts.in_sync, more.in_sync),
                (&mut counts.drift, more.drift),
                (&mut counts.rejected, more.rejected),
                (&mut counts.foretold, more.foretold),
                (&mut counts.false_alarms, more.false_alarms),
                (&mut counts.missed, more.missed),
                (&mut counts.excepted, more.excepted),
                (&mut counts.in_sandbox, more.in_sandbox),
                (&mut counts.applied, more.applied),
            ] {
                *held += more;
            }
        }
        for (name, more) in other.excepted {
            *self.excepted.entry(name).or_default() += more;
        }
        for (place, more) in other.places {
            *self.places.entry(place).or_default() += more;
        }
        self.disagreements.extend(other.disagreements);
    }

    /// Where the exceptions were made, most of the time.
    pub(super) fn places(&self) -> String {
        let line = |(place, count): (&String, &usize)| format!("  {count} {place}\n");
        self.places.iter().map(line).collect()
    }

    /// One line for each kind, and the totals.
    pub(super) fn table(&self) -> String {
        let mut total = Tally::default();
        let mut lines = String::from(
            "kind                                 pairs in-sync drift refused (foretold) false missed excepted sandbox applied\n",
        );
        let line = |name: &str, c: &Counts| {
            format!(
                "{name:36} {:5} {:7} {:5} {:7} {:10} {:5} {:6} {:8} {:7} {:7}\n",
                c.pairs,
                c.in_sync,
                c.drift,
                c.rejected,
                c.foretold,
                c.false_alarms,
                c.missed,
                c.excepted,
                c.in_sandbox,
                c.applied
            )
        };
        for (kind, counts) in &self.kinds {
            lines += &line(kind, counts);
            total.add(Tally { kinds: [("all".to_owned(), *counts)].into(), ..Tally::default() });
        }
        lines += &line("all", total.of("all"));
        for (name, count) in &self.excepted {
            lines += &format!("  excepted {count}: {name}\n");
        }
        lines
    }
}

/// The fields that lead to a place, without positions and keys.
pub(super) fn fields(path: &Path) -> String {
    let name = |step: &Step| match step {
        Step::Field(name) => format!("/{name}"),
        Step::Index(_) | Step::Keyed(_) | Step::Element(_) => "/*".to_owned(),
    };
    path.steps().iter().map(name).collect()
}

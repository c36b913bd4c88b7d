//! Rules that leave differences out: by path with wildcards, and by who wrote the live value.
//!
//! A rule speaks of paths, never of values, so that it can be checked after the comparison and by
//! the host for what it writes: an ignored field must not be written either.

use crate::Difference;
use crate::managed_fields;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use trimtab_json::{Path, PathError, Step, Value};

/// Leaves out the differences at and beneath a path.
///
/// The path is written as in [`Path`], and `*` stands for any one step, `**` for any number of
/// steps (none included), `[*]` for any list element, `[name=*]` for an element with that key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    steps: Vec<Step>,
    manager: Option<Box<str>>,
}

impl Rule {
    /// A rule for a path.
    ///
    /// # Errors
    /// [`PathError`] for a text that is no path.
    pub fn path(text: &str) -> Result<Self, PathError> {
        // `[*]` is the one form that is no path of its own; it reads as an element of any value.
        let text = text.replace("/[*]", "/[=*]");
        Ok(Self { steps: Path::parse(&text)?.steps().to_vec(), manager: None })
    }

    /// A rule for everything whose live value this field manager owns.
    pub fn manager(name: &str) -> Self {
        Self { steps: Vec::new(), manager: Some(Box::from(name)) }
    }

    /// Narrows the rule to live values that this field manager owns.
    #[must_use]
    pub fn by(mut self, manager: &str) -> Self {
        self.manager = Some(Box::from(manager));
        self
    }

    /// Whether the rule covers `path`, whose live owner is looked up in `live` if the rule asks.
    pub fn covers(&self, path: &Path, live: Option<&Value<'_>>) -> bool {
        if !prefix(&self.steps, path.steps()) {
            return false;
        }
        match (&self.manager, live) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(manager), Some(live)) => {
                managed_fields::managers_of(live, path).any(|writer| writer.manager == &**manager)
            }
        }
    }
}

/// Splits differences into those that stay and those that a rule covers, each with the position of
/// the first such rule: so the host can tell which rules match nothing.
pub fn split<'a>(
    differences: Vec<Difference<'a>>,
    live: Option<&Value<'_>>,
    rules: &[Rule],
) -> (Vec<Difference<'a>>, Vec<(usize, Difference<'a>)>) {
    let mut kept = Vec::new();
    let mut ignored = Vec::new();
    for difference in differences {
        match rules.iter().position(|rule| rule.covers(&difference.path, live)) {
            Some(rule) => ignored.push((rule, difference)),
            None => kept.push(difference),
        }
    }
    (kept, ignored)
}

/// Whether `pattern` matches the beginning of `steps`.
fn prefix(pattern: &[Step], steps: &[Step]) -> bool {
    let Some((first, pattern)) = pattern.split_first() else { return true };
    if matches!(first, Step::Field(name) if name == "**") {
        return (0..=steps.len())
            .any(|skip| steps.get(skip..).is_some_and(|rest| prefix(pattern, rest)));
    }
    match steps.split_first() {
        Some((step, rest)) => matches(first, step) && prefix(pattern, rest),
        None => false,
    }
}

fn matches(pattern: &Step, step: &Step) -> bool {
    match (pattern, step) {
        (Step::Field(name), _) if name == "*" => true,
        (Step::Element(value), Step::Keyed(_) | Step::Index(_) | Step::Element(_))
            if value == "*" =>
        {
            true
        }
        (Step::Keyed(wanted), Step::Keyed(keys)) => wanted.iter().all(|(name, value)| {
            let same = |held: &String| value == "*" || held == value;
            keys.iter().any(|(key, held)| key == name && same(held))
        }),
        _ => pattern == step,
    }
}

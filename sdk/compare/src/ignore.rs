//! Rules that leave differences out: by path with wildcards, and by who wrote the live value.
//!
//! A rule speaks of paths, never of values, so that it can be checked after the comparison and by
//! the host for what it writes: an ignored field must not be written either. [`Rule::places`] finds
//! where a rule leads in one object.

use crate::Difference;
use crate::facts::{Facts, List, Node};
use crate::managed_fields;
use crate::walk::all_scalar;
use alloc::borrow::ToOwned;
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

    /// Whether the rule names a path; one that does not is about all that its manager owns.
    pub fn names_a_path(&self) -> bool {
        !self.steps.is_empty()
    }

    /// The field manager that the rule is narrowed to.
    pub fn by_manager(&self) -> Option<&str> {
        self.manager.as_deref()
    }

    /// Where the rule's path leads in an object: the places themselves, not what lies in them, and
    /// whoever wrote them. What makes the object the one it is (its version, kind, name and the
    /// metadata that the server writes) is no such place.
    ///
    /// List elements are named as the comparison names them, but for lists that are replaced as a
    /// whole: there by the keys of the rule, else by position.
    pub fn places(&self, object: &Value<'_>, facts: Facts<'_>) -> Vec<Place> {
        let kind = object.str_at(&["kind"]).unwrap_or_default();
        let mut search = Search { at: Path::root(), atomic: None, found: Vec::new() };
        if self.names_a_path() {
            search.walk(&self.steps, object, &facts.root().of_kind(kind));
        }
        search.found
    }

    /// Whether a value at `path` lies in a place of the rule's, or may hold one; whoever wrote it.
    pub fn touches(&self, path: &Path) -> bool {
        let mut pattern = self.steps.as_slice();
        for step in path.steps() {
            match pattern.split_first() {
                // Everything above leads into the place.
                None => return true,
                Some((first, _)) if is_field(first, "**") => return true,
                Some((first, rest)) if matches(first, step) => pattern = rest,
                Some(_) => return false,
            }
        }
        true
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

/// A place that a rule leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where.
    pub path: Path,
    /// How many steps lead to the outermost value around it that is only ever replaced as a whole.
    pub atomic: Option<usize>,
}

/// What an API server writes into `metadata`, and what names the object.
const IDENTITY: [&str; 10] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "selfLink",
];

/// The way of a rule's path through an object.
struct Search {
    at: Path,
    atomic: Option<usize>,
    found: Vec<Place>,
}

impl Search {
    fn walk(&mut self, pattern: &[Step], value: &Value<'_>, node: &Node<'_>) {
        let Some((first, rest)) = pattern.split_first() else { return self.cover(value) };
        let anywhere = is_field(first, "**");
        if anywhere {
            self.walk(rest, value, node);
            // Twice means the same as once, and at the end all that is beneath lies in the place itself.
            if rest.first().is_none_or(|next| is_field(next, "**")) {
                return;
            }
        }
        let rest = if anywhere { pattern } else { rest };
        let outer = self.atomic;
        match value {
            Value::Object(object) => {
                self.enter(node.is_atomic_object());
                for (name, child) in object.iter() {
                    let step = Step::Field(name.to_owned());
                    if anywhere || matches(first, &step) {
                        self.step(step, rest, child, &node.field(name));
                    }
                }
            }
            Value::Array(items) => {
                let by_element = match node.list() {
                    List::Map => true,
                    List::Set => all_scalar(items),
                    List::Atomic | List::Multiset => false,
                };
                self.enter(!by_element);
                let only = position(first, items);
                for (index, item) in items.iter().enumerate() {
                    if anywhere || is_element(first, index, item, only) {
                        self.step(name(first, index, item, node), rest, item, &node.item());
                    }
                }
            }
            _ => {}
        }
        self.atomic = outer;
    }

    fn enter(&mut self, atomic: bool) {
        if atomic {
            self.atomic = self.atomic.or(Some(self.at.steps().len()));
        }
    }

    fn step(&mut self, step: Step, rest: &[Step], child: &Value<'_>, node: &Node<'_>) {
        self.at.push(step);
        self.walk(rest, child, node);
        self.at.pop();
    }

    /// The pattern ends here.
    fn cover(&mut self, value: &Value<'_>) {
        let (whole, is_metadata) = match self.at.steps() {
            [] => (false, false),
            [only] if is_field(only, "metadata") => (false, true),
            [only] => (!is_field(only, "apiVersion") && !is_field(only, "kind"), false),
            [first, second] if is_field(first, "metadata") => {
                (!IDENTITY.iter().any(|name| is_field(second, name)), false)
            }
            _ => (true, false),
        };
        if whole {
            self.found.push(Place { path: self.at.clone(), atomic: self.atomic });
        } else if self.at.is_root() || is_metadata {
            for (name, child) in value.as_object().into_iter().flat_map(trimtab_json::Object::iter)
            {
                self.at.push(Step::Field(name.to_owned()));
                self.cover(child);
                self.at.pop();
            }
        }
    }
}

fn is_field(step: &Step, wanted: &str) -> bool {
    matches!(step, Step::Field(name) if name == wanted)
}

/// Where a step without wildcards leads in a list: a key may be left out that has a default.
fn position(step: &Step, items: &[Value<'_>]) -> Option<usize> {
    let wild = |(_, value): &(String, String)| value == "*";
    match step {
        Step::Keyed(keys) if !keys.iter().any(wild) => step.position(items),
        _ => None,
    }
}

/// Whether a step of a pattern leads to this element; `only` is [`position`].
fn is_element(step: &Step, index: usize, item: &Value<'_>, only: Option<usize>) -> bool {
    match step {
        Step::Field(name) => name == "*",
        Step::Index(wanted) => *wanted == index,
        Step::Element(wanted) => wanted == "*" || item.scalar_text() == Some(wanted),
        Step::Keyed(keys) => {
            only == Some(index)
                || only.is_none()
                    && keys.iter().all(|(name, wanted)| {
                        let held = item.get(name).and_then(Value::scalar_text);
                        held.is_some_and(|held| wanted == "*" || held == wanted)
                    })
        }
    }
}

/// What an element is called.
fn name(step: &Step, index: usize, item: &Value<'_>, node: &Node<'_>) -> Step {
    match (node.list(), step, item.scalar_text()) {
        (List::Map, _, None) => Step::Keyed(node.keys().texts(item)),
        (List::Set, _, Some(text)) => Step::Element(text.to_owned()),
        (_, Step::Keyed(keys), None) => {
            let text = |name: &str| item.get(name).and_then(Value::scalar_text).unwrap_or_default();
            Step::Keyed(keys.iter().map(|(key, _)| (key.clone(), text(key).to_owned())).collect())
        }
        _ => Step::Index(index),
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

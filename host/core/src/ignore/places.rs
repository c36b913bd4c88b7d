//! Where the rules of an object lead, and what follows for one tree: what is shown, what is
//! written.

use super::{Matched, Rules};
use crate::edit;
use crate::ownership::FIELD_MANAGER;
use std::sync::Arc;
use trimtab_compare::Facts;
use trimtab_compare::ignore::Place as Found;
use trimtab_compare::managed_fields::{self, Operation, Owned};
use trimtab_json::{Path, Step, Value};

/// The ignored places of an object, in the order of their paths: none lies within another.
#[derive(Debug, Default)]
pub(crate) struct Places {
    places: Vec<Place>,
    /// How many places each rule led to.
    counts: Vec<usize>,
}

#[derive(Debug)]
struct Place {
    path: Path,
    /// Whether all that lies there is ignored; else only that the list element is there.
    whole: bool,
    /// How many steps lead to a value around it that is only ever replaced as a whole.
    atomic: Option<usize>,
}

impl From<Found> for Place {
    fn from(Found { path, atomic }: Found) -> Self {
        Self { path, whole: true, atomic }
    }
}

impl From<Owned> for Place {
    fn from(Owned { path, whole }: Owned) -> Self {
        Self { path, whole, atomic: None }
    }
}

impl Places {
    /// Where the rules lead in an object.
    pub(crate) fn of(
        rules: &Rules,
        desired: &Value<'_>,
        live: Option<&Value<'_>>,
        facts: &[u8],
    ) -> Self {
        let facts = Facts::new(facts);
        let mut places = Vec::new();
        let mut counts = Vec::new();
        for rule in rules.iter() {
            let rule = &rule.rule;
            let mut found = match (rule.by_manager(), live) {
                (Some(_), None) => vec![],
                (Some(manager), Some(live)) => {
                    let owned = owned_by(manager, live);
                    match rule.names_a_path() {
                        true => within(rule.places(live, facts), owned, live),
                        false => owned,
                    }
                }
                (None, live) => {
                    let mut all = rule.places(desired, facts);
                    all.extend(live.into_iter().flat_map(|live| rule.places(live, facts)));
                    all.into_iter().map(Place::from).collect()
                }
            };
            outermost(&mut found);
            counts.push(found.iter().filter(|place| place.whole).count());
            places.append(&mut found);
        }
        if desired.str_at(&["kind"]) == Some("Secret") {
            let twins: Vec<Place> = places.iter().filter_map(Place::twin).collect();
            places.extend(twins);
        }
        outermost(&mut places);
        if let Some(live) = live {
            keep_shared(&mut places, desired, live);
        }
        Self { places, counts }
    }

    /// Whether nothing is ignored.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What each rule led to.
    pub(crate) fn matched(&self, rules: &Rules) -> Vec<Matched> {
        let each = rules.iter().zip(&self.counts);
        each.map(|(rule, places)| Matched { rule: Arc::clone(rule), places: *places }).collect()
    }

    /// Makes desired what a plugin is shown of it, and gives live where that is another too.
    pub(crate) fn show<'a>(&self, desired: &mut Value<'a>, live: &Value<'a>) -> Option<Value<'a>> {
        let mut seen = None;
        for place in self.places.iter().rev() {
            if place.path.resolve(live).is_none() {
                remove(desired, &place.path, Some(live));
            }
        }
        let mut hidden = Vec::new();
        for place in &self.places {
            if place.path.resolve(live).is_none() || is_status(&place.path) {
                continue;
            }
            let stated = place.path.parent().is_some_and(|parent| {
                parent.resolve(desired).is_some_and(|value| !value.is_null())
            });
            match stated {
                true => edit::put(desired, &place.path, live, place.whole),
                false => hidden.push(place),
            }
        }
        // From the back: elements after what lies within them.
        for place in hidden.into_iter().rev() {
            let seen = seen.get_or_insert_with(|| live.clone());
            match place.whole {
                true => remove(seen, &place.path, None),
                false => remove_bare(seen, &place.path),
            }
        }
        seen
    }

    /// Makes content what may be applied over live: an ignored field is left out, so that the
    /// server leaves it as it is. Where that would take it away (we applied it before, or it lies
    /// in a value that is replaced as a whole) it is sent as live has it.
    pub(crate) fn keep<'a>(&self, content: &mut Value<'a>, live: &Value<'a>) {
        let mut kept = Vec::new();
        for Place { path, whole, atomic } in self.places.iter().rev() {
            if !whole {
                remove_bare(content, path);
                continue;
            }
            let replaced = atomic.is_some_and(|depth| {
                let around: Path = path.steps().iter().take(depth).cloned().collect();
                around.resolve(content).is_some()
            });
            match replaced && path.resolve(live).is_some() {
                true => kept.push(path.clone()),
                false => remove(content, path, None),
            }
        }
        for path in kept.into_iter().rev() {
            edit::put(content, &path, live, true);
        }
        let ours = managed_fields::entries(live)
            .filter(|entry| entry.manager == FIELD_MANAGER && entry.operation == Operation::Apply);
        for Owned { path, whole } in managed_fields::owned(ours) {
            let Some(pointer) = path.pointer(live) else { continue };
            for place in self.places.iter().filter(|place| place.whole) {
                let Some(ignored) = place.path.pointer(live) else { continue };
                if is_at_or_beneath(&pointer, &ignored) {
                    edit::put(content, &path, live, whole);
                } else if whole && is_at_or_beneath(&ignored, &pointer) {
                    edit::put(content, &place.path, live, true);
                }
            }
        }
    }

    /// Whether a path lies at or within an ignored place.
    pub(crate) fn cover(&self, path: &Path, live: &Value<'_>) -> bool {
        let pointer = path.pointer(live);
        self.places.iter().filter(|place| place.whole).any(|place| {
            path.starts_with(&place.path)
                || match (&pointer, place.path.pointer(live)) {
                    (Some(pointer), Some(ignored)) => is_at_or_beneath(pointer, &ignored),
                    _ => false,
                }
        })
    }

    /// What to remove in order to remove what lies at a path, but for what is ignored: as pointers
    /// into live.
    pub(crate) fn around(&self, path: &Path, live: &Value<'_>) -> Vec<String> {
        let (Some(pointer), Some(value)) = (path.pointer(live), path.resolve(live)) else {
            return vec![];
        };
        let ignored: Vec<String> =
            self.places.iter().filter_map(|place| place.path.pointer(live)).collect();
        let mut found = Vec::new();
        spare(pointer, value, &ignored, &mut found);
        found
    }
}

impl Place {
    /// The other name of a Secret's values: what is stated as `stringData` is stored as `data`.
    fn twin(&self) -> Option<Self> {
        let (first, rest) = self.path.steps().split_first()?;
        let other = match first {
            Step::Field(name) if name == "data" => "stringData",
            Step::Field(name) if name == "stringData" => "data",
            _ => return None,
        };
        let path = std::iter::once(Step::Field(other.into())).chain(rest.iter().cloned());
        Some(Self { path: path.collect(), whole: self.whole, atomic: None })
    }
}

/// All that a manager owns, through whatever subresource. The fields that name a list's element are
/// nobody's to ignore, and of what is only known to be there list elements alone matter.
fn owned_by(manager: &str, live: &Value<'_>) -> Vec<Place> {
    let entries = managed_fields::entries(live).filter(|entry| entry.manager == manager);
    let mut owned = managed_fields::owned(entries);
    owned.retain(|Owned { path, whole }| {
        let is_element = matches!(path.steps().last(), Some(Step::Keyed(_)));
        !is_key(path) && (*whole || is_element)
    });
    owned.into_iter().map(Place::from).collect()
}

/// Whether a path leads to a field that names an element of a keyed list.
fn is_key(path: &Path) -> bool {
    match path.steps() {
        [.., Step::Keyed(keys), Step::Field(name)] => keys.iter().any(|(key, _)| key == name),
        _ => false,
    }
}

/// What is both found by a path and owned.
fn within(found: Vec<Found>, owned: Vec<Place>, live: &Value<'_>) -> Vec<Place> {
    let owned: Vec<(String, Place)> =
        owned.into_iter().filter_map(|place| Some((place.path.pointer(live)?, place))).collect();
    let mut both = Vec::new();
    for place in found {
        let Some(pointer) = place.path.pointer(live) else { continue };
        for (theirs, held) in &owned {
            if held.whole && is_at_or_beneath(&pointer, theirs) {
                both.push(Place::from(place.clone()));
            } else if is_at_or_beneath(theirs, &pointer) {
                let Place { path, whole, .. } = held;
                both.push(Place { path: path.clone(), whole: *whole, atomic: place.atomic });
            }
        }
    }
    both
}

/// Sorts places by path, and drops those that lie within another.
fn outermost(places: &mut Vec<Place>) {
    let order = |step: &Step| match step {
        Step::Index(index) => (Some(*index), String::new()),
        other => (None, other.to_string()),
    };
    places.sort_by_cached_key(|place| {
        let steps: Vec<_> = place.path.steps().iter().map(order).collect();
        (steps, !place.whole, place.atomic.is_none())
    });
    let mut last: Option<Path> = None;
    places.retain(|place| {
        if last.as_ref().is_some_and(|last| place.path.starts_with(last)) {
            return false;
        }
        if place.whole {
            last = Some(place.path.clone());
        }
        true
    });
    places.dedup_by(|a, b| a.path == b.path);
}

/// A list element that one side alone has is made or goes as a whole: nothing within it is ignored,
/// unless it is itself.
fn keep_shared(places: &mut Vec<Place>, desired: &Value<'_>, live: &Value<'_>) {
    let elements: Vec<Path> =
        places.iter().filter(|place| !place.whole).map(|place| place.path.clone()).collect();
    places.retain(|place| {
        let steps = place.path.steps();
        (1..steps.len()).all(|depth| {
            let of_list = !matches!(steps.get(depth - 1), Some(Step::Field(_)));
            let element = || steps.iter().take(depth).cloned().collect::<Path>();
            !of_list || {
                let element = element();
                element.resolve(desired).is_some() == element.resolve(live).is_some()
                    || elements.contains(&element)
            }
        })
    });
}

/// Takes a path out, and what is left empty around it; where `other` is given, only as far as that
/// has nothing there either.
fn remove(root: &mut Value<'_>, path: &Path, other: Option<&Value<'_>>) {
    let Some(pointer) = path.pointer(root) else { return };
    if is_key(path) {
        return;
    }
    edit::remove(root, &pointer);
    let mut path = path.parent();
    while let Some(around) = path.filter(|path| path.steps().len() > 1 || !is_metadata(path)) {
        let is_member = matches!(around.steps().last(), Some(Step::Field(_)));
        let is_empty = match around.resolve(root) {
            Some(Value::Object(object)) => object.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            _ => false,
        };
        if !is_member || !is_empty || other.is_some_and(|other| around.resolve(other).is_some()) {
            return;
        }
        if let Some(pointer) = around.pointer(root) {
            edit::remove(root, &pointer);
        }
        path = around.parent();
    }
}

/// Takes an element out of which nothing is left but what names it.
fn remove_bare(root: &mut Value<'_>, path: &Path) {
    let Some(Step::Keyed(keys)) = path.steps().last() else { return };
    let named = |name: &str| keys.iter().any(|(key, _)| key == name);
    let element = path.resolve(root).and_then(Value::as_object);
    if element.is_some_and(|element| element.iter().all(|(name, _)| named(name))) {
        remove(root, path, None);
    }
}

fn is_metadata(path: &Path) -> bool {
    matches!(path.steps(), [Step::Field(name)] if name == "metadata")
}

/// Desired never states a status.
fn is_status(path: &Path) -> bool {
    matches!(path.steps().first(), Some(Step::Field(name)) if name == "status")
}

fn is_at_or_beneath(pointer: &str, other: &str) -> bool {
    pointer.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Collects the outermost places at a pointer that hold nothing ignored. A list element that holds
/// something stays whole.
fn spare(pointer: String, value: &Value<'_>, ignored: &[String], found: &mut Vec<String>) {
    if ignored.iter().any(|ignored| is_at_or_beneath(&pointer, ignored)) {
        return;
    }
    if !ignored.iter().any(|ignored| is_at_or_beneath(ignored, &pointer)) {
        return found.push(pointer);
    }
    match value {
        Value::Object(object) => {
            for (name, child) in object.iter() {
                let name = name.replace('~', "~0").replace('/', "~1");
                spare(format!("{pointer}/{name}"), child, ignored, found);
            }
        }
        Value::Array(items) => {
            for index in 0..items.len() {
                let pointer = format!("{pointer}/{index}");
                if !ignored.iter().any(|ignored| is_at_or_beneath(ignored, &pointer)) {
                    found.push(pointer);
                }
            }
        }
        _ => {}
    }
}

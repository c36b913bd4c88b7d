//! One manager's field set: `f:name`, `k:{keys}`, `v:value`, `i:index`, and `.` for "this itself".
//!
//! Source: structured-merge-diff, `fieldpath/serialize-pe.go`.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;
use trimtab_json::{Object, Path, Step as PathStep, Value, order, parse};

/// Field sets with more children than this are indexed when first asked.
const SMALL: usize = 32;

/// A field set, with an index of its large nodes.
pub(crate) struct Tree<'v> {
    fields: Option<&'v Object<'v>>,
    indexes: RefCell<Vec<Index<'v>>>,
}

/// The children of one large node, sorted by [`name`].
struct Index<'v> {
    node: *const Object<'v>,
    children: Vec<(String, &'v Object<'v>)>,
}

/// A step of a field set, read.
pub(crate) enum Step<'v> {
    /// `.`
    Itself,
    /// `f:`
    Field(&'v str),
    /// `k:`, the keys as an object.
    Keyed(Value<'v>),
    /// `v:`
    Element(Value<'v>),
    /// `i:`
    Index(usize),
}

/// Reads a step; `None` for what is none.
pub(crate) fn step(raw: &str) -> Option<Step<'_>> {
    if raw == "." {
        return Some(Step::Itself);
    }
    let (kind, rest) = raw.split_at_checked(2)?;
    match kind {
        "f:" => Some(Step::Field(rest)),
        "k:" => parse(rest.as_bytes()).ok().map(Step::Keyed),
        "v:" => parse(rest.as_bytes()).ok().map(Step::Element),
        "i:" => rest.parse().ok().map(Step::Index),
        _ => None,
    }
}

impl<'v> Tree<'v> {
    pub(crate) fn new(fields: Option<&'v Object<'v>>) -> Self {
        Tree { fields, indexes: RefCell::new(Vec::new()) }
    }

    pub(crate) fn root(&self) -> Option<&'v Object<'v>> {
        self.fields.filter(|fields| !fields.is_empty())
    }

    /// Whether the set has the place, an atomic value around it or something within it.
    pub(crate) fn owns(&self, steps: &[PathStep]) -> bool {
        let Some(mut node) = self.root() else { return false };
        for step in steps {
            match self.child(node, step) {
                Some(child) => node = child,
                None => return false,
            }
            if node.is_empty() {
                return true;
            }
        }
        true
    }

    fn child(&self, node: &'v Object<'v>, step: &PathStep) -> Option<&'v Object<'v>> {
        if node.len() <= SMALL {
            let found = node.iter().find(|(raw, _)| is_step(raw, step));
            return found.and_then(|(_, child)| child.as_object());
        }
        let wanted = step_name(step);
        let mut indexes = self.indexes.borrow_mut();
        let position = match indexes.iter().position(|index| core::ptr::eq(index.node, node)) {
            Some(position) => position,
            None => {
                indexes.push(Index { node, children: index(node) });
                indexes.len() - 1
            }
        };
        let children = &indexes.get(position)?.children;
        let found = children.binary_search_by(|(name, _)| name.as_str().cmp(&wanted)).ok()?;
        children.get(found).map(|(_, child)| *child)
    }

    /// Tells every place that the set names, and whether it names nothing beneath it.
    pub(crate) fn places(&self, tell: &mut dyn FnMut(&Path, bool)) {
        if let Some(root) = self.root() {
            collect(root, &Path::root(), tell);
        }
    }
}

fn collect(node: &Object<'_>, at: &Path, tell: &mut dyn FnMut(&Path, bool)) {
    if node.is_empty() || node.get(".").is_some() {
        tell(at, node.is_empty());
    }
    for (raw, child) in node.iter() {
        let Some(child) = child.as_object() else { continue };
        let scalar = |value: &Value<'_>| value.scalar_text().unwrap_or_default().to_owned();
        let next = match step(raw) {
            Some(Step::Field(name)) => PathStep::Field(name.to_owned()),
            Some(Step::Keyed(Value::Object(keys))) => PathStep::Keyed(
                keys.iter().map(|(key, value)| (key.to_owned(), scalar(value))).collect(),
            ),
            Some(Step::Element(value)) => PathStep::Element(scalar(&value)),
            Some(Step::Index(index)) => PathStep::Index(index),
            _ => continue,
        };
        collect(child, &at.join(next), tell);
    }
}

fn index<'v>(node: &'v Object<'v>) -> Vec<(String, &'v Object<'v>)> {
    let child = |(raw, child): (&'v str, &'v Value<'v>)| Some((name(raw)?, child.as_object()?));
    let children: Vec<_> = node.iter().filter_map(child).collect();
    let name = |position: usize| children.get(position).map(|(name, _)| name);
    let sorted = order(children.len(), &mut |a, b| name(a).cmp(&name(b)));
    sorted.into_iter().filter_map(|position| children.get(position as usize).cloned()).collect()
}

/// A spelling of a raw step that equal steps share: keys in order of their names.
fn name(raw: &str) -> Option<String> {
    Some(match step(raw)? {
        Step::Itself => return None,
        Step::Keyed(Value::Object(keys)) => {
            let keys: Vec<(&str, &str)> = keys
                .iter()
                .map(|(key, value)| (key, value.scalar_text().unwrap_or_default()))
                .collect();
            keyed_name(&keys)
        }
        Step::Keyed(_) => return None,
        Step::Element(value) => ["v:", value.scalar_text()?].concat(),
        Step::Field(_) | Step::Index(_) => raw.to_owned(),
    })
}

fn step_name(step: &PathStep) -> String {
    match step {
        PathStep::Field(name) => ["f:", name].concat(),
        PathStep::Index(index) => ["i:", &index.to_string()].concat(),
        PathStep::Element(value) => ["v:", value].concat(),
        PathStep::Keyed(keys) => {
            let keys: Vec<(&str, &str)> =
                keys.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            keyed_name(&keys)
        }
    }
}

fn keyed_name(keys: &[(&str, &str)]) -> String {
    let mut out = String::from("k:");
    let sorted = order(keys.len(), &mut |a, b| keys.get(a).cmp(&keys.get(b)));
    for (key, value) in sorted.iter().filter_map(|position| keys.get(*position as usize)) {
        out.push_str(key);
        out.push('\0');
        out.push_str(value);
        out.push('\0');
    }
    out
}

/// [`step_name`] equals [`name`], without building either where that can be helped.
fn is_step(raw: &str, wanted: &PathStep) -> bool {
    match wanted {
        PathStep::Field(name) => raw.strip_prefix("f:") == Some(name),
        PathStep::Index(index) => {
            raw.strip_prefix("i:").and_then(|text| text.parse().ok()) == Some(*index)
                // A member whose name is a number reads like a position.
                || raw.strip_prefix("f:").is_some_and(|name| name == index.to_string())
        }
        PathStep::Element(_) if !raw.starts_with("v:") => false,
        PathStep::Keyed(_) if !raw.starts_with("k:") => false,
        PathStep::Element(_) | PathStep::Keyed(_) => {
            name(raw).is_some_and(|name| name == step_name(wanted))
        }
    }
}

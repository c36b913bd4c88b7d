//! A path to one place in an object: a JSON pointer whose list steps name elements by their keys.
//!
//! `text.rs` reads and writes the text form, `resolve.rs` follows a path through a tree.

mod resolve;
mod text;

use alloc::string::{String, ToString};
use alloc::vec::Vec;

pub use text::PathError;

/// A place in an object.
///
/// | step | text | leads to |
/// | --- | --- | --- |
/// | [`Step::Field`] | `/name` | a member of an object |
/// | [`Step::Index`] | `/1` | an element of a list, by position from 0 |
/// | [`Step::Keyed`] | `/[containerPort=80,protocol=TCP]` | the element of a keyed list with these key values |
/// | [`Step::Element`] | `/[=foo]` | the element of a list of scalars that has this value |
///
/// In text `~0` is `~` and `~1` is `/`, as in RFC 6901; `~2` is `,`, `~3` is `]` and `~4` is `=`
/// within brackets, and `~5` is a `[` that begins a field name. The root is the empty text. The text form is the
/// identity of a path: a field named `1` and the position 1 read alike and are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    steps: Vec<Step>,
}

/// One step of a [`Path`].
#[derive(Clone, Debug)]
pub enum Step {
    /// A member of an object.
    Field(String),
    /// A position in a list, from 0.
    Index(usize),
    /// The key names and values (as [`crate::Value::scalar_text`]) of an element of a keyed list,
    /// in the schema's order of keys.
    Keyed(Vec<(String, String)>),
    /// The value (as [`crate::Value::scalar_text`]) of an element of a list of scalars.
    Element(String),
}

impl Path {
    /// The path to the object itself.
    pub const fn root() -> Self {
        Self { steps: Vec::new() }
    }

    /// The path through these members of objects, from the root.
    pub fn fields(names: &[&str]) -> Self {
        names.iter().map(|name| Step::Field((*name).to_string())).collect()
    }

    /// The steps from the root.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether this is the root.
    pub fn is_root(&self) -> bool {
        self.steps.is_empty()
    }

    /// Goes one step further.
    pub fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Goes one step back; `None` at the root.
    pub fn pop(&mut self) -> Option<Step> {
        self.steps.pop()
    }

    /// The path one step further.
    #[must_use]
    pub fn join(&self, step: Step) -> Self {
        let mut steps = Vec::with_capacity(self.steps.len() + 1);
        steps.extend(self.steps.iter().cloned());
        steps.push(step);
        Self { steps }
    }

    /// The path without its last step; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        let (_, parent) = self.steps.split_last()?;
        Some(Self { steps: parent.to_vec() })
    }

    /// Whether this path is `other` or lies beneath it.
    pub fn starts_with(&self, other: &Path) -> bool {
        self.steps.starts_with(&other.steps)
    }
}

impl From<Vec<Step>> for Path {
    fn from(steps: Vec<Step>) -> Self {
        Self { steps }
    }
}

impl FromIterator<Step> for Path {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        Self { steps: steps.into_iter().collect() }
    }
}

impl PartialEq for Step {
    /// Equal text is equal: see [`Path`].
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Step::Field(a), Step::Field(b)) | (Step::Element(a), Step::Element(b)) => a == b,
            (Step::Index(a), Step::Index(b)) => a == b,
            (Step::Keyed(a), Step::Keyed(b)) => a == b,
            (Step::Field(name), Step::Index(index)) | (Step::Index(index), Step::Field(name)) => {
                *name == index.to_string()
            }
            _ => false,
        }
    }
}

impl Eq for Step {}

//! Where the walk is: a chain of steps on the stack, made into a [`Path`] only when there is
//! something to report.

use crate::facts::Keys;
use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use trimtab_json::{Path, Step, Value};

/// One step, and the way back.
#[derive(Clone, Copy)]
pub(crate) struct Trail<'t> {
    parent: Option<&'t Trail<'t>>,
    at: At<'t>,
}

#[derive(Clone, Copy)]
enum At<'t> {
    Root,
    Field(&'t str),
    Index(usize),
    Keyed(Keys<'t>, &'t Value<'t>),
    Element(&'t Value<'t>),
}

impl<'t> Trail<'t> {
    pub(crate) const ROOT: Trail<'static> = Trail { parent: None, at: At::Root };

    pub(crate) fn field(&'t self, name: &'t str) -> Trail<'t> {
        Trail { parent: Some(self), at: At::Field(name) }
    }

    pub(crate) fn index(&'t self, index: usize) -> Trail<'t> {
        Trail { parent: Some(self), at: At::Index(index) }
    }

    pub(crate) fn keyed(&'t self, keys: Keys<'t>, item: &'t Value<'t>) -> Trail<'t> {
        Trail { parent: Some(self), at: At::Keyed(keys, item) }
    }

    pub(crate) fn element(&'t self, item: &'t Value<'t>) -> Trail<'t> {
        Trail { parent: Some(self), at: At::Element(item) }
    }

    /// How many steps lead here.
    pub(crate) fn depth(&self) -> usize {
        let mut depth = 0;
        let mut here = self.parent;
        while let Some(trail) = here {
            depth += 1;
            here = trail.parent;
        }
        depth
    }

    /// The field's name, if this is one.
    pub(crate) fn name(&self) -> Option<&'t str> {
        match self.at {
            At::Field(name) => Some(name),
            _ => None,
        }
    }

    /// Whether this is a field of that name.
    pub(crate) fn is_field(&self, wanted: &str) -> bool {
        matches!(self.at, At::Field(name) if name == wanted)
    }

    /// Whether this is a field of that name or lies beneath one.
    pub(crate) fn is_within(&self, wanted: &str) -> bool {
        let mut here = Some(self);
        while let Some(trail) = here {
            if trail.is_field(wanted) {
                return true;
            }
            here = trail.parent;
        }
        false
    }

    /// The same place as an owned path.
    pub(crate) fn path(&self) -> Path {
        let mut steps = Vec::new();
        let mut here = Some(self);
        while let Some(trail) = here {
            steps.extend(trail.at.step());
            here = trail.parent;
        }
        steps.reverse();
        Path::from(steps)
    }

    /// The last step in text.
    pub(crate) fn last(&self) -> String {
        self.at.step().map(|step| step.to_string()).unwrap_or_default()
    }
}

impl At<'_> {
    fn step(&self) -> Option<Step> {
        Some(match self {
            At::Root => return None,
            At::Field(name) => Step::Field((*name).to_owned()),
            At::Index(index) => Step::Index(*index),
            At::Keyed(keys, item) => Step::Keyed(keys.texts(item)),
            At::Element(item) => Step::Element(item.scalar_text().unwrap_or_default().to_owned()),
        })
    }
}

//! An object as an ordered list of members: what the text said, in the order it said it.

use crate::{Value, order};
use alloc::borrow::Cow;
use alloc::vec::Vec;

/// A JSON object that keeps the order of its members. Keys are unique in what [`crate::parse`]
/// gives and in what the methods here build.
///
/// [`Object::get`] scans. That is fastest for the sizes objects have; whoever looks up many keys of
/// a large object sorts an index of its own (as `trimtab-compare` does).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object<'a> {
    members: Vec<(Cow<'a, str>, Value<'a>)>,
}

impl<'a> Object<'a> {
    /// An empty object.
    pub const fn new() -> Self {
        Self { members: Vec::new() }
    }

    /// For the parser, which has made sure that keys are unique.
    pub(crate) fn from_members(members: Vec<(Cow<'a, str>, Value<'a>)>) -> Self {
        Self { members }
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.members.iter().find(|(key, _)| key.as_ref() == name).map(|(_, value)| value)
    }

    /// The value of `name`, for change.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value<'a>> {
        self.members.iter_mut().find(|(key, _)| key.as_ref() == name).map(|(_, value)| value)
    }

    /// The member at a position, in the object's order.
    pub fn member(&self, position: usize) -> Option<(&str, &Value<'a>)> {
        self.members.get(position).map(|(key, value)| (key.as_ref(), value))
    }

    /// The members in the object's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value<'a>)> + '_ {
        self.members.iter().map(|(key, value)| (key.as_ref(), value))
    }

    /// Sets `name`, in place if it is there, at the end if not; gives back what it held.
    pub fn insert(
        &mut self,
        name: impl Into<Cow<'a, str>>,
        value: impl Into<Value<'a>>,
    ) -> Option<Value<'a>> {
        let name = name.into();
        let value = value.into();
        match self.get_mut(&name) {
            Some(held) => Some(core::mem::replace(held, value)),
            None => {
                self.members.push((name, value));
                None
            }
        }
    }

    /// [`Object::insert`] for building in one expression.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Value<'a>>) -> Self {
        self.insert(name, value);
        self
    }

    /// Takes `name` out, keeping the others' order.
    pub fn remove(&mut self, name: &str) -> Option<Value<'a>> {
        let position = self.members.iter().position(|(key, _)| key.as_ref() == name)?;
        Some(self.members.remove(position).1)
    }

    /// Keeps the members for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value<'a>) -> bool) {
        self.members.retain_mut(|(key, value)| keep(key.as_ref(), value));
    }

    /// Sorts the members by key, bytewise; not what lies within them.
    pub fn sort(&mut self) {
        let key = |position: usize| self.members.get(position).map(|(key, _)| key);
        let sorted = order(self.members.len(), &mut |a, b| key(a).cmp(&key(b)));
        let mut held: Vec<_> = core::mem::take(&mut self.members).into_iter().map(Some).collect();
        let next = |position: u32| held.get_mut(position as usize).and_then(Option::take);
        self.members = sorted.into_iter().filter_map(next).collect();
    }

    /// The same object without borrows.
    pub fn into_owned(self) -> Object<'static> {
        let own = |(key, value): (Cow<'a, str>, Value<'a>)| {
            (Cow::Owned(key.into_owned()), value.into_owned())
        };
        Object { members: self.members.into_iter().map(own).collect() }
    }
}

impl<'a> IntoIterator for Object<'a> {
    type Item = (Cow<'a, str>, Value<'a>);
    type IntoIter = alloc::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

impl<'a, K: Into<Cow<'a, str>>> FromIterator<(K, Value<'a>)> for Object<'a> {
    /// Collects members; of equal keys the last wins. Linear in the usual case of few members,
    /// quadratic for thousands: build those sorted and unique through the parser.
    fn from_iter<I: IntoIterator<Item = (K, Value<'a>)>>(members: I) -> Self {
        let mut object = Object::new();
        for (key, value) in members {
            object.insert(key, value);
        }
        object
    }
}

//! Lists: keyed, sets, atomic and multisets.

use super::lookup::{By, Elements};
use super::value::{asks_for_nothing, wrong_type};
use super::{Answer, Walk, context};
use crate::facts::{List, Node};
use crate::trail::Trail;
use crate::{CompareError, Kind, scalar};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use trimtab_json::Value;

/// Multisets beyond this are compared in order: matching is quadratic.
const MULTISET: usize = 64;

impl<'a> Walk<'a> {
    /// Two lists; `desired` and `live` are the values that hold them.
    #[inline(never)]
    pub(super) fn list(
        &mut self,
        desired: &'a Value<'a>,
        wanted: &'a [Value<'a>],
        live: &'a Value<'a>,
        held: &'a [Value<'a>],
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) -> Answer {
        if wanted.is_empty() && asks_for_nothing(desired, live, node) {
            return Ok(());
        }
        match node.list() {
            List::Map => self.keyed(wanted, live, held, node, trail),
            List::Set if all_scalar(wanted) && all_scalar(held) => {
                self.set(wanted, held, node, trail)
            }
            List::Multiset if wanted.len() <= MULTISET && held.len() <= MULTISET => {
                self.multiset(desired, wanted, live, held, node, trail)
            }
            List::Multiset | List::Set | List::Atomic => {
                self.atomic(desired, wanted, live, held, node, trail)
            }
        }
    }

    /// In order. Lists of different length differ as a whole; otherwise each element says where.
    fn atomic(
        &mut self,
        desired: &'a Value<'a>,
        wanted: &'a [Value<'a>],
        live: &'a Value<'a>,
        held: &'a [Value<'a>],
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) -> Answer {
        let held = context::without_admission(wanted, held, node, trail);
        if wanted.len() != held.len() {
            for (index, value) in wanted.iter().enumerate() {
                self.check(value, &node.item(), &trail.index(index))?;
            }
            self.changed(desired, live, node, trail);
            return Ok(());
        }
        let item = node.item();
        self.whole = self.known;
        for (index, (desired, live)) in wanted.iter().zip(held).enumerate() {
            if desired != live {
                self.member(desired, Some(live), node, &item, &trail.index(index))?;
            }
        }
        Ok(())
    }

    /// By key, in any order. Not inlined: what it keeps is large, and other lists nest deeper.
    #[inline(never)]
    fn keyed(
        &mut self,
        wanted: &'a [Value<'a>],
        live: &'a Value<'a>,
        held: &'a [Value<'a>],
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) -> Answer {
        let (keys, item) = (node.keys(), node.item());
        self.no_duplicate_keys(wanted, node, trail)?;
        let mut elements = Elements::new(held, By::Keys(keys));
        let mut repeated = false;
        for desired in wanted {
            let trail = trail.keyed(keys, desired);
            match elements.take(desired) {
                Some((live, several)) => {
                    repeated |= several;
                    self.value(desired, live, &item, &trail)?;
                }
                None => self.absent(desired, node, &item, &trail)?,
            }
        }
        if repeated {
            // Live repeats a key that desired states once: only replacing the list mends that.
            self.report(Kind::Changed, None, Some(live), node, trail);
        }
        if self.judges_strays() {
            for live in elements.rest() {
                self.stray_element(live, node, &trail.keyed(keys, live));
            }
        }
        Ok(())
    }

    /// Two elements with one key are an error; so is an element that is no object.
    #[inline(never)]
    pub(super) fn no_duplicate_keys(
        &mut self,
        wanted: &'a [Value<'a>],
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) -> Answer {
        let keys = node.keys();
        if let Some((index, value)) =
            wanted.iter().enumerate().find(|(_, value)| value.as_object().is_none())
        {
            return Err(wrong_type("an object", value, &trail.index(index)));
        }
        match Elements::new(wanted, By::Keys(keys)).duplicate() {
            Some(value) => Err(duplicate(trail, &trail.keyed(keys, value))),
            None => Ok(()),
        }
    }

    /// By element, in any order.
    fn set(
        &mut self,
        wanted: &'a [Value<'a>],
        held: &'a [Value<'a>],
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) -> Answer {
        self.no_duplicate_elements(wanted, trail)?;
        let item = node.item();
        let mut elements = Elements::new(held, By::Value);
        for desired in wanted.iter().filter(|desired| !desired.is_null()) {
            let trail = trail.element(desired);
            if elements.take(desired).is_none() {
                self.check(desired, &item, &trail)?;
                self.report(Kind::Missing, Some(Cow::Borrowed(desired)), None, &item, &trail);
            }
        }
        if self.judges_strays() {
            for live in elements.rest().filter(|live| !live.is_null()) {
                let trail = trail.element(live);
                if self.whole {
                    self.report(Kind::Changed, None, Some(live), &item, &trail);
                } else if self.evidence(&trail) || !self.managed {
                    self.report(Kind::Stray, None, Some(live), &item, &trail);
                }
            }
        }
        Ok(())
    }

    pub(super) fn no_duplicate_elements(
        &mut self,
        wanted: &'a [Value<'a>],
        trail: &Trail<'_>,
    ) -> Answer {
        match Elements::new(wanted, By::Value).duplicate() {
            Some(value) if !value.is_null() => Err(duplicate(trail, &trail.element(value))),
            _ => Ok(()),
        }
    }

    /// As a whole, in any order: each element of desired takes the first of live that it does not
    /// differ from. What is left over on both sides is compared in order. Copies of an element and
    /// elements with an empty `type`, which old servers made, are not counted (fluxcd/pkg#207).
    fn multiset(
        &mut self,
        desired: &'a Value<'a>,
        wanted: &'a [Value<'a>],
        live: &'a Value<'a>,
        held: &'a [Value<'a>],
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) -> Answer {
        let is_empty = |value: &Value<'_>| value.str_at(&["type"]).is_some_and(str::is_empty);
        let mut left: Vec<&'a Value<'a>> = held.iter().filter(|value| !is_empty(value)).collect();
        self.whole = self.known;
        let item = node.item();
        let (mut matched, mut unmatched) = (Vec::new(), Vec::new());
        for (index, desired) in wanted.iter().enumerate() {
            let mut found = None;
            for (place, live) in left.iter().enumerate() {
                if self.is_same(desired, live, &item, &trail.index(index))? {
                    found = Some(place);
                    break;
                }
            }
            match found {
                Some(place) => matched.push(left.remove(place)),
                None => unmatched.push((index, desired)),
            }
        }
        for position in (0..left.len()).rev() {
            let (before, value) = left.split_at(position);
            let copied = |copy: &&Value<'_>| value.first().is_some_and(|value| *copy == *value);
            if matched.iter().chain(before).any(copied) {
                left.remove(position);
            }
        }
        if unmatched.len() != left.len() {
            self.changed(desired, live, node, trail);
            return Ok(());
        }
        for ((index, desired), live) in unmatched.into_iter().zip(left) {
            self.member(desired, Some(live), node, &item, &trail.index(index))?;
        }
        Ok(())
    }

    /// Whether live is what desired asks.
    fn is_same(
        &mut self,
        desired: &'a Value<'a>,
        live: &'a Value<'a>,
        node: &Node<'_>,
        trail: &Trail<'_>,
    ) -> Result<bool, Box<CompareError>> {
        if desired == live {
            return Ok(true);
        }
        let (before, quiet) = (self.out.len(), self.quiet);
        self.quiet = true;
        let answer = self.member(desired, Some(live), node, node, trail);
        self.quiet = quiet;
        let same = self.out.len() == before;
        self.out.truncate(before);
        answer.map(|()| same)
    }

    /// A list of which desired states a part and others add theirs: finalizers, owner references.
    pub(super) fn subset(
        &mut self,
        wanted: &'a [Value<'a>],
        held: &'a [Value<'a>],
        trail: &Trail<'_>,
        step: impl for<'t> Fn(&'t Trail<'t>, &'t Value<'t>, usize) -> Trail<'t>,
    ) -> Answer {
        for (index, desired) in wanted.iter().enumerate() {
            let trail = step(trail, desired, index);
            let mut found = scalar::is_hollow(desired);
            for live in held {
                found = found || self.is_same(desired, live, &Node::UNKNOWN, &trail)?;
            }
            if !found {
                self.report(
                    Kind::Missing,
                    Some(Cow::Borrowed(desired)),
                    None,
                    &Node::UNKNOWN,
                    &trail,
                );
            }
        }
        Ok(())
    }
}

/// Whether a set can be told apart by its elements' text; sets of objects are compared in order.
pub(crate) fn all_scalar(items: &[Value<'_>]) -> bool {
    items.iter().all(|item| !matches!(item, Value::Array(_) | Value::Object(_)))
}

#[cold]
fn duplicate(list: &Trail<'_>, element: &Trail<'_>) -> Box<CompareError> {
    Box::new(CompareError::DuplicateListKey { path: list.path(), key: element.last() })
}

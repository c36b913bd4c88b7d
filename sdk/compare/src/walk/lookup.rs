//! Finding members of objects and elements of lists without becoming quadratic: by position where
//! both sides have the same order, by a scan where there are few, by a sorted index beyond.

use crate::facts::{Key, Keys};
use alloc::vec::Vec;
use core::cmp::Ordering;
use trimtab_json::{Object, Value, order};

/// Up to this many members or elements are scanned.
const SMALL: usize = 32;

/// Which positions were taken.
struct Taken {
    few: u64,
    many: Vec<u64>,
}

impl Taken {
    fn new(length: usize) -> Self {
        let many = if length <= 64 { Vec::new() } else { alloc::vec![0; length.div_ceil(64)] };
        Taken { few: 0, many }
    }

    fn set(&mut self, position: usize) {
        let bit = 1 << (position % 64);
        match self.many.get_mut(position / 64) {
            Some(word) => *word |= bit,
            None => self.few |= bit,
        }
    }

    fn has(&self, position: usize) -> bool {
        let word = self.many.get(position / 64).copied().unwrap_or(self.few);
        word >> (position % 64) & 1 == 1
    }
}

/// The members of an object, taken one by one.
pub(super) struct Members<'v> {
    object: &'v Object<'v>,
    taken: Taken,
    /// Where the next member is if both objects have the same order.
    next: usize,
    order: Vec<u32>,
}

impl<'v> Members<'v> {
    pub(super) fn new(object: &'v Object<'v>) -> Self {
        Members { object, taken: Taken::new(object.len()), next: 0, order: Vec::new() }
    }

    /// The value of `name`, which counts as taken from now on.
    #[inline(never)]
    pub(super) fn take(&mut self, name: &str) -> Option<&'v Value<'v>> {
        let position = self.find(name)?;
        self.taken.set(position);
        self.next = position + 1;
        self.object.member(position).map(|(_, value)| value)
    }

    fn find(&mut self, name: &str) -> Option<usize> {
        if self.object.member(self.next).is_some_and(|(key, _)| key == name) {
            return Some(self.next);
        }
        if self.object.len() <= SMALL {
            // Live has the same order with members in between, more often than not.
            let is = |position: &usize| {
                self.object.member(*position).is_some_and(|(key, _)| key == name)
            };
            return (self.next..self.object.len()).chain(0..self.next).find(is);
        }
        let key = |position: usize| self.object.member(position).map(|(key, _)| key);
        if self.order.is_empty() {
            self.order = order(self.object.len(), &mut |a, b| key(a).cmp(&key(b)));
        }
        let against = |position: &u32| key(*position as usize).cmp(&Some(name));
        let found = self.order.binary_search_by(against).ok()?;
        self.order.get(found).map(|&position| position as usize)
    }

    /// The members that were not taken.
    pub(super) fn rest(&self) -> impl Iterator<Item = (&'v str, &'v Value<'v>)> + '_ {
        let members = self.object.iter().enumerate();
        members.filter(|(position, _)| !self.taken.has(*position)).map(|(_, member)| member)
    }
}

/// What makes two elements the same.
#[derive(Clone, Copy)]
pub(crate) enum By<'k> {
    /// The fields of a keyed list's key.
    Keys(Keys<'k>),
    /// The scalar itself.
    Value,
}

/// The elements of a list, taken one by one.
///
/// What the facts say of the key is read once, and so is each element's first key field, as a
/// print: equal elements have equal prints, and only elements with equal prints are compared.
pub(crate) struct Elements<'v, 'k> {
    items: &'v [Value<'v>],
    by: By<'k>,
    /// The first key field, with its default.
    first: Option<(&'k str, Option<&'k str>)>,
    /// Whether there is no other.
    single: bool,
    /// The prints of few elements, once there was a question.
    prints: [u32; SMALL],
    printed: bool,
    taken: Taken,
    /// The order of many elements, once there was a question.
    order: Vec<u32>,
}

impl<'v, 'k> Elements<'v, 'k> {
    #[inline(never)]
    pub(crate) fn new(items: &'v [Value<'v>], by: By<'k>) -> Self {
        let (first, single) = match by {
            By::Value => (None, true),
            By::Keys(keys) => {
                let mut fields = keys.iter();
                (fields.next(), fields.next().is_none())
            }
        };
        let taken = Taken::new(items.len());
        let (prints, printed, order) = ([0; SMALL], false, Vec::new());
        Elements { items, by, first, single, prints, printed, taken, order }
    }

    /// The first key field of an element.
    #[inline(never)]
    fn head<'x>(&self, item: &'x Value<'_>) -> Key<'x>
    where
        'k: 'x,
    {
        match (self.by, self.first) {
            (By::Value, _) => Key::of(item),
            (By::Keys(_), Some((name, default))) => Keys::key(item, name, default),
            (By::Keys(_), None) => Key::Absent,
        }
    }

    /// How the element at a position stands to another, whose first key field is given.
    #[inline(never)]
    fn compare(&self, position: usize, head: Key<'_>, item: &Value<'_>) -> Ordering {
        let Some(held) = self.items.get(position) else { return Ordering::Greater };
        let order = self.head(held).cmp(&head);
        match self.by {
            By::Keys(keys) if order == Ordering::Equal && !self.single => {
                keys.compare_rest(held, item)
            }
            _ => order,
        }
    }

    #[inline(never)]
    fn sort(&mut self) {
        if self.order.is_empty() {
            self.order = order(self.items.len(), &mut |a, b| match self.items.get(b) {
                Some(b) => self.compare(a, self.head(b), b),
                None => Ordering::Less,
            });
        }
    }

    #[inline(never)]
    fn print(&mut self) {
        if !self.printed {
            let mut prints = [0; SMALL];
            for (print, item) in prints.iter_mut().zip(self.items) {
                *print = self.head(item).print();
            }
            (self.prints, self.printed) = (prints, true);
        }
    }

    /// The element that equals `item`, taken from now on; of several the last, which is the one
    /// that has effect, and all are taken. The second answer is whether there were several.
    #[inline(never)]
    pub(crate) fn take(&mut self, item: &Value<'_>) -> Option<(&'v Value<'v>, bool)> {
        let mut found = None;
        let mut several = false;
        let head = self.head(item);
        if self.items.len() <= SMALL {
            self.print();
            let wanted = head.print();
            let prints = self.prints.get(..self.items.len()).unwrap_or_default();
            for (position, print) in prints.iter().enumerate().rev() {
                if *print == wanted && self.compare(position, head, item) == Ordering::Equal {
                    self.taken.set(position);
                    several |= found.is_some();
                    found = found.or(Some(position));
                }
            }
        } else {
            self.sort();
            let less =
                |position: &u32| self.compare(*position as usize, head, item) == Ordering::Less;
            let first = self.order.partition_point(less);
            for &position in self.order.get(first..).unwrap_or_default() {
                let position = position as usize;
                if self.compare(position, head, item) != Ordering::Equal {
                    break;
                }
                self.taken.set(position);
                several |= found.is_some();
                found = Some(position);
            }
        }
        found.and_then(|position| self.items.get(position)).map(|item| (item, several))
    }

    /// The elements that were not taken.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &'v Value<'v>> + '_ {
        let items = self.items.iter().enumerate();
        items.filter(|(position, _)| !self.taken.has(*position)).map(|(_, item)| item)
    }

    /// An element that equals an earlier one.
    pub(crate) fn duplicate(&mut self) -> Option<&'v Value<'v>> {
        if self.items.len() <= SMALL {
            self.print();
            let repeats = |(position, (item, wanted)): &(usize, (&Value<'_>, &u32))| {
                let earlier = self.prints.iter().take(*position).enumerate();
                let mut alike = earlier.filter(|(_, print)| print == wanted);
                let same = |at| self.compare(at, self.head(item), item) == Ordering::Equal;
                alike.any(|(earlier, _)| same(earlier))
            };
            let mut items = self.items.iter().zip(&self.prints).enumerate();
            return items.find(repeats).map(|(_, (item, _))| item);
        }
        self.sort();
        let mut pairs = self.order.iter().zip(self.order.iter().skip(1));
        pairs.find_map(|(a, b)| {
            let item = self.items.get(*b as usize)?;
            (self.compare(*a as usize, self.head(item), item) == Ordering::Equal).then_some(item)
        })
    }
}

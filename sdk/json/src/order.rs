//! The one sort of this crate and of what is built on it.
//!
//! The standard library's sorts are generated anew, 10 to 20 KB each, for every type and order they
//! are used with. A guest has 100 KB in all: this one is generated once and sorts positions.

use alloc::vec::Vec;
use core::cmp::Ordering;

/// The positions `0..count` in the order that `compare` gives; equal ones stay in their order.
/// Linear where they are in order already, otherwise `n log n`. Allocates two lists of `count`.
///
/// Positions are 32 bits wide: of more than 2³² only the first are given.
pub fn order(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<u32> {
    let mut from: Vec<u32> = (0..u32::try_from(count).unwrap_or(u32::MAX)).collect();
    let mut after = |a: &u32, b: &u32| compare(*a as usize, *b as usize) == Ordering::Greater;
    let in_order = !from.iter().zip(from.iter().skip(1)).any(|(a, b)| after(a, b));
    if in_order {
        return from;
    }
    let mut into = Vec::with_capacity(from.len());
    let mut width = 1;
    while width < from.len() {
        into.clear();
        for pair in from.chunks(width * 2) {
            let (mut left, mut right) = pair.split_at_checked(width).unwrap_or((pair, &[]));
            while let (Some(a), Some(b)) = (left.first(), right.first()) {
                if after(a, b) {
                    into.push(*b);
                    right = right.get(1..).unwrap_or_default();
                } else {
                    into.push(*a);
                    left = left.get(1..).unwrap_or_default();
                }
            }
            into.extend_from_slice(left);
            into.extend_from_slice(right);
        }
        core::mem::swap(&mut from, &mut into);
        width *= 2;
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_come_in_order_and_equal_ones_in_their_own() {
        for count in [0, 1, 2, 3, 7, 64, 1000] {
            let key = |position: usize| (position * 7919) % 31;
            let ordered = order(count, &mut |a, b| key(a).cmp(&key(b)));
            let mut expected: Vec<u32> = (0..count as u32).collect();
            expected.sort_by_key(|position| key(*position as usize));
            assert_eq!(ordered, expected, "{count}");
        }
    }
}

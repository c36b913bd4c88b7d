//! `memcmp` by words: the one that comes with the compiler for this target goes byte by byte, and
//! comparing names is what a comparison of objects does most.
#![allow(unsafe_code)]

/// C's `memcmp`, under the name that the compiler calls.
///
/// # Safety
/// `a` and `b` each point to `length` readable bytes.
// Never inlined: a copy at each comparison of strings would cost more bytes than it saves time.
#[inline(never)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, length: usize) -> i32 {
    // What is short is read by two words that may overlap, without a loop, each turn of which costs
    // a check of the deadline.
    let order = |at: usize| {
        // SAFETY: the callers' `at + 8` is within both.
        let (x, y) = unsafe {
            (a.add(at).cast::<u64>().read_unaligned(), b.add(at).cast::<u64>().read_unaligned())
        };
        // The first byte is the lowest of a little-endian word.
        (x.swap_bytes() > y.swap_bytes()) as i32 - (x.swap_bytes() < y.swap_bytes()) as i32
    };
    let short = |at: usize| {
        // SAFETY: the callers' `at + 4` is within both.
        let (x, y) = unsafe {
            (a.add(at).cast::<u32>().read_unaligned(), b.add(at).cast::<u32>().read_unaligned())
        };
        (x.swap_bytes() > y.swap_bytes()) as i32 - (x.swap_bytes() < y.swap_bytes()) as i32
    };
    let byte = |at: usize| {
        // SAFETY: the callers' `at` is within both.
        let (x, y) = unsafe { (*a.add(at), *b.add(at)) };
        i32::from(x) - i32::from(y)
    };
    let first = |one: i32, other: i32| if one != 0 { one } else { other };
    match length {
        0 => 0,
        1..4 => first(first(byte(0), byte(length / 2)), byte(length - 1)),
        4..8 => first(short(0), short(length - 4)),
        8..=16 => first(order(0), order(length - 8)),
        _ => {
            let mut at = 0;
            while at + 8 <= length {
                let order = order(at);
                if order != 0 {
                    return order;
                }
                at += 8;
            }
            order(length - 8)
        }
    }
}

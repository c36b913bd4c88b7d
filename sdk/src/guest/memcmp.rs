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
    let mut at = 0;
    while at + 8 <= length {
        // SAFETY: the eight bytes from `at` on are within both.
        let (x, y) = unsafe {
            (a.add(at).cast::<u64>().read_unaligned(), b.add(at).cast::<u64>().read_unaligned())
        };
        if x != y {
            // The first byte is the lowest of a little-endian word.
            return if x.swap_bytes() < y.swap_bytes() { -1 } else { 1 };
        }
        at += 8;
    }
    while at < length {
        // SAFETY: the byte at `at` is within both.
        let (x, y) = unsafe { (*a.add(at), *b.add(at)) };
        if x != y {
            return i32::from(x) - i32::from(y);
        }
        at += 1;
    }
    0
}

//! Counts heap bytes while somebody asks for it, and costs one relaxed load an allocation while
//! nobody does: the other benches run in the same process.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

#[global_allocator]
static COUNTING: Counting = Counting;

static ON: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicI64 = AtomicI64::new(0);

/// Bytes that were allocated and not freed while `run` was polled to its end, on all threads, as
/// the program asked for them (without the allocator's own rounding).
///
/// What was allocated before and is freed meanwhile counts as negative: let things settle first.
pub(crate) async fn kept<T>(run: impl Future<Output = T>) -> (i64, T) {
    LIVE.store(0, Ordering::Relaxed);
    ON.store(true, Ordering::Relaxed);
    let value = run.await;
    ON.store(false, Ordering::Relaxed);
    (LIVE.load(Ordering::Relaxed), value)
}

struct Counting;

impl Counting {
    #[inline]
    fn count(by: impl FnOnce() -> i64) {
        if ON.load(Ordering::Relaxed) {
            LIVE.fetch_add(by(), Ordering::Relaxed);
        }
    }
}

#[allow(clippy::cast_possible_wrap)]
const fn signed(size: usize) -> i64 {
    size as i64
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(|| signed(layout.size()));
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::count(|| signed(layout.size()));
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        Self::count(|| -signed(layout.size()));
        // SAFETY: the block came from `System`, with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        Self::count(|| signed(new_size) - signed(layout.size()));
        // SAFETY: the block came from `System`, with this layout; the new size is the caller's.
        unsafe { System.realloc(block, layout, new_size) }
    }
}

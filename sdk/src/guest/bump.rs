//! The guest's allocator: it hands out memory upwards and takes back only the last block.
//!
//! Each pass runs in a fresh instance whose memory the host clears, so that freeing would be work
//! for nothing: a pass over two objects of usual size allocates some ten kilobytes. The last
//! block is taken back, and grows in place, because that is what a `Vec` or `String` that is
//! being filled does; it keeps them from leaving a trail of their former selves.
//!
//! The price: memory is bounded by all that was ever allocated, and not by what is alive. The
//! host's limit (64 MiB) is some forty times the largest object that a cluster holds.
#![allow(unsafe_code)]

use core::alloc::{GlobalAlloc, Layout};
use core::arch::wasm32;
use core::cell::Cell;
use core::ptr;

/// Bytes of a WebAssembly page.
const PAGE: usize = 64 << 10;

/// Pages that are asked for at least: growing is a call to the host.
const GROW_PAGES: usize = 4;

#[global_allocator]
static BUMP: Bump = Bump { next: Cell::new(0), end: Cell::new(0) };

struct Bump {
    /// Address of the first free byte; 0 before the first allocation.
    next: Cell<usize>,
    /// Address beyond the last byte of memory.
    end: Cell<usize>,
}

// SAFETY: the component has one thread; wasm threads are off in the host.
unsafe impl Sync for Bump {}

unsafe extern "C" {
    /// Where the linker says that the heap begins.
    static __heap_base: u8;
}

// SAFETY: blocks are aligned, do not overlap (each begins at or after the end of all that are
// alive), and lie within the memory's size.
unsafe impl GlobalAlloc for Bump {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.next.get() == 0 {
            self.begin();
        }
        let mask = layout.align() - 1;
        let start = self.next.get().wrapping_add(mask) & !mask;
        let Some(next) = start.checked_add(layout.size()) else { return ptr::null_mut() };
        if next > self.end.get() && !self.grow(next) {
            return ptr::null_mut();
        }
        self.next.set(next);
        ptr::with_exposed_provenance_mut(start)
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if block.addr() + layout.size() == self.next.get() {
            self.next.set(block.addr());
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let start = block.addr();
        if start + layout.size() == self.next.get() {
            let Some(next) = start.checked_add(new_size) else { return ptr::null_mut() };
            if next > self.end.get() && !self.grow(next) {
                return ptr::null_mut();
            }
            self.next.set(next);
            return block;
        }
        if new_size <= layout.size() {
            return block;
        }
        // SAFETY: the layout has the old one's alignment and the caller's size, which fit by
        // the contract of `realloc`.
        let moved =
            unsafe { self.alloc(Layout::from_size_align_unchecked(new_size, layout.align())) };
        if !moved.is_null() {
            // SAFETY: both blocks are alive, at least `layout.size()` long, and do not overlap.
            unsafe { ptr::copy_nonoverlapping(block, moved, layout.size()) };
        }
        moved
    }
}

impl Bump {
    #[cold]
    fn begin(&self) {
        self.next.set((&raw const __heap_base).expose_provenance());
        self.end.set(wasm32::memory_size(0).saturating_mul(PAGE));
    }

    /// Makes the memory reach `next`; says whether it does.
    #[cold]
    fn grow(&self, next: usize) -> bool {
        let pages = (next - self.end.get()).div_ceil(PAGE);
        // More than is needed, but no less where the limit is near.
        for pages in [pages.max(GROW_PAGES), pages] {
            let before = wasm32::memory_grow(0, pages);
            if before != usize::MAX {
                self.end.set((before + pages).saturating_mul(PAGE));
                return true;
            }
        }
        false
    }
}

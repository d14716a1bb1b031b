//! The ring buffers, and the counters of what did not fit into them.

use aya_ebpf::{
    macros::map,
    maps::{PerCpuArray, RingBuf},
};
use jittrace_ebpf::{RING_BYTES, lost};

#[map]
static RING: RingBuf = RingBuf::with_byte_size(RING_BYTES, 0);

#[map]
static FILE_RING: RingBuf = RingBuf::with_byte_size(RING_BYTES, 0);

#[map]
static LOST: PerCpuArray<u64> = PerCpuArray::with_max_entries(lost::COUNT, 0);

/// Counts one thing of `reason` that could not be told.
#[inline(always)]
pub(crate) fn count_lost(reason: u32) {
    if let Some(counter) = LOST.get_ptr_mut(reason) {
        // SAFETY: a slot of this CPU's own array; a lost increment by a nested program is the worst case.
        unsafe { *counter += 1 };
    }
}

/// Reserves a record of type `T`, lets `fill` write it, and submits it when `fill` says so.
///
/// Returns what `fill` returned; `false` and a count under `reason` when the ring is full.
#[inline(always)]
pub(crate) fn tell<T: 'static>(reason: u32, fill: impl FnOnce(*mut T) -> bool) -> bool {
    reserve_and_fill(&RING, reason, fill)
}

/// As [`tell`], in the ring of paths.
#[inline(always)]
pub(crate) fn tell_file<T: 'static>(fill: impl FnOnce(*mut T) -> bool) -> bool {
    reserve_and_fill(&FILE_RING, lost::FILE, fill)
}

#[inline(always)]
fn reserve_and_fill<T: 'static>(
    ring: &RingBuf,
    reason: u32,
    fill: impl FnOnce(*mut T) -> bool,
) -> bool {
    let Some(mut entry) = ring.reserve::<T>(0) else {
        count_lost(reason);
        return false;
    };
    if fill(entry.as_mut_ptr()) {
        entry.submit(0);
        true
    } else {
        entry.discard(0);
        false
    }
}

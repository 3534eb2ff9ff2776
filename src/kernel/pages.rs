//! Room for very many records, and ways to have them at hand in time: addresses at once, memory as
//! they are used, in large pages; and hints to the processor.
//!
//! A run with a million records touches them in no order, and with pages of 4 KB the processor's
//! table of pages holds a hundredth of them; with 2 MB it holds all. The first pages of a room stay
//! small, so that a small run takes little memory and no time to clear it.

/// Room that a small run needs, in small pages (bytes).
const SMALL: usize = 1 << 21;

/// An empty vector with addresses for `count` elements, up to which growing moves nothing. Without
/// them where addresses are scarce, or count as memory.
pub fn room<T>(count: usize) -> Vec<T> {
    if cfg!(not(all(unix, target_pointer_width = "64"))) {
        return Vec::new();
    }
    let room: Vec<T> = Vec::with_capacity(count);
    let start = room.as_ptr().addr();
    prefer_large(start + SMALL, start + count * size_of::<T>());
    room
}

/// Asks for large pages between two addresses of our own. Where the system has none, or does not
/// give them, nothing changes but speed.
#[cfg(target_os = "linux")]
fn prefer_large(from: usize, to: usize) {
    const PAGE: usize = 1 << 21;
    let (from, to) = (from.next_multiple_of(PAGE), to / PAGE * PAGE);
    if from < to {
        let start = std::ptr::without_provenance_mut(from);
        // SAFETY: a hint on whole pages within one allocation; it changes no content.
        unsafe { libc::madvise(start, to - from, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn prefer_large(_from: usize, _to: usize) {}

/// Hints to the processor that something is wanted soon, so that it is at hand by then.
#[inline(always)]
pub fn prefetch<T>(place: *const T) {
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint reads nothing, whatever the address, and every x86-64 processor knows it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
}

/// The same for an element, if there is one: a hint for memory that is not there takes long, too.
#[inline(always)]
pub fn prefetch_at<T>(elements: &[T], index: u32) {
    if let Some(element) = elements.get(index as usize) {
        prefetch(element);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_holds_what_it_was_made_for_without_moving() {
        for count in [0, 1, 1 << 17, 1 << 20] {
            let mut records: Vec<u64> = room(count);
            let (place, reserved) = (records.as_ptr(), records.capacity() >= count);
            records.extend(0..count as u64);
            assert!(!reserved || records.as_ptr() == place);
            assert!(records.iter().enumerate().all(|(index, &record)| record == index as u64));
        }
    }
}

//! Room for very many records, and ways to have them at hand in time: addresses at once, memory as
//! they are used, in large pages; and hints to the processor.
//!
//! A run with a million records touches them in no order, and with pages of 4 KB the processor's
//! table of pages holds a hundredth of them; with 2 MB it holds all. A small run has small pages,
//! and takes no more addresses than it needs.

/// What a small run needs of one kind of record (bytes).
const SMALL: usize = 1 << 20;

/// Records that a large run has addresses for at once: they cost nothing until they are used, and
/// growing moves nothing.
const LARGE: usize = 1 << 20;

/// Makes room for `more` elements behind those that there are.
#[inline(always)]
pub fn make_room<T>(elements: &mut Vec<T>, more: usize) {
    if elements.capacity() - elements.len() < more {
        enlarge(elements, more);
    }
}

#[cold]
#[inline(never)]
fn enlarge<T>(elements: &mut Vec<T>, more: usize) {
    let needed = elements.len() + more;
    let capacity = LARGE.max(2 * needed);
    let large = needed * size_of::<T>() > SMALL;
    let mut room: Vec<T> = Vec::new();
    if large && room.try_reserve_exact(capacity).is_ok() {
        // A place of its own, for one that grows where it is need not begin with a large page.
        let start = room.as_ptr().addr();
        prefer_large(start, start + capacity * size_of::<T>());
        room.append(elements);
        *elements = room;
    } else {
        elements.reserve(more);
    }
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
    fn a_large_room_is_made_once_and_holds_what_it_is_for() {
        let mut records: Vec<u64> = Vec::new();
        let mut places = Vec::new();
        for record in 0..LARGE as u64 {
            make_room(&mut records, 1);
            records.push(record);
            if record as usize * 8 > 2 * SMALL {
                places.push(records.as_ptr());
            }
        }
        places.dedup();
        assert_eq!(places.len(), 1);
        assert!(records.iter().enumerate().all(|(index, &record)| record == index as u64));
    }
}

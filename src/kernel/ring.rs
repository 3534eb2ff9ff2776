//! A queue in a ring of memory, for those that are looked into with every event.
//!
//! Why not `VecDeque`: any capacity will do for it, so each look compares and subtracts; a power of
//! two needs one mask. And a long one of these lies in large pages.
//!
//! Cost: O(1) everywhere, amortised where it grows.

use std::mem;

use super::pages;

/// First in, first out, and the last out if wanted.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    /// None, or a power of two of them, each for the elements whose numbers end in its own; those
    /// between `tail` and `head + places.len()` are left over.
    places: Vec<T>,
    /// Number of the first element, counted from the first there ever was.
    head: u64,
    /// Number of the next to come.
    tail: u64,
}

/// Places of a ring that holds something.
const FEWEST: usize = 16;

impl<T: Copy + Default> Ring<T> {
    /// Empty.
    pub fn new() -> Self {
        Ring { places: Vec::new(), head: 0, tail: 0 }
    }

    /// Adds an element at the end.
    #[inline(always)]
    pub fn push_back(&mut self, element: T) {
        if self.len() == self.places.len() {
            self.grow();
        }
        let place = self.place(self.tail);
        self.places[place] = element;
        self.tail += 1;
    }

    /// Takes the first element.
    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.front()?;
        self.head += 1;
        Some(first)
    }

    /// Takes the last element.
    #[inline]
    pub fn pop_back(&mut self) -> Option<T> {
        let last = self.back()?;
        self.tail -= 1;
        Some(last)
    }

    /// The first element.
    #[inline(always)]
    pub fn front(&self) -> Option<T> {
        self.get(0)
    }

    /// The last element.
    #[inline]
    pub fn back(&self) -> Option<T> {
        self.get(self.len().wrapping_sub(1))
    }

    /// The element so many places behind the first.
    #[inline(always)]
    pub fn get(&self, behind: usize) -> Option<T> {
        self.get_ref(behind).copied()
    }

    /// Where the element so many places behind the first lies.
    #[inline(always)]
    pub fn get_ref(&self, behind: usize) -> Option<&T> {
        if behind >= self.len() {
            return None;
        }
        self.places.get(self.place(self.head + behind as u64))
    }

    /// Hints to the processor that the element so many places behind the first is wanted soon.
    #[inline(always)]
    pub fn prefetch(&self, behind: usize) {
        let place = self.places.as_ptr().wrapping_add(self.place(self.head + behind as u64));
        pages::prefetch(place);
    }

    /// Number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        (self.tail - self.head) as usize
    }

    /// True when there is none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.tail == self.head
    }

    /// Forgets all elements, and keeps the room.
    pub fn clear(&mut self) {
        (self.head, self.tail) = (0, 0);
    }

    /// All elements, from the first.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        (self.head..self.tail).map(|number| self.places[self.place(number)])
    }

    /// Drops those that are not to be kept.
    pub fn retain(&mut self, keep: impl Fn(T) -> bool) {
        let end = mem::replace(&mut self.tail, self.head);
        for number in self.head..end {
            let element = self.places[self.place(number)];
            if keep(element) {
                let place = self.place(self.tail);
                self.places[place] = element;
                self.tail += 1;
            }
        }
    }

    #[inline(always)]
    fn place(&self, number: u64) -> usize {
        number as usize & self.places.len().wrapping_sub(1)
    }

    /// Doubles the places, by a copy of them all: one of the two of each element lies where its
    /// number now wants it.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let more = self.places.len().max(FEWEST);
        pages::make_room(&mut self.places, more);
        if self.places.is_empty() {
            self.places.resize(more, T::default());
        } else {
            self.places.extend_from_within(..);
        }
    }
}

impl<T: Copy + Default> Default for Ring<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_does_what_a_queue_of_the_library_does(
            script in prop::collection::vec((0u8..5, 1u32..40), 1..200),
        ) {
            let (mut ring, mut queue) = (Ring::new(), VecDeque::new());
            let mut next = 0;
            for (step, times) in script {
                for _ in 0..times {
                    match step {
                        0 | 1 => {
                            ring.push_back(next);
                            queue.push_back(next);
                            next += 1;
                        }
                        2 => prop_assert_eq!(ring.pop_front(), queue.pop_front()),
                        3 => prop_assert_eq!(ring.pop_back(), queue.pop_back()),
                        _ => {
                            ring.retain(|number| number % 7 != times);
                            queue.retain(|number| number % 7 != times);
                        }
                    }
                    prop_assert_eq!(ring.len(), queue.len());
                    prop_assert_eq!(ring.front(), queue.front().copied());
                    prop_assert_eq!(ring.back(), queue.back().copied());
                    prop_assert_eq!(ring.get(3), queue.get(3).copied());
                }
                prop_assert!(ring.iter().eq(queue.iter().copied()));
            }
        }
    }

    #[test]
    fn a_cleared_ring_is_a_new_one() {
        let mut ring = Ring::new();
        (0..100).for_each(|number| ring.push_back(number));
        ring.clear();
        assert!(ring.is_empty() && ring.pop_front().is_none() && ring.back().is_none());
        ring.push_back(7);
        assert_eq!((ring.len(), ring.front()), (1, Some(7)));
    }
}

//! FIFO lanes: one queue for each of a few constant spans.
//!
//! What is always pushed "one timeout from now" comes in order by itself, so a queue holds it.
//!
//! Cost: in O(1) after a search among at most eight spans; out O(1), with a scan of at most eight
//! cached heads. Looking at the earliest compares nothing: it is remembered, and changes only when
//! its own lane moves on or an empty lane receives something earlier.
//!
//! Why not a lane for every span: with each one more the scan grows, and past about eight the wheel
//! is as fast.

use std::collections::VecDeque;

use super::Entry;
use crate::kernel::time::Span;

/// At most so many lanes.
pub(super) const MAX_LANES: usize = 8;

/// The key of an empty lane, past every other.
const EMPTY: u128 = u128::MAX;

/// The lanes.
#[derive(Clone, Debug)]
pub(super) struct Lanes<E> {
    spans: Vec<Span>,
    queues: Vec<VecDeque<Entry<E>>>,
    /// Key of the first entry of each lane.
    heads: [u128; MAX_LANES],
    /// The lane with the lowest head.
    first: usize,
}

impl<E: Copy> Lanes<E> {
    pub fn new() -> Self {
        Lanes { spans: Vec::new(), queues: Vec::new(), heads: [EMPTY; MAX_LANES], first: 0 }
    }

    /// The number of the lane for `span`, a new one while there are fewer than [`MAX_LANES`].
    pub fn open(&mut self, span: Span) -> Option<usize> {
        let lane = self.spans.iter().position(|&lane| lane == span);
        if lane.is_some() || self.spans.len() == MAX_LANES {
            return lane;
        }
        self.spans.push(span);
        self.queues.push(VecDeque::new());
        Some(self.spans.len() - 1)
    }

    pub fn clear(&mut self) {
        self.spans.clear();
        self.queues.clear();
        self.heads = [EMPTY; MAX_LANES];
        self.first = 0;
    }

    /// The span of a lane.
    #[inline]
    pub fn span(&self, lane: usize) -> Span {
        self.spans[lane]
    }

    #[inline]
    pub fn push(&mut self, lane: usize, entry: Entry<E>) {
        let queue = &mut self.queues[lane];
        debug_assert!(queue.back().is_none_or(|last| last.key() < entry.key()), "lane in disorder");
        queue.push_back(entry);
        if self.heads[lane] == EMPTY {
            self.heads[lane] = entry.key();
            if self.heads[lane] < self.first_key() {
                self.first = lane;
            }
        }
    }

    /// The key of the earliest entry of all lanes; past every key when there is none.
    #[inline]
    pub fn first_key(&self) -> u128 {
        self.heads[self.first]
    }

    /// The earliest event of all lanes.
    #[inline]
    pub fn ahead(&self) -> Option<E> {
        self.queues.get(self.first)?.front().map(|entry| entry.event)
    }

    /// Takes the earliest entry of all lanes.
    #[inline]
    pub fn pop(&mut self) -> Option<Entry<E>> {
        let queue = self.queues.get_mut(self.first)?;
        let entry = queue.pop_front();
        self.heads[self.first] = queue.front().map_or(EMPTY, Entry::key);
        let mut lowest = self.first_key();
        for (lane, &head) in self.heads.iter().enumerate().take(self.spans.len()) {
            if head < lowest {
                (self.first, lowest) = (lane, head);
            }
        }
        entry
    }

    pub fn len(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }
}

//! FIFO lanes: one queue for each of a few constant spans, and for a few makers of events.
//!
//! What is always pushed "one timeout from now" comes in order by itself, so a queue holds it; and
//! so does what somebody pushes one after the other, each when the one before has left.
//!
//! Cost: in O(1); out O(1), with a scan of at most eight cached heads. Looking at the earliest
//! compares nothing: it is remembered, and changes only when its own lane moves on or an empty lane
//! receives something earlier.
//!
//! Why not a lane for every span: with each one more the scan grows, and past about eight the wheel
//! is as fast.

use super::{Entry, Hint, NO_HINT};
use crate::kernel::ring::Ring;
use crate::kernel::time::Span;

/// At most so many lanes.
pub(super) const MAX_LANES: usize = 8;

/// The lanes.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    /// The span of each lane; none of one that holds the events of a single maker.
    spans: Vec<Option<Span>>,
    /// First entry of each lane; [`Entry::NONE`] of an empty one.
    heads: Heads,
    /// All others.
    queues: [Ring<Entry>; MAX_LANES],
    /// The lane with the lowest head.
    first: usize,
}

/// An entry for each lane, field by field: where two words lie side by side, they are copied in
/// one, and a processor that reads two words in one just after they were written one by one waits.
#[derive(Clone, Debug)]
struct Heads {
    times: [u64; MAX_LANES],
    orders: [u64; MAX_LANES],
    rests: [u64; MAX_LANES],
}

impl Heads {
    const NONE: Heads = Heads {
        times: [Entry::NONE.time; MAX_LANES],
        orders: [Entry::NONE.order; MAX_LANES],
        rests: [Entry::NONE.rest; MAX_LANES],
    };

    #[inline(always)]
    fn get(&self, lane: usize) -> Entry {
        Entry { time: self.times[lane], order: self.orders[lane], rest: self.rests[lane] }
    }

    #[inline(always)]
    fn set(&mut self, lane: usize, entry: Entry) {
        self.times[lane] = entry.time;
        self.orders[lane] = entry.order;
        self.rests[lane] = entry.rest;
    }
}

impl Lanes {
    pub fn new() -> Self {
        Lanes { spans: Vec::new(), heads: Heads::NONE, queues: Default::default(), first: 0 }
    }

    /// The number of the lane for `span`, a new one while there are fewer than [`MAX_LANES`].
    pub fn open(&mut self, span: Span) -> Option<usize> {
        let lane = self.spans.iter().position(|&lane| lane == Some(span));
        lane.or_else(|| self.add(Some(span)))
    }

    /// The number of a lane for a single maker, while there are fewer than [`MAX_LANES`].
    pub fn open_own(&mut self) -> Option<usize> {
        self.add(None)
    }

    fn add(&mut self, span: Option<Span>) -> Option<usize> {
        let lane = self.spans.len();
        (lane < MAX_LANES).then(|| {
            self.spans.push(span);
            lane
        })
    }

    pub fn clear(&mut self) {
        self.spans.clear();
        self.heads = Heads::NONE;
        self.queues.iter_mut().for_each(Ring::clear);
        self.first = 0;
    }

    #[inline(always)]
    pub fn push(&mut self, lane: usize, entry: Entry) {
        let head = self.heads.get(lane);
        if head.is_some() {
            let queue = &mut self.queues[lane];
            debug_assert!(queue.back().unwrap_or(head).key() < entry.key(), "lane in disorder");
            return queue.push_back(entry);
        }
        self.heads.set(lane, entry);
        let mut lowest = self.first().key();
        self.prefer(lane, &mut lowest);
    }

    /// The earliest entry of all lanes; [`Entry::NONE`] when there is none.
    #[inline(always)]
    pub fn first(&self) -> Entry {
        self.heads.get(self.first % MAX_LANES)
    }

    /// Takes the earliest entry of all lanes, and says of which.
    #[inline(always)]
    pub fn pop(&mut self) -> (Entry, usize) {
        let lane = self.first % MAX_LANES;
        let queue = &mut self.queues[lane];
        let next = queue.pop_front().unwrap_or(Entry::NONE);
        let entry = self.heads.get(lane);
        self.heads.set(lane, next);
        if self.spans.len() > 1 {
            self.choose_first(next.key());
        }
        (entry, lane)
    }

    /// Makes another lane the first, if its head is lower than `lowest`, that of the present first.
    #[inline(always)]
    fn choose_first(&mut self, mut lowest: u128) {
        if self.spans.len() == 2 {
            return self.prefer((self.first ^ 1) % MAX_LANES, &mut lowest);
        }
        for lane in 0..self.spans.len().min(MAX_LANES) {
            self.prefer(lane, &mut lowest);
        }
    }

    /// Makes a lane the first, if its head is lower than `lowest`. Without a jump: which lane is
    /// next, nobody can foresee.
    #[inline(always)]
    fn prefer(&mut self, lane: usize, lowest: &mut u128) {
        let head = self.heads.get(lane);
        let lower = head.key() < *lowest;
        self.first = std::hint::select_unpredictable(lower, lane, self.first);
        *lowest = std::hint::select_unpredictable(lower, head.key(), *lowest);
    }

    /// The first entry of a lane, and the third.
    #[inline(always)]
    pub fn ahead(&self, lane: usize) -> [Hint; 2] {
        let third = self.queues[lane % MAX_LANES].get_ref(1);
        [self.heads.get(lane % MAX_LANES).hint(), third.map_or(NO_HINT, Entry::hint)]
    }

    pub fn len(&self) -> usize {
        let heads = (0..MAX_LANES).filter(|&lane| self.heads.get(lane).is_some()).count();
        heads + self.queues.iter().map(Ring::len).sum::<usize>()
    }
}

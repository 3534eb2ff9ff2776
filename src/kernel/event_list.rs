//! The event list: future events, in order of time, and in order of entry at equal times.
//!
//! A binary heap, and beside it FIFO *lanes* for constant spans: what is always pushed "one timeout
//! from now" comes in order by itself, so a queue holds it and the heap never sees it. The earliest
//! of the heap and the lane heads leaves first.
//!
//! Cost: a lane O(1) in and out; the heap O(log n). Nothing is ever removed from the middle;
//! whoever pushes an event must recognise it when it has become stale (by the generation in its
//! id).

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use super::time::{Span, Time};

/// At most so many lanes: each pop looks at every head, and past about eight the heap is cheaper.
const MAX_LANES: usize = 8;

/// Future events of kind `E`.
#[derive(Clone, Debug)]
pub struct EventList<E> {
    heap: BinaryHeap<Entry<E>>,
    lanes: Vec<VecDeque<Entry<E>>>,
    spans: Vec<Span>,
    sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    time: Time,
    sequence: u64,
    event: E,
}

impl<E: Copy> EventList<E> {
    /// An empty list.
    pub fn new() -> Self {
        EventList { heap: BinaryHeap::new(), lanes: Vec::new(), spans: Vec::new(), sequence: 0 }
    }

    /// Opens a lane for events that come `span` after the present. Past the eighth, such events go
    /// to the heap.
    pub fn open_lane(&mut self, span: Span) {
        if self.spans.len() < MAX_LANES && !self.spans.contains(&span) {
            self.spans.push(span);
            self.lanes.push(VecDeque::new());
        }
    }

    /// Adds an event at `time`.
    pub fn push(&mut self, time: Time, event: E) {
        let entry = self.entry(time, event);
        self.heap.push(entry);
    }

    /// Adds an event `span` after `now`, through its lane if it has one. `now` must never fall from
    /// call to call.
    #[inline]
    pub fn push_after(&mut self, now: Time, span: Span, event: E) {
        let entry = self.entry(now + span, event);
        match self.spans.iter().position(|&lane| lane == span) {
            None => self.heap.push(entry),
            Some(index) => {
                let lane = &mut self.lanes[index];
                debug_assert!(
                    lane.back().is_none_or(|last| last.time <= entry.time),
                    "lane out of order"
                );
                lane.push_back(entry);
            }
        }
    }

    /// Takes the earliest event, unless it lies at `end` or later.
    pub fn pop_before(&mut self, end: Time) -> Option<(Time, E)> {
        let mut best = self.heap.peek().map(|entry| (entry.key(), usize::MAX));
        for (index, lane) in self.lanes.iter().enumerate() {
            if let Some(entry) = lane.front()
                && best.is_none_or(|(key, _)| entry.key() < key)
            {
                best = Some((entry.key(), index));
            }
        }
        let (key, from) = best?;
        if key.0 >= end {
            return None;
        }
        let entry = match from {
            usize::MAX => self.heap.pop(),
            index => self.lanes[index].pop_front(),
        };
        entry.map(|entry| (entry.time, entry.event))
    }

    /// Number of events to come, stale ones included.
    pub fn len(&self) -> usize {
        self.heap.len() + self.lanes.iter().map(VecDeque::len).sum::<usize>()
    }

    /// True when nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn entry(&mut self, time: Time, event: E) -> Entry<E> {
        self.sequence += 1;
        Entry { time, sequence: self.sequence, event }
    }
}

impl<E: Copy> Default for EventList<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Entry<E> {
    fn key(&self) -> (Time, u64) {
        (self.time, self.sequence)
    }
}

/// Reversed, since the standard heap gives its largest first.
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_times_leave_in_order_of_entry_across_heap_and_lanes() {
        let mut list = EventList::new();
        list.open_lane(Span::from_nanos(5));
        list.push(Time::from_nanos(5), 'a');
        list.push_after(Time::ZERO, Span::from_nanos(5), 'b');
        list.push(Time::from_nanos(5), 'c');
        let order: String =
            std::iter::from_fn(|| list.pop_before(Time::NEVER)).map(|(_, e)| e).collect();
        assert_eq!(order, "abc");
    }

    #[test]
    fn an_event_at_the_end_stays_in_the_list() {
        let mut list = EventList::new();
        list.push(Time::from_nanos(9), ());
        assert_eq!(list.pop_before(Time::from_nanos(9)), None);
        assert_eq!(list.len(), 1);
    }

    proptest! {
        /// The oracle is a sort by (time, order of entry).
        #[test]
        fn events_leave_sorted_by_time_then_entry(
            script in prop::collection::vec((0u64..50, 0usize..12), 1..200),
        ) {
            let mut list = EventList::new();
            let spans: Vec<Span> = (0..11).map(|s| Span::from_nanos(s * 7)).collect();
            spans.iter().for_each(|&span| list.open_lane(span));
            let (mut now, mut expected, mut got) = (Time::ZERO, Vec::new(), Vec::new());
            for (id, &(wait, way)) in script.iter().enumerate() {
                let time = if let Some(&span) = spans.get(way) {
                    list.push_after(now, span, id);
                    now + span
                } else {
                    let time = now + Span::from_nanos(wait);
                    list.push(time, id);
                    time
                };
                expected.push((time, id));
                if wait % 3 == 0 && let Some((time, id)) = list.pop_before(Time::NEVER) {
                    prop_assert!(time >= now);
                    now = time;
                    got.push((time, id));
                }
            }
            got.extend(std::iter::from_fn(|| list.pop_before(Time::NEVER)));
            prop_assert!(got.windows(2).all(|w| w[0].0 <= w[1].0));
            let mut sorted = got.clone();
            sorted.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(sorted, expected);
            let in_order = |w: &[(Time, usize)]| w[0].0 < w[1].0 || w[0].1 < w[1].1;
            prop_assert!(got.windows(2).all(in_order));
        }
    }
}

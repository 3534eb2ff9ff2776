//! The event list: future events, in order of time, and in order of entry at equal times.
//!
//! A radix-64 wheel, and beside it FIFO lanes for constant spans: what is always pushed "one
//! timeout from now" comes in order by itself, so the wheel never sees it. The earlier head
//! of the two leaves first. One event of the very present has a place of its own.
//!
//! Cost: O(1) in and out, amortised, through lane and wheel alike, and no allocation once warm; an
//! entry takes 32 bytes.
//!
//! Promise: the order of leaving depends on the pushes alone, never on when and up to where someone
//! has looked; an event that lay too late for one look is there for the next.
//!
//! Nothing is ever removed from the middle; whoever pushes an event must recognise it when it has
//! become stale (by the generation in its id). Why not remove it: the search for it, or the record
//! of where it lies, costs more than a stale event that is popped and dropped.
//!
//! Sources: see `wheel`.

mod lanes;
mod wheel;

use super::time::{Span, Time};
use lanes::Lanes;
use wheel::Wheel;

/// Future events of kind `E`.
#[derive(Clone, Debug)]
pub struct EventList<E> {
    wheel: Wheel<E>,
    lanes: Lanes<E>,
    /// An event of the present, which mostly is the next to leave.
    soon: Option<Entry<E>>,
    sequence: u64,
}

/// The name of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane(usize);

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    time: Time,
    sequence: u64,
    event: E,
}

impl<E: Copy> EventList<E> {
    /// An empty list.
    pub fn new() -> Self {
        EventList { wheel: Wheel::new(), lanes: Lanes::new(), soon: None, sequence: 0 }
    }

    /// Forgets all events and lanes, and keeps the room.
    pub fn clear(&mut self) {
        self.wheel.clear();
        self.lanes.clear();
        self.soon = None;
        self.sequence = 0;
    }

    /// The lane for events that come `span` after the present, opened if need be; `None` past the
    /// eighth, where the wheel is as fast.
    pub fn lane(&mut self, span: Span) -> Option<Lane> {
        self.lanes.open(span).map(Lane)
    }

    /// Adds an event at `time`.
    #[inline]
    pub fn push(&mut self, time: Time, event: E) {
        let entry = self.entry(time, event);
        self.wheel.push(entry);
    }

    /// Adds an event at the end of a lane, its span after `now`. `now` must never fall from call to
    /// call.
    #[inline]
    pub fn push_in(&mut self, Lane(lane): Lane, now: Time, event: E) {
        let entry = self.entry(now + self.lanes.span(lane), event);
        self.lanes.push(lane, entry);
    }

    /// Adds an event at `now`, the time of the last event that left.
    #[inline]
    pub fn push_now(&mut self, now: Time, event: E) {
        let entry = self.entry(now, event);
        if self.soon.is_some() {
            return self.wheel.push(entry);
        }
        self.soon = Some(entry);
    }

    /// Takes the earliest event, unless it lies at `end` or later.
    #[inline]
    pub fn pop_before(&mut self, end: Time) -> Option<(Time, E)> {
        if let Some(soon) = self.soon
            && self.is_first(&soon)
        {
            if soon.time >= end {
                return None;
            }
            self.soon = None;
            return Some((soon.time, soon.event));
        }
        let lane = self.lanes.first_key();
        // Past the head of the lanes the wheel need not look; at its very time it must.
        let limit = end.nanos().min(((lane >> 64) as u64).saturating_add(1));
        let entry = match self.wheel.peek(limit) {
            Some(entry) if entry.key() < lane => {
                if entry.time >= end {
                    return None;
                }
                self.wheel.pop()
            }
            _ => {
                if (lane >> 64) as u64 >= end.nanos() {
                    return None;
                }
                self.lanes.pop()
            }
        };
        entry.map(|entry| (entry.time, entry.event))
    }

    /// Events that are soon to leave, of the wheel and of the lanes: a hint of what will be wanted.
    #[inline]
    pub fn ahead(&self) -> [Option<E>; 2] {
        [self.wheel.ahead(), self.lanes.ahead()]
    }

    /// Whether an entry leaves before all in wheel and lanes.
    #[inline]
    fn is_first(&mut self, soon: &Entry<E>) -> bool {
        let key = soon.key();
        let limit = soon.time.nanos().saturating_add(1);
        key < self.lanes.first_key() && self.wheel.peek(limit).is_none_or(|entry| key < entry.key())
    }

    /// Number of events to come, stale ones included.
    pub fn len(&self) -> usize {
        self.wheel.len() + self.lanes.len() + usize::from(self.soon.is_some())
    }

    /// True when nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
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
    /// Time, then order of entry, in one comparable number.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.time.nanos()) << 64 | u128::from(self.sequence)
    }
}

#[cfg(test)]
mod tests;

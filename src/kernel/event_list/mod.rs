//! The event list: future events, in order of time, and in order of entry at equal times.
//!
//! A radix-64 wheel, and beside it FIFO lanes for constant spans and for those who push one event
//! after the other: what comes in order by itself the wheel never sees. The earlier head
//! of the two leaves first. One event of the very present has a place of its own.
//!
//! Cost: O(1) in and out, amortised, through lane and wheel alike, and no allocation once warm; an
//! entry takes 24 bytes.
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

use std::marker::PhantomData;
use std::mem;

use super::time::{Span, Time};
use lanes::Lanes;
use wheel::Wheel;

/// An event that fits into a kind and a word. So an entry of the list is three words, which go from
/// place to place in registers: an `enum` is written by its parts and read as a whole, and a
/// processor that reads what it has just written in parts waits for it.
pub trait Packed: Copy {
    /// The kind, and the rest.
    fn pack(self) -> (u8, u64);

    /// What was packed; of a pair that nobody has packed, any event.
    fn unpack(kind: u8, rest: u64) -> Self;
}

/// Future events of kind `E`.
#[derive(Clone, Debug)]
pub struct EventList<E> {
    wheel: Wheel,
    lanes: Lanes,
    /// An event of the present, which mostly is the next to leave; [`Entry::NONE`] without.
    soon: Entry,
    sequence: u64,
    events: PhantomData<E>,
}

/// The name of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane(usize);

/// An event that has left the list.
#[derive(Clone, Copy, Debug)]
pub struct Due<E> {
    /// When it happens.
    pub time: Time,
    kind: u8,
    rest: u64,
    /// The lane that it has left; [`NO_LANE`] of any other.
    lane: usize,
    event: PhantomData<E>,
}

/// No lane.
const NO_LANE: usize = usize::MAX;

/// Kind and rest of an event that is to come.
type Hint = (u8, u64);

/// No event is to come.
const NO_HINT: Hint = (u8::MAX, u64::MAX);

#[derive(Clone, Copy, Debug)]
struct Entry {
    time: u64,
    /// Sequence number in the upper 56 bits, kind of the event below: 7·10¹⁶ events.
    order: u64,
    rest: u64,
}

const _: () = assert!(size_of::<Entry>() == 24, "events are copied millions of times a second");

impl<E: Packed> EventList<E> {
    /// An empty list.
    pub fn new() -> Self {
        EventList {
            wheel: Wheel::new(),
            lanes: Lanes::new(),
            soon: Entry::NONE,
            sequence: 0,
            events: PhantomData,
        }
    }

    /// Forgets all events and lanes, and keeps the room.
    pub fn clear(&mut self) {
        self.wheel.clear();
        self.lanes.clear();
        self.soon = Entry::NONE;
        self.sequence = 0;
    }

    /// The lane for events that come `span` after the present, opened if need be; `None` past the
    /// eighth, where the wheel is as fast.
    pub fn lane(&mut self, span: Span) -> Option<Lane> {
        self.lanes.open(span).map(Lane)
    }

    /// A lane for one who never has more than one event to come; `None` past the eighth of all.
    pub fn own_lane(&mut self) -> Option<Lane> {
        self.lanes.open_own().map(Lane)
    }

    /// Adds an event at `time`.
    #[inline(always)]
    pub fn push(&mut self, time: Time, event: E) {
        let entry = self.entry(time, event);
        self.wheel.push(entry);
    }

    /// Adds an event to the end of a lane, at `time`, which is the lane's span after the present,
    /// or any if the lane is empty: times in a lane never fall.
    #[inline(always)]
    pub fn push_in(&mut self, Lane(lane): Lane, time: Time, event: E) {
        let entry = self.entry(time, event);
        self.lanes.push(lane, entry);
    }

    /// Adds an event at `now`, the time of the last event that left.
    #[inline(always)]
    pub fn push_now(&mut self, now: Time, event: E) {
        let entry = self.entry(now, event);
        if self.soon.is_some() {
            return self.wheel.push(entry);
        }
        self.soon = entry;
    }

    /// Takes the earliest event, unless it lies at `end` or later.
    #[inline(always)]
    pub fn pop_before(&mut self, end: Time) -> Option<Due<E>> {
        let end = end.nanos();
        if self.soon.is_some() && self.is_first(self.soon) {
            let due = self.soon.time < end;
            return due.then(|| Due::new(mem::replace(&mut self.soon, Entry::NONE), NO_LANE));
        }
        let lane = self.lanes.first().key();
        // Past the head of the lanes the wheel need not look; at its very time it must.
        let limit = || end.min(self.lanes.first().time.saturating_add(1));
        if let Some(first) = self.wheel.look(limit)
            && first.key() < lane
        {
            let due = first.time < end;
            return due.then(|| Due::new(self.wheel.pop(), NO_LANE));
        }
        let due = self.lanes.first().time < end;
        due.then(|| {
            let (entry, lane) = self.lanes.pop();
            Due::new(entry, lane)
        })
    }

    /// Two of the events that are to come, the first before the second, of those that are kept as
    /// the one that has just left: a hint of what will be wanted soon. Packed, for to unpack is to
    /// jump by the kind, which nobody can foresee; any kind and rest where there is none.
    #[inline(always)]
    pub fn ahead(&self, left: &Due<E>) -> [(u8, u64); 2] {
        if left.lane == NO_LANE { self.wheel.ahead() } else { self.lanes.ahead(left.lane) }
    }

    /// Whether no event is to come at `now`, the time of the last event that left.
    #[inline(always)]
    pub fn is_silent(&mut self, now: Time) -> bool {
        let after_the_present = Entry { time: now.nanos(), ..Entry::NONE };
        !self.soon.is_some() && self.is_first(after_the_present)
    }

    /// Whether an entry leaves before all in wheel and lanes.
    #[inline(always)]
    fn is_first(&mut self, entry: Entry) -> bool {
        let wheel = self.wheel.look(|| entry.time.saturating_add(1));
        let later = |other: &Entry| entry.key() < other.key();
        wheel.is_none_or(later) && later(&self.lanes.first())
    }

    /// Number of events to come, stale ones included.
    pub fn len(&self) -> usize {
        self.wheel.len() + self.lanes.len() + usize::from(self.soon.is_some())
    }

    /// True when nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline(always)]
    fn entry(&mut self, time: Time, event: E) -> Entry {
        self.sequence += 1;
        let (kind, rest) = event.pack();
        Entry { time: time.nanos(), order: self.sequence << 8 | u64::from(kind), rest }
    }
}

impl<E: Packed> Default for EventList<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Packed> Due<E> {
    #[inline(always)]
    fn new(entry: Entry, lane: usize) -> Self {
        let (time, (kind, rest)) = (Time::from_nanos(entry.time), entry.hint());
        Due { time, kind, rest, lane, event: PhantomData }
    }

    /// What happens.
    #[inline(always)]
    pub fn event(self) -> E {
        E::unpack(self.kind, self.rest)
    }

    /// The kind as it was packed.
    #[inline(always)]
    pub fn kind(&self) -> u8 {
        self.kind
    }
}

impl Default for Entry {
    fn default() -> Self {
        Entry::NONE
    }
}

impl Entry {
    /// No entry, after every other.
    const NONE: Entry = Entry { time: u64::MAX, order: u64::MAX, rest: u64::MAX };

    #[inline(always)]
    fn is_some(&self) -> bool {
        self.order != u64::MAX
    }

    #[inline(always)]
    fn hint(&self) -> Hint {
        (self.order as u8, self.rest)
    }

    /// One of two entries, without a jump.
    #[inline(always)]
    fn choose(first: bool, one: Entry, other: Entry) -> Entry {
        let choose = |one, other| std::hint::select_unpredictable(first, one, other);
        Entry {
            time: choose(one.time, other.time),
            order: choose(one.order, other.order),
            rest: choose(one.rest, other.rest),
        }
    }

    /// Time, then order of entry, in one comparable number.
    #[inline(always)]
    fn key(&self) -> u128 {
        u128::from(self.time) << 64 | u128::from(self.order)
    }
}

#[cfg(test)]
mod tests;

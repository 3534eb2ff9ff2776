//! Who waits at a station, who is next, and who is not let in.
//!
//! One that leaves from the middle (its wait is over, or its caller's patience and the callee heeds
//! it) leaves its name behind as a husk, until that comes up or husks are half of the queue; `len`
//! counts the living alone.

use crate::document::Value;
use crate::kernel::{Ring, Span};

/// After so many others: time enough to fetch from memory what has lain there for long.
const LATER: usize = 4;

/// The rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Who is next.
    pub discipline: Discipline,
    /// How many may wait; `None`: all.
    pub capacity: Option<u32>,
    /// How long one may wait before it is refused.
    pub max_wait: Option<Span>,
}

/// Order of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// First in, first out.
    Fifo,
    /// Last in, first out: under overload the newest are served in time and the oldest starve.
    Lifo,
}

/// The waiting of one station. `W` names one who waits.
#[derive(Clone, Debug)]
pub struct Waiting<W> {
    fresh: Ring<W>,
    /// Woken by a callee's answer and going on where they were: before all who have not started.
    resumed: Ring<W>,
    husks: usize,
}

impl Queue {
    /// FIFO without bound, the default.
    pub const UNBOUNDED: Queue =
        Queue { discipline: Discipline::Fifo, capacity: None, max_wait: None };

    /// Reads `queue.fifo = { capacity = 500 }`, `queue.lifo = { … }`, or `queue = "fifo" | "lifo" |
    /// "none"`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        let (name, contents) = value.choice(&["fifo", "lifo", "none"])?;
        let discipline = if name == "lifo" { Discipline::Lifo } else { Discipline::Fifo };
        let mut queue = Queue { discipline, ..Queue::UNBOUNDED };
        if name == "none" {
            queue.capacity = Some(0);
        }
        let Some(contents) = contents else {
            return Some(queue);
        };
        let section = contents.section()?;
        if name == "none" {
            section.finish();
            return Some(queue);
        }
        let capacity = section.get("capacity").map(|v| v.whole(0, u64::from(u32::MAX)));
        let max_wait = section.get("max_wait").map(|v| v.positive_duration());
        section.finish();
        queue.capacity = capacity.map_or(Some(None), |most| most.map(|most| Some(most as u32)))?;
        queue.max_wait = max_wait.map_or(Some(None), |wait| wait.map(Some))?;
        Some(queue)
    }

    /// True when one more may wait behind `waiting` others.
    #[inline]
    pub fn admits(&self, waiting: usize) -> bool {
        self.capacity.is_none_or(|capacity| waiting < capacity as usize)
    }
}

impl<W: Copy + Default> Waiting<W> {
    /// Nobody waits.
    pub fn new() -> Self {
        Waiting { fresh: Ring::new(), resumed: Ring::new(), husks: 0 }
    }

    /// Joins the queue.
    #[inline]
    pub fn push(&mut self, waiter: W) {
        self.fresh.push_back(waiter);
    }

    /// Goes on before all that wait for their first service.
    pub fn push_resumed(&mut self, waiter: W) {
        self.resumed.push_back(waiter);
    }

    /// Who is next; `waits` tells the living from husks, which are dropped on the way.
    #[inline(always)]
    pub fn pop(&mut self, discipline: Discipline, waits: impl Fn(W) -> bool) -> Option<W> {
        // Most queues hold nobody but those who wait for their turn.
        if discipline == Discipline::Fifo && self.resumed.is_empty() && self.husks == 0 {
            self.fresh.prefetch(2 * LATER);
            return self.fresh.pop_front();
        }
        self.pop_living(discipline, waits)
    }

    #[inline(never)]
    fn pop_living(&mut self, discipline: Discipline, waits: impl Fn(W) -> bool) -> Option<W> {
        loop {
            let next = self.resumed.pop_front().or_else(|| match discipline {
                Discipline::Fifo => self.fresh.pop_front(),
                Discipline::Lifo => self.fresh.pop_back(),
            })?;
            if self.husks == 0 || waits(next) {
                return Some(next);
            }
            self.husks -= 1;
        }
    }

    /// Who is served after four others, or a husk; those that go on after a call are not looked at.
    #[inline]
    pub fn later(&self, discipline: Discipline) -> Option<W> {
        match discipline {
            Discipline::Fifo => self.fresh.get(LATER),
            Discipline::Lifo => self.fresh.get(self.fresh.len().wrapping_sub(LATER + 1)),
        }
    }

    /// Notes that one in the middle has left; it must be a husk to `waits` already.
    pub fn leave(&mut self, waits: impl Fn(W) -> bool) {
        self.husks += 1;
        // A sweep of the whole queue pays for itself when it halves it.
        if self.husks > 64 && self.husks * 2 > self.fresh.len() + self.resumed.len() {
            self.fresh.retain(&waits);
            self.resumed.retain(&waits);
            self.husks = 0;
        }
    }

    /// Takes everyone who still waits.
    pub fn drain(&mut self, waits: impl Fn(W) -> bool) -> Vec<W> {
        let all = self.resumed.iter().chain(self.fresh.iter());
        let waiters = all.filter(|&waiter| waits(waiter)).collect();
        self.clear();
        waiters
    }

    /// Forgets everyone, and keeps the room.
    pub fn clear(&mut self) {
        self.fresh.clear();
        self.resumed.clear();
        self.husks = 0;
    }

    /// How many wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.fresh.len() + self.resumed.len() - self.husks
    }

    /// True when nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<W: Copy + Default> Default for Waiting<W> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(discipline: Discipline) -> Vec<u32> {
        let mut waiting = Waiting::new();
        for waiter in [1, 2, 3] {
            waiting.push(waiter);
        }
        std::iter::from_fn(|| waiting.pop(discipline, |_| true)).collect()
    }

    #[test]
    fn fifo_serves_the_oldest_and_lifo_the_newest() {
        assert_eq!(order(Discipline::Fifo), [1, 2, 3]);
        assert_eq!(order(Discipline::Lifo), [3, 2, 1]);
    }

    #[test]
    fn husks_neither_count_nor_come_up() {
        let mut waiting = Waiting::new();
        (0..200).for_each(|waiter| waiting.push(waiter));
        for left in 0..150 {
            waiting.leave(|waiter| waiter > left);
        }
        assert_eq!(waiting.len(), 50);
        assert!(waiting.fresh.len() < 200, "a sweep has happened");
        assert_eq!(waiting.pop(Discipline::Fifo, |waiter| waiter >= 150), Some(150));
        assert_eq!(waiting.drain(|waiter| waiter >= 150).len(), 49);
        assert!(waiting.is_empty());
    }

    #[test]
    fn a_resumed_attempt_goes_before_new_ones() {
        let mut waiting = Waiting::new();
        waiting.push(1);
        waiting.push_resumed(2);
        assert_eq!(waiting.pop(Discipline::Lifo, |_| true), Some(2));
    }

    #[test]
    fn who_is_served_later_has_so_many_before() {
        let mut waiting = Waiting::new();
        let orders = [Discipline::Fifo, Discipline::Lifo];
        (0..LATER as u32).for_each(|waiter| waiting.push(waiter));
        assert_eq!(orders.map(|order| waiting.later(order)), [None, None]);
        (4..7).for_each(|waiter| waiting.push(waiter));
        assert_eq!(orders.map(|order| waiting.later(order)), [Some(4), Some(2)]);
    }

    #[test]
    fn a_full_queue_admits_nobody() {
        let queue = Queue { capacity: Some(2), ..Queue::UNBOUNDED };
        assert!(queue.admits(1) && !queue.admits(2));
        assert!(Queue::UNBOUNDED.admits(1_000_000));
    }
}

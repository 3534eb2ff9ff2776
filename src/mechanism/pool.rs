//! A caller's connections to one callee: how many, and how long a call waits for a free one.
//!
//! A connection is held from acquisition until the answer, or until the caller's timeout (the
//! client library closes it and opens another). Waiters are served in order of arrival. Each
//! replica of the caller has a pool of its own.

use std::collections::VecDeque;

use crate::document::Value;
use crate::kernel::Span;

/// The rule of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Connections of one caller replica.
    pub size: u32,
    /// Acquisition timeout; `None`: as long as the attempt lasts.
    pub wait: Option<Span>,
    /// Whether waiting uses up the attempt's timeout.
    pub clock: Clock,
    /// How many may wait; `None`: all.
    pub queue: Option<u32>,
}

/// Which clock runs while a call waits for a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// The attempt's: its timeout starts when the call asks for a connection.
    #[default]
    Attempt,
    /// Its own: the attempt's timeout starts when it has the connection.
    Own,
}

/// The connections of one caller replica. `W` names a waiter.
#[derive(Clone, Debug)]
pub struct Connections<W> {
    in_use: u32,
    waiting: VecDeque<W>,
}

/// What came of asking for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// It has one.
    Now,
    /// It waits.
    Later,
    /// Nobody more may wait.
    Never,
}

impl Pool {
    /// Reads `pool = { size = 50, wait = "100ms", clock = "own", queue = 10 }`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        let section = value.section()?;
        let size = section.require("size", "add size = 50").and_then(|v| v.whole(1, 10_000_000));
        let wait = section.get("wait").map(|v| v.positive_duration());
        let clock = section.get("clock").map_or(Some(Clock::default()), |v| {
            v.word(&[("attempt", Clock::Attempt), ("own", Clock::Own)])
        });
        let queue = section.get("queue").map(|v| v.whole(0, u64::from(u32::MAX)));
        section.finish();
        Some(Pool {
            size: size? as u32,
            wait: wait.map_or(Some(None), |wait| wait.map(Some))?,
            clock: clock?,
            queue: queue.map_or(Some(None), |most| most.map(|most| Some(most as u32)))?,
        })
    }

    /// Asks for a connection for `waiter`.
    pub fn acquire<W>(&self, connections: &mut Connections<W>, waiter: W) -> Acquired {
        if connections.in_use < self.size {
            connections.in_use += 1;
            return Acquired::Now;
        }
        if self.queue.is_some_and(|most| connections.waiting.len() >= most as usize) {
            return Acquired::Never;
        }
        connections.waiting.push_back(waiter);
        Acquired::Later
    }
}

impl<W: Copy + PartialEq> Connections<W> {
    /// All free.
    pub fn new() -> Self {
        Connections { in_use: 0, waiting: VecDeque::new() }
    }

    /// Gives one back; it passes at once to the first waiter, who is returned.
    pub fn release(&mut self) -> Option<W> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            debug_assert!(self.in_use > 0, "a connection was released twice");
            self.in_use -= 1;
        }
        next
    }

    /// Takes a waiter out. Usually the first, since waits of one length end in order.
    pub fn leave(&mut self, waiter: W) {
        if let Some(index) = self.waiting.iter().position(|&w| w == waiter) {
            self.waiting.remove(index);
        }
    }

    /// Connections in use.
    pub fn in_use(&self) -> u32 {
        self.in_use
    }

    /// Calls that wait for one.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

impl<W: Copy + PartialEq> Default for Connections<W> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_passes_to_the_first_waiter() {
        let pool = Pool { size: 1, wait: None, clock: Clock::Attempt, queue: Some(2) };
        let mut connections = Connections::new();
        assert_eq!(pool.acquire(&mut connections, 'a'), Acquired::Now);
        assert_eq!(pool.acquire(&mut connections, 'b'), Acquired::Later);
        assert_eq!(pool.acquire(&mut connections, 'c'), Acquired::Later);
        assert_eq!(pool.acquire(&mut connections, 'd'), Acquired::Never);
        connections.leave('b');
        assert_eq!(connections.release(), Some('c'));
        assert_eq!((connections.in_use(), connections.release()), (1, None));
        assert_eq!(connections.in_use(), 0);
    }
}

//! The grain of a client's clock: it acts at whole multiples of a tick, as programs do that look
//! at their timers in a loop.
//!
//! What falls due between two ticks happens at the later. Those who act at one tick do so in order
//! of their number, one nanosecond after the other: who comes first must not depend on who was put
//! down first, and a fleet that polls its timers goes through them in the same order each time.

use crate::document::Value;
use crate::kernel::{Span, Time};

/// The rule of a client tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// From one tick to the next.
    tick: Span,
}

impl Timer {
    /// Reads `timer = "100ms"`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        value.positive_duration().map(|tick| Timer { tick })
    }

    /// As the list of assumptions says it.
    pub fn describe(self) -> String {
        format!("clients act every {}", self.tick)
    }

    /// When client number `client` acts that has to wait for so long from `now` on. What befalls
    /// it in the moment in which it acts, befalls it at the tick.
    pub fn after(self, now: Time, wait: Span, client: u32) -> Time {
        let past_tick = now.nanos() % self.tick.nanos();
        let acts_now = past_tick == self.place(client);
        let from = if acts_now { now.nanos() - past_tick } else { now.nanos() };
        self.at(Time::from_nanos(from) + wait, client)
    }

    /// When client number `client` acts on what falls due at `time`.
    pub fn at(self, time: Time, client: u32) -> Time {
        let ticks = time.nanos().div_ceil(self.tick.nanos());
        let tick = ticks.saturating_mul(self.tick.nanos());
        Time::from_nanos(tick.saturating_add(self.place(client)))
    }

    /// How long after a tick a client acts (ns).
    fn place(self, client: u32) -> u64 {
        u64::from(client) % self.tick.nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_falls_due_between_ticks_happens_at_the_later_in_order_of_clients() {
        let timer = Timer { tick: Span::from_millis(100) };
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let own = Span::from_nanos(7);
        assert_eq!(timer.at(at(100), 7), at(100) + own);
        assert_eq!(timer.at(at(101), 7), at(200) + own);
        assert_eq!(timer.after(at(200) + own, Span::from_secs(5), 7), at(5200) + own);
        assert_eq!(timer.after(at(200) + own, Span::from_nanos(1), 7), at(300) + own);
        // An answer that comes between ticks is acted upon at the next.
        assert_eq!(timer.after(at(240), Span::ZERO, 7), at(300) + own);
        assert_eq!(timer.after(at(200) + own, Span::ZERO, 7), at(200) + own);
    }
}

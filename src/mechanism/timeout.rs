//! How long a caller waits, and what becomes of work whose caller has left.
//!
//! The callee is *not* told when its caller gives up, unless the tier says `abandoned =
//! "interrupt"`: it still serves the attempt, and that service is wasted. This gap between what the
//! caller knows and what the server knows is the heart of a retry storm. A deadline that is passed
//! along closes it from the other side: the callee knows the instant after which nobody waits.

use crate::document::Value;
use crate::kernel::{Span, Time};

/// What a caller does about time, on one edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience {
    /// For each attempt, from the moment it is sent; covers network, queue and service. `None`: for
    /// ever.
    pub timeout: Option<Span>,
    /// For all attempts together, from the first.
    pub deadline: Option<Span>,
    /// Whether the attempt carries its deadline to the callee.
    pub pass: bool,
}

/// What a tier does with attempts whose caller has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Abandoned {
    /// Serves them like all others.
    #[default]
    Finish,
    /// Skips them when they come to the head of the queue.
    Skip,
    /// Takes them out of the queue, and stops them in service, at once.
    Interrupt,
}

impl Patience {
    /// The instant after which the caller of a call that began at `now` wants no answer: its own
    /// deadline, or the `inherited` one if that is earlier.
    #[inline]
    pub fn call_deadline(&self, now: Time, inherited: Time) -> Time {
        self.deadline.map_or(inherited, |span| inherited.min(now + span))
    }

    /// The instant at which an attempt sent at `now` is given up.
    #[inline]
    pub fn attempt_deadline(&self, now: Time, call_deadline: Time) -> Time {
        self.timeout.map_or(call_deadline, |span| call_deadline.min(now + span))
    }

    /// The deadline that the callee learns.
    #[inline]
    pub fn passed_on(&self, attempt_deadline: Time) -> Time {
        if self.pass { attempt_deadline } else { Time::NEVER }
    }
}

/// True when too little time is left before `deadline` to go on.
#[inline]
pub fn too_late(now: Time, deadline: Time, min_remaining: Span) -> bool {
    deadline != Time::NEVER && (now >= deadline || now + min_remaining > deadline)
}

impl Abandoned {
    /// Reads `abandoned = "…"`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        value.word(&[
            ("finish", Abandoned::Finish),
            ("skip", Abandoned::Skip),
            ("interrupt", Abandoned::Interrupt),
        ])
    }

    /// As the list of assumptions says it.
    pub fn name(self) -> &'static str {
        match self {
            Abandoned::Finish => "finished",
            Abandoned::Skip => "skipped at the head of the queue",
            Abandoned::Interrupt => "interrupted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    #[test]
    fn the_earliest_of_timeout_deadline_and_inheritance_counts() {
        let patience = Patience { timeout: Some(MS(40)), deadline: Some(MS(100)), pass: true };
        let call = patience.call_deadline(Time::ZERO, Time::NEVER);
        assert_eq!(call, Time::ZERO + MS(100));
        assert_eq!(patience.attempt_deadline(Time::ZERO + MS(80), call), Time::ZERO + MS(100));
        assert_eq!(patience.attempt_deadline(Time::ZERO + MS(10), call), Time::ZERO + MS(50));
        assert_eq!(patience.call_deadline(Time::ZERO, Time::ZERO + MS(7)), Time::ZERO + MS(7));
    }

    #[test]
    fn less_than_the_least_remaining_time_is_too_late() {
        let deadline = Time::ZERO + MS(100);
        assert!(!too_late(Time::ZERO + MS(50), deadline, MS(50)));
        assert!(too_late(Time::ZERO + MS(51), deadline, MS(50)));
        assert!(too_late(deadline, deadline, Span::ZERO));
        assert!(!too_late(deadline, Time::NEVER, MS(50)));
    }
}

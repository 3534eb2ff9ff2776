//! How an attempt ends, as its caller sees it, and the status that an answer carries.

use crate::document::Value;

/// The end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered.
    Ok,
    /// The callee worked on it, or should have, and answered with an error.
    Failed,
    /// Turned away before work.
    Refused(Reason),
    /// The caller stopped waiting.
    TimedOut,
}

/// Why an attempt was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// The queue was full.
    QueueFull = 0,
    /// It waited longer than the queue allows.
    QueueWait = 1,
    /// The rate limit let it not in.
    Admission = 2,
    /// Too little time was left before its deadline.
    Deadline = 3,
    /// The tier was down.
    Down = 4,
    /// No connection came free in the caller's pool within the acquisition timeout.
    Pool = 5,
    /// An operator dropped the queue or restarted the tier.
    Dropped = 6,
    /// Its caller had left, and the tier does not serve such.
    Left = 7,
}

/// The status of an answer, as HTTP numbers it (RFC 9110, RFC 6585, RFC 8470): one of
/// [`Status::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u8);

impl Status {
    /// Those that retry rules tell apart; the first is final for all of them.
    pub const ALL: [u16; 12] = [400, 401, 403, 404, 408, 409, 425, 429, 500, 502, 503, 504];

    /// Somebody else was faster.
    pub const CONFLICT: Status = Status(5);

    /// Too many requests.
    pub const TOO_MANY: Status = Status(7);
    /// Internal error.
    pub const INTERNAL: Status = Status(8);
    /// Unavailable.
    pub const UNAVAILABLE: Status = Status(10);
    /// The gateway's own patience is over.
    pub const GATEWAY_TIMEOUT: Status = Status(11);

    /// The status of a number.
    pub fn of(number: u16) -> Option<Self> {
        let index = Self::ALL.iter().position(|&known| known == number);
        index.map(|index| Status(index as u8))
    }

    /// Its number.
    pub fn number(self) -> u16 {
        Self::ALL[usize::from(self.0)]
    }

    /// Its place in a set of bits.
    pub fn bit(self) -> u16 {
        1 << self.0
    }

    /// Reads `429`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        let number = value.whole(100, 599)?;
        let status = Self::of(number as u16);
        if status.is_none() {
            let known = Self::ALL.map(|known| known.to_string());
            value.fault(
                &format!("{number} is no status that the model tells apart"),
                "callers decide by it whether to try again",
                &format!("use one of {}", known.join(", ")),
            );
        }
        status
    }
}

impl Reason {
    /// Every reason, in the order of counters and columns.
    pub const ALL: [Reason; 8] = [
        Reason::QueueFull,
        Reason::QueueWait,
        Reason::Admission,
        Reason::Deadline,
        Reason::Down,
        Reason::Pool,
        Reason::Dropped,
        Reason::Left,
    ];

    /// As columns and the terminal name it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::QueueFull => "queue_full",
            Reason::QueueWait => "queue_wait",
            Reason::Admission => "admission",
            Reason::Deadline => "deadline",
            Reason::Down => "down",
            Reason::Pool => "pool",
            Reason::Dropped => "dropped",
            Reason::Left => "left",
        }
    }
}

impl Outcome {
    /// As the attempt trace names it.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Failed => "failed",
            Outcome::Refused(_) => "refused",
            Outcome::TimedOut => "timed_out",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_found_by_its_number() {
        for (number, status) in [
            (409, Status::CONFLICT),
            (429, Status::TOO_MANY),
            (500, Status::INTERNAL),
            (503, Status::UNAVAILABLE),
            (504, Status::GATEWAY_TIMEOUT),
        ] {
            assert_eq!((Status::of(number), status.number()), (Some(status), number));
        }
        assert_eq!(Status::of(200), None);
    }

    #[test]
    fn every_reason_stands_at_its_own_number() {
        assert!(Reason::ALL.iter().enumerate().all(|(index, reason)| *reason as usize == index));
    }
}

//! How an attempt ends, as its caller sees it.

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
    fn every_reason_stands_at_its_own_number() {
        assert!(Reason::ALL.iter().enumerate().all(|(index, reason)| *reason as usize == index));
    }
}

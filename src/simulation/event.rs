//! The alphabet of a run: everything that can happen at an instant.

use super::station::StationId;
use crate::document::{EdgeId, TierId};
use crate::kernel::{Id, Packed};

/// A future event. Ids are checked against their generation when the event comes up; a stale one is
/// ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A source makes its next request.
    Arrival {
        /// Number of the source.
        source: u32,
    },
    /// A closed-loop client has done thinking.
    Ask {
        /// Number of the source.
        source: u16,
        /// Number of the client among all of its tier.
        client: u32,
    },
    /// An attempt that waited for a connection has one.
    Connected(Id),
    /// An attempt reaches its callee.
    Delivery(Id),
    /// A piece of work is done.
    WorkEnd(Id),
    /// An attempt has waited in the queue as long as it may.
    QueueWaitEnd(Id),
    /// A server has done the work of refusals.
    RefusalsDone(StationId),
    /// An answer reaches the caller.
    Reply(Id),
    /// A caller's patience with an attempt ends.
    Timeout(Id),
    /// A call has waited for a connection as long as it may.
    PoolWaitEnd(Id),
    /// A caller that holds attempts back may have a token for the next.
    Token {
        /// Along which edge it calls.
        edge: EdgeId,
        /// Number of the caller.
        replica: u32,
    },
    /// A call leaves its back-off.
    RetryDue(Id),
    /// A cache lookup is done.
    LookupEnd(Id),
    /// The pause is over during which the last answer came that an attempt waited for.
    PauseEnd(Id),
    /// A user's patience with a request ends.
    Leave(Id),
    /// A trigger begins.
    TriggerBegin(u16),
    /// A trigger ends.
    TriggerEnd(u16),
    /// The rate limit of a tier rises by a step. The serial tells a ramp from one that has replaced
    /// it.
    RampStep {
        /// Number of the tier.
        tier: u16,
        /// Number of the ramp.
        serial: u16,
    },
    /// A restarted tier is up again.
    Revival(u16),
    /// The work of a forgotten attempt is done.
    ForgottenEnd(Id),
}

impl Event {
    /// The packed kind of [`Event::RetryDue`], the only frequent one about a call.
    pub const RETRY_DUE: u8 = 11;
    /// The packed kind of [`Event::Timeout`], the only frequent one about what has lain for long.
    pub const TIMEOUT: u8 = 8;
}

/// Two numbers of an event as one word.
fn both(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

impl Packed for Event {
    #[inline(always)]
    fn pack(self) -> (u8, u64) {
        match self {
            Event::Arrival { source } => (0, u64::from(source)),
            Event::Ask { source, client } => (1, both(client, u32::from(source))),
            Event::Connected(attempt) => (2, attempt.bits()),
            Event::Delivery(attempt) => (3, attempt.bits()),
            Event::WorkEnd(attempt) => (4, attempt.bits()),
            Event::QueueWaitEnd(attempt) => (5, attempt.bits()),
            Event::RefusalsDone(StationId { tier, index }) => (6, both(index, u32::from(tier.0))),
            Event::Reply(attempt) => (7, attempt.bits()),
            Event::Timeout(attempt) => (Self::TIMEOUT, attempt.bits()),
            Event::PoolWaitEnd(attempt) => (9, attempt.bits()),
            Event::Token { edge, replica } => (10, both(replica, u32::from(edge.0))),
            Event::RetryDue(call) => (Self::RETRY_DUE, call.bits()),
            Event::LookupEnd(call) => (12, call.bits()),
            Event::PauseEnd(attempt) => (13, attempt.bits()),
            Event::Leave(request) => (14, request.bits()),
            Event::TriggerBegin(trigger) => (15, u64::from(trigger)),
            Event::TriggerEnd(trigger) => (16, u64::from(trigger)),
            Event::RampStep { tier, serial } => (17, both(u32::from(serial), u32::from(tier))),
            Event::Revival(tier) => (18, u64::from(tier)),
            Event::ForgottenEnd(forgotten) => (19, forgotten.bits()),
        }
    }

    #[inline(always)]
    fn unpack(kind: u8, rest: u64) -> Self {
        let (id, low, high) = (Id::from_bits(rest), rest as u32, (rest >> 32) as u16);
        match kind {
            0 => Event::Arrival { source: low },
            1 => Event::Ask { source: high, client: low },
            2 => Event::Connected(id),
            3 => Event::Delivery(id),
            4 => Event::WorkEnd(id),
            5 => Event::QueueWaitEnd(id),
            6 => Event::RefusalsDone(StationId { tier: TierId(high), index: low }),
            7 => Event::Reply(id),
            Self::TIMEOUT => Event::Timeout(id),
            9 => Event::PoolWaitEnd(id),
            10 => Event::Token { edge: EdgeId(high), replica: low },
            Self::RETRY_DUE => Event::RetryDue(id),
            12 => Event::LookupEnd(id),
            13 => Event::PauseEnd(id),
            14 => Event::Leave(id),
            15 => Event::TriggerBegin(low as u16),
            16 => Event::TriggerEnd(low as u16),
            17 => Event::RampStep { tier: high, serial: low as u16 },
            18 => Event::Revival(low as u16),
            // Nothing else has been packed.
            _ => Event::ForgottenEnd(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_unpacked_as_it_was_packed() {
        let id = Id::from_bits(u64::MAX - 2);
        let (edge, tier) = (EdgeId(65_535), TierId(65_534));
        let events = [
            Event::Arrival { source: 70_000 },
            Event::Ask { source: 3, client: u32::MAX },
            Event::Connected(id),
            Event::Delivery(id),
            Event::WorkEnd(id),
            Event::QueueWaitEnd(id),
            Event::RefusalsDone(StationId { tier, index: 70_000 }),
            Event::Reply(id),
            Event::Timeout(id),
            Event::PoolWaitEnd(id),
            Event::Token { edge, replica: 70_000 },
            Event::RetryDue(id),
            Event::LookupEnd(id),
            Event::PauseEnd(id),
            Event::Leave(id),
            Event::TriggerBegin(7),
            Event::TriggerEnd(8),
            Event::RampStep { tier: 9, serial: 10 },
            Event::Revival(11),
            Event::ForgottenEnd(id),
        ];
        for (number, event) in events.into_iter().enumerate() {
            let (kind, rest) = event.pack();
            assert_eq!((usize::from(kind), Event::unpack(kind, rest)), (number, event));
        }
    }
}

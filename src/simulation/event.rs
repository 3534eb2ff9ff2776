//! The alphabet of a run: everything that can happen at an instant.

use super::world::StationId;
use crate::document::EdgeId;
use crate::kernel::Id;

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
}

impl Event {
    /// The attempt that it is about.
    #[inline]
    pub fn attempt(self) -> Option<Id> {
        match self {
            Event::Connected(id)
            | Event::Delivery(id)
            | Event::WorkEnd(id)
            | Event::QueueWaitEnd(id)
            | Event::Reply(id)
            | Event::Timeout(id)
            | Event::PoolWaitEnd(id)
            | Event::PauseEnd(id) => Some(id),
            _ => None,
        }
    }
}

const _: () = assert!(size_of::<Event>() <= 12, "events are copied millions of times a second");

//! Where attempts wait and are served: the replicas of a tier.

use super::world::{Attempt, Caller, State};
use crate::document::{EdgeId, TierId};
use crate::kernel::{Generation, Id, Key, Span, Time};
use crate::mechanism::concurrency::Servers;
use crate::mechanism::queue::Waiting;

/// One who stands in a queue: its name, and all that its callee wants of it once its caller has
/// left. From then on most need no record of their own any more: in a storm, hundreds of thousands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waiter {
    /// The attempt, while it has a record.
    pub id: Id,
    pub key: Key,
    pub arrived: Time,
    pub replica: u32,
    pub edge: EdgeId,
    pub class: u16,
}

const _: () = assert!(size_of::<Waiter>() == 32, "two of them are one cache line");

impl Waiter {
    /// An attempt that joins a queue.
    #[inline(always)]
    pub fn new(id: Id, attempt: &Attempt) -> Self {
        let &Attempt { key, arrived, replica, edge, class, .. } = attempt;
        Waiter { id, key, arrived, replica, edge, class }
    }

    /// The attempt at its callee once more, when its record is gone: its caller has left, and it
    /// does not matter when, for it has done nothing as yet.
    #[inline(always)]
    pub fn abandoned(&self, tier: TierId, generation: Generation) -> Attempt {
        let &Waiter { key, arrived, replica, edge, class, .. } = self;
        Attempt {
            key,
            caller: Caller::Call(Id::NONE),
            alone_since: arrived,
            arrived,
            replica,
            edge,
            tier,
            class,
            state: State::Queued,
            left: true,
            generation,
            ..Attempt::default()
        }
    }
}

/// One replica: a queue and servers.
#[derive(Clone, Debug)]
pub struct Station {
    /// Who is in service.
    pub servers: Servers,
    /// Who waits.
    pub waiting: Waiting<Waiter>,
    /// Work of refusals that no server has done as yet.
    pub debt: Span,
}

/// The name of a station: its tier, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationId {
    pub tier: TierId,
    pub index: u32,
}

//! Where attempts wait and are served: the replicas of a tier.

use super::world::{Attempt, Caller, State};
use crate::document::TierId;
use crate::kernel::{Generation, Id, Key, Slab, Span, Time};
use crate::mechanism::concurrency::Servers;
use crate::mechanism::queue::Waiting;

/// One who stands in a queue: where its record is, and all that its callee wants of it once its
/// caller has left. From then on most need no record of their own any more: in a storm, hundreds of
/// thousands, and little else of it takes memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waiter {
    /// The key of the attempt, which tells it from all others: its record is that in `slot`, as
    /// long as this has the same.
    pub key: Key,
    pub arrived: Time,
    pub slot: u32,
    /// Of one that may be forgotten; see [`Waiter::holds`].
    pub replica: u16,
    pub class: u16,
}

const _: () = assert!(size_of::<Waiter>() == 24, "there are hundreds of thousands of them");

impl Waiter {
    /// An attempt that joins a queue.
    #[inline(always)]
    pub fn new(id: Id, attempt: &Attempt) -> Self {
        let &Attempt { key, arrived, replica, class, .. } = attempt;
        Waiter { key, arrived, slot: id.slot, replica: replica as u16, class }
    }

    /// Whether all that is wanted of an attempt has room here.
    #[inline(always)]
    pub fn holds(attempt: &Attempt) -> bool {
        attempt.replica <= u32::from(u16::MAX)
    }

    /// Its name, while it has a record.
    #[inline(always)]
    pub fn name(&self, attempts: &Slab<Attempt>) -> Option<Id> {
        let record = attempts.at(self.slot)?;
        if record.key == self.key { attempts.name(self.slot) } else { None }
    }

    /// Its record, while it has one.
    pub fn record<'s>(&self, attempts: &'s Slab<Attempt>) -> Option<&'s Attempt> {
        self.name(attempts).map(|id| &attempts[id])
    }

    /// The attempt at its callee once more, when its record is gone: its caller has left, and it
    /// does not matter when, for it has done nothing as yet; nor along which edge it came, for it
    /// does not go back.
    #[inline(always)]
    pub fn abandoned(&self, tier: TierId, generation: Generation) -> Attempt {
        let &Waiter { key, arrived, replica, class, .. } = self;
        Attempt {
            key,
            caller: Caller::Call(Id::NONE),
            alone_since: arrived,
            arrived,
            replica: u32::from(replica),
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

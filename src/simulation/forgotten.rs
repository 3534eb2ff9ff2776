//! Service for nobody: an attempt that has lost its record in the queue, since its caller has left
//! and nobody will ask for it, is served all the same, and that costs a server its time. Where all
//! that it does is one piece of work, it never again becomes an attempt like others, with a caller,
//! a deadline, an answer: it is this work and what its place in the queue has said of it.

use super::Simulation;
use super::event::Event;
use super::station::Waiter;
use super::working::{end_after, leave_server, note_answer, note_work, outcome_of_work};
use super::world::{Attempt, Piece, Service, State, TierRun};
use crate::document::TierId;
use crate::kernel::{EventList, Generation, Id, Purpose, Slab, Time, record};
use crate::mechanism::timeout::Abandoned;
use crate::mechanism::work::Work;
use crate::model::Tier;

/// A forgotten attempt in service.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub struct Forgotten {
    /// All that is known of it.
    waiter: Waiter,
    piece: Piece,
    tier: TierId,
    /// Of its name.
    generation: Generation,
}

const _: () = assert!(size_of::<Forgotten>() == 64, "a forgotten attempt is one cache line");

record!(Forgotten);

impl Simulation<'_> {
    /// The work of a forgotten attempt is done, unless a pause has put it off.
    #[inline(always)]
    pub(super) fn end_forgotten(&mut self, id: Id) {
        let Some(forgotten) = self.forgotten.get_mut(id) else { return };
        let tier = &mut self.tiers[forgotten.tier.index()];
        if let Some(put_off) = forgotten.piece.put_off(tier.paused) {
            self.events.push(self.now + put_off, Event::ForgottenEnd(id));
            return;
        }
        let Waiter { key, arrived, replica, .. } = forgotten.waiter;
        let replica = u32::from(replica);
        note_work(tier, arrived, &forgotten.piece, self.now);
        let outcome = outcome_of_work(key, tier);
        note_answer(tier, arrived, true, outcome, self.now, self.left);
        self.freed.push(leave_server(tier, forgotten.tier, replica, self.left));
        self.forgotten.remove(id);
    }

    /// Makes attempts like others of the forgotten in service at a tier, for something else than
    /// the end of their work is to become of them. Whoever calls this must see to that: the ends
    /// that were planned are void.
    pub(super) fn recall_forgotten(&mut self, tier: TierId) {
        let of_tier = self.forgotten.iter().filter(|(_, forgotten)| forgotten.tier == tier);
        let names: Vec<Id> = of_tier.map(|(id, _)| id).collect();
        for name in names {
            let Forgotten { waiter, piece, .. } = self.forgotten[name];
            self.forgotten.remove(name);
            let (service, under_way) = self.services.open();
            *under_way = Service::of(piece);
            let (_, attempt) = self.attempts.open();
            *attempt = Attempt {
                state: State::Working,
                service,
                holds_server: true,
                ..waiter.abandoned(tier, attempt.generation)
            };
        }
    }
}

/// The work of one that comes to the head of a queue without a record, if that is all that becomes
/// of it; `leaf` is that of its tier.
#[inline(always)]
pub(super) fn only_work<'m>(
    rule: &Tier,
    leaf: &[Option<&'m Work>],
    waiter: &Waiter,
) -> Option<&'m Work> {
    leaf[usize::from(waiter.class)].filter(|_| rule.abandoned == Abandoned::Finish)
}

/// A forgotten attempt, which has waited so long and has a server of `tier`, begins its work.
#[inline(always)]
pub(super) fn begin_forgotten(
    tier: &mut TierRun<'_>,
    (id, waiter, work): (TierId, Waiter, &Work),
    forgotten: &mut Slab<Forgotten>,
    events: &mut EventList<Event>,
    now: Time,
) {
    tier.meter.wait.add(now.since(waiter.arrived));
    let length = work.draw(waiter.key, 0, tier.conditions.slow, Purpose::Work);
    let piece = Piece { began: now, length, pauses: tier.paused };
    let (name, record) = forgotten.open();
    *record = Forgotten { waiter, piece, tier: id, generation: record.generation };
    let lasts = now.until(tier.paused_until) + length;
    end_after(events, now, lasts, tier.work, Event::ForgottenEnd(name));
}

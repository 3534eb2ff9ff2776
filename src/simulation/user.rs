//! A user request, from its beginning to its end.

use super::calling::Placed;
use super::event::Event;
use super::world::{Attempt, Blame, Caller, Detail, Parent, Party, Service};
use super::{Next, Simulation};
use crate::document::TierId;
use crate::kernel::{Id, Key, Purpose, Time};
use crate::mechanism::outcome::Outcome;

impl Simulation<'_> {
    /// A user wants something.
    #[inline(always)]
    pub(super) fn begin_request(
        &mut self,
        source: u16,
        tier: TierId,
        client: u32,
        key: Key,
        number: u64,
    ) -> Next {
        let run = &mut self.tiers[tier.index()];
        let class = match &run.rule.mix[..] {
            [(_, only)] => *only,
            mix => {
                let u = key.unit(Purpose::Class);
                let chosen = mix.iter().find(|(up_to, _)| u < *up_to).or(mix.last());
                chosen.map_or(0, |(_, class)| *class)
            }
        };
        self.record.totals.requests += 1;
        run.meter.counts.demand += 1;
        run.meter.counts.offered += 1;
        run.meter.counts.admitted += 1;
        run.meter.in_flight.up(self.left);
        let direct = run.direct[usize::from(class)];
        let traced = key.chance(Purpose::Trace, self.trace.share);
        let request = u64::from(source) << 48 | number;
        if let Some(edge) = direct {
            let user = Party {
                key,
                operation: key,
                parent: Parent::User { began: self.now },
                sibling: Id::NONE,
                deadline: Time::NEVER,
                alone_since: Time::NEVER,
                replica: client,
                class,
                request,
                traced,
            };
            if self.place_call(edge, 0, user) == Placed::Hit {
                self.note_end(tier, self.now, Outcome::Ok, false);
            }
            return None;
        }
        let (service, under_way) = self.services.open();
        *under_way = Service::default();
        let (id, attempt) = self.attempts.open();
        *attempt = Attempt {
            key,
            caller: Caller::User { source },
            arrived: self.now,
            replica: client,
            service,
            tier,
            class,
            traced,
            generation: attempt.generation,
            ..Attempt::default()
        };
        if self.details_wanted(traced) {
            *self.detail(id) = Detail { operation: key, request, ..Detail::default() };
        }
        if let Some(leave) = self.tiers[tier.index()].rule.leave {
            self.events.push(self.now + leave.wait, Event::Leave(id));
        }
        Some(id)
    }

    /// A user has waited as long as it will: the request has failed, whatever becomes of what is
    /// done for it.
    #[cold]
    #[inline(never)]
    pub(super) fn user_leaves(&mut self, id: Id) -> Next {
        let request = self.attempts.get(id)?;
        let Caller::User { source } = request.caller else { return None };
        let (tier, began) = (request.tier, request.arrived);
        let (key, client) = (request.key, request.replica);
        self.note_end(tier, began, Outcome::TimedOut, false);
        self.tiers[tier.index()].meter.counts.timed_out += 1;
        if self.tiers[tier.index()].rule.leave.is_some_and(|leave| leave.cancels) {
            self.abandon_calls(id);
            self.free(id);
        } else {
            self.attempts[id].left = true;
            self.leave_alone(id);
        }
        self.think(source, key.child(0), client);
        None
    }

    /// A client of a closed loop that is free thinks, and asks again.
    pub(super) fn think(&mut self, source: u16, key: Key, client: u32) {
        let run = &self.sources[usize::from(source)];
        let Some(time) = run.source.think(self.now, key) else { return };
        let time = run.timer.map_or(time, |timer| timer.at(time, client));
        self.events.push(time, Event::Ask { source, client });
    }

    /// A user request with an attempt of its own has come to its end.
    #[inline(always)]
    pub(super) fn end_request(&mut self, id: Id, source: u16, outcome: Outcome) {
        let request = &self.attempts[id];
        let (key, client) = (request.key, request.replica);
        let turned_away = request.failed == Some(Blame::Admission);
        let awaited = request.awaited();
        if awaited {
            self.note_end(request.tier, request.arrived, outcome, turned_away);
        }
        self.free(id);
        if awaited {
            self.think(source, key.child(0), client);
        }
    }

    /// Counts the end of a user request that began at `began`.
    #[inline(always)]
    pub(super) fn note_end(
        &mut self,
        tier: TierId,
        began: Time,
        outcome: Outcome,
        turned_away: bool,
    ) {
        let run = &mut self.tiers[tier.index()];
        if let Some(herd) = &mut run.herd {
            herd.settle(self.now, self.now.since(began), outcome == Outcome::Ok);
        }
        let meter = &mut run.meter;
        meter.in_flight.down(self.left);
        meter.sojourn.add(self.now.since(began));
        meter.counts.finished += 1;
        if outcome == Outcome::Ok {
            meter.counts.good += 1;
            self.record.totals.answered += 1;
        } else {
            meter.counts.failed += 1;
            meter.counts.turned_away += u64::from(turned_away);
            self.record.totals.failed += 1;
        }
    }
}

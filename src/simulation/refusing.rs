//! Turning attempts away: the callee, and the work that this is; and the caller by itself.

use super::event::Event;
use super::world::StationId;
use super::{Next, Simulation};
use crate::kernel::{Id, Purpose, Span};
use crate::mechanism::outcome::{Outcome, Reason};

impl Simulation<'_> {
    /// Turns an attempt away that is not in service.
    #[inline(never)]
    pub(super) fn refuse(&mut self, id: Id, reason: Reason) -> Next {
        let attempt = &self.attempts[id];
        let tier = &mut self.tiers[attempt.tier.index()];
        tier.meter.counts.refused[reason as usize] += 1;
        let cost = tier.rule.refusal.cost(reason);
        if cost > Span::ZERO {
            self.charge(id, reason, cost);
        }
        self.reply(id, Outcome::Refused(reason))
    }

    /// Puts the work of a refusal down to the station that refuses; at the door none has been
    /// chosen yet.
    #[cold]
    #[inline(never)]
    fn charge(&mut self, id: Id, reason: Reason, cost: Span) {
        let attempt = &self.attempts[id];
        let tier = &mut self.tiers[attempt.tier.index()];
        let replica = match reason {
            Reason::Admission | Reason::Deadline => tier.pick_replica(attempt.key),
            _ => attempt.replica,
        };
        let station = StationId { tier: attempt.tier, index: tier.station(replica) };
        let debt = &mut tier.stations[station.index as usize].debt;
        *debt = *debt + cost.scaled(tier.conditions.slow);
        self.do_refusals(station);
    }

    /// Gives a free server all the work of refusals that there is.
    #[inline]
    pub(super) fn do_refusals(&mut self, id: StationId) {
        let tier = &mut self.tiers[id.tier.index()];
        let station = &mut tier.stations[id.index as usize];
        if station.debt == Span::ZERO || tier.conditions.paused || !station.servers.free() {
            return;
        }
        station.servers.take();
        tier.meter.busy.up(self.left);
        let lasts = std::mem::take(&mut station.debt);
        self.events.push(self.now + lasts, Event::RefusalsDone(id));
    }

    #[cold]
    #[inline(never)]
    pub(super) fn end_refusals(&mut self, id: StationId) -> Next {
        let tier = &mut self.tiers[id.tier.index()];
        tier.stations[id.index as usize].servers.release();
        tier.meter.busy.down(self.left);
        self.freed.push(id);
        None
    }

    /// Whether the caller turns the next attempt of a call away by itself: its breaker is open, or
    /// it throttles.
    #[cold]
    #[inline(never)]
    pub(super) fn turns_away(&mut self, id: Id) -> bool {
        let call = &self.calls[id];
        let edge = &mut self.edges[call.edge.index()];
        let (rule, replica) = (edge.rule, call.replica as usize);
        let open = rule
            .breaker
            .is_some_and(|breaker| !breaker.lets(&mut edge.circuits[replica], self.now));
        let throttled = !open
            && rule.throttle.is_some_and(|throttle| {
                let u = call.key.child(u64::from(call.made)).unit(Purpose::Throttle);
                !throttle.asks(&mut edge.histories[replica], self.now, u)
            });
        edge.meter.counts.throttled += u64::from(open || throttled);
        open || throttled
    }

    /// What a caller that turns attempts away remembers of one that has ended.
    #[cold]
    #[inline(never)]
    pub(super) fn remember(&mut self, id: Id, outcome: Outcome) {
        let call = &self.calls[id];
        let edge = &mut self.edges[call.edge.index()];
        let (rule, replica) = (edge.rule, call.replica as usize);
        if let Some(breaker) = &rule.breaker {
            breaker.note(&mut edge.circuits[replica], outcome == Outcome::Ok, self.now);
        }
        if let Some(throttle) = &rule.throttle
            && matches!(outcome, Outcome::Ok | Outcome::Failed)
        {
            throttle.accepted(&mut edge.histories[replica], self.now);
        }
    }
}

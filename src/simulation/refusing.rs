//! Turning attempts away: the callee, and the work that this is; and the caller by itself.

use super::edge::EdgeRun;
use super::event::Event;
use super::station::StationId;
use super::world::Call;
use super::{Next, Simulation};
use crate::document::EdgeId;
use crate::kernel::{Id, Purpose, Span, Time};
use crate::mechanism::outcome::{Outcome, Reason, Status};

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
    fn turns_away(&mut self, id: Id) -> bool {
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

    /// A caller that guards itself turns the next attempt of a call away, holds it back, or sends
    /// it.
    #[cold]
    #[inline(never)]
    pub(super) fn send_guarded(&mut self, id: Id) -> Next {
        if self.turns_away(id) {
            return self.give_up(id, Outcome::Failed);
        }
        let call = &self.calls[id];
        let (edge, replica) = (call.edge, call.replica);
        let run = &mut self.edges[edge.index()];
        let Some(pace) = run.rule.pace else { return self.send_now(id) };
        let (pacer, held) = &mut run.pacers[replica as usize];
        if !held.is_empty() {
            held.push_back(id);
            return None;
        }
        if let Err(wait) = pace.acquire(pacer, self.now) {
            held.push_back(id);
            self.events.push(self.now + wait, Event::Token { edge, replica });
            return None;
        }
        self.send_now(id)
    }

    /// The caller has a token for the first of the calls that it holds back, or asks again when one
    /// is due at the rate in force. Those that nobody waits for any more are left out.
    #[cold]
    #[inline(never)]
    pub(super) fn send_held(&mut self, edge: EdgeId, replica: u32) -> Next {
        let run = &mut self.edges[edge.index()];
        let pace = run.rule.pace?;
        let (pacer, held) = &mut run.pacers[replica as usize];
        while held.front().is_some_and(|&id| !self.calls.lives(id)) {
            held.pop_front();
        }
        let &first = held.front()?;
        let late = self.calls[first].deadline <= self.now;
        let token = if late { Ok(()) } else { pace.acquire(pacer, self.now) };
        if token.is_ok() {
            held.pop_front();
        }
        if !held.is_empty() {
            let wait = token.err().unwrap_or(Span::ZERO);
            self.events.push(self.now + wait, Event::Token { edge, replica });
        }
        match token {
            Err(_) => None,
            Ok(()) if late => self.give_up(first, Outcome::TimedOut),
            Ok(()) => self.send_now(first),
        }
    }
}

/// What a caller that guards itself remembers of an attempt that has ended.
#[cold]
#[inline(never)]
pub(super) fn remember(call: &Call, edge: &mut EdgeRun<'_>, outcome: Outcome, now: Time) {
    let (rule, replica) = (edge.rule, call.replica as usize);
    if let Some(pace) = rule.pace
        && outcome != Outcome::TimedOut
    {
        let key = || call.key.child(u64::from(call.made));
        let status = edge.callee.setback(outcome, key).status;
        let throttled = outcome != Outcome::Ok && status == Status::TOO_MANY;
        pace.answered(&mut edge.pacers[replica].0, throttled, now);
    }
    if let Some(breaker) = &rule.breaker {
        breaker.note(&mut edge.circuits[replica], outcome == Outcome::Ok, now);
    }
    if let Some(throttle) = &rule.throttle
        && matches!(outcome, Outcome::Ok | Outcome::Failed)
    {
        throttle.accepted(&mut edge.histories[replica], now);
    }
}

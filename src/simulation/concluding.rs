//! The caller's side of an end: an attempt's answer or timeout, and what its call makes of it, the
//! next attempt or an end of its own.

use super::calling::release_connection;
use super::edge::EdgeRun;
use super::event::Event;
use super::leaving::is_forgettable;
use super::refusing::remember;
use super::world::{Blame, Call, Caller, Errand, NO_ATTEMPT, NO_SERVICE, Parent, State};
use super::{Next, Simulation, is_crowded};
use crate::kernel::{Id, Purpose, Span, Time};
use crate::mechanism::cache::Late;
use crate::mechanism::outcome::{Outcome, Reason};

impl Simulation<'_> {
    /// An answer reaches its caller, who may have left.
    #[inline(always)]
    pub(super) fn receive(&mut self, id: Id) -> Next {
        let attempt = &self.attempts[id];
        let (Caller::Call(call), answer) = (attempt.caller, attempt.answer?) else { return None };
        if !attempt.awaited() {
            self.receive_late(id, answer);
            return None;
        }
        self.free(id);
        self.conclude(call, answer, true)
    }

    /// A late answer may still fill the cache of its caller.
    #[inline(always)]
    pub(super) fn receive_late(&mut self, id: Id, answer: Outcome) {
        if answer == Outcome::Ok && self.tells_operations {
            let edge = &mut self.edges[self.attempts[id].edge.index()];
            if let Some((rule, entries)) = edge.cache()
                && rule.late == Late::Fill
            {
                rule.fill(entries, self.details[id.slot as usize].operation, self.now);
            }
        }
        self.free(id);
    }

    /// The caller's patience with an attempt ends.
    pub(super) fn time_out(&mut self, id: Id) -> Next {
        let attempt = self.attempts.get(id).filter(|attempt| attempt.awaited())?;
        let Caller::Call(call) = attempt.caller else { return None };
        let connected = attempt.state != State::PoolWaiting;
        let tier = &mut self.tiers[attempt.tier.index()];
        let forgettable = is_forgettable(attempt, tier);
        tier.meter.counts.timed_out += u64::from(connected);
        if forgettable {
            self.attempts.remove(id);
        } else {
            self.leave_behind(id);
        }
        self.conclude(call, Outcome::TimedOut, connected)
    }

    /// An attempt of the call, which may have been `connected`, has ended so: the call ends, goes
    /// into back-off, or tries again.
    #[inline(always)]
    pub(super) fn conclude(&mut self, id: Id, outcome: Outcome, connected: bool) -> Next {
        let call = &mut self.calls[id];
        if let Parent::Attempt { id: parent, service } = call.parent
            && is_crowded(&self.attempts)
        {
            self.attempts.prefetch(parent.slot);
            self.services.prefetch(service);
        }
        let edge = &mut self.edges[call.edge.index()];
        if connected && !edge.plain {
            let (attempts, events) = (&mut self.attempts, &mut self.events);
            release_connection(edge, call.replica, attempts, events, self.now, self.left);
        }
        if edge.guarded {
            remember(call, edge, outcome, self.now);
        }
        call.attempt = NO_ATTEMPT;
        let counts = &mut edge.meter.counts;
        match outcome {
            Outcome::Ok => {
                counts.ok += 1;
                if !edge.plain {
                    self.profit(id);
                }
                return self.end_call(id, outcome);
            }
            Outcome::Failed => counts.failed += 1,
            Outcome::Refused(_) => counts.refused += 1,
            Outcome::TimedOut => counts.timed_out += 1,
        }
        let retries = self.conditions.retries;
        let Some(wait) = decide_retry(call, edge, outcome, retries, self.now) else {
            return self.give_up(id, outcome);
        };
        let plain = edge.plain && edge.timer.is_none();
        let at_once = plain && wait == Span::ZERO && outcome == Outcome::TimedOut;
        // It would be the next event, and a back-off of no time adds nothing to its gauge: it needs
        // no place in the list. In a storm that is every third event.
        if at_once && self.freed.is_empty() && self.events.is_silent(self.now) {
            self.record.totals.events += 1;
            return self.send(id);
        }
        self.back_off(id, wait)
    }

    /// Budget and cache take what they can from a success.
    #[inline(never)]
    fn profit(&mut self, id: Id) {
        let call = &self.calls[id];
        let edge = &mut self.edges[call.edge.index()];
        if let Some((budget, bucket)) = edge.budget(call.replica) {
            budget.succeeded(bucket, call.claim);
        }
        if let Some((cache, entries)) = edge.cache() {
            cache.fill(entries, self.errands[id.slot as usize].operation, self.now);
        }
    }

    pub(super) fn give_up(&mut self, id: Id, outcome: Outcome) -> Next {
        let edge = self.calls[id].edge;
        self.edges[edge.index()].meter.counts.gave_up += 1;
        self.end_call(id, outcome)
    }

    #[inline(always)]
    fn back_off(&mut self, id: Id, wait: Span) -> Next {
        let call = &mut self.calls[id];
        let edge = &mut self.edges[call.edge.index()];
        call.backing_off = true;
        edge.meter.backoff.up(self.left);
        if self.herded
            && let Some(herd) = &mut self.tiers[edge.rule.caller.index()].herd
        {
            herd.begin_to_wait();
        }
        if let Some(timer) = edge.timer {
            let time = timer.after(self.now, wait, call.replica);
            self.events.push(time, Event::RetryDue(id));
        } else if wait == Span::ZERO {
            self.events.push_now(self.now, Event::RetryDue(id));
        } else {
            self.events.push(self.now + wait, Event::RetryDue(id));
        }
        None
    }

    /// A call leaves its back-off.
    pub(super) fn retry(&mut self, id: Id) -> Next {
        let call = self.calls.get_mut(id)?;
        let edge = &mut self.edges[call.edge.index()];
        edge.meter.backoff.down(self.left);
        if self.herded
            && let Some(herd) = &mut self.tiers[edge.rule.caller.index()].herd
        {
            herd.cease_to_wait();
        }
        if !self.conditions.retries {
            return self.give_up(id, Outcome::Failed);
        }
        if let Some((budget, bucket)) = edge.budget(call.replica)
            && !budget.send(bucket, call.claim, self.now)
        {
            edge.meter.counts.denied += 1;
            return self.give_up(id, Outcome::Failed);
        }
        // Until here, for a call that ends now has not paid for a retry that pays when sent.
        call.backing_off = false;
        self.send(id)
    }

    /// The call is over; its parent goes on when it was the last that it waited for.
    #[inline(always)]
    pub(super) fn end_call(&mut self, id: Id, outcome: Outcome) -> Next {
        let call = &self.calls[id];
        let edge = &mut self.edges[call.edge.index()];
        settle(call, edge);
        let (key, rule) = (call.key, edge.rule);
        let turned_away = outcome == Outcome::Refused(Reason::Admission);
        let (parent, service) = match call.parent {
            Parent::Attempt { id, service } => (id, service),
            Parent::User { began } => {
                self.calls.remove(id);
                self.note_end(rule.caller, began, outcome, turned_away);
                return None;
            }
        };
        let sibling = self.errands[id.slot as usize].sibling;
        let caller = &mut self.attempts[parent];
        if let Caller::Call(above) = caller.caller {
            self.calls.prefetch(above.slot);
        }
        let service = &mut self.services[service];
        if service.first_call == id {
            service.first_call = sibling;
        } else {
            unlink(&mut self.errands, service.first_call, id, sibling);
        }
        self.calls.remove(id);
        service.pending -= 1;
        if outcome != Outcome::Ok {
            if !rule.optional {
                let blame = if turned_away { Blame::Admission } else { Blame::Callee };
                caller.failed = caller.failed.filter(|_| !turned_away).or(Some(blame));
            } else if let Some(fallback) = &rule.fallback {
                let slow = self.tiers[caller.tier.index()].conditions.slow;
                let more = fallback.draw(key, 0, slow, Purpose::Fallback);
                service.piece.length = service.piece.length + more;
            }
        }
        if service.pending == 0 && caller.state == State::Calling {
            return self.resume(parent);
        }
        None
    }

    /// Frees an attempt whose story is over.
    #[inline(always)]
    pub(super) fn free(&mut self, id: Id) {
        if self.trace.share > 0.0 {
            self.note_in_trace(id);
        }
        let service = self.attempts[id].service;
        if service != NO_SERVICE {
            self.services.close(service);
        }
        self.attempts.remove(id);
    }
}

/// How long a call waits for its next attempt, if it makes one.
#[inline(always)]
fn decide_retry(
    call: &mut Call,
    edge: &mut EdgeRun<'_>,
    outcome: Outcome,
    retries: bool,
    now: Time,
) -> Option<Span> {
    let rule = edge.rule;
    let (made, caller) = (call.made, call.replica);
    if made >= rule.retry.attempts && rule.budget.is_none() {
        return None;
    }
    let setback = edge.callee.setback(outcome, || call.key.child(u64::from(made)));
    let mut budget = edge.budget(caller);
    if let Some((budget, bucket)) = &mut budget {
        budget.failed(bucket, &mut call.claim, rule.retry.on.covers(&setback));
    }
    if !retries {
        return None;
    }
    let wait = rule.retry.next_wait(&mut call.retry, made, &setback, call.key, caller)?;
    if now + wait >= call.deadline {
        return None;
    }
    let Some((budget, bucket)) = budget else { return Some(wait) };
    let allowed = budget.decide(bucket, &mut call.claim, outcome, now);
    edge.meter.counts.denied += u64::from(!allowed);
    allowed.then_some(wait)
}

/// The budget of an edge learns that a call is over, by an end or because nobody waits for it.
#[inline(always)]
pub(super) fn settle(call: &Call, edge: &mut EdgeRun<'_>) {
    if !edge.plain
        && call.made > 0
        && let Some((budget, bucket)) = edge.budget(call.replica)
    {
        budget.end(bucket, call.claim, call.backing_off);
    }
}

/// Takes call `id` out of the list that begins at `at`, where it is not the first.
fn unlink(errands: &mut [Errand], mut at: Id, id: Id, sibling: Id) {
    while errands[at.slot as usize].sibling != id {
        at = errands[at.slot as usize].sibling;
    }
    errands[at.slot as usize].sibling = sibling;
}

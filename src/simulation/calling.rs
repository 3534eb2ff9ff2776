//! The caller's side: a user request, its calls, and their attempts, from the first try to the end.

use super::Simulation;
use super::event::Event;
use super::world::{Attempt, Call, Caller, State};
use crate::document::EdgeId;
use crate::kernel::{Id, Key, Purpose, Slab, Span, Time};
use crate::measure::AttemptRow;
use crate::mechanism::budget::{Debit, Scope};
use crate::mechanism::cache::{Late, Lookup};
use crate::mechanism::outcome::{Outcome, Reason};
use crate::mechanism::pool::{Acquired, Clock};
use crate::model::Edge;

impl Simulation<'_> {
    /// A user wants something.
    #[inline]
    pub(super) fn begin_request(&mut self, source: u16, client: u32, key: Key, number: u64) {
        let tier = self.sources[usize::from(source)].tier;
        let mix = &self.model.tier(tier).mix;
        let class = match &mix[..] {
            [(_, only)] => *only,
            _ => {
                let u = key.unit(Purpose::Class);
                mix.iter()
                    .find(|(up_to, _)| u < *up_to)
                    .or(mix.last())
                    .map_or(0, |(_, class)| *class)
            }
        };
        let request = Attempt {
            class,
            replica: client,
            traced: key.chance(Purpose::Trace, self.trace.share),
            ..Attempt::request(key, source, number, tier, self.now)
        };
        self.record.totals.requests += 1;
        let left = self.meter.left(self.now);
        let meter = &mut self.meter.tiers[tier.index()];
        meter.counts.demand += 1;
        meter.counts.offered += 1;
        meter.counts.admitted += 1;
        meter.in_flight.add(1, left);
        let id = self.attempts.insert(request);
        self.proceed(id);
    }

    /// A user request has come to its end.
    #[inline]
    pub(super) fn end_request(&mut self, id: Id, source: u16, outcome: Outcome) {
        let (now, left) = (self.now, self.meter.left(self.now));
        let request = &self.attempts[id];
        let (tier, client, turned_away) = (request.tier, request.replica, request.turned_away);
        let meter = &mut self.meter.tiers[tier.index()];
        meter.in_flight.add(-1, left);
        meter.sojourn.add(now.since(request.sent));
        meter.counts.finished += 1;
        if outcome == Outcome::Ok {
            meter.counts.good += 1;
            self.record.totals.answered += 1;
        } else {
            meter.counts.failed += 1;
            meter.counts.turned_away += u64::from(turned_away);
            self.record.totals.failed += 1;
        }
        let key = request.key;
        self.free(id);
        let source_rule = &self.sources[usize::from(source)].source;
        if source_rule.loop_clients() > 0
            && let Some(time) = source_rule.think(now, key.child(0))
        {
            self.events.push(time, Event::Ask { source, client });
        }
    }

    /// `parent` calls along `edge`. The call may end at once, which its parent learns through
    /// [`Self::end_call`].
    pub(super) fn begin_call(&mut self, parent: Id, edge: EdgeId, step: u64) {
        let rule = self.model.edge(edge);
        self.meter.edges[edge.index()].counts.calls += 1;
        let caller = &mut self.attempts[parent];
        let place = step << 16 | u64::from(edge.0);
        let operation = caller.operation.child(place);
        let at_once = rule.cache.as_ref().is_some_and(|cache| cache.lookup.is_zero());
        if at_once && self.look(edge, operation) {
            self.attempts[parent].pending -= 1;
            return;
        }
        let caller = &mut self.attempts[parent];
        let call = Call {
            key: caller.key.child(place),
            operation,
            parent,
            sibling: caller.first_call,
            attempt: Id::NONE,
            deadline: rule.patience.call_deadline(self.now, caller.deadline),
            retry: Default::default(),
            made: 0,
            edge,
            replica: caller.replica,
            class: caller.class,
            request: caller.request,
            traced: caller.traced,
            backing_off: false,
        };
        let id = self.calls.insert(call);
        self.attempts[parent].first_call = id;
        match &rule.cache {
            Some(cache) if !at_once => {
                let key = self.calls[id].key;
                let span = cache.lookup.sample(&mut key.stream(Purpose::Lookup));
                self.events.push_after(self.now, span, Event::LookupEnd(id));
            }
            _ => self.send(id),
        }
    }

    /// The cache has been asked.
    pub(super) fn end_lookup(&mut self, id: Id) {
        let Some(call) = self.calls.get(id) else { return };
        if self.look(call.edge, call.operation) {
            self.end_call(id, Outcome::Ok);
        } else {
            self.send(id);
        }
    }

    /// Whether the cache of an edge has the answer to an operation.
    #[inline]
    fn look(&mut self, edge: EdgeId, operation: Key) -> bool {
        let (rule, entries) = (&self.model.edge(edge).cache, &self.edges[edge.index()].cache);
        let (Some(rule), Some(entries)) = (rule, entries) else { return false };
        let hit = rule.look(entries, operation, self.now) == Lookup::Hit;
        let counts = &mut self.meter.edges[edge.index()].counts;
        if hit {
            counts.hits += 1;
        } else {
            counts.misses += 1;
        }
        hit
    }

    /// The call makes its next attempt.
    fn send(&mut self, id: Id) {
        let now = self.now;
        let call = &mut self.calls[id];
        call.made += 1;
        let (edge, made, replica) = (call.edge, call.made, call.replica as usize);
        let rule = self.model.edge(edge);
        let limit = rule.patience.attempt_deadline(now, call.deadline);
        let attempt = self.attempts.insert(Attempt::next_of(id, call, rule.callee, now));
        call.attempt = attempt;
        self.record.totals.attempts += 1;
        self.meter.edges[edge.index()].counts.attempts += 1;
        if made == 1
            && let Some(budget) = &rule.budget
        {
            let bucket = self.bucket(edge, replica);
            budget.on_request(&mut self.edges[edge.index()].buckets[bucket]);
        }
        match rule
            .pool
            .map(|pool| (pool, pool.acquire(&mut self.edges[edge.index()].pools[replica], attempt)))
        {
            None => self.depart_with_clock(attempt, limit),
            Some((_, Acquired::Now)) => {
                let left = self.meter.left(now);
                self.meter.edges[edge.index()].pool.add(1, left);
                self.depart_with_clock(attempt, limit);
            }
            Some((pool, Acquired::Later)) => self.wait_for_connection(attempt, edge, pool),
            Some((_, Acquired::Never)) => self.fail_to_connect(attempt),
        }
    }

    fn wait_for_connection(&mut self, id: Id, edge: EdgeId, pool: crate::mechanism::pool::Pool) {
        let left = self.meter.left(self.now);
        self.meter.edges[edge.index()].pool_waiting.add(1, left);
        self.attempts[id].state = State::PoolWaiting;
        if let Some(wait) = pool.wait {
            self.events.push_after(self.now, wait, Event::PoolWaitEnd(id));
        }
        // On a clock of its own the wait is cut by the deadline of the whole call alone.
        let limit = match pool.clock {
            Clock::Attempt => {
                let limit = self.limit_of(id);
                self.attempts[id].deadline = limit;
                limit
            }
            Clock::Own => self.call_of(id).map_or(Time::NEVER, |call| call.deadline),
        };
        self.start_clock(id, limit);
    }

    fn call_of(&self, id: Id) -> Option<&Call> {
        match self.attempts[id].caller {
            Caller::Call(call) => self.calls.get(call),
            Caller::User { .. } => None,
        }
    }

    /// When the caller's patience with this attempt ends, if it begins now.
    fn limit_of(&self, id: Id) -> Time {
        self.call_of(id).map_or(Time::NEVER, |call| {
            self.model.edge(call.edge).patience.attempt_deadline(self.now, call.deadline)
        })
    }

    fn start_clock(&mut self, id: Id, limit: Time) {
        if limit != Time::NEVER {
            self.events.push_after(self.now, self.now.until(limit), Event::Timeout(id));
        }
    }

    /// The attempt leaves for its callee and its clock starts, up to `limit`. One that is turned
    /// away at the door is over before: in a storm that is every second one, and needs no event.
    #[inline]
    fn depart_with_clock(&mut self, id: Id, limit: Time) {
        self.attempts[id].deadline = limit;
        self.depart(id);
        if self.attempts.lives(id) {
            self.start_clock(id, limit);
        }
    }

    /// The attempt has what it needs and leaves for its callee.
    #[inline]
    fn depart(&mut self, id: Id) {
        let attempt = &mut self.attempts[id];
        let (key, edge) = (attempt.key, attempt.edge);
        let rule = self.model.edge(edge);
        attempt.deadline = rule.patience.passed_on(attempt.deadline);
        let travel = rule.network.travel(key, Purpose::Outbound, self.conditions.delay(edge));
        if travel == Span::ZERO {
            self.deliver(id);
        } else {
            self.events.push_after(self.now, travel, Event::Delivery(id));
        }
    }

    /// An attempt that waited for a connection has one; its caller may have left in the same
    /// instant.
    pub(super) fn connect(&mut self, id: Id) {
        let attempt = &self.attempts[id];
        if !attempt.awaited() {
            return self.free(id);
        }
        let own_clock =
            self.model.edge(attempt.edge).pool.is_some_and(|pool| pool.clock == Clock::Own);
        if own_clock {
            self.depart_with_clock(id, self.limit_of(id));
        } else {
            self.depart(id);
        }
    }

    /// The acquisition timeout has passed.
    pub(super) fn end_pool_wait(&mut self, id: Id) {
        if self.attempts.get(id).is_some_and(|attempt| attempt.state == State::PoolWaiting) {
            self.leave_pool_queue(id);
            self.fail_to_connect(id);
        }
    }

    fn leave_pool_queue(&mut self, id: Id) {
        let Caller::Call(call) = self.attempts[id].caller else { return };
        let (edge, replica) = (self.calls[call].edge, self.calls[call].replica as usize);
        self.edges[edge.index()].pools[replica].leave(id);
        let left = self.meter.left(self.now);
        self.meter.edges[edge.index()].pool_waiting.add(-1, left);
    }

    fn fail_to_connect(&mut self, id: Id) {
        let outcome = Outcome::Refused(Reason::Pool);
        let attempt = &mut self.attempts[id];
        attempt.answer = Some(outcome);
        let (tier, caller) = (attempt.tier, attempt.caller);
        self.meter.tiers[tier.index()].counts.refused[Reason::Pool as usize] += 1;
        self.free(id);
        if let Caller::Call(call) = caller {
            self.conclude(call, outcome);
        }
    }

    /// Gives the connection of a call back; the first waiter gets it, and departs by an event of
    /// its own, so that no chain of answers and departures can grow with the length of the queue.
    #[inline]
    fn release_connection(&mut self, edge: EdgeId, replica: u32) {
        if self.model.edge(edge).pool.is_none() {
            return;
        }
        let next = self.edges[edge.index()].pools[replica as usize].release();
        let left = self.meter.left(self.now);
        let meter = &mut self.meter.edges[edge.index()];
        match next {
            None => meter.pool.add(-1, left),
            Some(waiter) => {
                meter.pool_waiting.add(-1, left);
                self.attempts[waiter].state = State::Travelling;
                self.events.push_after(self.now, Span::ZERO, Event::Connected(waiter));
            }
        }
    }

    /// An answer reaches its caller, who may have left. A late answer may still fill the cache.
    #[inline]
    pub(super) fn receive(&mut self, id: Id) {
        let attempt = &self.attempts[id];
        let (Caller::Call(call), Some(answer)) = (attempt.caller, attempt.answer) else { return };
        let (edge, operation, awaited) = (attempt.edge, attempt.operation, attempt.awaited());
        self.free(id);
        if awaited {
            let replica = self.calls[call].replica;
            self.release_connection(edge, replica);
            self.conclude(call, answer);
        } else if answer == Outcome::Ok
            && let (Some(rule), Some(entries)) =
                (&self.model.edge(edge).cache, &mut self.edges[edge.index()].cache)
            && rule.late == Late::Fill
        {
            rule.fill(entries, operation, self.now);
        }
    }

    /// The caller's patience with an attempt ends.
    pub(super) fn time_out(&mut self, id: Id) {
        let Some(attempt) = self.attempts.get(id).filter(|attempt| attempt.awaited()) else {
            return;
        };
        let Caller::Call(call) = attempt.caller else { return };
        let (tier, state, edge) = (attempt.tier, attempt.state, attempt.edge);
        let replica = self.calls[call].replica;
        let connected = state != State::PoolWaiting;
        if connected {
            self.meter.tiers[tier.index()].counts.timed_out += 1;
        }
        self.caller_leaves(id);
        if connected {
            self.release_connection(edge, replica);
        }
        self.conclude(call, Outcome::TimedOut);
    }

    /// Nobody waits for this attempt any more; what happens to it is up to where it is.
    pub(super) fn caller_leaves(&mut self, id: Id) {
        self.attempts[id].left_at = self.now;
        match self.attempts[id].state {
            State::PoolWaiting => {
                self.leave_pool_queue(id);
                self.free(id);
            }
            State::Lost => self.free(id),
            State::Travelling | State::Held | State::Returning => {}
            State::Queued | State::Resuming | State::Running | State::Working | State::Calling => {
                self.callee_learns(id);
            }
        }
    }

    /// An attempt of the call has ended so: the call ends, or goes into back-off.
    fn conclude(&mut self, id: Id, outcome: Outcome) {
        let call = &mut self.calls[id];
        call.attempt = Id::NONE;
        let (edge, operation, replica) = (call.edge, call.operation, call.replica as usize);
        let rule = self.model.edge(edge);
        let counts = &mut self.meter.edges[edge.index()].counts;
        match outcome {
            Outcome::Ok => counts.ok += 1,
            Outcome::Failed => counts.failed += 1,
            Outcome::Refused(_) => counts.refused += 1,
            Outcome::TimedOut => counts.timed_out += 1,
        }
        if outcome == Outcome::Ok {
            if let Some(budget) = &rule.budget {
                let bucket = self.bucket(edge, replica);
                budget.on_success(&mut self.edges[edge.index()].buckets[bucket]);
            }
            if let (Some(cache), Some(entries)) = (&rule.cache, &mut self.edges[edge.index()].cache)
            {
                cache.fill(entries, operation, self.now);
            }
            self.end_call(id, outcome);
        } else {
            match self.decide_retry(id, rule, outcome) {
                Some(wait) => self.back_off(id, wait),
                None => {
                    self.meter.edges[edge.index()].counts.gave_up += 1;
                    self.end_call(id, outcome);
                }
            }
        }
    }

    #[inline]
    fn decide_retry(&mut self, id: Id, rule: &Edge, outcome: Outcome) -> Option<Span> {
        let call = &mut self.calls[id];
        let (edge, replica, deadline) = (call.edge, call.replica as usize, call.deadline);
        if !self.conditions.retries {
            return None;
        }
        let wait = rule.retry.next_wait(&mut call.retry, call.made, outcome, call.key)?;
        if self.now + wait >= deadline {
            return None;
        }
        let pays_now = rule.budget.is_none_or(|budget| budget.debit == Debit::Decision);
        (!pays_now || self.withdraw(edge, replica)).then_some(wait)
    }

    /// Takes a token for a retry, where there is a budget.
    fn withdraw(&mut self, edge: EdgeId, replica: usize) -> bool {
        let Some(budget) = &self.model.edge(edge).budget else { return true };
        let bucket = self.bucket(edge, replica);
        let allowed = budget.withdraw(&mut self.edges[edge.index()].buckets[bucket], self.now);
        self.meter.edges[edge.index()].counts.denied += u64::from(!allowed);
        allowed
    }

    fn bucket(&self, edge: EdgeId, replica: usize) -> usize {
        let shared =
            self.model.edge(edge).budget.is_some_and(|budget| budget.scope == Scope::Fleet);
        if shared { 0 } else { replica }
    }

    #[inline]
    fn back_off(&mut self, id: Id, wait: Span) {
        let call = &mut self.calls[id];
        call.backing_off = true;
        let left = self.meter.left(self.now);
        self.meter.edges[call.edge.index()].backoff.add(1, left);
        if wait == Span::ZERO {
            self.events.push_after(self.now, wait, Event::RetryDue(id));
        } else {
            self.events.push(self.now + wait, Event::RetryDue(id));
        }
    }

    /// A call leaves its back-off.
    pub(super) fn retry(&mut self, id: Id) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let (edge, replica) = (call.edge, call.replica as usize);
        call.backing_off = false;
        let left = self.meter.left(self.now);
        self.meter.edges[edge.index()].backoff.add(-1, left);
        let pays_now =
            self.model.edge(edge).budget.is_some_and(|budget| budget.debit == Debit::Send);
        if self.conditions.retries && (!pays_now || self.withdraw(edge, replica)) {
            self.send(id);
        } else {
            self.meter.edges[edge.index()].counts.gave_up += 1;
            self.end_call(id, Outcome::Failed);
        }
    }

    /// The call is over; its parent goes on when it was the last that it waited for.
    #[inline]
    fn end_call(&mut self, id: Id, outcome: Outcome) {
        let call = &self.calls[id];
        let (parent, sibling, edge, key) = (call.parent, call.sibling, call.edge, call.key);
        let rule = self.model.edge(edge);
        let caller = &mut self.attempts[parent];
        if caller.first_call == id {
            caller.first_call = sibling;
        } else {
            unlink(&mut self.calls, caller.first_call, id, sibling);
        }
        self.calls.remove(id);
        caller.pending -= 1;
        if outcome != Outcome::Ok {
            if !rule.optional {
                caller.failed = true;
                caller.turned_away |= outcome == Outcome::Refused(Reason::Admission);
            } else if let Some(fallback) = &rule.fallback {
                let slow = self.conditions.tier(caller.tier).slow;
                caller.work = caller.work + fallback.draw(key, 0, slow, Purpose::Fallback);
            }
        }
        if caller.pending == 0 && caller.state == State::Calling {
            self.resume(parent);
        }
    }

    /// The attempt that made these calls is gone: nobody waits for them.
    pub(super) fn abandon_calls(&mut self, parent: Id) {
        let mut next = std::mem::replace(&mut self.attempts[parent].first_call, Id::NONE);
        while let Some(call) = self.calls.get(next) {
            let (attempt, edge, replica, backing_off) =
                (call.attempt, call.edge, call.replica, call.backing_off);
            let id = std::mem::replace(&mut next, call.sibling);
            if backing_off {
                let left = self.meter.left(self.now);
                self.meter.edges[edge.index()].backoff.add(-1, left);
            }
            if let Some(under_way) = self.attempts.get(attempt) {
                let connected = under_way.state != State::PoolWaiting;
                self.meter.edges[edge.index()].counts.timed_out += 1;
                self.meter.tiers[self.attempts[attempt].tier.index()].counts.timed_out +=
                    u64::from(connected);
                self.caller_leaves(attempt);
                if connected {
                    self.release_connection(edge, replica);
                }
            }
            self.calls.remove(id);
        }
    }

    /// Frees an attempt whose story is over.
    #[inline]
    pub(super) fn free(&mut self, id: Id) {
        if self.trace.share > 0.0 {
            self.note_in_trace(id);
        }
        self.attempts.remove(id);
    }

    pub(super) fn note_in_trace(&mut self, id: Id) {
        let attempt = &self.attempts[id];
        let Caller::Call(_) = attempt.caller else { return };
        if !attempt.traced {
            return;
        }
        self.trace.rows.push(AttemptRow {
            request: attempt.request,
            edge: attempt.edge,
            tier: attempt.tier,
            attempt: attempt.number,
            sent: attempt.sent,
            arrived: attempt.arrived,
            started: attempt.started,
            ended: self.now,
            outcome: attempt.outcome(),
            awaited: attempt.awaited(),
        });
    }
}

/// Takes call `id` out of the list that begins at `at`, where it is not the first.
fn unlink(calls: &mut Slab<Call>, mut at: Id, id: Id, sibling: Id) {
    while calls[at].sibling != id {
        at = calls[at].sibling;
    }
    calls[at].sibling = sibling;
}

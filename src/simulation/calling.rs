//! The caller's side of a beginning: a call, its connections, and its attempts up to their
//! departure.

use super::edge::EdgeRun;
use super::event::Event;
use super::serving::{Door, pass_door};
use super::world::{
    Attempt, Call, Caller, Detail, Errand, NO_ATTEMPT, NO_SERVICE, Parent, Party, State,
};
use super::{Next, Simulation};
use crate::document::EdgeId;
use crate::kernel::{EventList, Id, Key, Lane, Purpose, Slab, Span, Time};
use crate::mechanism::budget::Claim;
use crate::mechanism::cache::Lookup;
use crate::mechanism::outcome::{Outcome, Reason};
use crate::mechanism::pool::{Acquired, Clock};
use crate::mechanism::retry::RetryState;

/// What has become of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// The cache had the answer: there is no call.
    Hit,
    /// It is made.
    Made,
}

impl Simulation<'_> {
    /// `parent` calls along `edge`. The call may end at once: then `parent` waits for one less.
    #[inline(always)]
    pub(super) fn begin_call(&mut self, parent: Id, edge: EdgeId, step: u64) {
        let attempt = &self.attempts[parent];
        let wanted = self.details_wanted(attempt.traced);
        let detail = if wanted { self.details[parent.slot as usize] } else { Detail::default() };
        let caller = Party {
            key: attempt.key,
            operation: detail.operation,
            parent: Parent::Attempt { id: parent, service: attempt.service },
            sibling: self.services[attempt.service].first_call,
            deadline: attempt.deadline,
            alone_since: attempt.alone_since,
            replica: attempt.replica,
            class: attempt.class,
            request: detail.request,
            traced: attempt.traced,
        };
        if self.place_call(edge, step, caller) == Placed::Hit {
            self.services[self.attempts[parent].service].pending -= 1;
        }
    }

    /// Makes a call along `edge`, unless the cache has the answer at once.
    #[inline(always)]
    pub(super) fn place_call(&mut self, edge: EdgeId, step: u64, caller: Party) -> Placed {
        let run = &mut self.edges[edge.index()];
        let rule = run.rule;
        let place = step << 16 | u64::from(edge.0);
        run.meter.counts.calls += 1;
        let operation =
            if self.tells_operations { caller.operation.child(place) } else { caller.operation };
        let at_once = rule.cache.as_ref().is_some_and(|cache| cache.lookup.is_zero());
        if at_once && self.look(edge, operation) {
            return Placed::Hit;
        }
        let key = caller.key.child(place);
        let (id, call) = self.calls.open();
        call.key = key;
        call.parent = caller.parent;
        call.attempt = NO_ATTEMPT;
        call.deadline = rule.patience.call_deadline(self.now, caller.deadline);
        call.retry = RetryState::default();
        call.claim = Claim::None;
        call.made = 0;
        call.replica = caller.replica;
        call.edge = edge;
        call.class = caller.class;
        call.alone = caller.alone_since != Time::NEVER;
        call.traced = caller.traced;
        call.backing_off = false;
        let made_by_attempt = matches!(caller.parent, Parent::Attempt { .. });
        if made_by_attempt || self.details_wanted(caller.traced) {
            let Party { alone_since, sibling, request, .. } = caller;
            *self.errand_mut(id) = Errand { alone_since, operation, sibling, request };
        }
        if let Parent::Attempt { service, .. } = caller.parent {
            self.services[service].first_call = id;
        }
        match &rule.cache {
            Some(cache) if !at_once => {
                let span = cache.lookup.sample(&mut key.stream(Purpose::Lookup));
                self.events.push(self.now + span, Event::LookupEnd(id));
            }
            _ => {
                let next = self.send(id);
                debug_assert_eq!(next, None, "the parent is not waiting as yet");
            }
        }
        Placed::Made
    }

    /// The cache has been asked.
    #[cold]
    #[inline(never)]
    pub(super) fn end_lookup(&mut self, id: Id) -> Next {
        let call = self.calls.get(id)?;
        if self.look(call.edge, self.errands[id.slot as usize].operation) {
            self.end_call(id, Outcome::Ok)
        } else {
            self.send(id)
        }
    }

    /// Whether the cache of an edge has the answer to an operation.
    #[inline]
    fn look(&mut self, edge: EdgeId, operation: Key) -> bool {
        let run = &mut self.edges[edge.index()];
        let Some((rule, entries)) = run.cache() else { return false };
        let hit = rule.look(entries, operation, self.now) == Lookup::Hit;
        let counts = &mut run.meter.counts;
        if hit {
            counts.hits += 1;
        } else {
            counts.misses += 1;
        }
        hit
    }

    /// The call makes its next attempt, unless its caller turns it away: then it fails.
    #[inline(never)]
    pub(super) fn send(&mut self, id: Id) -> Next {
        let call = &mut self.calls[id];
        let run = &mut self.edges[call.edge.index()];
        if !run.quick || call.traced {
            return self.send_with_care(id);
        }
        let (now, left, edge) = (self.now, self.left, call.edge);
        let (limit, lane) = run.clock(now, call.deadline);
        self.record.totals.attempts += 1;
        let alone_since = alone_since(id, call, &self.errands);
        let named = next_attempt((id, call), run, limit, alone_since, &mut self.attempts);
        let attempt = named.0;
        let tier = &mut self.tiers[run.rule.callee.index()];
        let door = pass_door(tier, named, 1, &mut self.services, &mut self.events, now, left);
        if !matches!(door, Door::Through) {
            return self.leave_door_with_clock(attempt, edge, limit, door);
        }
        start_clock(&mut self.events, attempt, now, limit, lane);
        None
    }

    /// The same where there is something to do before the attempt leaves, or a way to go.
    #[inline(never)]
    fn send_with_care(&mut self, id: Id) -> Next {
        if self.edges[self.calls[id].edge.index()].guarded {
            return self.send_guarded(id);
        }
        self.send_now(id)
    }

    /// The call makes its next attempt, which its caller has let pass.
    pub(super) fn send_now(&mut self, id: Id) -> Next {
        let call = &mut self.calls[id];
        let (edge, traced) = (call.edge, call.traced);
        let run = &mut self.edges[edge.index()];
        let (limit, _) = run.clock(self.now, call.deadline);
        self.record.totals.attempts += 1;
        let alone_since = alone_since(id, call, &self.errands);
        let (attempt, _) = next_attempt((id, call), run, limit, alone_since, &mut self.attempts);
        let acquired = match run.plain && !self.details_wanted(traced) {
            true => Acquired::Now,
            false => self.acquire(id, attempt),
        };
        match acquired {
            Acquired::Now => self.depart_with_clock(attempt, edge, limit),
            Acquired::Later => {
                self.wait_for_connection(attempt);
                None
            }
            Acquired::Never => self.fail_to_connect(attempt),
        }
    }

    /// What an attempt needs before it leaves, a connection; and all who look at it do so: the
    /// trace, the herd, the budget.
    #[inline(never)]
    fn acquire(&mut self, id: Id, attempt: Id) -> Acquired {
        if self.details_wanted(self.calls[id].traced) {
            self.note_detail(id, attempt);
        }
        let call = &self.calls[id];
        let run = &mut self.edges[call.edge.index()];
        if let Some(herd) = &mut self.tiers[run.rule.caller.index()].herd {
            herd.try_again(call.replica);
        }
        if call.made == 1
            && let Some((budget, bucket)) = run.budget(call.replica)
        {
            budget.begin(bucket, self.now);
        }
        let Some(pool) = run.rule.pool else { return Acquired::Now };
        let acquired = pool.acquire(&mut run.pools[call.replica as usize], attempt);
        if acquired == Acquired::Now {
            run.meter.pool.up(self.left);
        }
        acquired
    }

    #[cold]
    #[inline(never)]
    fn wait_for_connection(&mut self, id: Id) {
        let edge = self.attempts[id].edge;
        let run = &mut self.edges[edge.index()];
        let Some(pool) = run.rule.pool else { return };
        run.meter.pool_waiting.up(self.left);
        self.attempts[id].state = State::PoolWaiting;
        if let Some(wait) = pool.wait {
            self.events.push(self.now + wait, Event::PoolWaitEnd(id));
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
        self.start_clock_along(id, edge, limit);
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
            let patience = &self.edges[call.edge.index()].rule.patience;
            patience.attempt_deadline(self.now, call.deadline)
        })
    }

    /// The attempt leaves along `edge` for its callee and its clock starts, up to `limit`. One that
    /// is turned away at the door is over before: in a storm that is every second one, and needs no
    /// event.
    #[inline(always)]
    fn depart_with_clock(&mut self, id: Id, edge: EdgeId, limit: Time) -> Next {
        let next = self.depart(id, edge);
        self.start_clock_of_living(id, edge, limit);
        next
    }

    /// The same for one that is at the door already.
    #[inline(never)]
    fn leave_door_with_clock(&mut self, id: Id, edge: EdgeId, limit: Time, door: Door) -> Next {
        let next = self.leave_door(id, door);
        self.start_clock_of_living(id, edge, limit);
        next
    }

    #[inline(always)]
    fn start_clock_of_living(&mut self, id: Id, edge: EdgeId, limit: Time) {
        if self.attempts.lives(id) {
            self.start_clock_along(id, edge, limit);
        }
    }

    #[inline(always)]
    fn start_clock_along(&mut self, id: Id, edge: EdgeId, limit: Time) {
        let lane = self.edges[edge.index()].lane(self.now, limit);
        start_clock(&mut self.events, id, self.now, limit, lane);
    }

    /// The attempt has what it needs and leaves along `edge` for its callee.
    #[inline(always)]
    fn depart(&mut self, id: Id, edge: EdgeId) -> Next {
        let edge = &self.edges[edge.index()];
        if edge.instant {
            return self.reach(id);
        }
        let attempt = &self.attempts[id];
        let travel = edge.rule.network.travel(attempt.key, Purpose::Outbound, edge.delay);
        if travel == Span::ZERO {
            return self.reach(id);
        }
        self.events.push(self.now + travel, Event::Delivery(id));
        None
    }

    /// An attempt that waited for a connection has one; its caller may have left in the same
    /// instant.
    pub(super) fn connect(&mut self, id: Id) -> Next {
        let attempt = &self.attempts[id];
        if !attempt.awaited() {
            self.free(id);
            return None;
        }
        let edge = attempt.edge;
        let rule = self.edges[edge.index()].rule;
        if rule.pool.is_some_and(|pool| pool.clock == Clock::Own) {
            let limit = self.limit_of(id);
            self.attempts[id].deadline = rule.patience.passed_on(limit);
            return self.depart_with_clock(id, edge, limit);
        }
        let attempt = &mut self.attempts[id];
        attempt.deadline = rule.patience.passed_on(attempt.deadline);
        self.depart(id, edge)
    }

    /// The acquisition timeout has passed.
    pub(super) fn end_pool_wait(&mut self, id: Id) -> Next {
        self.attempts.get(id).filter(|attempt| attempt.state == State::PoolWaiting)?;
        self.leave_pool_queue(id);
        self.fail_to_connect(id)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn leave_pool_queue(&mut self, id: Id) {
        let Caller::Call(call) = self.attempts[id].caller else { return };
        let call = &self.calls[call];
        let edge = &mut self.edges[call.edge.index()];
        edge.pools[call.replica as usize].leave(id);
        edge.meter.pool_waiting.down(self.left);
    }

    #[cold]
    #[inline(never)]
    fn fail_to_connect(&mut self, id: Id) -> Next {
        let outcome = Outcome::Refused(Reason::Pool);
        let attempt = &mut self.attempts[id];
        attempt.answer = Some(outcome);
        let caller = attempt.caller;
        self.tiers[attempt.tier.index()].meter.counts.refused[Reason::Pool as usize] += 1;
        self.free(id);
        let Caller::Call(call) = caller else { return None };
        self.conclude(call, outcome, false)
    }
}

/// Gives the connection of a call back; the first waiter gets it, and departs by an event of its
/// own, so that no chain of answers and departures can grow with the length of the queue.
#[inline(always)]
pub(super) fn release_connection(
    edge: &mut EdgeRun<'_>,
    replica: u32,
    attempts: &mut Slab<Attempt>,
    events: &mut EventList<Event>,
    now: Time,
    left: Span,
) {
    if edge.rule.pool.is_none() {
        return;
    }
    match edge.pools[replica as usize].release() {
        None => edge.meter.pool.down(left),
        Some(waiter) => {
            edge.meter.pool_waiting.down(left);
            attempts[waiter].state = State::Travelling;
            events.push_now(now, Event::Connected(waiter));
        }
    }
}

/// Since when the attempt that made a call is alone.
#[inline(always)]
fn alone_since(id: Id, call: &Call, errands: &[Errand]) -> Time {
    if call.alone { errands[id.slot as usize].alone_since } else { Time::NEVER }
}

/// The next attempt of a call, which waits for it up to `limit`.
#[inline(always)]
fn next_attempt<'s>(
    (id, call): (Id, &mut Call),
    run: &mut EdgeRun<'_>,
    limit: Time,
    alone_since: Time,
    attempts: &'s mut Slab<Attempt>,
) -> (Id, &'s mut Attempt) {
    let rule = run.rule;
    let (attempt, record) = attempts.open();
    call.made += 1;
    call.attempt = attempt.slot;
    *record = Attempt {
        key: call.key.child(u64::from(call.made)),
        caller: Caller::Call(id),
        deadline: rule.patience.passed_on(limit),
        alone_since,
        arrived: Time::NEVER,
        replica: 0,
        service: NO_SERVICE,
        edge: call.edge,
        tier: rule.callee,
        class: call.class,
        state: State::Travelling,
        answer: None,
        left: false,
        holds_server: false,
        failed: None,
        traced: call.traced,
        generation: record.generation,
    };
    let counts = &mut run.meter.counts;
    counts.attempts += 1;
    counts.ghosts += u64::from(call.alone);
    (attempt, record)
}

/// Whoever sent the attempt waits up to `limit` from now on, by a clock that may have a lane.
#[inline(always)]
fn start_clock(events: &mut EventList<Event>, id: Id, now: Time, limit: Time, lane: Option<Lane>) {
    if limit == Time::NEVER {
        return;
    }
    match lane {
        Some(lane) => events.push_in(lane, limit, Event::Timeout(id)),
        None => events.push(limit.max(now), Event::Timeout(id)),
    }
}

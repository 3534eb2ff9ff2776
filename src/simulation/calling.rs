//! The caller's side: a user request, its calls, and their attempts, from the first try to the end.

use super::event::Event;
use super::refusing::remember;
use super::world::{
    Attempt, Blame, Call, Caller, Detail, EdgeRun, Errand, NO_SERVICE, Parent, Party, State,
};
use super::{Next, Simulation, is_crowded};
use crate::document::EdgeId;
use crate::kernel::{Id, Key, Purpose, Span, Time};
use crate::mechanism::budget::Claim;
use crate::mechanism::cache::{Late, Lookup};
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
        call.attempt = Id::NONE;
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
    fn send(&mut self, id: Id) -> Next {
        if self.edges[self.calls[id].edge.index()].guarded {
            return self.send_guarded(id);
        }
        self.send_now(id)
    }

    /// The call makes its next attempt.
    #[inline(always)]
    pub(super) fn send_now(&mut self, id: Id) -> Next {
        let call = &mut self.calls[id];
        let run = &mut self.edges[call.edge.index()];
        let rule = run.rule;
        let limit = rule.patience.attempt_deadline(self.now, call.deadline);
        let edge = call.edge;
        let (attempt, record) = self.attempts.open();
        call.made += 1;
        call.attempt = attempt;
        *record = Attempt {
            key: call.key.child(u64::from(call.made)),
            caller: Caller::Call(id),
            deadline: rule.patience.passed_on(limit),
            alone_since: match call.alone {
                true => self.errands[id.slot as usize].alone_since,
                false => Time::NEVER,
            },
            arrived: Time::NEVER,
            replica: 0,
            service: NO_SERVICE,
            edge,
            tier: rule.callee,
            class: call.class,
            state: State::Travelling,
            answer: None,
            left: false,
            holds_server: false,
            failed: None,
            traced: call.traced,
        };
        self.record.totals.attempts += 1;
        run.meter.counts.attempts += 1;
        run.meter.counts.ghosts += u64::from(call.alone);
        let noted = self.tells_operations || call.traced;
        let acquired = match run.plain && !noted {
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
        self.start_clock(id, edge, limit);
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

    /// Whoever sent the attempt along `edge` waits up to `limit` from now on.
    #[inline(always)]
    fn start_clock(&mut self, id: Id, edge: EdgeId, limit: Time) {
        if limit == Time::NEVER {
            return;
        }
        match self.edges[edge.index()].lane(self.now, limit) {
            Some(lane) => self.events.push_in(lane, limit, Event::Timeout(id)),
            None => self.events.push(limit.max(self.now), Event::Timeout(id)),
        }
    }

    /// The attempt leaves along `edge` for its callee and its clock starts, up to `limit`. One that
    /// is turned away at the door is over before: in a storm that is every second one, and needs no
    /// event.
    #[inline(always)]
    fn depart_with_clock(&mut self, id: Id, edge: EdgeId, limit: Time) -> Next {
        let next = self.depart(id, edge);
        if self.attempts.lives(id) {
            self.start_clock(id, edge, limit);
        }
        next
    }

    /// The attempt has what it needs and leaves along `edge` for its callee.
    #[inline(always)]
    fn depart(&mut self, id: Id, edge: EdgeId) -> Next {
        let edge = &self.edges[edge.index()];
        if edge.is_instant() {
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
        self.conclude(call, outcome)
    }

    /// Gives the connection of a call back; the first waiter gets it, and departs by an event of
    /// its own, so that no chain of answers and departures can grow with the length of the queue.
    #[inline(always)]
    pub(super) fn release_connection(&mut self, edge: EdgeId, call: Id) {
        let edge = &mut self.edges[edge.index()];
        if edge.plain || edge.rule.pool.is_none() {
            return;
        }
        match edge.pools[self.calls[call].replica as usize].release() {
            None => edge.meter.pool.down(self.left),
            Some(waiter) => {
                edge.meter.pool_waiting.down(self.left);
                self.attempts[waiter].state = State::Travelling;
                self.events.push_now(self.now, Event::Connected(waiter));
            }
        }
    }

    /// An answer reaches its caller, who may have left.
    #[inline(always)]
    pub(super) fn receive(&mut self, id: Id) -> Next {
        let attempt = &self.attempts[id];
        let (Caller::Call(call), answer) = (attempt.caller, attempt.answer?) else { return None };
        if !attempt.awaited() {
            self.receive_late(id, answer);
            return None;
        }
        let edge = attempt.edge;
        self.free(id);
        self.release_connection(edge, call);
        self.conclude(call, answer)
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
        let edge = attempt.edge;
        let connected = attempt.state != State::PoolWaiting;
        if connected {
            self.tiers[attempt.tier.index()].meter.counts.timed_out += 1;
        }
        self.caller_leaves(id);
        if connected {
            self.release_connection(edge, call);
        }
        self.conclude(call, Outcome::TimedOut)
    }

    /// An attempt of the call has ended so: the call ends, or goes into back-off.
    #[inline(always)]
    pub(super) fn conclude(&mut self, id: Id, outcome: Outcome) -> Next {
        let call = &mut self.calls[id];
        if let Parent::Attempt { id: parent, service } = call.parent
            && is_crowded(&self.attempts)
        {
            self.attempts.prefetch(parent.slot);
            self.services.prefetch(service);
        }
        let edge = &mut self.edges[call.edge.index()];
        if edge.guarded {
            remember(call, edge, outcome, self.now);
        }
        call.attempt = Id::NONE;
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
        // It would be the next event, and nobody would look at its back-off: it needs no place in
        // the list. In a storm that is every third event.
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
    fn end_call(&mut self, id: Id, outcome: Outcome) -> Next {
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
                service.work = service.work + more;
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

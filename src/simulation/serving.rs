//! The callee's side: an attempt from its delivery to its answer.

use super::event::Event;
use super::world::{Attempt, Caller, NO_SERVICE, Service, State, StationId, TierRun};
use super::{Next, Simulation};
use crate::kernel::{EventList, Id, Key, Lane, Purpose, Span, Time};
use crate::mechanism::conditions::Outage;
use crate::mechanism::idempotency::Effect;
use crate::mechanism::outcome::{Outcome, Reason};
use crate::mechanism::timeout::{Abandoned, too_late};
use crate::mechanism::work::{Drawn, fails};
use crate::model::{Op, Program};

impl Simulation<'_> {
    /// An attempt reaches its callee, after a way.
    #[inline(always)]
    pub(super) fn deliver(&mut self, id: Id) -> Next {
        if self.attempts.lives(id) { self.reach(id) } else { None }
    }

    /// An attempt reaches its callee.
    #[inline(always)]
    pub(super) fn reach(&mut self, id: Id) -> Next {
        self.come_to_door(id, 1)
    }

    /// An attempt is let go by the outage that held it at the door.
    pub(super) fn enter(&mut self, id: Id) -> Next {
        self.come_to_door(id, 0)
    }

    /// An attempt is at the door of its callee, and `offered` once more or not. It is served, or
    /// joins a queue, or is turned away.
    #[inline(always)]
    fn come_to_door(&mut self, id: Id, offered: u64) -> Next {
        let (now, left) = (self.now, self.left);
        let attempt = &mut self.attempts[id];
        let tier = &mut self.tiers[attempt.tier.index()];
        let rule = tier.rule;
        attempt.arrived = now;
        tier.meter.counts.offered += offered;
        if let Some(outage) = tier.conditions.outage {
            return self.meet_outage(id, outage);
        }
        if let Some(reason) = turned_away(tier, attempt, now) {
            return self.refuse(id, reason);
        }
        attempt.replica = tier.pick_replica(attempt.key);
        let index = tier.station(attempt.replica);
        let station = &mut tier.stations[index as usize];
        let free = station.waiting.is_empty() && !tier.conditions.paused && station.servers.free();
        if !free && !rule.queue.admits(station.waiting.len()) {
            return self.refuse(id, Reason::QueueFull);
        }
        if free && rule.abandoned == Abandoned::Skip && !attempt.awaited() {
            return self.refuse(id, Reason::Left);
        }
        tier.meter.counts.admitted += 1;
        tier.meter.in_flight.up(left);
        if free {
            take_server(tier, attempt, left);
            return self.begin_service(id);
        }
        tier.meter.queue.up(left);
        station.waiting.push(id);
        attempt.state = State::Queued;
        if rule.drawn == Drawn::AtEnqueue {
            self.draw_first_work(id);
        }
        if let Some(wait) = rule.queue.max_wait {
            self.events.push(now + wait, Event::QueueWaitEnd(id));
        }
        None
    }

    #[cold]
    fn meet_outage(&mut self, id: Id, outage: Outage) -> Next {
        let attempt = &mut self.attempts[id];
        match outage {
            Outage::Fail => return self.refuse(id, Reason::Down),
            Outage::BlackHole => {
                attempt.state = State::Lost;
                if !attempt.awaited() {
                    self.free(id);
                }
            }
            Outage::Hold => {
                attempt.state = State::Held;
                self.tiers[attempt.tier.index()].held.push(id);
            }
        }
        None
    }

    /// Fixes the length of the first work before service, under the slow-down of now.
    #[cold]
    #[inline(never)]
    fn draw_first_work(&mut self, id: Id) {
        let attempt = &mut self.attempts[id];
        let tier = &self.tiers[attempt.tier.index()];
        let program = &tier.rule.programs[usize::from(attempt.class)];
        let work = match program.ops[0] {
            Op::Work(number) => program.works[usize::from(number)].draw(
                attempt.key,
                0,
                tier.conditions.slow,
                Purpose::Work,
            ),
            _ => Span::ZERO,
        };
        let (service, under_way) = self.services.open();
        *under_way = Service { work, ..Service::default() };
        attempt.service = service;
    }

    /// An attempt has waited in the queue as long as it may.
    pub(super) fn end_queue_wait(&mut self, id: Id) -> Next {
        self.attempts.get(id).filter(|attempt| attempt.state == State::Queued)?;
        self.leave_queue(id);
        self.refuse(id, Reason::QueueWait)
    }

    /// The attempt leaves the middle of its queue.
    pub(super) fn leave_queue(&mut self, id: Id) {
        let attempt = &mut self.attempts[id];
        attempt.state = State::Running;
        let tier = &mut self.tiers[attempt.tier.index()];
        tier.meter.queue.down(self.left);
        tier.meter.in_flight.down(self.left);
        let index = tier.station(attempt.replica);
        let attempts = &self.attempts;
        tier.stations[index as usize]
            .waiting
            .leave(|id| attempts.get(id).is_some_and(Attempt::waits));
    }

    /// The attempt, which has a server, begins its program. One that is a single piece of work runs
    /// none.
    #[inline(always)]
    fn begin_service(&mut self, id: Id) -> Next {
        let now = self.now;
        let attempt = &mut self.attempts[id];
        let tier = &mut self.tiers[attempt.tier.index()];
        tier.meter.wait.add(now.since(attempt.arrived));
        let (Some(work), false) = (
            tier.leaf[usize::from(attempt.class)],
            attempt.traced || is_late(tier, attempt, now),
        ) else {
            return self.begin_program(id);
        };
        let span = work.draw(attempt.key, 0, tier.conditions.slow, Purpose::Work);
        let (service, under_way) = self.services.open();
        *under_way = Service::of(now, span, tier.paused);
        attempt.service = service;
        attempt.state = State::Working;
        let lasts = now.until(tier.paused_until) + span;
        end_after(&mut self.events, now, lasts, tier.work, id);
        None
    }

    #[inline(never)]
    fn begin_program(&mut self, id: Id) -> Next {
        let attempt = &mut self.attempts[id];
        attempt.state = State::Running;
        if attempt.traced {
            self.details[id.slot as usize].started = self.now;
        }
        self.make_ready(id);
        let attempt = &self.attempts[id];
        self.services[attempt.service].read = self.tiers[attempt.tier.index()].version;
        self.proceed(id)
    }

    /// Opens the service of an attempt, where that has not been done in the queue.
    fn make_ready(&mut self, id: Id) {
        let attempt = &mut self.attempts[id];
        if attempt.service != NO_SERVICE {
            return;
        }
        if self.tiers[attempt.tier.index()].rule.drawn == Drawn::AtEnqueue {
            return self.draw_first_work(id);
        }
        let (service, under_way) = self.services.open();
        *under_way = Service::default();
        attempt.service = service;
    }

    /// Serves those who wait, while there are servers.
    #[inline(always)]
    pub(super) fn serve_queue(&mut self, id: StationId) {
        let now = self.now;
        if self.tiers[id.tier.index()].stations[id.index as usize].debt > Span::ZERO {
            self.do_refusals(id);
        }
        loop {
            let tier = &mut self.tiers[id.tier.index()];
            let rule = tier.rule;
            let station = &mut tier.stations[id.index as usize];
            if tier.conditions.paused || station.waiting.is_empty() || !station.servers.free() {
                return;
            }
            let attempts = &self.attempts;
            let waits = |id: Id| attempts.get(id).is_some_and(Attempt::waits);
            let Some(id) = station.waiting.pop(rule.queue.discipline, waits) else { return };
            if let Some(after) = station.waiting.first(rule.queue.discipline) {
                attempts.prefetch(after.slot);
            }
            tier.meter.queue.down(self.left);
            let attempt = &mut self.attempts[id];
            let resumes = attempt.state == State::Resuming;
            let late = is_late(tier, attempt, now);
            if !resumes && (late || is_unwanted(tier, attempt)) {
                self.skip(id, if late { Reason::Deadline } else { Reason::Left });
                continue;
            }
            take_server(tier, attempt, self.left);
            if resumes {
                attempt.state = State::Running;
                self.go_on(Some(id));
            } else {
                let next = self.begin_service(id);
                self.go_on(next);
            }
        }
    }

    /// Turns away one that has come to the head of the queue.
    #[inline(never)]
    fn skip(&mut self, id: Id, reason: Reason) {
        let tier = self.attempts[id].tier;
        self.tiers[tier.index()].meter.in_flight.down(self.left);
        let next = self.refuse(id, reason);
        self.go_on(next);
    }

    /// The attempt goes on, and after its answer the one that waited for it, and so on.
    #[inline(always)]
    pub(super) fn go_on(&mut self, mut next: Next) {
        while let Some(id) = next {
            let makes_do = self.must_make_do(id);
            next = if makes_do { self.make_do(id) } else { self.proceed(id) };
        }
    }

    /// Whether a call has failed, so that an attempt cannot just take the next step.
    #[inline]
    fn must_make_do(&self, id: Id) -> bool {
        let attempt = &self.attempts[id];
        attempt.failed.is_some() || self.services[attempt.service].work > Span::ZERO
    }

    /// After a failed call: answer with an error, or do the work of a fallback.
    #[cold]
    #[inline(never)]
    fn make_do(&mut self, id: Id) -> Next {
        let attempt = &self.attempts[id];
        if attempt.failed.is_some() {
            return self.answer(id, Outcome::Failed);
        }
        self.work(id, self.services[attempt.service].work)
    }

    /// Runs the program of an attempt until it has to wait for something, or to its answer.
    #[inline(never)]
    fn proceed(&mut self, id: Id) -> Next {
        loop {
            let attempt = &mut self.attempts[id];
            let tier = &self.tiers[attempt.tier.index()];
            let rule = tier.rule;
            let program = &rule.programs[usize::from(attempt.class)];
            let service = &mut self.services[attempt.service];
            let step = service.step;
            let op = program.ops[usize::from(step)];
            if op == Op::End {
                return self.end_program(id);
            }
            if too_late(self.now, attempt.deadline, rule.min_remaining) {
                return self.answer(id, Outcome::Refused(Reason::Deadline));
            }
            service.step += 1;
            match op {
                Op::End => {}
                Op::Jump(target) => service.step = target,
                Op::Choose { first, count } => {
                    service.step = chosen(program, (first, count), attempt.key, step);
                }
                Op::Work(number) => {
                    let span = self.length_of_work(id, step, program, number);
                    return self.work(id, span);
                }
                Op::Call(edge) => {
                    service.pending = 1;
                    self.begin_call(id, edge, u64::from(step));
                    if self.waits_for_calls(id, rule.asynchronous) {
                        return None;
                    }
                    if self.must_make_do(id) {
                        return self.make_do(id);
                    }
                }
                Op::Together { first, count } => {
                    service.pending = count;
                    let edges = &program.together[usize::from(first)..][..usize::from(count)];
                    for (place, &edge) in edges.iter().enumerate() {
                        // The second call to one callee is another operation, with draws of its
                        // own.
                        let earlier = edges[..place].iter().filter(|e| **e == edge).count() as u64;
                        self.begin_call(id, edge, earlier << 16 | u64::from(step));
                    }
                    if self.waits_for_calls(id, rule.asynchronous) {
                        return None;
                    }
                    if self.must_make_do(id) {
                        return self.make_do(id);
                    }
                }
            }
        }
    }

    /// The length of a piece of work: a stored result is looked up instead; what was drawn at
    /// enqueue stays.
    #[inline(always)]
    fn length_of_work(&mut self, id: Id, step: u16, program: &Program, number: u16) -> Span {
        let attempt = &self.attempts[id];
        let tier = &mut self.tiers[attempt.tier.index()];
        let slow = tier.conditions.slow;
        if let Some(write) = &tier.rule.write
            && write.stored(&mut tier.ledger, self.details[id.slot as usize].operation, self.now)
        {
            let mut stream = attempt.key.stream(Purpose::Lookup);
            return write.lookup.sample(&mut stream).scaled(slow);
        }
        if tier.rule.drawn == Drawn::AtEnqueue && step == 0 {
            return self.services[attempt.service].work;
        }
        program.works[usize::from(number)].draw(attempt.key, step, slow, Purpose::Work)
    }

    /// Works for so long; a pause of the tier comes on top.
    #[inline(always)]
    fn work(&mut self, id: Id, span: Span) -> Next {
        let attempt = &mut self.attempts[id];
        let tier = &self.tiers[attempt.tier.index()];
        let standstill = self.now.until(tier.paused_until);
        attempt.state = State::Working;
        let service = &mut self.services[attempt.service];
        service.work = span;
        service.work_began = self.now;
        service.pauses = tier.paused;
        end_after(&mut self.events, self.now, standstill + span, tier.work, id);
        None
    }

    /// A piece of work is done, unless a pause has put it off.
    #[inline(always)]
    pub(super) fn end_work(&mut self, id: Id) -> Next {
        let attempt =
            self.attempts.get_mut(id).filter(|attempt| attempt.state == State::Working)?;
        self.services.prefetch(attempt.service);
        if let Caller::Call(call) = attempt.caller {
            self.calls.prefetch(call.slot);
        }
        let tier = &mut self.tiers[attempt.tier.index()];
        let service = &mut self.services[attempt.service];
        if tier.paused > service.pauses {
            let put_off = tier.paused - service.pauses;
            service.pauses = tier.paused;
            self.events.push(self.now + put_off, Event::WorkEnd(id));
            return None;
        }
        note_work(tier, attempt.alone_since, service, self.now);
        if tier.leaf[usize::from(attempt.class)].is_some() {
            let failed = fails(attempt.key, tier.failing);
            let outcome = if failed { Outcome::Failed } else { Outcome::Ok };
            note_answer(tier, attempt, outcome, self.now, self.left);
            self.freed.push(leave_server(tier, attempt, self.left));
            return self.reply(id, outcome);
        }
        attempt.state = State::Running;
        service.work = Span::ZERO;
        Some(id)
    }

    /// True while calls are under way: the attempt then waits, and an asynchronous tier frees its
    /// worker.
    #[inline(always)]
    fn waits_for_calls(&mut self, id: Id, asynchronous: bool) -> bool {
        let attempt = &mut self.attempts[id];
        if self.services[attempt.service].pending == 0 {
            return false;
        }
        attempt.state = State::Calling;
        if asynchronous {
            self.release_server(id);
        }
        true
    }

    /// The last call has ended: the attempt goes on, at an asynchronous tier when a server is free.
    #[inline(always)]
    pub(super) fn resume(&mut self, id: Id) -> Next {
        let attempt = &mut self.attempts[id];
        let tier = &mut self.tiers[attempt.tier.index()];
        if !tier.rule.asynchronous || attempt.failed.is_some() {
            if tier.conditions.paused {
                self.events.push(tier.paused_until, Event::PauseEnd(id));
                return None;
            }
            attempt.state = State::Running;
            return Some(id);
        }
        attempt.state = State::Resuming;
        let index = tier.station(attempt.replica);
        let station = &mut tier.stations[index as usize];
        if !tier.conditions.paused && station.servers.free() {
            take_server(tier, attempt, self.left);
            attempt.state = State::Running;
            return Some(id);
        }
        station.waiting.push_resumed(id);
        tier.meter.queue.up(self.left);
        None
    }

    /// A tier that stood still takes the answer that came meanwhile, if the attempt still waits for
    /// it.
    pub(super) fn end_pause(&mut self, id: Id) -> Next {
        let attempt = self.attempts.get(id).filter(|attempt| attempt.state == State::Calling)?;
        if self.services[attempt.service].pending > 0 {
            return None;
        }
        self.resume(id)
    }

    /// The program has come to its end: an error by chance, the effect of a write, the answer.
    #[inline(always)]
    fn end_program(&mut self, id: Id) -> Next {
        let attempt = &self.attempts[id];
        let tier = &mut self.tiers[attempt.tier.index()];
        if fails(attempt.key, tier.failing) {
            return self.answer(id, Outcome::Failed);
        }
        if tier.rule.optimistic && !tier.version.commit(self.services[attempt.service].read) {
            return self.answer(id, Outcome::Failed);
        }
        if let Some(write) = &tier.rule.write {
            match write.commit(&mut tier.ledger, self.details[id.slot as usize].operation, self.now)
            {
                Effect::First => tier.meter.counts.effects += 1,
                Effect::Duplicate => tier.meter.counts.duplicates += 1,
                Effect::Stored => {}
            }
        }
        self.answer(id, Outcome::Ok)
    }

    /// The callee is done with the attempt.
    #[inline(always)]
    fn answer(&mut self, id: Id, outcome: Outcome) -> Next {
        let attempt = &mut self.attempts[id];
        if let Caller::User { source } = attempt.caller {
            self.end_request(id, source, outcome);
            return None;
        }
        let tier = &mut self.tiers[attempt.tier.index()];
        note_answer(tier, attempt, outcome, self.now, self.left);
        if attempt.holds_server {
            self.freed.push(leave_server(tier, attempt, self.left));
        }
        self.reply(id, outcome)
    }

    /// Sends the answer back.
    #[inline(always)]
    pub(super) fn reply(&mut self, id: Id, outcome: Outcome) -> Next {
        let attempt = &mut self.attempts[id];
        attempt.state = State::Returning;
        attempt.answer = Some(outcome);
        if !attempt.awaited() {
            self.receive_late(id, outcome);
            return None;
        }
        let edge = &self.edges[attempt.edge.index()];
        if edge.instant && edge.delay == Span::ZERO {
            return self.receive(id);
        }
        let network = &edge.rule.network;
        if network.loses_reply(attempt.key) {
            attempt.state = State::Lost;
            return None;
        }
        let travel = network.travel(attempt.key, Purpose::Inbound, edge.delay);
        if travel == Span::ZERO {
            self.receive(id)
        } else {
            self.events.push(self.now + travel, Event::Reply(id));
            None
        }
    }

    pub(super) fn release_server(&mut self, id: Id) {
        let attempt = &mut self.attempts[id];
        let tier = &mut self.tiers[attempt.tier.index()];
        self.freed.push(leave_server(tier, attempt, self.left));
    }
}

/// Gives the attempt a server of its station.
#[inline(always)]
fn take_server(tier: &mut TierRun<'_>, attempt: &mut Attempt, left: Span) {
    let index = tier.station(attempt.replica);
    tier.stations[index as usize].servers.take();
    tier.meter.busy.up(left);
    attempt.holds_server = true;
}

/// Whether too little time is left for the attempt to begin.
#[inline(always)]
fn is_late(tier: &TierRun<'_>, attempt: &Attempt, now: Time) -> bool {
    too_late(now, attempt.deadline, tier.rule.min_remaining)
}

/// Whether the tier leaves the attempt aside, since nobody waits for it.
#[inline(always)]
fn is_unwanted(tier: &TierRun<'_>, attempt: &Attempt) -> bool {
    !attempt.awaited() && tier.rule.abandoned != Abandoned::Finish
}

/// Plans the end of a piece of work that takes so long from `now`; `lane` is that of the tier's
/// constant work.
#[inline(always)]
fn end_after(
    events: &mut EventList<Event>,
    now: Time,
    lasts: Span,
    lane: Option<(Span, Lane)>,
    id: Id,
) {
    match lane {
        Some((constant, lane)) if lasts == constant => {
            events.push_in(lane, now, Event::WorkEnd(id));
        }
        _ => events.push(now + lasts, Event::WorkEnd(id)),
    }
}

/// Counts the answer of a callee.
#[inline(always)]
fn note_answer(
    tier: &mut TierRun<'_>,
    attempt: &Attempt,
    outcome: Outcome,
    now: Time,
    left: Span,
) {
    let meter = &mut tier.meter;
    meter.in_flight.down(left);
    if let Outcome::Refused(reason) = outcome {
        meter.counts.refused[reason as usize] += 1;
        return;
    }
    let useful = outcome == Outcome::Ok && attempt.alone_since == Time::NEVER;
    meter.counts.finished += 1;
    meter.counts.good += u64::from(useful);
    meter.counts.failed += u64::from(outcome == Outcome::Failed);
    meter.sojourn.add(now.since(attempt.arrived));
}

/// Takes the server of an attempt back and says where it is free.
#[inline(always)]
fn leave_server(tier: &mut TierRun<'_>, attempt: &mut Attempt, left: Span) -> StationId {
    let index = tier.station(attempt.replica);
    tier.stations[index as usize].servers.release();
    tier.meter.busy.down(left);
    attempt.holds_server = false;
    StationId { tier: attempt.tier, index }
}

/// Why an attempt is not let in, if it is not.
#[inline]
fn turned_away(tier: &mut TierRun<'_>, attempt: &Attempt, now: Time) -> Option<Reason> {
    if now < tier.down_until {
        return Some(Reason::Down);
    }
    if tier.limiter.as_mut().is_some_and(|limiter| !limiter.admits(now)) {
        return Some(Reason::Admission);
    }
    if too_late(now, attempt.deadline, tier.rule.min_remaining) {
        return Some(Reason::Deadline);
    }
    let unwanted = !attempt.awaited() && tier.rule.abandoned == Abandoned::Interrupt;
    unwanted.then_some(Reason::Left)
}

/// Where an attempt goes on, by chance: one of `count` places of the program's list, from `first`.
fn chosen(program: &Program, (first, count): (u16, u16), key: Key, step: u16) -> u16 {
    let choices = &program.choices[usize::from(first)..][..usize::from(count)];
    let u = key.child(u64::from(step)).unit(Purpose::Choice);
    let chosen = choices.iter().find(|(up_to, _)| u < *up_to).or(choices.last());
    chosen.map_or(step + 1, |(_, target)| *target)
}

/// Counts the work that ends now: its length, without pauses on the way. What was done after
/// somebody up the chain had left is wasted.
#[inline]
pub(super) fn note_work(tier: &mut TierRun<'_>, alone_since: Time, service: &Service, now: Time) {
    let began = service.work_began;
    let worked = now.since(began).min(service.work);
    let counts = &mut tier.meter.counts;
    counts.worked_ns += worked.nanos();
    counts.wasted_ns += began.max(alone_since).until(now).min(worked).nanos();
}

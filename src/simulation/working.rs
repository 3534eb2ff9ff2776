//! In service: an attempt from the start of its program to its answer.

use super::event::Event;
use super::serving::{is_late, take_server};
use super::station::{StationId, Waiter};
use super::world::{Attempt, Caller, NO_SERVICE, Piece, Service, State, TierRun};
use super::{Next, Simulation};
use crate::document::TierId;
use crate::kernel::{Arena, EventList, Id, Key, Lane, Purpose, Span, Time};
use crate::mechanism::idempotency::Effect;
use crate::mechanism::outcome::{Outcome, Reason};
use crate::mechanism::timeout::too_late;
use crate::mechanism::work::{Drawn, fails};
use crate::model::{Op, Program};

impl Simulation<'_> {
    /// The attempt, which has a server, begins its program.
    #[inline(never)]
    pub(super) fn begin_program(&mut self, id: Id) -> Next {
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

    /// Fixes the length of the first work before service, under the slow-down of now.
    #[cold]
    #[inline(never)]
    pub(super) fn draw_first_work(&mut self, id: Id) {
        let attempt = &mut self.attempts[id];
        let tier = &self.tiers[attempt.tier.index()];
        let program = &tier.rule.programs[usize::from(attempt.class)];
        let length = match program.ops[0] {
            Op::Work(number) => program.works[usize::from(number)].draw(
                attempt.key,
                0,
                tier.conditions.slow,
                Purpose::Work,
            ),
            _ => Span::ZERO,
        };
        let (service, under_way) = self.services.open();
        *under_way = Service::of(Piece { length, ..Piece::default() });
        attempt.service = service;
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
        attempt.failed.is_some() || self.services[attempt.service].piece.length > Span::ZERO
    }

    /// After a failed call: answer with an error, or do the work of a fallback.
    #[cold]
    #[inline(never)]
    fn make_do(&mut self, id: Id) -> Next {
        let attempt = &self.attempts[id];
        if attempt.failed.is_some() {
            return self.answer(id, Outcome::Failed);
        }
        self.work(id, self.services[attempt.service].piece.length)
    }

    /// Runs the program of an attempt until it has to wait for something, or to its answer.
    #[inline(never)]
    fn proceed(&mut self, id: Id) -> Next {
        let attempt = &self.attempts[id];
        let rule = self.tiers[attempt.tier.index()].rule;
        let program = &rule.programs[usize::from(attempt.class)];
        let service = attempt.service;
        loop {
            let attempt = &self.attempts[id];
            let service = &mut self.services[service];
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
            return self.services[attempt.service].piece.length;
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
        let piece = Piece { began: self.now, length: span, pauses: tier.paused };
        self.services[attempt.service].piece = piece;
        let end = Event::WorkEnd(id);
        end_after(&mut self.events, self.now, standstill + span, tier.work, end);
        None
    }

    /// A piece of work is done, unless a pause has put it off.
    #[inline(always)]
    pub(super) fn end_work(&mut self, id: Id) -> Next {
        let attempt =
            self.attempts.get_mut(id).filter(|attempt| attempt.state == State::Working)?;
        let tier = &mut self.tiers[attempt.tier.index()];
        if attempt.service == NO_SERVICE {
            debug_assert!(tier.steady, "it is plain work");
            note_work(tier, attempt.alone_since, &attempt.plain_work(self.now), self.now);
        } else {
            let service = &mut self.services[attempt.service];
            if let Some(put_off) = service.piece.put_off(tier.paused) {
                self.events.push(self.now + put_off, Event::WorkEnd(id));
                return None;
            }
            note_work(tier, attempt.alone_since, &service.piece, self.now);
            if tier.leaf[usize::from(attempt.class)].is_none() {
                attempt.state = State::Running;
                service.piece.length = Span::ZERO;
                return Some(id);
            }
        }
        let outcome = outcome_of_work(attempt.key, tier);
        note_answer(tier, attempt.arrived, attempt.is_alone(), outcome, self.now, self.left);
        attempt.holds_server = false;
        self.freed.push(leave_server(tier, attempt.tier, attempt.replica, self.left));
        self.reply(id, outcome)
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
            take_server(station, &mut tier.meter, self.left);
            attempt.holds_server = true;
            attempt.state = State::Running;
            return Some(id);
        }
        station.waiting.push_resumed(Waiter::new(id, attempt));
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
        note_answer(tier, attempt.arrived, attempt.is_alone(), outcome, self.now, self.left);
        if attempt.holds_server {
            self.release_server(id);
        }
        self.reply(id, outcome)
    }

    /// Sends the answer back.
    #[inline(always)]
    pub(super) fn reply(&mut self, id: Id, outcome: Outcome) -> Next {
        let attempt = &mut self.attempts[id];
        attempt.answer = Some(outcome);
        if !attempt.awaited() {
            self.receive_late(id, outcome);
            return None;
        }
        let edge = &self.edges[attempt.edge.index()];
        if edge.instant {
            return self.receive(id);
        }
        attempt.state = State::Returning;
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
        attempt.holds_server = false;
        self.freed.push(leave_server(tier, attempt.tier, attempt.replica, self.left));
    }
}

/// The attempt, which has a server of `tier`, has waited so long, and begins its work, where its
/// program is a single piece of work and nobody traces it; false where it must go through its
/// program. One that is late learns so from there.
#[inline(always)]
pub(super) fn begin_service(
    tier: &mut TierRun<'_>,
    (id, attempt): (Id, &mut Attempt),
    services: &mut Arena<Service>,
    events: &mut EventList<Event>,
    now: Time,
) -> bool {
    tier.meter.wait.add(now.since(attempt.arrived));
    let apart = attempt.traced || is_late(tier.rule, attempt, now);
    let (Some(work), false) = (tier.leaf[usize::from(attempt.class)], apart) else {
        return false;
    };
    let span = work.draw(attempt.key, 0, tier.conditions.slow, Purpose::Work);
    if tier.steady {
        attempt.begin_plain_work(now);
        end_after(events, now, span, tier.work, Event::WorkEnd(id));
        return true;
    }
    let (service, under_way) = services.open();
    *under_way = Service::of(Piece { began: now, length: span, pauses: tier.paused });
    attempt.service = service;
    attempt.state = State::Working;
    let lasts = now.until(tier.paused_until) + span;
    end_after(events, now, lasts, tier.work, Event::WorkEnd(id));
    true
}

/// Plans the end of a piece of work that takes so long from `now`; `lane` is that of the tier's
/// constant work.
#[inline(always)]
pub(super) fn end_after(
    events: &mut EventList<Event>,
    now: Time,
    lasts: Span,
    lane: Option<(Span, Lane)>,
    end: Event,
) {
    match lane {
        Some((constant, lane)) if lasts == constant => events.push_in(lane, now + lasts, end),
        _ => events.push(now + lasts, end),
    }
}

/// How an attempt ends that is a piece of work and nothing else.
#[inline(always)]
pub(super) fn outcome_of_work(key: Key, tier: &TierRun<'_>) -> Outcome {
    if fails(key, tier.failing) { Outcome::Failed } else { Outcome::Ok }
}

/// Counts the answer of a callee to an attempt that `arrived` then, and is `alone` or not.
#[inline(always)]
pub(super) fn note_answer(
    tier: &mut TierRun<'_>,
    arrived: Time,
    alone: bool,
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
    let useful = outcome == Outcome::Ok && !alone;
    meter.counts.finished += 1;
    meter.counts.good += u64::from(useful);
    meter.counts.failed += u64::from(outcome == Outcome::Failed);
    meter.sojourn.add(now.since(arrived));
}

/// Takes back the server that some attempt has had of a replica, and says where it is free.
#[inline(always)]
pub(super) fn leave_server(
    tier: &mut TierRun<'_>,
    id: TierId,
    replica: u32,
    left: Span,
) -> StationId {
    let index = tier.station(replica);
    tier.stations[index as usize].servers.release();
    tier.meter.busy.down(left);
    StationId { tier: id, index }
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
pub(super) fn note_work(tier: &mut TierRun<'_>, alone_since: Time, piece: &Piece, now: Time) {
    let worked = now.since(piece.began).min(piece.length);
    let counts = &mut tier.meter.counts;
    counts.worked_ns += worked.nanos();
    counts.wasted_ns += piece.began.max(alone_since).until(now).min(worked).nanos();
}

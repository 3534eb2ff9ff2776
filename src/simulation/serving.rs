//! The callee's side: an attempt from its delivery to its answer.

use super::Simulation;
use super::event::Event;
use super::world::{Attempt, Caller, State};
use crate::kernel::{Id, Purpose, Span, Time};
use crate::mechanism::conditions::Outage;
use crate::mechanism::idempotency::Effect;
use crate::mechanism::outcome::{Outcome, Reason};
use crate::mechanism::timeout::{Abandoned, too_late};
use crate::mechanism::work::{Drawn, Work, fails};
use crate::model::{Op, Tier};

impl Simulation<'_> {
    /// An attempt reaches its callee.
    #[inline]
    pub(super) fn deliver(&mut self, id: Id) {
        let Some(attempt) = self.attempts.get(id) else { return };
        self.meter.tiers[attempt.tier.index()].counts.offered += 1;
        self.enter(id);
    }

    /// An attempt is at the door of its callee: it has just come, or the outage that held it is
    /// over.
    pub(super) fn enter(&mut self, id: Id) {
        let now = self.now;
        let Some(attempt) = self.attempts.get_mut(id) else { return };
        attempt.arrived = now;
        let (tier, key, deadline, awaited) =
            (attempt.tier, attempt.key, attempt.deadline, attempt.awaited());
        let rule = self.model.tier(tier);
        if let Some(outage) = self.conditions.tier(tier).outage {
            return self.meet_outage(id, outage);
        }
        let state = &mut self.tiers[tier.index()];
        if now < state.down_until {
            return self.refuse(id, Reason::Down);
        }
        if state.limiter.as_mut().is_some_and(|limiter| !limiter.admits(now)) {
            return self.refuse(id, Reason::Admission);
        }
        if too_late(now, deadline, rule.min_remaining) {
            return self.refuse(id, Reason::Deadline);
        }
        if !awaited && rule.abandoned == Abandoned::Interrupt {
            return self.refuse(id, Reason::Left);
        }
        let (turn, replicas, stations) = (state.turn, state.replicas as usize, &state.stations);
        state.turn += 1;
        let load = |replica: usize| {
            let station = &self.stations[stations[replica] as usize];
            station.servers.busy() + station.waiting.len() as u32
        };
        let replica = rule.balance.pick(turn, key, replicas, load);
        self.admit(id, replica as u32);
    }

    fn meet_outage(&mut self, id: Id, outage: Outage) {
        let attempt = &mut self.attempts[id];
        match outage {
            Outage::Fail => self.refuse(id, Reason::Down),
            Outage::BlackHole => {
                attempt.state = State::Lost;
                if !attempt.awaited() {
                    self.free(id);
                }
            }
            Outage::Hold => {
                attempt.state = State::Held;
                let tier = attempt.tier;
                self.tiers[tier.index()].held.push(id);
            }
        }
    }

    /// Serves the attempt at a replica, or queues it there, or turns it away.
    fn admit(&mut self, id: Id, replica: u32) {
        let (now, left) = (self.now, self.meter.left(self.now));
        let attempt = &mut self.attempts[id];
        attempt.replica = replica;
        let tier = attempt.tier;
        let rule = self.model.tier(tier);
        let index = self.tiers[tier.index()].station(replica);
        let station = &self.stations[index as usize];
        let conditions = self.conditions.tier(tier);
        let free = station.waiting.is_empty() && !conditions.paused && station.servers.free();
        if !free && !rule.queue.admits(station.waiting.len()) {
            return self.refuse(id, Reason::QueueFull);
        }
        if free && rule.abandoned == Abandoned::Skip && !attempt.awaited() {
            return self.refuse(id, Reason::Left);
        }
        if rule.drawn == Drawn::AtEnqueue {
            self.draw_first_work(id);
        }
        let meter = &mut self.meter.tiers[tier.index()];
        meter.counts.admitted += 1;
        meter.in_flight.add(1, left);
        if free {
            return self.start(id, index);
        }
        meter.queue.add(1, left);
        self.stations[index as usize].waiting.push(id);
        self.attempts[id].state = State::Queued;
        if let Some(wait) = rule.queue.max_wait {
            self.events.push_after(now, wait, Event::QueueWaitEnd(id));
        }
    }

    /// Fixes the length of the first work before service, under the slow-down of now.
    fn draw_first_work(&mut self, id: Id) {
        let attempt = &mut self.attempts[id];
        let program = &self.model.tier(attempt.tier).programs[usize::from(attempt.class)];
        if let Op::Work(number) = program.ops[0] {
            let slow = self.conditions.tier(attempt.tier).slow;
            attempt.work =
                program.works[usize::from(number)].draw(attempt.key, 0, slow, Purpose::Work);
        }
    }

    /// An attempt has waited in the queue as long as it may.
    pub(super) fn end_queue_wait(&mut self, id: Id) {
        if self.attempts.get(id).is_some_and(|attempt| attempt.state == State::Queued) {
            self.leave_queue(id);
            self.refuse(id, Reason::QueueWait);
        }
    }

    /// The attempt leaves the middle of its queue.
    fn leave_queue(&mut self, id: Id) {
        let left = self.meter.left(self.now);
        let attempt = &mut self.attempts[id];
        attempt.state = State::Running;
        let meter = &mut self.meter.tiers[attempt.tier.index()];
        meter.queue.add(-1, left);
        meter.in_flight.add(-1, left);
        let index = self.tiers[attempt.tier.index()].station(attempt.replica);
        let attempts = &self.attempts;
        self.stations[index as usize]
            .waiting
            .leave(|id| attempts.get(id).is_some_and(Attempt::waits));
    }

    /// Takes a server for the attempt and runs its program.
    #[inline]
    fn start(&mut self, id: Id, station: u32) {
        let (now, left) = (self.now, self.meter.left(self.now));
        self.stations[station as usize].servers.take();
        let attempt = &mut self.attempts[id];
        let resumed = attempt.state == State::Resuming;
        attempt.holds_server = true;
        attempt.state = State::Running;
        let meter = &mut self.meter.tiers[attempt.tier.index()];
        meter.busy.add(1, left);
        if resumed {
            return self.go_on(id);
        }
        attempt.started = now;
        meter.wait.add(now.since(attempt.arrived));
        self.proceed(id);
    }

    /// Serves those who wait, while there are servers.
    pub(super) fn serve_queue(&mut self, index: u32) {
        let tier = self.stations[index as usize].tier;
        let rule = self.model.tier(tier);
        loop {
            let conditions = self.conditions.tier(tier);
            let station = &mut self.stations[index as usize];
            if conditions.paused || station.waiting.is_empty() || !station.servers.free() {
                return;
            }
            let attempts = &self.attempts;
            let waits = |id: Id| attempts.get(id).is_some_and(Attempt::waits);
            let Some(id) = station.waiting.pop(rule.queue.discipline, waits) else { return };
            let attempt = &self.attempts[id];
            let left = self.meter.left(self.now);
            self.meter.tiers[tier.index()].queue.add(-1, left);
            let skipped = !attempt.awaited() && rule.abandoned != Abandoned::Finish;
            let expired = too_late(self.now, attempt.deadline, rule.min_remaining);
            if attempt.state == State::Queued && (skipped || expired) {
                self.meter.tiers[tier.index()].in_flight.add(-1, left);
                self.refuse(id, if expired { Reason::Deadline } else { Reason::Left });
            } else {
                self.start(id, index);
            }
        }
    }

    /// Runs the program of an attempt until it has to wait for something.
    pub(super) fn proceed(&mut self, id: Id) {
        let attempt = &self.attempts[id];
        let rule = self.model.tier(attempt.tier);
        let program = &rule.programs[usize::from(attempt.class)];
        loop {
            let attempt = &mut self.attempts[id];
            let (step, key) = (attempt.step, attempt.key);
            let op = program.ops[usize::from(step)];
            if op != Op::End && too_late(self.now, attempt.deadline, rule.min_remaining) {
                return self.answer(id, Outcome::Refused(Reason::Deadline));
            }
            attempt.step += 1;
            match op {
                Op::End => return self.end_program(id),
                Op::Jump(target) => attempt.step = target,
                Op::Choose { first, count } => {
                    let choices = &program.choices[usize::from(first)..][..usize::from(count)];
                    let u = key.child(u64::from(step)).unit(Purpose::Choice);
                    let chosen = choices.iter().find(|(up_to, _)| u < *up_to).or(choices.last());
                    attempt.step = chosen.map_or(attempt.step, |(_, target)| *target);
                }
                Op::Work(number) => {
                    let work = &program.works[usize::from(number)];
                    let span = self.length_of_work(id, step, rule, work);
                    return self.work(id, span);
                }
                Op::Call(edge) => {
                    attempt.pending = 1;
                    self.begin_call(id, edge, u64::from(step));
                    if self.waits_for_calls(id, rule.asynchronous) {
                        return;
                    }
                }
                Op::Together { first, count } => {
                    attempt.pending = count;
                    let edges = &program.together[usize::from(first)..][..usize::from(count)];
                    for (place, &edge) in edges.iter().enumerate() {
                        // The second call to one callee is another operation, with draws of its
                        // own.
                        let earlier = edges[..place].iter().filter(|e| **e == edge).count() as u64;
                        self.begin_call(id, edge, earlier << 16 | u64::from(step));
                    }
                    if self.waits_for_calls(id, rule.asynchronous) {
                        return;
                    }
                }
            }
        }
    }

    /// The length of a piece of work: a stored result is looked up instead; what was drawn at
    /// enqueue stays.
    #[inline]
    fn length_of_work(&mut self, id: Id, step: u16, rule: &Tier, work: &Work) -> Span {
        let attempt = &self.attempts[id];
        let (tier, key, operation) = (attempt.tier, attempt.key, attempt.operation);
        let slow = self.conditions.tier(tier).slow;
        if let Some(write) = &rule.write
            && write.stored(&mut self.tiers[tier.index()].ledger, operation, self.now)
        {
            return write.lookup.sample(&mut key.stream(Purpose::Lookup)).scaled(slow);
        }
        if rule.drawn == Drawn::AtEnqueue && step == 0 {
            return attempt.work;
        }
        work.draw(key, step, slow, Purpose::Work)
    }

    /// Works for so long; a pause of the tier comes on top.
    #[inline]
    fn work(&mut self, id: Id, span: Span) {
        let attempt = &mut self.attempts[id];
        let tier = &self.tiers[attempt.tier.index()];
        let standstill = self.now.until(tier.paused_until);
        attempt.state = State::Working;
        attempt.work = span;
        attempt.work_began = self.now;
        attempt.pauses = tier.paused;
        self.events.push_after(self.now, standstill + span, Event::WorkEnd(id));
    }

    /// A piece of work is done, unless a pause has put it off.
    pub(super) fn end_work(&mut self, id: Id) {
        let Some(attempt) = self.attempts.get_mut(id) else { return };
        if attempt.state != State::Working {
            return;
        }
        let tier = attempt.tier.index();
        let paused = self.tiers[tier].paused;
        if paused > attempt.pauses {
            let put_off = paused - attempt.pauses;
            attempt.pauses = paused;
            return self.events.push_after(self.now, put_off, Event::WorkEnd(id));
        }
        attempt.state = State::Running;
        self.note_work(id);
        self.attempts[id].work = Span::ZERO;
        self.proceed(id);
    }

    /// Counts the work that ends now: its length, without pauses on the way. What was done after
    /// somebody up the chain had left is wasted.
    #[inline]
    fn note_work(&mut self, id: Id) {
        let attempt = &self.attempts[id];
        let (tier, began) = (attempt.tier.index(), attempt.work_began);
        let alone_since = began.max(self.left_at(id));
        let counts = &mut self.meter.tiers[tier].counts;
        let worked = self.now.since(began).min(attempt.work);
        counts.worked_ns += worked.nanos();
        counts.wasted_ns += alone_since.until(self.now).min(worked).nanos();
    }

    /// True while calls are under way: the attempt then waits, and an asynchronous tier frees its
    /// worker.
    #[inline]
    fn waits_for_calls(&mut self, id: Id, asynchronous: bool) -> bool {
        let attempt = &mut self.attempts[id];
        if attempt.pending > 0 {
            attempt.state = State::Calling;
            if asynchronous {
                self.release_server(id);
            }
            return true;
        }
        if attempt.failed || attempt.work > Span::ZERO {
            self.go_on(id);
            return true;
        }
        false
    }

    /// The last call has ended: the attempt goes on, at an asynchronous tier when a server is free.
    #[inline]
    pub(super) fn resume(&mut self, id: Id) {
        let left = self.meter.left(self.now);
        let attempt = &mut self.attempts[id];
        let (tier, replica) = (attempt.tier, attempt.replica);
        let rule = self.model.tier(tier);
        if !rule.asynchronous || attempt.failed {
            if self.conditions.tier(tier).paused {
                let until = self.tiers[tier.index()].paused_until;
                return self.events.push(until, Event::PauseEnd(id));
            }
            attempt.state = State::Running;
            return self.go_on(id);
        }
        attempt.state = State::Resuming;
        let index = self.tiers[tier.index()].station(replica);
        let conditions = self.conditions.tier(tier);
        if !conditions.paused && self.stations[index as usize].servers.free() {
            return self.start(id, index);
        }
        self.stations[index as usize].waiting.push_resumed(id);
        self.meter.tiers[tier.index()].queue.add(1, left);
    }

    /// A tier that stood still takes the answer that came meanwhile, if the attempt still waits for
    /// it.
    pub(super) fn end_pause(&mut self, id: Id) {
        if self.attempts.get(id).is_some_and(|a| a.state == State::Calling && a.pending == 0) {
            self.resume(id);
        }
    }

    /// After calls: fail, or do the work of a fallback, or take the next step.
    #[inline]
    fn go_on(&mut self, id: Id) {
        let attempt = &self.attempts[id];
        if attempt.failed {
            self.answer(id, Outcome::Failed);
        } else if attempt.work > Span::ZERO {
            self.work(id, attempt.work);
        } else {
            self.proceed(id);
        }
    }

    /// The program has come to its end: an error by chance, the effect of a write, the answer.
    #[inline]
    fn end_program(&mut self, id: Id) {
        let attempt = &self.attempts[id];
        let (tier, key, operation) = (attempt.tier, attempt.key, attempt.operation);
        let rule = self.model.tier(tier);
        if fails(key, rule.errors, self.conditions.tier(tier).fail) {
            return self.answer(id, Outcome::Failed);
        }
        if let Some(write) = &rule.write {
            let counts = &mut self.meter.tiers[tier.index()].counts;
            match write.commit(&mut self.tiers[tier.index()].ledger, operation, self.now) {
                Effect::First => counts.effects += 1,
                Effect::Duplicate => counts.duplicates += 1,
                Effect::Stored => {}
            }
        }
        self.answer(id, Outcome::Ok);
    }

    /// The callee is done with the attempt.
    fn answer(&mut self, id: Id, outcome: Outcome) {
        let attempt = &self.attempts[id];
        if let Caller::User { source } = attempt.caller {
            return self.end_request(id, source, outcome);
        }
        let (tier, arrived, left) = (attempt.tier, attempt.arrived, self.meter.left(self.now));
        if attempt.holds_server {
            self.release_server(id);
        }
        let useful = outcome == Outcome::Ok && self.left_at(id) == Time::NEVER;
        let meter = &mut self.meter.tiers[tier.index()];
        meter.in_flight.add(-1, left);
        if let Outcome::Refused(reason) = outcome {
            meter.counts.refused[reason as usize] += 1;
        } else {
            meter.counts.finished += 1;
            meter.counts.good += u64::from(useful);
            meter.counts.failed += u64::from(outcome == Outcome::Failed);
            meter.sojourn.add(self.now.since(arrived));
        }
        self.reply(id, outcome);
    }

    /// Turns an attempt away that is not in service.
    pub(super) fn refuse(&mut self, id: Id, reason: Reason) {
        let tier = self.attempts[id].tier;
        self.meter.tiers[tier.index()].counts.refused[reason as usize] += 1;
        self.reply(id, Outcome::Refused(reason));
    }

    /// Sends the answer back.
    #[inline]
    fn reply(&mut self, id: Id, outcome: Outcome) {
        let attempt = &mut self.attempts[id];
        attempt.state = State::Returning;
        attempt.answer = Some(outcome);
        if !attempt.awaited() {
            return self.receive(id);
        }
        let (key, edge) = (attempt.key, attempt.edge);
        let network = &self.model.edge(edge).network;
        if network.loses_reply(key) {
            self.attempts[id].state = State::Lost;
            return;
        }
        let travel = network.travel(key, Purpose::Inbound, self.conditions.delay(edge));
        if travel == Span::ZERO {
            self.receive(id);
        } else {
            self.events.push_after(self.now, travel, Event::Reply(id));
        }
    }

    #[inline]
    fn release_server(&mut self, id: Id) {
        let left = self.meter.left(self.now);
        let attempt = &mut self.attempts[id];
        attempt.holds_server = false;
        let tier = attempt.tier.index();
        let index = self.tiers[tier].station(attempt.replica);
        self.meter.tiers[tier].busy.add(-1, left);
        self.stations[index as usize].servers.release();
        self.freed.push(index);
    }

    /// The callee of an attempt in its hands is told that nobody waits, if it is one that listens.
    pub(super) fn callee_learns(&mut self, id: Id) {
        let attempt = &self.attempts[id];
        if self.model.tier(attempt.tier).abandoned != Abandoned::Interrupt {
            return;
        }
        match attempt.state {
            State::Queued | State::Resuming => {
                self.leave_queue(id);
                self.refuse(id, Reason::Left);
            }
            _ => {
                self.stop(id);
                self.refuse(id, Reason::Left);
            }
        }
    }

    /// Stops an attempt in service: its server is free, its calls are abandoned.
    fn stop(&mut self, id: Id) {
        let left = self.meter.left(self.now);
        self.abandon_calls(id);
        if self.attempts[id].state == State::Working {
            self.note_work(id);
        }
        let attempt = &self.attempts[id];
        let meter = &mut self.meter.tiers[attempt.tier.index()];
        meter.in_flight.add(-1, left);
        if attempt.holds_server {
            self.release_server(id);
        }
    }

    /// Drops all that wait at a tier.
    pub(super) fn drop_queue(&mut self, tier: crate::document::TierId) {
        for index in self.tiers[tier.index()].stations.clone() {
            let attempts = &self.attempts;
            let waits = |id: Id| attempts.get(id).is_some_and(Attempt::waits);
            for id in self.stations[index as usize].waiting.drain(waits) {
                let left = self.meter.left(self.now);
                self.meter.tiers[tier.index()].queue.add(-1, left);
                self.abandon_calls(id);
                self.meter.tiers[tier.index()].in_flight.add(-1, left);
                self.refuse(id, Reason::Dropped);
            }
        }
    }

    /// Everything at a tier is lost: those who wait, those in service, those held. It is down until
    /// `until`.
    pub(super) fn restart(&mut self, tier: crate::document::TierId, until: Time) {
        self.drop_queue(tier);
        let at_work = |attempt: &Attempt| {
            attempt.tier == tier
                && matches!(attempt.state, State::Working | State::Calling | State::Running)
        };
        let in_service: Vec<Id> =
            self.attempts.iter().filter(|(_, a)| at_work(a)).map(|(id, _)| id).collect();
        for id in in_service {
            if self.attempts.get(id).is_some_and(at_work) {
                self.stop(id);
                self.refuse(id, Reason::Dropped);
            }
        }
        for id in std::mem::take(&mut self.tiers[tier.index()].held) {
            self.refuse(id, Reason::Dropped);
        }
        for edge in self.model.edge_ids() {
            let rule = self.model.edge(edge);
            let in_process = rule.cache.as_ref().is_some_and(|cache| cache.in_process);
            if let (true, Some(entries)) =
                (rule.caller == tier && in_process, &mut self.edges[edge.index()].cache)
            {
                entries.flush();
            }
        }
        self.tiers[tier.index()].down_until = until;
    }

    /// When the first in the chain of callers, from this attempt's own up to the user, left;
    /// [`Time::NEVER`] while all of them wait.
    #[inline]
    fn left_at(&self, id: Id) -> Time {
        let mut attempt = &self.attempts[id];
        let mut first = Time::NEVER;
        loop {
            first = first.min(attempt.left_at);
            match attempt.caller {
                Caller::Call(call) if attempt.awaited() => {
                    attempt = &self.attempts[self.calls[call].parent]
                }
                _ => return first,
            }
        }
    }
}

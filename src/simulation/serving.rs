//! At the door of a callee and in its queue: an attempt from its delivery to the start of service.

use super::event::Event;
use super::forgotten::{begin_forgotten, only_work};
use super::station::{Station, StationId, Waiter};
use super::working::begin_service;
use super::world::{Attempt, Service, State, TierRun};
use super::{Next, Simulation, is_crowded};
use crate::document::TierId;
use crate::kernel::{Arena, EventList, Id, Slab, Span, Time};
use crate::measure::TierMeter;
use crate::mechanism::conditions::Outage;
use crate::mechanism::outcome::Reason;
use crate::mechanism::timeout::{Abandoned, too_late};
use crate::mechanism::work::Drawn;
use crate::model::Tier;

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

    /// An attempt is at the door of its callee, and `offered` once more or not.
    #[inline(never)]
    fn come_to_door(&mut self, id: Id, offered: u64) -> Next {
        let (now, left) = (self.now, self.left);
        let attempt = &mut self.attempts[id];
        let tier = &mut self.tiers[attempt.tier.index()];
        let named = (id, attempt);
        match pass_door(tier, named, offered, &mut self.services, &mut self.events, now, left) {
            Door::Through => None,
            other => self.leave_door(id, other),
        }
    }

    /// What follows when an attempt has not just gone through the door.
    #[inline(never)]
    pub(super) fn leave_door(&mut self, id: Id, door: Door) -> Next {
        match door {
            Door::Through => None,
            Door::Begins => self.begin_program(id),
            Door::Waits => self.prepare_wait(id),
            Door::Outage(outage) => self.meet_outage(id, outage),
            Door::Refuses(reason) => self.refuse(id, reason),
        }
    }

    /// One that has joined a queue has its work drawn, or waits so long at most.
    fn prepare_wait(&mut self, id: Id) -> Next {
        let rule = self.tiers[self.attempts[id].tier.index()].rule;
        if rule.drawn == Drawn::AtEnqueue {
            self.draw_first_work(id);
        }
        if let Some(wait) = rule.queue.max_wait {
            self.events.push(self.now + wait, Event::QueueWaitEnd(id));
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
        debug_assert!(!tier.forgetful, "there, a name without a record is one that waits");
        let index = tier.station(attempt.replica);
        let attempts = &self.attempts;
        tier.stations[index as usize]
            .waiting
            .leave(|waiter| waiter.record(attempts).is_some_and(Attempt::waits));
    }

    /// Serves those who wait, while there are servers.
    #[inline(always)]
    pub(super) fn serve_queue(&mut self, at: StationId) {
        let now = self.now;
        loop {
            let tier = &mut self.tiers[at.tier.index()];
            let rule = tier.rule;
            let station = &mut tier.stations[at.index as usize];
            if !station.servers.free() || tier.conditions.paused {
                return;
            }
            // A free server first does the refusals that there are.
            if station.debt > Span::ZERO {
                self.do_refusals(at);
                continue;
            }
            if station.waiting.is_empty() {
                return;
            }
            let attempts = &mut self.attempts;
            let waits = |waiter: Waiter| waiter.record(attempts).is_some_and(Attempt::waits);
            let Some(waiter) = station.waiting.pop(rule.queue.discipline, waits) else { return };
            if is_crowded(attempts)
                && let Some(later) = station.waiting.later(rule.queue.discipline)
            {
                attempts.prefetch(later.slot);
            }
            tier.meter.queue.down(self.left);
            let named = waiter.name(attempts);
            if named.is_none()
                && let Some(work) = only_work(rule, &tier.leaf, &waiter)
            {
                take_server(station, &mut tier.meter, self.left);
                let more = station.servers.free();
                let found = (at.tier, waiter, work);
                begin_forgotten(tier, found, &mut self.forgotten, &mut self.events, now);
                if more {
                    continue;
                }
                return;
            }
            let id = named.unwrap_or_else(|| record_anew(waiter, at.tier, attempts));
            let attempt = &mut attempts[id];
            let resumes = attempt.state == State::Resuming;
            let late = is_late(rule, attempt, now);
            if !resumes && (late || is_unwanted(rule, attempt)) {
                self.skip(id, if late { Reason::Deadline } else { Reason::Left });
                continue;
            }
            take_server(station, &mut tier.meter, self.left);
            attempt.holds_server = true;
            let more = station.servers.free();
            if resumes {
                attempt.state = State::Running;
                self.go_on(Some(id));
                continue;
            }
            let named = (id, attempt);
            if !begin_service(tier, named, &mut self.services, &mut self.events, now) {
                let next = self.begin_program(id);
                self.go_on(next);
            } else if !more {
                return;
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
}

/// What an attempt meets at the door of its callee.
#[derive(Clone, Copy, Debug)]
pub(super) enum Door {
    /// It works or waits.
    Through,
    /// It has a server, and begins its program.
    Begins,
    /// It waits, and there is something to do about it.
    Waits,
    /// Nobody is there.
    Outage(Outage),
    /// It is turned away.
    Refuses(Reason),
}

/// An attempt comes to the door of `tier`, and `offered` once more or not. It is served, or joins a
/// queue, or is turned away.
#[inline(always)]
pub(super) fn pass_door(
    tier: &mut TierRun<'_>,
    (id, attempt): (Id, &mut Attempt),
    offered: u64,
    services: &mut Arena<Service>,
    events: &mut EventList<Event>,
    now: Time,
    left: Span,
) -> Door {
    let rule = tier.rule;
    attempt.arrived = now;
    tier.meter.counts.offered += offered;
    if let Some(outage) = tier.conditions.outage {
        return Door::Outage(outage);
    }
    if let Some(reason) = turned_away(tier, attempt, now) {
        return Door::Refuses(reason);
    }
    attempt.replica = tier.pick_replica(attempt.key);
    let index = tier.station(attempt.replica);
    let station = &mut tier.stations[index as usize];
    let free = station.waiting.is_empty() && !tier.conditions.paused && station.servers.free();
    if !free && !rule.queue.admits(station.waiting.len()) {
        return Door::Refuses(Reason::QueueFull);
    }
    if free && rule.abandoned == Abandoned::Skip && !attempt.awaited() {
        return Door::Refuses(Reason::Left);
    }
    tier.meter.counts.admitted += 1;
    tier.meter.in_flight.up(left);
    if free {
        take_server(station, &mut tier.meter, left);
        attempt.holds_server = true;
        let begun = begin_service(tier, (id, attempt), services, events, now);
        return if begun { Door::Through } else { Door::Begins };
    }
    tier.meter.queue.up(left);
    station.waiting.push(Waiter::new(id, attempt));
    attempt.state = State::Queued;
    let just_waits = rule.drawn == Drawn::AtStart && rule.queue.max_wait.is_none();
    if just_waits { Door::Through } else { Door::Waits }
}

/// A record for one who waits and has none.
#[inline(always)]
pub(super) fn record_anew(waiter: Waiter, tier: TierId, attempts: &mut Slab<Attempt>) -> Id {
    let (id, record) = attempts.open();
    *record = waiter.abandoned(tier, record.generation);
    id
}

/// Takes a server of a station that has a free one.
#[inline(always)]
pub(super) fn take_server(station: &mut Station, meter: &mut TierMeter, left: Span) {
    station.servers.take();
    meter.busy.up(left);
}

/// Whether too little time is left for the attempt to begin.
#[inline(always)]
pub(super) fn is_late(tier: &Tier, attempt: &Attempt, now: Time) -> bool {
    too_late(now, attempt.deadline, tier.min_remaining)
}

/// Whether the tier leaves the attempt aside, since nobody waits for it.
#[inline(always)]
fn is_unwanted(tier: &Tier, attempt: &Attempt) -> bool {
    !attempt.awaited() && tier.abandoned != Abandoned::Finish
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
    if is_late(tier.rule, attempt, now) {
        return Some(Reason::Deadline);
    }
    let unwanted = !attempt.awaited() && tier.rule.abandoned == Abandoned::Interrupt;
    unwanted.then_some(Reason::Left)
}

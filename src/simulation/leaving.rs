//! Those who leave before the end: callers whose patience is over, and attempts that are stopped in
//! service, dropped from a queue, or lost in a restart.

use super::Simulation;
use super::calling::release_connection;
use super::concluding::settle;
use super::edge::EdgeRun;
use super::serving::record_anew;
use super::station::Waiter;
use super::working::note_work;
use super::world::{Attempt, NO_SERVICE, State, TierRun};
use crate::document::TierId;
use crate::kernel::{Id, Slab, Time};
use crate::mechanism::outcome::Reason;
use crate::mechanism::timeout::Abandoned;

impl Simulation<'_> {
    /// Nobody waits for this attempt any more; what happens to it is up to where it is.
    pub(super) fn caller_leaves(&mut self, id: Id) {
        let attempt = &self.attempts[id];
        if is_forgettable(attempt, &self.tiers[attempt.tier.index()]) {
            self.attempts.remove(id);
        } else {
            self.leave_behind(id);
        }
    }

    /// The same for one that cannot just be forgotten.
    #[inline(always)]
    pub(super) fn leave_behind(&mut self, id: Id) {
        let attempt = &mut self.attempts[id];
        attempt.left = true;
        let (state, tier) = (attempt.state, attempt.tier);
        let in_hands = match state {
            State::PoolWaiting | State::Lost => return self.forget(id, state),
            State::Travelling | State::Held | State::Returning => false,
            State::Queued | State::Resuming | State::Running | State::Working | State::Calling => {
                true
            }
        };
        self.leave_alone(id);
        if in_hands && self.tiers[tier.index()].rule.abandoned == Abandoned::Interrupt {
            self.interrupt(id);
        }
    }

    /// An attempt that no callee has in its hands is over when its caller leaves.
    #[cold]
    #[inline(never)]
    fn forget(&mut self, id: Id, state: State) {
        if state == State::PoolWaiting {
            self.leave_pool_queue(id);
        }
        self.free(id);
    }

    /// From now on all that is done for this attempt, by itself and by those it calls, is wasted.
    #[inline(always)]
    pub(super) fn leave_alone(&mut self, id: Id) {
        let attempt = &mut self.attempts[id];
        attempt.alone_since = self.now;
        if attempt.service != NO_SERVICE {
            let first = self.services[attempt.service].first_call;
            self.leave_calls_alone(first);
        }
    }

    #[inline(never)]
    fn leave_calls_alone(&mut self, mut next: Id) {
        while let Some(call) = self.calls.get_mut(next) {
            call.alone = true;
            let under_way = self.attempts.name(call.attempt);
            let errand = &mut self.errands[next.slot as usize];
            errand.alone_since = self.now;
            next = errand.sibling;
            if let Some(under_way) = under_way {
                self.leave_alone(under_way);
            }
        }
    }

    /// The callee of an attempt in its hands is told that nobody waits, and listens.
    #[cold]
    #[inline(never)]
    fn interrupt(&mut self, id: Id) {
        let attempt = &self.attempts[id];
        if matches!(attempt.state, State::Queued | State::Resuming) {
            self.leave_queue(id);
        } else {
            self.stop(id);
        }
        let next = self.refuse(id, Reason::Left);
        debug_assert_eq!(next, None, "nobody waits for this answer");
    }

    /// Stops an attempt in service: its server is free, its calls are abandoned.
    #[cold]
    #[inline(never)]
    pub(super) fn stop(&mut self, id: Id) {
        self.abandon_calls(id);
        let attempt = &self.attempts[id];
        let tier = &mut self.tiers[attempt.tier.index()];
        if attempt.state == State::Working {
            let piece = match attempt.service {
                NO_SERVICE => attempt.plain_work(self.now),
                service => self.services[service].piece,
            };
            note_work(tier, attempt.alone_since, &piece, self.now);
        }
        tier.meter.in_flight.down(self.left);
        if attempt.holds_server {
            self.release_server(id);
        }
    }

    /// The attempt that made these calls is gone: nobody waits for them.
    pub(super) fn abandon_calls(&mut self, parent: Id) {
        let service = self.attempts[parent].service;
        if service == NO_SERVICE {
            return;
        }
        let mut next = std::mem::take(&mut self.services[service].first_call);
        while let Some(call) = self.calls.get(next) {
            let (under_way, edge) = (self.attempts.name(call.attempt), call.edge);
            let sibling = self.errands[next.slot as usize].sibling;
            let EdgeRun { rule, meter, .. } = &mut self.edges[edge.index()];
            if call.backing_off {
                meter.backoff.down(self.left);
                if let Some(herd) = &mut self.tiers[rule.caller.index()].herd {
                    herd.cease_to_wait();
                }
            }
            if let Some(id) = under_way {
                let attempt = &self.attempts[id];
                let connected = attempt.state != State::PoolWaiting;
                meter.counts.timed_out += 1;
                self.tiers[attempt.tier.index()].meter.counts.timed_out += u64::from(connected);
                self.caller_leaves(id);
                if connected {
                    let replica = self.calls[next].replica;
                    let (attempts, events) = (&mut self.attempts, &mut self.events);
                    let edge = &mut self.edges[edge.index()];
                    release_connection(edge, replica, attempts, events, self.now, self.left);
                }
            }
            settle(&self.calls[next], &mut self.edges[edge.index()]);
            self.calls.remove(next);
            next = sibling;
        }
    }

    /// Drops all that wait at a tier.
    pub(super) fn drop_queue(&mut self, tier: TierId) {
        for index in 0..self.tiers[tier.index()].stations.len() {
            for id in self.drain(tier, index) {
                self.tiers[tier.index()].meter.queue.down(self.left);
                self.abandon_calls(id);
                self.tiers[tier.index()].meter.in_flight.down(self.left);
                self.drop_attempt(id);
            }
        }
    }

    /// An attempt is turned away by the operator, and whoever waits for it goes on at once.
    #[cold]
    #[inline(never)]
    pub(super) fn drop_attempt(&mut self, id: Id) {
        let next = self.refuse(id, Reason::Dropped);
        self.go_on(next);
    }

    fn drain(&mut self, tier: TierId, station: usize) -> Vec<Id> {
        let run = &mut self.tiers[tier.index()];
        let attempts = &mut self.attempts;
        let waits = |waiter: Waiter| waiter.record(attempts).map_or(run.forgetful, Attempt::waits);
        let waiters = run.stations[station].waiting.drain(waits);
        let named = waiters.into_iter().map(|waiter| {
            waiter.name(attempts).unwrap_or_else(|| record_anew(waiter, tier, attempts))
        });
        named.collect()
    }

    /// Everything at a tier is lost: those who wait, those in service, those held. It is down until
    /// `until`.
    pub(super) fn restart_tier(&mut self, tier: TierId, until: Time) {
        self.drop_queue(tier);
        self.recall_forgotten(tier);
        for id in in_service(&self.attempts, tier) {
            if self.attempts.get(id).is_some_and(|attempt| at_work(attempt, tier)) {
                self.stop(id);
                self.drop_attempt(id);
            }
        }
        for id in std::mem::take(&mut self.tiers[tier.index()].held) {
            self.drop_attempt(id);
        }
        for edge in self.edges.iter_mut().filter(|edge| edge.rule.caller == tier) {
            if let Some((rule, entries)) = edge.cache()
                && rule.in_process
            {
                entries.flush();
            }
        }
        self.tiers[tier.index()].down_until = until;
    }
}

/// Whether an attempt stands in a queue that can stand for it alone once its caller has left.
#[inline(always)]
pub(super) fn is_forgettable(attempt: &Attempt, tier: &TierRun<'_>) -> bool {
    let waits = attempt.state == State::Queued;
    let untold = attempt.deadline == Time::NEVER && !attempt.traced;
    waits && tier.forgetful && untold && Waiter::holds(attempt)
}

fn at_work(attempt: &Attempt, tier: TierId) -> bool {
    attempt.tier == tier
        && matches!(attempt.state, State::Working | State::Calling | State::Running)
}

/// Who is in service at a tier, the first to have come first: an order that slots, which a trace
/// keeps longer, have no part in.
fn in_service(attempts: &Slab<Attempt>, tier: TierId) -> Vec<Id> {
    let mut there: Vec<(Id, &Attempt)> =
        attempts.iter().filter(|(_, attempt)| at_work(attempt, tier)).collect();
    there.sort_unstable_by_key(|(_, attempt)| (attempt.arrived, attempt.key.bits()));
    there.into_iter().map(|(id, _)| id).collect()
}

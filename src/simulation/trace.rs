//! What is told of single attempts: their details, while somebody asks for them, and the trace.

use super::Simulation;
use super::world::{Caller, Detail, Errand};
use crate::kernel::{Id, Time, pages};
use crate::measure::AttemptRow;

/// Attempts that go into the trace, until someone takes them.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Share of user requests that are traced.
    pub share: f64,
    /// The attempts whose story is over.
    pub rows: Vec<AttemptRow>,
}

impl Simulation<'_> {
    /// Whether somebody will ask for the [`Detail`] of an attempt.
    #[inline(always)]
    pub(super) fn details_wanted(&self, traced: bool) -> bool {
        traced || self.tells_operations
    }

    /// The detail of an attempt.
    pub(super) fn detail(&mut self, id: Id) -> &mut Detail {
        let slot = id.slot as usize;
        if slot >= self.details.len() {
            self.details.resize(slot + 1, Detail::default());
        }
        &mut self.details[slot]
    }

    /// The errand of a call.
    #[inline(always)]
    pub(super) fn errand_mut(&mut self, call: Id) -> &mut Errand {
        let slot = call.slot as usize;
        if slot >= self.errands.len() {
            let more = slot + 1 - self.errands.len();
            pages::make_room(&mut self.errands, more);
            self.errands.resize(slot + 1, Errand::default());
        }
        &mut self.errands[slot]
    }

    pub(super) fn note_detail(&mut self, call: Id, attempt: Id) {
        let Errand { operation, request, .. } = self.errands[call.slot as usize];
        let number = self.calls[call].made;
        let (sent, started) = (self.now, Time::NEVER);
        *self.detail(attempt) = Detail { operation, request, sent, started, number };
    }

    #[cold]
    #[inline(never)]
    pub(super) fn note_in_trace(&mut self, id: Id) {
        let attempt = &self.attempts[id];
        let Caller::Call(_) = attempt.caller else { return };
        if !attempt.traced {
            return;
        }
        let detail = &self.details[id.slot as usize];
        self.trace.rows.push(AttemptRow {
            request: detail.request,
            edge: attempt.edge,
            tier: attempt.tier,
            attempt: detail.number,
            sent: detail.sent,
            arrived: attempt.arrived,
            started: detail.started,
            ended: self.now,
            outcome: attempt.outcome(),
            awaited: attempt.awaited(),
        });
    }
}

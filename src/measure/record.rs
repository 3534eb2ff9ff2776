//! The record of a run: a row for each window and tier, a row for each window and edge, the log,
//! the totals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{EdgeId, TierId};
use crate::kernel::Time;
use crate::measure::herd::Herd;
use crate::measure::histogram::Sparse;
use crate::mechanism::outcome::{Outcome, Reason};

/// Everything that a run leaves behind.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Seed of the run.
    pub seed: u64,
    /// Windows in order of time, without gap, after the warm-up.
    pub windows: Vec<Window>,
    /// By tier, then by window.
    pub tiers: Vec<Vec<TierRow>>,
    /// By edge, then by window.
    pub edges: Vec<Vec<EdgeRow>>,
    /// By tier, what became of its herd, where it has one.
    pub herds: Vec<Option<Herd>>,
    /// What triggers and the operator did, in order of time.
    pub log: Vec<LogEntry>,
    /// Counts over the whole run, warm-up included.
    pub totals: Totals,
    /// True when the run was stopped before its end.
    pub interrupted: bool,
}

/// A stretch of time over which counts are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First instant.
    pub from: Time,
    /// First instant after it.
    pub to: Time,
}

/// Counts of one tier over some time.
#[derive(Clone, Debug, Default)]
pub struct TierRow {
    /// New user requests; client tiers only.
    pub demand: u64,
    /// Attempts that reached the tier.
    pub offered: u64,
    /// Of these, let in: served at once or queued.
    pub admitted: u64,
    /// Turned away, by [`Reason`].
    pub refused: [u64; Reason::ALL.len()],
    /// Attempts whose caller stopped waiting.
    pub timed_out: u64,
    /// Attempts finished, in whatever way.
    pub finished: u64,
    /// Finished well while somebody still waited.
    pub good: u64,
    /// Finished with an error.
    pub failed: u64,
    /// User requests that failed since a rate limit turned them away; client tiers only.
    pub turned_away: u64,
    /// Work done after somebody up the chain of callers had left (ns).
    pub wasted_ns: u64,
    /// All work done (ns).
    pub worked_ns: u64,
    /// Writes that had their effect.
    pub effects: u64,
    /// Writes that had their effect again.
    pub duplicates: u64,
    /// ∫ attempts that wait for service dt (s).
    pub queue_area: f64,
    /// ∫ attempts that wait or are served dt (s).
    pub in_flight_area: f64,
    /// ∫ servers held dt (s).
    pub busy_area: f64,
    /// Time in the queue of those that began service.
    pub wait: Sparse,
    /// Time at the tier of those that finished; at a client tier the response time.
    pub sojourn: Sparse,
    /// Servers of the tier at the end; `None`: unlimited.
    pub servers: Option<u32>,
    /// Rate limit in force at the end [1/s].
    pub limit: Option<f64>,
}

/// Counts of one edge over some time.
#[derive(Clone, Copy, Debug, Default)]
pub struct EdgeRow {
    /// Calls begun.
    pub calls: u64,
    /// Attempts made, the first of each call included.
    pub attempts: u64,
    /// Attempts made for callers, or users, that had left.
    pub ghosts: u64,
    /// Attempts answered well in time.
    pub ok: u64,
    /// Attempts answered with an error.
    pub failed: u64,
    /// Attempts turned away.
    pub refused: u64,
    /// Attempts given up by the caller.
    pub timed_out: u64,
    /// Calls that failed in the end.
    pub gave_up: u64,
    /// Retries that the budget forbade.
    pub denied: u64,
    /// Attempts that callers turned away themselves, by throttling or an open breaker.
    pub throttled: u64,
    /// Cache hits: calls that needed no attempt.
    pub hits: u64,
    /// Cache misses, uncacheable requests included.
    pub misses: u64,
    /// ∫ connections in use dt (s).
    pub pool_area: f64,
    /// ∫ calls that wait for a connection dt (s).
    pub pool_waiting_area: f64,
    /// ∫ calls in back-off dt (s).
    pub backoff_area: f64,
    /// Budget tokens at the end, all buckets together.
    pub tokens: Option<f64>,
}

/// Something that a trigger or the operator did.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEntry {
    /// When.
    pub at: Time,
    /// What, in a few words.
    pub what: String,
    /// True for the operator, false for a trigger.
    pub operator: bool,
}

/// Counts over a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Events handled.
    pub events: u64,
    /// User requests that began.
    pub requests: u64,
    /// Of these, answered well.
    pub answered: u64,
    /// Failed.
    pub failed: u64,
    /// Still under way at the end.
    pub in_flight: u64,
    /// Attempts made on all edges.
    pub attempts: u64,
}

/// One attempt, for the trace.
#[derive(Clone, Copy, Debug)]
pub struct AttemptRow {
    /// Number of the user request within its source, and the source.
    pub request: u64,
    /// Edge on which it was made.
    pub edge: EdgeId,
    /// Callee.
    pub tier: TierId,
    /// 1 for the first.
    pub attempt: u32,
    /// The caller sent it.
    pub sent: Time,
    /// It reached the callee; [`Time::NEVER`] when it never did.
    pub arrived: Time,
    /// Service began; [`Time::NEVER`] when it never did.
    pub started: Time,
    /// The callee was done with it, or the caller with waiting for what will never come.
    pub ended: Time,
    /// How it ended for the caller; `None`: still under way at the end of the run.
    pub outcome: Option<Outcome>,
    /// True when somebody still waited when the callee was done.
    pub awaited: bool,
}

impl Record {
    /// The sum of a tier's rows over a range of windows.
    pub fn tier_sum(&self, tier: TierId, windows: std::ops::Range<usize>) -> TierRow {
        let rows = &self.tiers[tier.index()][windows];
        let mut sum = TierRow::default();
        for row in rows {
            sum.add(row);
        }
        sum.wait = Sparse::sum(rows.iter().map(|row| &row.wait));
        sum.sojourn = Sparse::sum(rows.iter().map(|row| &row.sojourn));
        sum
    }

    /// The sum of an edge's rows over a range of windows.
    pub fn edge_sum(&self, edge: EdgeId, windows: std::ops::Range<usize>) -> EdgeRow {
        let mut sum = EdgeRow::default();
        for row in &self.edges[edge.index()][windows] {
            sum.add(row);
        }
        sum
    }

    /// The windows that lie wholly within two instants.
    pub fn windows_between(&self, from: Time, to: Time) -> std::ops::Range<usize> {
        let first = self.windows.partition_point(|window| window.from < from);
        let last = self.windows.partition_point(|window| window.to <= to);
        first..last.max(first)
    }
}

impl TierRow {
    /// All that were turned away.
    pub fn refused_total(&self) -> u64 {
        self.refused.iter().sum()
    }

    /// Adds all but the histograms.
    fn add(&mut self, row: &TierRow) {
        self.demand += row.demand;
        self.offered += row.offered;
        self.admitted += row.admitted;
        for (sum, count) in self.refused.iter_mut().zip(row.refused) {
            *sum += count;
        }
        self.timed_out += row.timed_out;
        self.finished += row.finished;
        self.good += row.good;
        self.failed += row.failed;
        self.turned_away += row.turned_away;
        self.wasted_ns += row.wasted_ns;
        self.worked_ns += row.worked_ns;
        self.effects += row.effects;
        self.duplicates += row.duplicates;
        self.queue_area += row.queue_area;
        self.in_flight_area += row.in_flight_area;
        self.busy_area += row.busy_area;
        self.servers = row.servers;
        self.limit = row.limit;
    }
}

impl EdgeRow {
    /// Calls that made their first attempt. Where there is a cache these are its misses, and not
    /// `calls - hits`: a lookup takes time, and a hit may fall into a later window than its call.
    pub fn sent_calls(&self) -> u64 {
        if self.hits + self.misses > 0 { self.misses } else { self.calls }
    }

    fn add(&mut self, row: &EdgeRow) {
        self.calls += row.calls;
        self.attempts += row.attempts;
        self.ghosts += row.ghosts;
        self.ok += row.ok;
        self.failed += row.failed;
        self.refused += row.refused;
        self.timed_out += row.timed_out;
        self.gave_up += row.gave_up;
        self.denied += row.denied;
        self.throttled += row.throttled;
        self.hits += row.hits;
        self.misses += row.misses;
        self.pool_area += row.pool_area;
        self.pool_waiting_area += row.pool_waiting_area;
        self.backoff_area += row.backoff_area;
        self.tokens = row.tokens;
    }
}

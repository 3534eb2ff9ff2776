//! The counters of the current window, and how they become rows.

use super::gauge::Gauge;
use super::histogram::Histogram;
use super::record::{EdgeRow, TierRow};
use crate::kernel::Span;

/// Counters of one tier. `counts` is filled directly; levels and times through the methods.
#[derive(Clone, Debug, Default)]
pub struct TierMeter {
    /// Plain counts.
    pub counts: TierRow,
    /// Waiting for service.
    pub queue: Gauge,
    /// Waiting or in service.
    pub in_flight: Gauge,
    /// Servers held.
    pub busy: Gauge,
    /// Time in the queue.
    pub wait: Histogram,
    /// Time at the tier.
    pub sojourn: Histogram,
}

/// Counters of one edge.
#[derive(Clone, Debug, Default)]
pub struct EdgeMeter {
    /// Plain counts.
    pub counts: EdgeRow,
    /// Connections in use.
    pub pool: Gauge,
    /// Calls that wait for a connection.
    pub pool_waiting: Gauge,
    /// Calls in back-off.
    pub backoff: Gauge,
}

impl TierMeter {
    /// Ends the current window, as a row, and opens the next, which lasts `next`.
    pub fn close(&mut self, next: Span) -> TierRow {
        let counts = std::mem::take(&mut self.counts);
        let row = TierRow {
            queue_area: self.queue.area_s(),
            in_flight_area: self.in_flight.area_s(),
            busy_area: self.busy.area_s(),
            wait: self.wait.take(),
            sojourn: self.sojourn.take(),
            ..counts
        };
        for gauge in [&mut self.queue, &mut self.in_flight, &mut self.busy] {
            gauge.open(next);
        }
        row
    }
}

impl EdgeMeter {
    /// Ends the current window, as a row, and opens the next, which lasts `next`.
    pub fn close(&mut self, next: Span) -> EdgeRow {
        let counts = std::mem::take(&mut self.counts);
        let row = EdgeRow {
            pool_area: self.pool.area_s(),
            pool_waiting_area: self.pool_waiting.area_s(),
            backoff_area: self.backoff.area_s(),
            ..counts
        };
        for gauge in [&mut self.pool, &mut self.pool_waiting, &mut self.backoff] {
            gauge.open(next);
        }
        row
    }
}

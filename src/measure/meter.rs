//! The counters of the current window, and how they become rows.

use super::gauge::Gauge;
use super::histogram::Histogram;
use super::record::{EdgeRow, Record, TierRow, Window};
use crate::kernel::{Span, Time};

/// All counters of a running simulation.
#[derive(Clone, Debug)]
pub struct Meter {
    /// By tier.
    pub tiers: Vec<TierMeter>,
    /// By edge.
    pub edges: Vec<EdgeMeter>,
    opened: Time,
    closes: Time,
}

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

impl Meter {
    /// Counters for so many tiers and edges, with the first window from zero to `closes`.
    pub fn new(tiers: usize, edges: usize, closes: Time) -> Self {
        Meter {
            tiers: vec![TierMeter::default(); tiers],
            edges: vec![EdgeMeter::default(); edges],
            opened: Time::ZERO,
            closes,
        }
    }

    /// End of the current window.
    #[inline]
    pub fn closes(&self) -> Time {
        self.closes
    }

    /// What is still to come of the current window: the weight of a change of level at `now`.
    #[inline]
    pub fn left(&self, now: Time) -> Span {
        self.closes.since(now)
    }

    /// Ends the current window, as rows of `record`, and opens the next, which lasts until
    /// `closes`.
    pub fn close(&mut self, record: &mut Record, closes: Time) {
        record.windows.push(Window { from: self.opened, to: self.closes });
        for (meter, rows) in self.tiers.iter_mut().zip(&mut record.tiers) {
            rows.push(meter.take());
        }
        for (meter, rows) in self.edges.iter_mut().zip(&mut record.edges) {
            rows.push(meter.take());
        }
        self.open(closes);
    }

    /// Forgets the current window (the warm-up) and opens the next, which lasts until `closes`.
    pub fn discard(&mut self, closes: Time) {
        for meter in &mut self.tiers {
            meter.take();
        }
        for meter in &mut self.edges {
            meter.take();
        }
        self.open(closes);
    }

    fn open(&mut self, closes: Time) {
        self.opened = self.closes;
        self.closes = closes;
        let length = closes.since(self.opened);
        for meter in &mut self.tiers {
            for gauge in [&mut meter.queue, &mut meter.in_flight, &mut meter.busy] {
                gauge.open(length);
            }
        }
        for meter in &mut self.edges {
            for gauge in [&mut meter.pool, &mut meter.pool_waiting, &mut meter.backoff] {
                gauge.open(length);
            }
        }
    }
}

impl TierMeter {
    fn take(&mut self) -> TierRow {
        let counts = std::mem::take(&mut self.counts);
        TierRow {
            queue_area: self.queue.area_s(),
            in_flight_area: self.in_flight.area_s(),
            busy_area: self.busy.area_s(),
            wait: self.wait.take(),
            sojourn: self.sojourn.take(),
            ..counts
        }
    }
}

impl EdgeMeter {
    fn take(&mut self) -> EdgeRow {
        let counts = std::mem::take(&mut self.counts);
        EdgeRow {
            pool_area: self.pool.area_s(),
            pool_waiting_area: self.pool_waiting.area_s(),
            backoff_area: self.backoff.area_s(),
            ..counts
        }
    }
}

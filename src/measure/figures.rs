//! Every figure that users see: its name with the unit as the last word, its meaning, its formula.
//! One line each; JSON, its schema, Parquet, terminal and plots all read these tables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::record::{EdgeRow, TierRow};
use crate::mechanism::outcome::Reason;

/// What a formula needs besides the counts.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Length of the time over which was counted (s).
    pub seconds: f64,
    /// New user requests in that time of all clients that can reach the tier.
    pub demand: u64,
}

/// Declares a struct of figures: fields with their meaning, their formula, and the table of
/// columns.
macro_rules! figures {
    ($(#[$meta:meta])* $name:ident of $row:ty {
        $($(#[$doc:meta])* $field:ident = $formula:expr,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
        pub struct $name {
            $($(#[$doc])* pub $field: Option<f64>,)*
        }

        impl $name {
            /// A column: its name, its meaning is the field's.
            pub const COLUMNS: &[(&'static str, fn(&$name) -> Option<f64>)] =
                &[$((stringify!($field), |figures| figures.$field),)*];

            /// The figure of a name; `None` too where it has no meaning.
            pub fn figure(&self, name: &str) -> Option<f64> {
                let (_, value) = Self::COLUMNS.iter().find(|(column, _)| *column == name)?;
                value(self)
            }

            /// The figures of counts taken over a frame.
            pub fn of(row: &$row, frame: &Frame) -> Self {
                $(let $field: fn(&$row, &Frame) -> Option<f64> = $formula;)*
                $name { $($field: $field(row, frame).filter(|figure| figure.is_finite()),)* }
            }
        }
    };
}

fn rate(count: u64, frame: &Frame) -> Option<f64> {
    Some(count as f64 / frame.seconds)
}

fn mean(area: f64, frame: &Frame) -> Option<f64> {
    Some(area / frame.seconds)
}

fn refused(row: &TierRow, reason: Reason, frame: &Frame) -> Option<f64> {
    rate(row.refused[reason as usize], frame)
}

figures! {
    /// Figures of one tier over some time. `null` where a figure has no meaning or nothing was
    /// counted.
    TierFigures of TierRow {
        /// New user requests of all clients that can reach the tier.
        demand_per_s = |_, frame| rate(frame.demand, frame),
        /// Attempts that reach the tier, retries included.
        offered_per_s = |row, frame| rate(row.offered, frame),
        /// Of these, let in: served at once or queued.
        admitted_per_s = |row, frame| rate(row.admitted, frame),
        /// Attempts turned away, for whatever reason.
        refused_per_s = |row, frame| rate(row.refused_total(), frame),
        /// Turned away since the queue was full.
        refused_queue_full_per_s = |row, frame| refused(row, Reason::QueueFull, frame),
        /// Turned away after waiting longer than the queue allows.
        refused_queue_wait_per_s = |row, frame| refused(row, Reason::QueueWait, frame),
        /// Turned away by the rate limit.
        refused_admission_per_s = |row, frame| refused(row, Reason::Admission, frame),
        /// Turned away since too little time was left before the deadline.
        refused_deadline_per_s = |row, frame| refused(row, Reason::Deadline, frame),
        /// Turned away since the tier was down.
        refused_down_per_s = |row, frame| refused(row, Reason::Down, frame),
        /// Given up by the caller's pool before they reached the tier.
        refused_pool_per_s = |row, frame| refused(row, Reason::Pool, frame),
        /// Dropped by an operator, with the queue or by a restart.
        refused_dropped_per_s = |row, frame| refused(row, Reason::Dropped, frame),
        /// Taken out since the caller had left.
        refused_left_per_s = |row, frame| refused(row, Reason::Left, frame),
        /// Attempts whose caller stopped waiting.
        timed_out_per_s = |row, frame| rate(row.timed_out, frame),
        /// Attempts finished, in whatever way.
        throughput_per_s = |row, frame| rate(row.finished, frame),
        /// Attempts finished well while somebody still waited.
        goodput_per_s = |row, frame| rate(row.good, frame),
        /// Attempts finished with an error.
        failed_per_s = |row, frame| rate(row.failed, frame),
        /// Service given to attempts that nobody waited for any more [server·s/s].
        wasted_work_per_s = |row, frame| mean(row.wasted_ns as f64 / 1e9, frame),
        /// Share of the servers held, in [0, 1]; null where servers are unlimited.
        utilisation = |row, frame| Some(row.busy_area / frame.seconds / f64::from(row.servers?)),
        /// Servers held, on average.
        busy_mean = |row, frame| mean(row.busy_area, frame),
        /// Attempts waiting for service, on average.
        queue_mean = |row, frame| mean(row.queue_area, frame),
        /// Attempts waiting or in service, on average.
        in_flight_mean = |row, frame| mean(row.in_flight_area, frame),
        /// Attempts that reach the tier for each new user request.
        amplification = |row, frame| Some(row.offered as f64 / frame.demand as f64),
        /// Mean time in the queue.
        wait_mean_s = |row, _| row.wait.mean_s(),
        /// Time in the queue that half do not pass.
        wait_p50_s = |row, _| row.wait.quantile_s(0.5),
        /// Time in the queue that 90 % do not pass.
        wait_p90_s = |row, _| row.wait.quantile_s(0.9),
        /// Time in the queue that 99 % do not pass.
        wait_p99_s = |row, _| row.wait.quantile_s(0.99),
        /// Time in the queue that 99.9 % do not pass.
        wait_p999_s = |row, _| row.wait.quantile_s(0.999),
        /// Mean time at the tier; at a client tier the response time.
        sojourn_mean_s = |row, _| row.sojourn.mean_s(),
        /// Time at the tier that half do not pass.
        sojourn_p50_s = |row, _| row.sojourn.quantile_s(0.5),
        /// Time at the tier that 90 % do not pass.
        sojourn_p90_s = |row, _| row.sojourn.quantile_s(0.9),
        /// Time at the tier that 99 % do not pass.
        sojourn_p99_s = |row, _| row.sojourn.quantile_s(0.99),
        /// Time at the tier that 99.9 % do not pass.
        sojourn_p999_s = |row, _| row.sojourn.quantile_s(0.999),
        /// Writes that had their effect.
        effects = |row, _| Some(row.effects as f64),
        /// Writes that had their effect again.
        duplicate_effects = |row, _| Some(row.duplicates as f64),
        /// Rate limit in force at the end.
        limit_per_s = |row, _| row.limit,
    }
}

figures! {
    /// Figures of one edge over some time.
    EdgeFigures of EdgeRow {
        /// Calls begun.
        calls_per_s = |row, frame| rate(row.calls, frame),
        /// Attempts made.
        attempts_per_s = |row, frame| rate(row.attempts, frame),
        /// Attempts beyond the first of each call.
        retries_per_s = |row, frame| rate(row.attempts.saturating_sub(row.sent_calls()), frame),
        /// Attempts made for callers, or users, that had left.
        ghosts_per_s = |row, frame| rate(row.ghosts, frame),
        /// Attempts answered well in time.
        ok_per_s = |row, frame| rate(row.ok, frame),
        /// Attempts answered with an error.
        failed_per_s = |row, frame| rate(row.failed, frame),
        /// Attempts turned away.
        refused_per_s = |row, frame| rate(row.refused, frame),
        /// Attempts given up by the caller.
        timed_out_per_s = |row, frame| rate(row.timed_out, frame),
        /// Calls that failed in the end.
        gave_up_per_s = |row, frame| rate(row.gave_up, frame),
        /// Retries that the budget forbade.
        denied_per_s = |row, frame| rate(row.denied, frame),
        /// Attempts that callers turned away themselves, by throttling or an open breaker.
        throttled_per_s = |row, frame| rate(row.throttled, frame),
        /// Attempts for each call that was not answered by the cache.
        attempts_per_call = |row, _| Some(row.attempts as f64 / row.sent_calls() as f64),
        /// Share of cache lookups that hit.
        hit_share = |row, _| Some(row.hits as f64 / (row.hits + row.misses) as f64),
        /// Connections in use, on average.
        pool_in_use_mean = |row, frame| mean(row.pool_area, frame),
        /// Calls that wait for a connection, on average.
        pool_waiting_mean = |row, frame| mean(row.pool_waiting_area, frame),
        /// Calls in back-off, on average.
        backoff_mean = |row, frame| mean(row.backoff_area, frame),
        /// Budget tokens at the end, all buckets together.
        budget_tokens = |row, _| row.tokens,
    }
}

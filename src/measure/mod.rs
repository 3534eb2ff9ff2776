//! Measures: plain counters of the current window, histograms, and the record of a run.
//!
//! The simulation counts where the fact happens (`meter.counts.good += 1`); a window that ends
//! becomes a row of the [`Record`]. Rows add up, so a phase is the sum of its windows. Names and
//! units of all figures stand in `figures`.

pub mod figures;
pub mod gauge;
pub mod herd;
pub mod histogram;
pub mod interval;
pub mod meter;
pub mod record;

pub use figures::{EdgeFigures, Frame, TierFigures};
pub use gauge::Gauge;
pub use herd::Herd;
pub use histogram::{Histogram, Sparse};
pub use interval::{Estimate, Interval, Share};
pub use meter::{EdgeMeter, TierMeter};
pub use record::{AttemptRow, EdgeRow, LogEntry, Record, TierRow, Totals, Window};

//! Everything that runs leave for people and programs: diagnostics, summaries as text and JSON,
//! Parquet, plots. The only room that writes files, and it never leaves a half-written one
//! ([`mod@file`]).

pub mod diagnostic;
pub mod ensemble;
pub mod file;
pub mod herd;
#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(feature = "plot")]
pub mod plot;
pub mod policies;
pub mod summary;
pub mod text;

pub use ensemble::{EnsembleSummary, SweepSummary};
pub use policies::PoliciesSummary;
pub use summary::Summary;

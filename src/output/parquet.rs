//! Parquet for analysis: `windows.parquet`, `edges.parquet`, and the attempts of a trace, streamed;
//! of many seeds `seeds.parquet`, of a sweep `points.parquet` besides.
//!
//! Attempts go out in row groups as they come, so that memory does not grow with the run. Columns
//! carry their unit as the last word. Why polars and not its parts: its reader is what the notebook
//! uses, and one crate keeps both in step.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use polars::io::parquet::write::BatchedWriter;
use polars::prelude::{
    Column, DataFrame, NamedFrom, ParquetCompression, ParquetWriter, PolarsError, PolarsResult,
    Series,
};

use super::SweepSummary;
use super::ensemble::PointSummary;
use super::file::{Draft, FileError};
use crate::document::{EdgeId, TierId};
use crate::experiment::{Grid, Varied};
use crate::kernel::{Span, Time};
use crate::measure::{AttemptRow, EdgeFigures, Record, TierFigures};
use crate::mechanism::outcome::Outcome;
use crate::model::Model;
use crate::verdict::{Class, Phase, Replication, frame};

/// Why a Parquet file was not written.
#[derive(Debug, thiserror::Error)]
pub enum ParquetError {
    /// The system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// The writer refused.
    #[error("{} cannot be written", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What the writer says.
        source: PolarsError,
    },
}

/// A file that takes attempts in batches, one row group each.
pub struct AttemptWriter {
    path: PathBuf,
    draft: Draft,
    writer: BatchedWriter<BufWriter<File>>,
    edges: Vec<String>,
    tiers: Vec<String>,
}

impl AttemptWriter {
    /// Begins the file.
    ///
    /// # Errors
    /// The file cannot be created, or its header not be written.
    pub fn create(path: &Path, model: &Model) -> Result<Self, ParquetError> {
        let draft = Draft::new(path);
        let file = draft.create()?;
        let edges: Vec<String> = model.edge_ids().map(|edge| model.names.edge_name(edge)).collect();
        let tiers: Vec<String> = model.names.tiers().map(str::to_owned).collect();
        let fault = |source| ParquetError::Format { path: path.to_owned(), source };
        let empty = attempts_frame(&[], &edges, &tiers).map_err(fault)?;
        let writer = writer(file).batched(empty.schema()).map_err(fault)?;
        Ok(AttemptWriter { path: path.to_owned(), draft, writer, edges, tiers })
    }

    /// Writes one row group.
    ///
    /// # Errors
    /// The row group cannot be written.
    pub fn write(&mut self, rows: &[AttemptRow]) -> Result<(), ParquetError> {
        if rows.is_empty() {
            return Ok(());
        }
        let frame = attempts_frame(rows, &self.edges, &self.tiers);
        let written = frame.and_then(|frame| self.writer.write_batch(&frame));
        written.map_err(|source| ParquetError::Format { path: self.path.clone(), source })
    }

    /// Ends the file and puts it in its place.
    ///
    /// # Errors
    /// The footer cannot be written, or the file not be renamed.
    pub fn finish(self) -> Result<PathBuf, ParquetError> {
        let path = self.path;
        self.writer.finish().map_err(|source| ParquetError::Format { path, source })?;
        // The writer holds the file; it must be closed before the rename shows it to others.
        drop(self.writer);
        Ok(self.draft.commit()?)
    }
}

/// Writes `windows.parquet`: a row for each window and tier, tiers in the order of the model.
///
/// # Errors
/// The file cannot be written.
pub fn write_windows(path: &Path, model: &Model, record: &Record) -> Result<PathBuf, ParquetError> {
    let rows = record.windows.len();
    let figures: Vec<TierFigures> = model
        .tier_ids()
        .flat_map(|tier| (0..rows).map(move |index| (tier, index)))
        .map(|(tier, index)| {
            let frame = frame(model, record, tier, &(index..index + 1));
            TierFigures::of(&record.tiers[tier.index()][index], &frame)
        })
        .collect();
    let names = model.tier_ids().map(|tier: TierId| model.names.tier_name(tier).to_owned());
    let columns = TierFigures::COLUMNS
        .iter()
        .map(|(name, value)| (*name, figures.iter().map(value).collect::<Vec<Option<f64>>>()));
    write_table(path, record, ("tier", names.collect()), columns)
}

/// Writes `edges.parquet`: a row for each window and edge, edges in the order of the model.
///
/// # Errors
/// The file cannot be written.
pub fn write_edges(path: &Path, model: &Model, record: &Record) -> Result<PathBuf, ParquetError> {
    let rows = record.windows.len();
    let figures: Vec<EdgeFigures> = model
        .edge_ids()
        .flat_map(|edge| (0..rows).map(move |index| (edge, index)))
        .map(|(edge, index)| {
            let frame = frame(model, record, model.edge(edge).caller, &(index..index + 1));
            EdgeFigures::of(&record.edges[edge.index()][index], &frame)
        })
        .collect();
    let names = model.edge_ids().map(|edge: EdgeId| model.names.edge_name(edge));
    let columns = EdgeFigures::COLUMNS
        .iter()
        .map(|(name, value)| (*name, figures.iter().map(value).collect::<Vec<Option<f64>>>()));
    write_table(path, record, ("edge", names.collect()), columns)
}

/// A table of figures: the thing, its window, its figures.
fn write_table(
    path: &Path,
    record: &Record,
    (thing, names): (&str, Vec<String>),
    columns: impl Iterator<Item = (&'static str, Vec<Option<f64>>)>,
) -> Result<PathBuf, ParquetError> {
    let windows = record.windows.len();
    let repeated: Vec<&str> =
        names.iter().flat_map(|name| std::iter::repeat_n(name.as_str(), windows)).collect();
    let instants = |instant: fn(&crate::measure::Window) -> Time| {
        let one: Vec<f64> = record.windows.iter().map(|window| instant(window).seconds()).collect();
        one.repeat(names.len())
    };
    let mut all = vec![
        column(thing, repeated),
        column("from_s", instants(|window| window.from)),
        column("to_s", instants(|window| window.to)),
    ];
    all.extend(columns.map(|(name, values)| column(name, values)));
    write_columns(path, names.len() * windows, all)
}

fn write_columns(path: &Path, rows: usize, all: Vec<Column>) -> Result<PathBuf, ParquetError> {
    let draft = Draft::new(path);
    let file = draft.create()?;
    let written = DataFrame::new(rows, all).and_then(|mut frame| writer(file).finish(&mut frame));
    written.map_err(|source| ParquetError::Format { path: path.to_owned(), source })?;
    Ok(draft.commit()?)
}

/// A row of `seeds.parquet`.
struct SeedRow<'r> {
    point: usize,
    run: &'r Replication,
    phase: &'r Phase,
    tier: &'r str,
    figures: &'r TierFigures,
}

/// Writes `seeds.parquet`: a row for each point, seed, phase and tier, with the settings of the
/// point.
///
/// # Errors
/// The file cannot be written.
pub fn write_seeds(
    path: &Path,
    grid: &Grid,
    replications: &[Vec<Replication>],
) -> Result<PathBuf, ParquetError> {
    let mut rows = Vec::new();
    for (point, (model, runs)) in grid.models.iter().zip(replications).enumerate() {
        for run in runs {
            for (phase, tiers) in &run.phases {
                let row = |(tier, figures)| SeedRow { point, run, phase, tier, figures };
                rows.extend(model.names.tiers().zip(tiers).map(row));
            }
        }
    }
    let points: Vec<usize> = rows.iter().map(|row| row.point).collect();
    let mut all = setting_columns(grid, &points);
    let text = |name, value: fn(&SeedRow<'_>) -> &'static str| {
        column(name, rows.iter().map(value).collect::<Vec<&str>>())
    };
    let number = |name, value: fn(&SeedRow<'_>) -> Option<f64>| {
        column(name, rows.iter().map(value).collect::<Vec<Option<f64>>>())
    };
    all.extend([
        column("seed", rows.iter().map(|row| row.run.seed).collect::<Vec<u64>>()),
        text("verdict", |row| row.run.class.name()),
        number("recovery_time_s", |row| row.run.recovery_time.map(Span::seconds)),
        text("phase", |row| row.phase.name),
        number("from_s", |row| Some(row.phase.from.seconds())),
        number("to_s", |row| Some(row.phase.to.seconds())),
        column("tier", rows.iter().map(|row| row.tier).collect::<Vec<&str>>()),
    ]);
    all.extend(TierFigures::COLUMNS.iter().map(|(name, figure)| {
        let values = rows.iter().map(|row| figure(row.figures));
        column(name, values.collect::<Vec<Option<f64>>>())
    }));
    write_columns(path, rows.len(), all)
}

/// Writes `points.parquet`: a row for each point of a sweep.
///
/// # Errors
/// The file cannot be written.
pub fn write_points(
    path: &Path,
    grid: &Grid,
    summary: &SweepSummary,
) -> Result<PathBuf, ParquetError> {
    type Figure = fn(&PointSummary) -> Option<f64>;
    let figures: [(&str, Figure); 9] = [
        ("metastable_share", |point| point.verdict.metastable.share),
        ("metastable_share_low", |point| Some(point.verdict.metastable.low)),
        ("metastable_share_high", |point| Some(point.verdict.metastable.high)),
        ("recovery_time_mean_s", |point| Some(point.verdict.recovery_time_s?.mean)),
        ("recovery_time_half_width_s", |point| point.verdict.recovery_time_s?.half_width),
        ("goodput_mean_per_s", |point| Some(point.goodput_per_s?.mean)),
        ("goodput_half_width_per_s", |point| point.goodput_per_s?.half_width),
        ("amplification_mean", |point| Some(point.amplification?.mean)),
        ("amplification_half_width", |point| point.amplification?.half_width),
    ];
    let points: Vec<&PointSummary> = summary.points.iter().map(|swept| &swept.point).collect();
    let count = |name: &str, value: &dyn Fn(&PointSummary) -> u64| {
        column(name, points.iter().map(|point| value(point)).collect::<Vec<u64>>())
    };
    let mut all = setting_columns(grid, &(0..points.len()).collect::<Vec<usize>>());
    let classes = points.iter().map(|point| point.verdict.class.as_str());
    all.push(column("verdict", classes.collect::<Vec<&str>>()));
    all.push(count("seeds", &|point| point.complete));
    all.extend(
        Class::ALL.map(Class::name).map(|class| count(class, &|point| point.verdict.counts[class])),
    );
    all.extend(figures.map(|(name, figure)| {
        let values = points.iter().map(|point| figure(point));
        column(name, values.collect::<Vec<Option<f64>>>())
    }));
    write_columns(path, points.len(), all)
}

/// The settings of a sweep, for rows that belong to these points: as numbers where all values are
/// numbers, else as they were written.
fn setting_columns(grid: &Grid, points: &[usize]) -> Vec<Column> {
    let one = |(index, varied): (usize, &Varied)| {
        let numbers = varied.values.iter().map(|value| value.parse::<f64>().ok());
        let written = points.iter().map(|&point| grid.points[point][index].as_str());
        if numbers.clone().all(|number| number.is_some()) {
            column(
                &varied.path,
                written.map(|text| text.parse().ok()).collect::<Vec<Option<f64>>>(),
            )
        } else {
            column(&varied.path, written.collect::<Vec<&str>>())
        }
    };
    grid.varied.iter().enumerate().map(one).collect()
}

fn attempts_frame(
    rows: &[AttemptRow],
    edges: &[String],
    tiers: &[String],
) -> PolarsResult<DataFrame> {
    let instants = |instant: fn(&AttemptRow) -> Time| -> Vec<Option<f64>> {
        rows.iter()
            .map(|row| Some(instant(row)).filter(|at| *at != Time::NEVER).map(Time::seconds))
            .collect()
    };
    let why = |row: &AttemptRow| match row.outcome {
        Some(Outcome::Refused(reason)) => Some(reason.name()),
        _ => None,
    };
    DataFrame::new(
        rows.len(),
        vec![
            column("request", rows.iter().map(|row| row.request).collect::<Vec<u64>>()),
            column(
                "edge",
                rows.iter().map(|row| edges[row.edge.index()].as_str()).collect::<Vec<_>>(),
            ),
            column(
                "tier",
                rows.iter().map(|row| tiers[row.tier.index()].as_str()).collect::<Vec<_>>(),
            ),
            column("attempt", rows.iter().map(|row| row.attempt).collect::<Vec<u32>>()),
            column("sent_s", instants(|row| row.sent)),
            column("arrived_s", instants(|row| row.arrived)),
            column("started_s", instants(|row| row.started)),
            column("ended_s", instants(|row| row.ended)),
            column(
                "outcome",
                rows.iter()
                    .map(|row| row.outcome.map_or("in_flight", Outcome::name))
                    .collect::<Vec<_>>(),
            ),
            column("why", rows.iter().map(why).collect::<Vec<Option<&str>>>()),
            column("awaited", rows.iter().map(|row| row.awaited).collect::<Vec<bool>>()),
        ],
    )
}

fn column<T>(name: &str, values: Vec<T>) -> Column
where
    Series: NamedFrom<Vec<T>, [T]>,
    Vec<T>: AsRef<[T]>,
{
    Series::new(name.into(), values).into()
}

fn writer(file: BufWriter<File>) -> ParquetWriter<BufWriter<File>> {
    ParquetWriter::new(file).with_compression(ParquetCompression::Zstd(None))
}

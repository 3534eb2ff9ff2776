//! Theory as judge: queueing systems whose answer is known in closed form, against the engine.
//!
//! The tolerance is the run's own 99.9 % interval by batch means, never a number that was read off
//! the output; and the interval must be narrow, or the test could not fail. Formulas are pure
//! functions, with their source beside them.
//!
//! Books: Kleinrock, *Queueing Systems* vol. 1 (1975); Gross, Shortle, Thompson & Harris,
//! *Fundamentals of Queueing Theory*, 4th ed. (2008); Kelly, *Reversibility and Stochastic
//! Networks* (1979).

mod flow;
mod loss;
mod network;
mod queueing;
mod retry;

use metastable::document::{EdgeId, TierId};
use metastable::measure::{AttemptRow, EdgeRow, Interval, Record, TierRow};
use metastable::model::Model;
use metastable::simulation::{Simulation, Watch};

/// Confidence of every interval.
const CONFIDENCE: f64 = 0.999;

/// Widest interval that still judges, as a share of the theory.
const NARROW: f64 = 0.05;

/// The model of a text that has no fault.
fn model(text: &str) -> Model {
    Model::parse(text, &|_| Err("the models of tests name no files".into()))
        .unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"))
}

fn run(text: &str, seed: u64) -> Record {
    Simulation::new(&model(text), seed, 0.0).run(&mut ())
}

/// A run with every attempt on record, in order of time sent.
fn traced(text: &str, seed: u64) -> (Record, Vec<AttemptRow>) {
    struct All(Vec<AttemptRow>);
    impl Watch for All {
        fn attempts(&mut self, rows: &[AttemptRow]) {
            self.0.extend_from_slice(rows);
        }
    }
    let mut all = All(Vec::new());
    let record = Simulation::new(&model(text), seed, 1.0).run(&mut all);
    all.0.sort_by_key(|row| (row.sent, row.request));
    (record, all.0)
}

/// One Poisson client and one tier: `windows` windows of `window_s` seconds, after one of them to
/// warm up.
fn station(arrivals: &str, windows: u32, window_s: u32, tier: &str) -> String {
    let duration = (windows + 1) * window_s;
    format!(
        "run = {{ duration = \"{duration}s\", warmup = \"{window_s}s\", window = \"{window_s}s\" }}
         [tier.client]
         arrivals.{arrivals}
         calls = [\"api\"]
         [tier.api]
         {tier}"
    )
}

/// The client of [`station`].
const CLIENT: TierId = TierId(0);
/// The tier of [`station`].
const API: TierId = TierId(1);
/// The edge between them.
const CALL: EdgeId = EdgeId(0);

/// One number for each window of a tier.
fn by_window(record: &Record, tier: TierId, figure: impl Fn(&TierRow) -> f64) -> Vec<f64> {
    record.tiers[tier.index()].iter().map(figure).collect()
}

/// One number for each window of an edge.
fn by_window_of_edge(record: &Record, edge: EdgeId, figure: impl Fn(&EdgeRow) -> f64) -> Vec<f64> {
    record.edges[edge.index()].iter().map(figure).collect()
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

fn wait_mean(row: &TierRow) -> f64 {
    row.wait.mean_s().expect("somebody was served in each window")
}

fn sojourn_mean(row: &TierRow) -> f64 {
    row.sojourn.mean_s().expect("somebody was served in each window")
}

/// The interval of a series of windows, each a batch of its own up to 40, then several to a batch.
fn interval(series: &[f64]) -> Interval {
    Interval::of_series(series, series.len().min(40), CONFIDENCE)
}

/// Holds what was measured against theory, within the run's own interval, which must be narrow.
fn judge(what: &str, series: &[f64], theory: f64) {
    judge_within(what, series, theory, NARROW * theory.abs());
}

/// The same with the widest half-width given as such, for a theory of zero and for rare events.
fn judge_within(what: &str, series: &[f64], theory: f64, widest: f64) {
    let interval = interval(series);
    let Interval { mean, half_width } = interval;
    eprintln!("| {what} | {theory:.5} | {mean:.5} | {half_width:.5} |");
    assert!(half_width <= widest, "{what}: ± {half_width} judges nothing ({mean}, not {theory})");
    // What cannot vary has no width, and is then equal but for the rounding of sums.
    let covered = interval.covers(theory) || (mean - theory).abs() <= 1e-9 * theory.abs();
    assert!(covered, "{what}: {mean} ± {half_width}, but theory says {theory}");
}

//! Rows of figures from bouts, and the table of a model.

use std::fmt;

use comfy_table::{Cell, CellAlignment, presets};
use serde::Serialize;

use crate::contestant::Contestant;
use crate::limit::Outcome;
use crate::rounds::Bout;
use crate::scenario::Scenario;

/// All contestants in one model.
#[derive(Debug, Serialize)]
pub struct Table {
    model: Scenario,
    rows: Vec<Row>,
}

/// One contestant.
#[derive(Debug, Serialize)]
struct Row {
    contestant: Contestant,
    /// Rounds, runs in each, and their length: "7 x 3 x 600 s".
    simulated: Option<String>,
    /// Processor time of a model event, by round (ns).
    ns_per_event: Option<Spread>,
    /// Cost against the product's in the same round.
    to_metastable: Option<f64>,
    /// Cost against the limit's in the same round.
    to_limit: Option<f64>,
    /// Most memory in use (MB).
    peak_mb: Option<f64>,
    /// What shows that the runs are sound, or why they are not, or why there are none.
    proof: String,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Table {
    /// The table of a model from the bouts of all.
    pub fn of(model: Scenario, bouts: &[Bout]) -> Self {
        let bouts: Vec<&Bout> = bouts.iter().filter(|bout| bout.model == model).collect();
        let mut contestants: Vec<Contestant> = Vec::new();
        for bout in &bouts {
            if !contestants.contains(&bout.contestant) {
                contestants.push(bout.contestant);
            }
        }
        let mut rows: Vec<Row> =
            contestants.iter().map(|&contestant| Row::of(contestant, model, &bouts)).collect();
        let cost = |row: &Row| row.ns_per_event.map_or(f64::INFINITY, |ns| ns.median);
        rows.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
        Table { model, rows }
    }
}

impl Row {
    fn of(contestant: Contestant, model: Scenario, bouts: &[&Bout]) -> Self {
        let own: Vec<&&Bout> = bouts.iter().filter(|bout| bout.contestant == contestant).collect();
        let reports = || own.iter().filter_map(|bout| bout.report.as_ref());
        let fault = own.iter().find_map(|bout| bout.fault.clone());
        let costs: Vec<f64> = reports().map(|report| report.ns_per_event()).collect();
        let runs = reports().map(|report| report.outcomes.len()).max().unwrap_or(0);
        let proof = match fault {
            Some(fault) => fault,
            None if costs.is_empty() => "not found".into(),
            None => model.proof(&mean(reports().flat_map(|report| &report.outcomes))),
        };
        Row {
            contestant,
            simulated: (runs > 0)
                .then(|| format!("{} x {runs} x {} s", costs.len(), contestant.seconds(model))),
            ns_per_event: spread(costs),
            to_metastable: ratio(contestant, Contestant::Metastable, bouts),
            to_limit: ratio(contestant, Contestant::Limit, bouts),
            peak_mb: reports().filter_map(|report| report.peak_mb).reduce(f64::max),
            proof,
        }
    }
}

/// The median over the rounds in which both took part; none where the physics of either is wrong.
fn ratio(of: Contestant, to: Contestant, bouts: &[&Bout]) -> Option<f64> {
    let of_or_to = |bout: &&&Bout| bout.contestant == of || bout.contestant == to;
    if bouts.iter().filter(of_or_to).any(|bout| bout.fault.is_some()) {
        return None;
    }
    let cost = |who: Contestant, round: u32| {
        let bout = bouts.iter().find(|bout| bout.contestant == who && bout.round == round)?;
        bout.report.as_ref().map(|report| report.ns_per_event())
    };
    let rounds = 0..=bouts.iter().map(|bout| bout.round).max()?;
    let ratios = rounds.filter_map(|round| Some(cost(of, round)? / cost(to, round)?));
    spread(ratios.collect()).map(|spread| spread.median)
}

fn spread(mut values: Vec<f64>) -> Option<Spread> {
    values.sort_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    let middle = values.len() / 2;
    let median = match values.len() % 2 {
        1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    };
    Some(Spread { median, least, most })
}

/// What is needed for a proof, of all runs together.
fn mean<'o>(outcomes: impl Iterator<Item = &'o Outcome> + Clone) -> Outcome {
    let count = outcomes.clone().count().max(1) as u64;
    let mut sum = Outcome::default();
    for outcome in outcomes {
        sum.ok += outcome.ok;
        sum.sojourn_s += outcome.sojourn_s;
        sum.late_attempts += outcome.late_attempts;
        sum.late_ok += outcome.late_ok;
    }
    Outcome { late_attempts: sum.late_attempts / count, ..sum }
}

/// Markdown, to be pasted into the README.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        let titles = ["", "ns/event", "least–most", "events/s", "to metastable", "to limit"];
        let more = ["peak MB", self.model.proof_title(), "simulated"];
        table.set_header(titles.into_iter().chain(more));
        for row in &self.rows {
            table.add_row(row.cells());
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(f, "{}\n\n{table}", self.model.title())
    }
}

impl Row {
    fn cells(&self) -> Vec<Cell> {
        let cell = |value: Option<String>| Cell::new(value.unwrap_or_default());
        let ns = self.ns_per_event;
        vec![
            Cell::new(self.contestant.name()),
            cell(ns.map(|ns| figure(ns.median))),
            cell(ns.map(|ns| format!("{}–{}", figure(ns.least), figure(ns.most)))),
            cell(ns.map(|ns| rate(1e9 / ns.median))),
            cell(self.to_metastable.map(figure)),
            cell(self.to_limit.map(figure)),
            cell(self.peak_mb.map(|mb| format!("{mb:.0}"))),
            Cell::new(&self.proof),
            cell(self.simulated.clone()),
        ]
    }
}

/// Three digits or more.
fn figure(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn rate(per_s: f64) -> String {
    if per_s < 1e6 { format!("{:.0} k", per_s / 1e3) } else { format!("{:.1} M", per_s / 1e6) }
}

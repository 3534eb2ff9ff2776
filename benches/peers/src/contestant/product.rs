//! The product, as its users run it: a model file read, checked and simulated with all metrics on.

use std::fs;

use anyhow::{Context, Result, anyhow};
use metastable::kernel::Time;
use metastable::measure::Record;
use metastable::model::Model;
use metastable::simulation::Simulation;

use crate::limit::{LATE, Outcome};
use crate::scenario::Scenario;

/// Reads the scenario's model file and runs it once.
pub fn run(scenario: Scenario, seed: u64) -> Result<Outcome> {
    let path = scenario.model_file();
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let model = Model::parse(&text, &|name| Err(format!("{name}: no other files")))
        .map_err(|faults| anyhow!("{path} is no sound model: {faults:?}"))?;
    let record = Simulation::new(&model, seed, 0.0).run(&mut ());
    Ok(outcome(scenario, &model, &record))
}

fn outcome(scenario: Scenario, model: &Model, record: &Record) -> Outcome {
    let all = counts(model, record, Time::ZERO);
    match scenario {
        Scenario::Mm1 => all,
        Scenario::Storm => {
            let late = counts(model, record, Time::from_nanos((LATE * 1e9) as u64));
            Outcome {
                late_events: late.events,
                late_attempts: late.attempts,
                late_ok: late.ok,
                ..all
            }
        }
    }
}

/// Model events are not the events that the engine handles: it handles stale timers, too. Its rows
/// are summed without their histograms, since this belongs to the comparison and not to a run.
fn counts(model: &Model, record: &Record, from: Time) -> Outcome {
    let windows = record.windows_between(from, model.run.end());
    let mut outcome = Outcome::default();
    for tier in model.tier_ids() {
        let rows = &record.tiers[tier.index()][windows.clone()];
        if model.tier(tier).is_client() {
            for row in rows {
                outcome.events += row.demand;
                outcome.requests += row.demand;
                outcome.ok += row.good;
                outcome.failed += row.failed;
            }
        } else {
            for row in rows {
                outcome.events += row.finished;
                outcome.sojourn_s += row.sojourn.sum_s();
            }
        }
    }
    for edge in model.edge_ids() {
        for row in &record.edges[edge.index()][windows.clone()] {
            outcome.events += row.timed_out;
            outcome.attempts += row.attempts;
        }
    }
    outcome
}

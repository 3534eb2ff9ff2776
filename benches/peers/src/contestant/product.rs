//! The product, as its users run it: a model file read, checked and simulated with all metrics on.

use std::fs;
use std::ops::Range;

use anyhow::{Context, Result, anyhow};
use metastable::kernel::Time;
use metastable::measure::Record;
use metastable::model::Model;
use metastable::simulation::Simulation;

use crate::limit::{LATE, Outcome};
use crate::scenario::Scenario;

/// Reads the scenario's model file and runs it once for each seed. As in an ensemble, each run
/// begins in the room of the run before, with its memory.
pub fn run(scenario: Scenario, seeds: Range<u64>) -> Result<Vec<Outcome>> {
    let path = scenario.model_file();
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let model = Model::parse(&text, &|name| Err(format!("{name}: no other files")))
        .map_err(|faults| anyhow!("{path} is no sound model: {faults:?}"))?;
    let mut simulation = Simulation::new(&model, seeds.start, 0.0);
    let outcomes = seeds.clone().map(|seed| {
        if seed != seeds.start {
            simulation.restart(&model, seed, 0.0);
        }
        outcome(scenario, &model, &simulation.run(&mut ()))
    });
    Ok(outcomes.collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_in_the_room_of_another_comes_to_the_same() {
        for scenario in [Scenario::Mm1, Scenario::Storm] {
            let in_a_row = run(scenario, 1..4).unwrap();
            let apart = (1..4).map(|seed| run(scenario, seed..seed + 1).unwrap()[0]);
            assert_eq!(in_a_row, apart.collect::<Vec<_>>());
        }
    }
}

//! Rounds: everyone runs once in each, one after the other, in an order that rotates.

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::child::{self, Report};
use crate::contestant::{Contestant, simpy};
use crate::scenario::Scenario;

/// Who runs what, how often.
#[derive(Debug, Args)]
pub struct Plan {
    /// Rounds.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Rounds in which a contestant takes part that needs most of a minute (SimPy in the storm).
    #[arg(long, default_value_t = 1)]
    slow_rounds: u32,
    /// Only these contestants.
    #[arg(long, value_enum, value_delimiter = ',')]
    #[arg(default_values_t = Contestant::value_variants().to_vec())]
    only: Vec<Contestant>,
    /// Only these models.
    #[arg(long, value_enum, value_delimiter = ',')]
    #[arg(default_values_t = Scenario::value_variants().to_vec())]
    pub models: Vec<Scenario>,
}

/// One contestant in one round.
#[derive(Clone, Debug, Serialize)]
pub struct Bout {
    /// Who.
    pub contestant: Contestant,
    /// What.
    pub model: Scenario,
    /// From 0.
    pub round: u32,
    /// What its process has measured; `None`: not found, or failed.
    pub report: Option<Report>,
    /// Why its figures count for nothing; `None`: they do.
    pub fault: Option<String>,
}

/// Seeds between the first runs of two rounds: more than a process makes runs.
const SEEDS_APART: u64 = 1_000;

/// Runs all rounds, with progress on standard error.
pub fn fight(plan: &Plan) -> Result<Vec<Bout>> {
    let asked_for = plan.only.iter().any(|contestant| contestant.is_python());
    let python = asked_for && simpy::is_there();
    if asked_for && !python {
        eprintln!("no Python that knows SimPy; name one in METASTABLE_PYTHON");
    }
    let mut bouts = Vec::new();
    for round in 0..plan.rounds {
        let mut order = plan.only.clone();
        order.rotate_left(round as usize % plan.only.len());
        for &model in &plan.models {
            for &contestant in &order {
                let there = !contestant.is_python() || python;
                let slow = contestant.is_slow(model) && round >= plan.slow_rounds;
                if there && !slow {
                    bouts.push(bout(contestant, model, round, plan.rounds));
                } else if !there && round == 0 {
                    bouts.push(Bout { contestant, model, round, report: None, fault: None });
                }
            }
        }
    }
    Ok(bouts)
}

/// Takes as much memory as a contestant needs at most, uses it and gives it back: so that nobody
/// pays for what the host of a virtual machine has taken away since the one before. On such a
/// machine the first use of a gigabyte may take seconds.
fn warm_memory() {
    const MOST: usize = 320 << 20;
    const PAGE: usize = 4096;
    let mut memory = vec![0u8; MOST];
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    std::hint::black_box(&memory);
}

fn bout(contestant: Contestant, model: Scenario, round: u32, rounds: u32) -> Bout {
    eprint!("round {}/{rounds}, {}, {}: ", round + 1, model.name(), contestant.name());
    let seed = 1 + SEEDS_APART * u64::from(round);
    warm_memory();
    let (report, fault) = match child::spawn(contestant, model, seed) {
        Err(error) => (None, Some(format!("{error:#}"))),
        Ok(report) => {
            let seconds = contestant.seconds(model);
            let wrong = report.outcomes.iter().find_map(|one| model.check(one, seconds).err());
            (Some(report), wrong)
        }
    };
    match (&report, &fault) {
        (_, Some(fault)) => eprintln!("{fault}"),
        (Some(report), None) => eprintln!("{:.1} ns per event", report.ns_per_event()),
        (None, None) => eprintln!("not found"),
    }
    Bout { contestant, model, round, report, fault }
}

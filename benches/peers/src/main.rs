//! What a model event costs in metastable, in other discrete-event libraries, and in a loop that is
//! written by hand for one model. The README next to this package says what is compared and how.
//!
//! Contestants take turns, each run in a process of its own, so that memory and processor time are
//! its own and a disturbance of the machine hits neighbours in a round alike.

mod child;
mod contestant;
#[path = "../../limit.rs"]
mod limit;
mod rounds;
mod scenario;
mod table;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use contestant::Contestant;
use rounds::Plan;
use scenario::Scenario;

/// Compare the cost of a model event between metastable and its peers.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    plan: Plan,
    /// Print all runs and the rows of the tables as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one contestant in this process and print one line of JSON.
    Run {
        /// What to simulate.
        model: Scenario,
        /// Who simulates it.
        contestant: Contestant,
        /// Seed of the first run; those that follow count up.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Runs, one after the other; as many as the comparison makes when not given.
        #[arg(long)]
        runs: Option<u32>,
    },
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if let Some(Command::Run { model, contestant, seed, runs }) = arguments.command {
        let runs = runs.unwrap_or_else(|| contestant.runs(model));
        println!("{}", serde_json::to_string(&child::measure(contestant, model, seed, runs)?)?);
        return Ok(ExitCode::SUCCESS);
    }
    let bouts = rounds::fight(&arguments.plan)?;
    let tables = arguments.plan.models.iter().map(|&model| table::Table::of(model, &bouts));
    let tables: Vec<_> = tables.collect();
    if arguments.json {
        println!("{}", serde_json::json!({ "bouts": bouts, "tables": tables }));
    } else {
        tables.iter().for_each(|table| println!("{table}"));
    }
    let sound = bouts.iter().all(|bout| bout.fault.is_none());
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

//! What `run --seeds` and `sweep` have in common: which seeds, and runs of them all.

use anyhow::Context;

use super::progress::Progress;
use crate::experiment::{Draws, Plan, Twins, run_ensemble};
use crate::model::Model;
use crate::verdict::Replication;

/// What is kept of so many runs of a dozen tiers fills some gigabytes.
pub const MOST_RUNS: u32 = 100_000;

/// Which seeds, and on how many threads.
#[derive(Debug, clap::Args)]
pub struct Seeds {
    /// Seed of all random numbers; many seeds are hashed from it [default: the model's, or 1].
    #[arg(long, value_parser = seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Run with so many seeds, and say how sure the verdict is and how exact the figures.
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RUNS)))]
    pub seeds: u32,
    /// Threads for many seeds; results do not depend on it [default: one for each core].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl Seeds {
    /// The plan of an ensemble.
    pub fn plan(&self, draws: Draws) -> Plan {
        let threads = self.threads.map(usize::from);
        Plan { root: self.seed, seeds: self.seeds, draws, threads }
    }
}

/// Runs every model with every seed.
pub fn replicate(
    models: &[Model],
    plan: &Plan,
    quiet: bool,
) -> anyhow::Result<Vec<Vec<Replication>>> {
    let progress = Progress::start(models, plan.seeds, quiet)?;
    let keep = |model: &Model, twins: &Twins| Replication::of(model, &twins.record, &twins.verdict);
    let replications = run_ensemble(models, plan, &progress, keep);
    progress.finish();
    let replications = replications.context("no threads to run on")?;
    let complete = replications.iter().map(Vec::len).sum::<usize>();
    let all = models.len() * plan.seeds as usize;
    if complete < all {
        eprintln!("interrupted: {complete} of {all} runs");
    }
    Ok(replications)
}

/// Reads a seed.
fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a seed is a whole number from 0".into())
}

//! `metastable sweep`.

use std::path::Path;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use super::ensemble::{MOST_RUNS, Seeds, replicate};
use super::load::Source;
use super::{Ending, Results};
use crate::experiment::{Draws, Grid, Varied};
use crate::output::text::render_sweep;
use crate::output::{SweepSummary, file, summary};
use crate::verdict::Replication;

/// More points than this fill the memory with models, and no table shows them.
const MOST_POINTS: u32 = 10_000;

/// Run a model under every combination of some settings, and judge each.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code: 0 ran, 2 could not run, 130 interrupted.

Examples:
  metastable sweep models/checkout.toml --vary tier.db.queue.fifo.capacity=300,1000,2000 --seeds 16
  metastable sweep models/checkout.toml --vary tier.inventory.call.db.attempts=1,2,3 \\
                   --vary trigger.0.lasts=10s,1m --out out
  metastable sweep models/checkout.toml --vary trigger.0.demand.client=1.5,2,2.5 --format json")]
pub struct Sweep {
    #[command(flatten)]
    source: Source,
    /// A setting and its values, split at commas outside of brackets and quotes; may be given
    /// several times, and all combinations are run.
    #[arg(long, value_name = "PATH=V1,V2", required = true, value_parser = Varied::parse)]
    vary: Vec<Varied>,
    #[command(flatten)]
    seeds: Seeds,
    /// Whether points meet the same random numbers.
    #[arg(long, value_enum, default_value = "shared")]
    draws: Draws,
    #[command(flatten)]
    results: Results,
}

impl ValueEnum for Draws {
    fn value_variants<'a>() -> &'a [Self] {
        &[Draws::Shared, Draws::Own]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(match self {
            Draws::Shared => "The n-th seed is the same at every point: settings alone differ",
            Draws::Own => "Every point has seeds of its own: points are independent",
        }))
    }
}

impl Sweep {
    pub fn execute(self) -> anyhow::Result<Ending> {
        self.refuse_excess()?;
        let Some(grid) = self.source.vary(self.vary)? else { return Ok(Ending::Bad) };
        self.results.make_folder()?;
        let plan = self.seeds.plan(self.draws);
        let replications = replicate(&grid.models, &plan, self.results.quiet)?;
        let sweep = SweepSummary::of(&grid, &plan, &replications);
        if let Some(out) = &self.results.out {
            write_files(out, &grid, &sweep, &replications)?;
        }
        let title = &grid.models[0].title;
        self.results.show(|| summary::json(&sweep), |style| render_sweep(title, &sweep, style))?;
        Ok(if sweep.interrupted { Ending::Interrupted } else { Ending::Fine })
    }

    /// Before a single point is made: the number of combinations has no bound.
    fn refuse_excess(&self) -> anyhow::Result<()> {
        let mut paths: Vec<&str> = self.vary.iter().map(|varied| varied.path.as_str()).collect();
        paths.sort_unstable();
        if let Some(pair) = paths.windows(2).find(|pair| pair[0] == pair[1]) {
            anyhow::bail!("`{}` is varied twice; give all its values at once", pair[0]);
        }
        let points: f64 = self.vary.iter().map(|varied| varied.values.len() as f64).product();
        let runs = points * f64::from(self.seeds.seeds);
        anyhow::ensure!(
            points <= f64::from(MOST_POINTS),
            "these are {points:.0} points, more than {MOST_POINTS}; take fewer values"
        );
        anyhow::ensure!(
            runs <= f64::from(MOST_RUNS),
            "these are {runs:.0} runs, more than {MOST_RUNS}; take fewer values or fewer seeds"
        );
        Ok(())
    }
}

fn write_files(
    out: &Path,
    grid: &Grid,
    sweep: &SweepSummary,
    replications: &[Vec<Replication>],
) -> anyhow::Result<()> {
    file::write(&out.join("sweep.json"), summary::json(sweep).as_bytes())?;
    #[cfg(feature = "parquet")]
    {
        use crate::output::parquet;
        parquet::write_points(&out.join("points.parquet"), grid, sweep)?;
        parquet::write_seeds(&out.join("seeds.parquet"), grid, replications)?;
    }
    #[cfg(not(feature = "parquet"))]
    let _ = (grid, replications);
    Ok(())
}

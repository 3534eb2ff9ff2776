//! `metastable run`.

use std::path::Path;

use super::ensemble::{Seeds, replicate};
use super::load::{Loaded, Source};
use super::progress::Progress;
use super::{Ending, Results};
use crate::experiment::{Draws, Grid, Twins, run_twins};
use crate::measure::AttemptRow;
use crate::model::Model;
use crate::output::{EnsembleSummary, Summary, file, summary, text};
use crate::verdict::Replication;

/// Run a model and its untriggered twin, and judge them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code: 0 ran and expectations met, 1 an expectation of --expect not met, 2 could not run,
130 interrupted.

Examples:
  metastable run models/checkout.toml
  metastable run models/spike_ramp.toml --out out --expect
  metastable run models/checkout.toml --set tier.client.call.api.attempts=1
  metastable run models/checkout.toml --seed 7 --format json
  metastable run models/checkout.toml --seeds 64")]
pub struct Run {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    seeds: Seeds,
    /// Trace this share of user requests, all their attempts, into attempts.parquet.
    #[arg(long, value_name = "N%", value_parser = share, requires = "out")]
    trace: Option<f64>,
    /// Fail (exit code 1) when the model's [expect] table is not met.
    #[arg(long)]
    expect: bool,
    #[command(flatten)]
    results: Results,
}

impl Run {
    pub fn execute(self) -> anyhow::Result<Ending> {
        let many = self.seeds.seeds > 1;
        if many && self.trace.is_some() {
            anyhow::bail!(
                "--trace follows the attempts of one run; leave out --seeds, or trace one of its \
                 seeds with --seed"
            );
        }
        let Some(loaded) = self.source.load()? else { return Ok(Ending::Bad) };
        if self.expect && loaded.model.expect.is_empty() {
            anyhow::bail!("{} has no [expect] table; add one, or leave out --expect", loaded.name);
        }
        self.results.make_folder()?;
        if many { self.run_many(loaded.model) } else { self.run_one(&loaded) }
    }

    fn run_one(&self, loaded: &Loaded) -> anyhow::Result<Ending> {
        let model = &loaded.model;
        if let Some(out) = &self.results.out {
            // A trace of an earlier run would stand beside the files of this one.
            file::remove(&out.join("attempts.parquet"))?;
        }
        let twins = self.simulate(loaded)?;
        let run = Summary::of(model, &twins);
        if let Some(out) = &self.results.out {
            write_files(out, model, &twins, &run)?;
        }
        let page = |style| text::render(model, &run, style, self.expect);
        self.results.show(|| summary::json(&run), page)?;
        if run.interrupted {
            let until = run.phases.last().map_or(0.0, |phase| phase.to_s);
            eprintln!("interrupted: all figures are up to {until} s of simulated time");
        }
        Ok(self.ending(run.interrupted, run.meets_expectations()))
    }

    fn run_many(&self, model: Model) -> anyhow::Result<Ending> {
        let grid = Grid::from(model);
        let plan = self.seeds.plan(Draws::Shared);
        let replications = replicate(&grid.models, &plan, self.results.quiet)?;
        let model = &grid.models[0];
        let ensemble = EnsembleSummary::of(model, &plan, &replications[0]);
        if let Some(out) = &self.results.out {
            write_many(out, &grid, &ensemble, &replications)?;
        }
        let point = &ensemble.point;
        let page = |style| text::render_ensemble(model, point, style, self.expect);
        self.results.show(|| summary::json(&ensemble), page)?;
        Ok(self.ending(point.interrupted, point.meets_expectations()))
    }

    fn simulate(&self, loaded: &Loaded) -> anyhow::Result<Twins> {
        let model = &loaded.model;
        let seed = self.seeds.seed.unwrap_or(model.run.seed);
        let progress = Progress::start(std::slice::from_ref(model), 1, self.results.quiet)?;
        let mut trace = self.open_trace(loaded)?;
        let mut trouble = None;
        let sink = |rows: &[AttemptRow]| {
            if trouble.is_none() {
                trouble = trace.write(rows).err();
            }
        };
        let twins = run_twins(model, seed, self.trace.unwrap_or(0.0), &progress, sink);
        progress.finish();
        match trouble {
            Some(error) => Err(error),
            None => trace.finish().map(|()| twins),
        }
    }

    #[cfg(feature = "parquet")]
    fn open_trace(&self, loaded: &Loaded) -> anyhow::Result<Trace> {
        let Some((out, _)) = self.results.out.as_ref().zip(self.trace) else {
            return Ok(Trace(None));
        };
        let path = out.join("attempts.parquet");
        Ok(Trace(Some(crate::output::parquet::AttemptWriter::create(&path, &loaded.model)?)))
    }

    #[cfg(not(feature = "parquet"))]
    fn open_trace(&self, _loaded: &Loaded) -> anyhow::Result<Trace> {
        anyhow::ensure!(
            self.trace.is_none(),
            "--trace needs the feature `parquet`, which this build leaves out"
        );
        Ok(Trace)
    }

    fn ending(&self, interrupted: bool, met: bool) -> Ending {
        if interrupted {
            Ending::Interrupted
        } else if self.expect && !met {
            Ending::NotMet
        } else {
            Ending::Fine
        }
    }
}

/// Where attempts go while the run goes on.
#[cfg(feature = "parquet")]
struct Trace(Option<crate::output::parquet::AttemptWriter>);

#[cfg(feature = "parquet")]
impl Trace {
    fn write(&mut self, rows: &[AttemptRow]) -> anyhow::Result<()> {
        Ok(self.0.as_mut().map_or(Ok(()), |writer| writer.write(rows))?)
    }

    fn finish(self) -> anyhow::Result<()> {
        Ok(self.0.map_or(Ok(()), |writer| writer.finish().map(|_| ()))?)
    }
}

/// Nowhere: this build writes no Parquet.
#[cfg(not(feature = "parquet"))]
struct Trace;

#[cfg(not(feature = "parquet"))]
impl Trace {
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "stands in for the writer")]
    fn write(&mut self, _rows: &[AttemptRow]) -> anyhow::Result<()> {
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "stands in for the writer")]
    fn finish(self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Writes what this build can write.
fn write_files(out: &Path, model: &Model, twins: &Twins, run: &Summary) -> anyhow::Result<()> {
    file::write(&out.join("summary.json"), summary::json(run).as_bytes())?;
    #[cfg(feature = "parquet")]
    {
        use crate::output::parquet;
        parquet::write_windows(&out.join("windows.parquet"), model, &twins.record)?;
        parquet::write_edges(&out.join("edges.parquet"), model, &twins.record)?;
    }
    #[cfg(feature = "plot")]
    crate::output::plot::draw(model, &twins.record, twins.twin.as_ref(), out)?;
    #[cfg(not(any(feature = "parquet", feature = "plot")))]
    let _ = (model, twins);
    Ok(())
}

fn write_many(
    out: &Path,
    grid: &Grid,
    ensemble: &EnsembleSummary,
    replications: &[Vec<Replication>],
) -> anyhow::Result<()> {
    file::write(&out.join("ensemble.json"), summary::json(ensemble).as_bytes())?;
    #[cfg(feature = "parquet")]
    crate::output::parquet::write_seeds(&out.join("seeds.parquet"), grid, replications)?;
    #[cfg(not(feature = "parquet"))]
    let _ = (grid, replications);
    Ok(())
}

/// Reads "5%" or "5".
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').parse::<f64>();
    let share =
        number.ok().map(|percent| percent / 100.0).filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "write a share above 0% and up to 100%, such as 5%".into())
}

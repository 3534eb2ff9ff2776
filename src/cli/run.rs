//! `metastable run`.

use std::path::{Path, PathBuf};

use super::load::{Loaded, Source};
use super::progress::Progress;
use super::{Ending, Format};
use crate::experiment::{Twins, run_twins};
use crate::measure::AttemptRow;
use crate::model::Model;
use crate::output::text::Style;
use crate::output::{Summary, file, text};

/// Run a model and its untriggered twin, and judge them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code: 0 ran and expectations met, 1 an expectation of --expect not met, 2 could not run,
130 interrupted.

Examples:
  metastable run models/checkout.toml
  metastable run models/spike_ramp.toml --out out --expect
  metastable run models/checkout.toml --set tier.client.call.api.attempts=1
  metastable run models/checkout.toml --seed 7 --format json")]
pub struct Run {
    #[command(flatten)]
    source: Source,
    /// Seed of all random numbers [default: the model's, or 1].
    #[arg(long, value_parser = seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Folder for summary.json, Parquet and plots; made if it is not there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Trace this share of user requests, all their attempts, into attempts.parquet.
    #[arg(long, value_name = "N%", value_parser = share, requires = "out")]
    trace: Option<f64>,
    /// How to print the summary.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Fail (exit code 1) when the model's [expect] table is not met.
    #[arg(long)]
    expect: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

impl Run {
    pub fn execute(self) -> anyhow::Result<Ending> {
        let Some(loaded) = self.source.load()? else { return Ok(Ending::Bad) };
        let model = &loaded.model;
        if self.expect && model.expect.is_empty() {
            anyhow::bail!("{} has no [expect] table; add one, or leave out --expect", loaded.name);
        }
        if let Some(out) = &self.out {
            file::make_folder(out)?;
            // A trace of an earlier run would stand beside the files of this one.
            file::remove(&out.join("attempts.parquet"))?;
        }
        let twins = self.simulate(&loaded)?;
        let summary = Summary::of(model, &twins);
        if let Some(out) = &self.out {
            write_files(out, model, &twins, &summary)?;
        }
        self.show(&loaded, &summary)?;
        Ok(self.ending(&summary))
    }

    fn simulate(&self, loaded: &Loaded) -> anyhow::Result<Twins> {
        let model = &loaded.model;
        let seed = self.seed.unwrap_or(model.run.seed);
        let progress = Progress::start(std::slice::from_ref(model), 1, self.quiet)?;
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
        let Some((out, _)) = self.out.as_ref().zip(self.trace) else { return Ok(Trace(None)) };
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

    fn show(&self, loaded: &Loaded, summary: &Summary) -> anyhow::Result<()> {
        match self.format {
            Format::Json => super::print(&summary.json())?,
            Format::Text => {
                let out = std::io::stdout();
                let style = Style { colour: super::colour(&out), width: 100 };
                let mut page = text::render(&loaded.model, summary, style, self.expect);
                if let Some(out) = &self.out {
                    page.push_str(&format!("\nFiles are in {}\n", out.display()));
                }
                super::print(&page)?
            }
        };
        if summary.interrupted {
            let until = summary.phases.last().map_or(0.0, |phase| phase.to_s);
            eprintln!("interrupted: all figures are up to {until} s of simulated time");
        }
        Ok(())
    }

    fn ending(&self, summary: &Summary) -> Ending {
        if summary.interrupted {
            Ending::Interrupted
        } else if self.expect && !summary.meets_expectations() {
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
fn write_files(out: &Path, model: &Model, twins: &Twins, summary: &Summary) -> anyhow::Result<()> {
    file::write(&out.join("summary.json"), summary.json().as_bytes())?;
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

/// Reads a seed.
fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a seed is a whole number from 0".into())
}

/// Reads "5%" or "5".
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').parse::<f64>();
    let share =
        number.ok().map(|percent| percent / 100.0).filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "write a share above 0% and up to 100%, such as 5%".into())
}

//! A progress bar on a terminal, and a clean end on Ctrl-C.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::experiment::Onlooker;
use crate::kernel::Span;
use crate::model::Model;

/// Shows how far runs and their twins have come, and stops them when asked to. The bar grows with
/// the simulated time, so that it moves while the first runs of an ensemble are still under way.
pub struct Progress {
    bar: ProgressBar,
    stop: Arc<AtomicBool>,
    runs: u64,
    complete: AtomicU64,
}

impl Progress {
    /// Starts to show the progress of each model with so many seeds, unless it is to be quiet or
    /// nobody would see it.
    ///
    /// # Errors
    /// Ctrl-C cannot be caught.
    pub fn start(models: &[Model], seeds: u32, quiet: bool) -> anyhow::Result<Self> {
        let runs = models.len() as u64 * u64::from(seeds);
        let twins = |model: &Model| if model.triggers.is_empty() { 1 } else { 2 };
        let simulated =
            models.iter().map(|model| twins(model) * milliseconds(model.run.duration)).sum::<u64>();
        let bar = ProgressBar::new(simulated * u64::from(seeds));
        bar.set_draw_target(if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(10)
        });
        let template = match runs {
            1 => "{bar:40} {percent:>3}% of the simulated time, {eta} to go",
            _ => "{bar:40} {msg} runs, {eta} to go",
        };
        bar.set_style(ProgressStyle::with_template(template).expect("the template is sound"));
        bar.enable_steady_tick(Duration::from_millis(200));
        let stop = Arc::new(AtomicBool::new(false));
        let asked = stop.clone();
        ctrlc::set_handler(move || asked.store(true, Ordering::Relaxed))?;
        let progress = Progress { bar, stop, runs, complete: AtomicU64::new(0) };
        progress.tell(0);
        Ok(progress)
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn tell(&self, complete: u64) {
        self.bar.set_message(format!("{complete} of {}", self.runs));
    }
}

impl Onlooker for Progress {
    fn progress(&self, by: Span) -> ControlFlow<()> {
        self.bar.inc(milliseconds(by));
        if self.stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn complete(&self) {
        self.tell(self.complete.fetch_add(1, Ordering::Relaxed) + 1);
    }
}

fn milliseconds(span: Span) -> u64 {
    span.nanos() / 1_000_000
}

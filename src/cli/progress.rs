//! A progress bar on a terminal, and a clean end on Ctrl-C.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::experiment::Onlooker;
use crate::kernel::Time;
use crate::model::Model;

/// Shows how far a run and its twin have come, and stops both when asked to.
pub struct Progress {
    bar: ProgressBar,
    stop: Arc<AtomicBool>,
    /// Simulated seconds of the run and its twin.
    seconds: [AtomicU64; 2],
}

impl Progress {
    /// Starts to show progress, unless it is to be quiet or nobody would see it.
    ///
    /// # Errors
    /// Ctrl-C cannot be caught.
    pub fn start(model: &Model, quiet: bool) -> anyhow::Result<Self> {
        let runs = if model.triggers.is_empty() { 1 } else { 2 };
        let bar = ProgressBar::new(runs * model.run.duration.seconds() as u64);
        bar.set_draw_target(if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(10)
        });
        let template = "{bar:40} {percent:>3}% of the simulated time, {eta} to go";
        bar.set_style(ProgressStyle::with_template(template).expect("the template is sound"));
        bar.enable_steady_tick(Duration::from_millis(200));
        let stop = Arc::new(AtomicBool::new(false));
        let asked = stop.clone();
        ctrlc::set_handler(move || asked.store(true, Ordering::Relaxed))?;
        Ok(Progress { bar, stop, seconds: [AtomicU64::new(0), AtomicU64::new(0)] })
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Onlooker for Progress {
    fn progress(&self, twin: bool, now: Time) -> ControlFlow<()> {
        self.seconds[usize::from(twin)].store(now.seconds() as u64, Ordering::Relaxed);
        self.bar
            .set_position(self.seconds.iter().map(|seconds| seconds.load(Ordering::Relaxed)).sum());
        if self.stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

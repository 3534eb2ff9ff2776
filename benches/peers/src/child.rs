//! One contestant in a process of its own: what runs there, and how it is called from outside.

use std::env;
use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use cpu_time::ProcessTime;
use serde::{Deserialize, Serialize};

use crate::contestant::{Contestant, simpy};
use crate::limit::Outcome;
use crate::scenario::Scenario;

/// What a process has measured of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Processor time of all runs, user and system (s).
    pub cpu_s: f64,
    /// Most memory in use at once (MB); Linux only.
    pub peak_mb: Option<f64>,
    /// What each run has come to.
    pub outcomes: Vec<Outcome>,
}

impl Report {
    /// Processor time of a model event (ns).
    pub fn ns_per_event(&self) -> f64 {
        let events: u64 = self.outcomes.iter().map(|outcome| outcome.events).sum();
        self.cpu_s * 1e9 / events as f64
    }
}

/// Runs a contestant in this process.
pub fn measure(contestant: Contestant, scenario: Scenario, seed: u64, runs: u32) -> Result<Report> {
    let clock = ProcessTime::try_now().context("this machine does not tell processor time")?;
    let seeds = seed..seed + u64::from(runs);
    let outcomes = contestant.run(scenario, seeds)?;
    let cpu_s = clock.try_elapsed()?.as_secs_f64();
    Ok(Report { cpu_s, peak_mb: peak_mb(), outcomes })
}

/// Has a contestant run in a process of its own.
pub fn spawn(contestant: Contestant, scenario: Scenario, seed: u64) -> Result<Report> {
    let mut command = if contestant.is_python() {
        simpy::command(contestant, scenario, seed)
    } else {
        let program = env::current_exe().context("cannot find this program's own file")?;
        let mut command = Command::new(program);
        command.args(["run", scenario.name(), &value_name(contestant)]);
        command.args(["--seed", &seed.to_string()]);
        command
    };
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {:?}", command.get_program()))?;
    ensure!(output.status.success(), "its process ended with {}", output.status);
    serde_json::from_slice(&output.stdout).context("its process printed no report")
}

fn value_name(contestant: Contestant) -> String {
    contestant.to_possible_value().expect("none is hidden").get_name().to_owned()
}

/// The high-water mark of resident memory of this process, where the system tells it.
fn peak_mb() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

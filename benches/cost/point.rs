//! The series, the model of each of their points, and the measurement of one in this process.

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result};
use cpu_time::ProcessTime;
use metastable::experiment::{Draws, Plan, Twins, run_ensemble};
use metastable::model::Model;
use metastable::simulation::Simulation;
use metastable::verdict::Replication;

/// A short run is done again until so much processor time has passed (s): the clocks are coarse.
const LONG_ENOUGH: f64 = 0.15;

/// New requests where it is not load that grows [1/s].
const LOAD: f64 = 1_000.0;
/// New requests where requests in flight grow [1/s]; their work then says how many there are.
const LOAD_IN_FLIGHT: f64 = 20_000.0;
/// Simulated time where nothing else is said (s).
const MINUTE: f64 = 60.0;
/// Simulated time that is cut into windows (s).
const CUT: f64 = 600.0;
/// Mean time that a client of the closed loop thinks (s).
const THINK: f64 = 10.0;
/// Mean work of a tier (s).
const WORK: f64 = 1e-3;

/// The quantity that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    Load,
    Tiers,
    Windows,
    Clients,
    Seeds,
    InFlight,
}

/// What a point has cost.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Processor time of the simulation alone, user and system (s).
    pub cpu_s: f64,
    /// Time on the clock on the wall (s).
    pub wall_s: f64,
    /// Events handled.
    pub events: u64,
    /// Most memory of the process in use at once (MB); Linux only.
    pub peak_mb: Option<f64>,
}

impl Series {
    pub const ALL: [Series; 6] = [
        Series::Load,
        Series::Tiers,
        Series::Windows,
        Series::Clients,
        Series::Seeds,
        Series::InFlight,
    ];

    /// As the command line of a child names it.
    pub fn name(self) -> &'static str {
        match self {
            Series::Load => "load",
            Series::Tiers => "tiers",
            Series::Windows => "windows",
            Series::Clients => "clients",
            Series::Seeds => "seeds",
            Series::InFlight => "in-flight",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Series::ALL.into_iter().find(|series| series.name() == name)
    }

    /// Heading.
    pub fn title(self) -> &'static str {
        match self {
            Series::Load => "Load",
            Series::Tiers => "Tiers",
            Series::Windows => "Windows",
            Series::Clients => "Clients of a closed loop",
            Series::Seeds => "Seeds",
            Series::InFlight => "Requests in flight",
        }
    }

    /// What a size counts, with its unit.
    pub fn counts(self) -> &'static str {
        match self {
            Series::Load => "new requests [1/s]",
            Series::InFlight => "requests in flight",
            _ => self.name(),
        }
    }

    pub fn model_in_words(self) -> &'static str {
        match self {
            Series::Load => "One tier, 60 windows of 1 s.",
            Series::Tiers => "A chain, 1,000/s, 60 windows of 1 s.",
            Series::Windows => "One tier, 1,000/s, ten minutes cut into so many windows.",
            Series::Clients => "One tier; each client thinks 10 s, 60 windows of 1 s.",
            Series::Seeds => "One tier, 1,000/s, 60 windows of 1 s; no triggers, so no twins.",
            Series::InFlight => "One tier without limit, 20,000/s; work as long as it takes.",
        }
    }

    pub fn sizes(self) -> &'static [u32] {
        match self {
            Series::Load => &[100, 300, 1_000, 3_000, 10_000, 30_000, 100_000],
            Series::Tiers => &[1, 2, 4, 8, 16, 32],
            Series::Windows => &[60, 200, 600, 2_000, 6_000, 20_000],
            Series::Clients => &[100, 1_000, 10_000, 100_000, 1_000_000],
            Series::Seeds => &[1, 2, 4, 8, 16, 32, 64],
            Series::InFlight => &[100, 1_000, 10_000, 100_000, 1_000_000],
        }
    }

    /// Simulated time of all runs of a point together (s).
    pub fn simulated_s(self, size: u32) -> f64 {
        match self {
            Series::Seeds => MINUTE * f64::from(size),
            _ => self.duration_s(size),
        }
    }

    fn duration_s(self, size: u32) -> f64 {
        match self {
            Series::Windows => CUT,
            // Six times as long as a request takes: the level is reached in the first two or three.
            Series::InFlight => (6.0 * f64::from(size) / LOAD_IN_FLIGHT).max(MINUTE),
            _ => MINUTE,
        }
    }

    /// The model of a point, as its TOML.
    fn model(self, size: u32) -> String {
        let many = f64::from(size);
        let head = match self {
            Series::Windows => format!("window = \"{}ms\"", CUT * 1e3 / many),
            _ => "window = \"1s\"".to_owned(),
        };
        let run = format!("run = {{ duration = \"{}s\", {head} }}\n", self.duration_s(size));
        let poisson = |rate: f64| format!("poisson = \"{rate}/s\"");
        run + &match self {
            Series::Load => chain(&poisson(many), many, 1),
            Series::Tiers => chain(&poisson(LOAD), LOAD, size),
            Series::Windows | Series::Seeds => chain(&poisson(LOAD), LOAD, 1),
            Series::Clients => {
                let think = format!("think.exponential = \"{THINK}s\"");
                chain(&format!("closed = {{ clients = {size}, {think} }}"), many / THINK, 1)
            }
            Series::InFlight => format!(
                "[tier.client]\narrivals.{}\n[tier.client.call.t1]\n\
                 [tier.t1]\nwork.exponential = \"{}ms\"\n",
                poisson(LOAD_IN_FLIGHT),
                many / LOAD_IN_FLIGHT * 1e3,
            ),
        }
    }
}

/// A client and a chain of tiers, each of which works and calls the next. All calls have timeouts
/// and retries, of which few are used; servers are twice as many as are held on average.
fn chain(arrivals: &str, rate: f64, tiers: u32) -> String {
    let patience = "timeout = \"1s\"\nattempts = 3\n";
    let mut text = format!("[tier.client]\narrivals.{arrivals}\n[tier.client.call.t1]\n{patience}");
    for tier in 1..=tiers {
        let held = rate * WORK * f64::from(tiers + 1 - tier);
        let servers = (2.0 * held).ceil() + 2.0;
        text += &format!("[tier.t{tier}]\nconcurrency = {servers}\n");
        text += &format!("work.exponential = \"{}ms\"\nqueue = \"fifo\"\n", WORK * 1e3);
        if tier < tiers {
            text += &format!("[tier.t{tier}.call.t{}]\n{patience}", tier + 1);
        }
    }
    text
}

/// Runs a point in this process, as often as it takes to tell its time; memory is that of the first
/// run.
pub fn measure(series: Series, size: u32, threads: usize) -> Result<Report> {
    let model = Model::parse(&series.model(size), &|_| Err("no other files".into()))
        .map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
    let mut report = run_once(series, &model, size, threads)?;
    report.peak_mb = peak_mb();
    let mut passed = report.cpu_s;
    while passed < LONG_ENOUGH {
        let again = run_once(series, &model, size, threads)?;
        passed += again.cpu_s;
        report = Report { peak_mb: report.peak_mb, ..report.least(again) };
    }
    Ok(report)
}

fn run_once(series: Series, model: &Model, size: u32, threads: usize) -> Result<Report> {
    let clock = ProcessTime::try_now().context("this machine does not tell processor time")?;
    let wall = Instant::now();
    let events = match series {
        Series::Seeds => {
            let plan =
                Plan { root: None, seeds: size, draws: Draws::Shared, threads: Some(threads) };
            let keep = |model: &Model, twins: &Twins| {
                let kept = Replication::of(model, &twins.record, &twins.verdict);
                (kept, twins.record.totals.events)
            };
            let kept = run_ensemble(std::slice::from_ref(model), &plan, &(), keep)?;
            kept[0].iter().map(|(_, events)| events).sum()
        }
        _ => Simulation::new(model, 1, 0.0).run(&mut ()).totals.events,
    };
    let cpu_s = clock.try_elapsed()?.as_secs_f64();
    Ok(Report { cpu_s, wall_s: wall.elapsed().as_secs_f64(), events, peak_mb: None })
}

impl Report {
    pub fn ns_per_event(&self) -> f64 {
        self.cpu_s * 1e9 / self.events as f64
    }

    /// The least of two measurements of one point.
    pub fn least(self, other: Report) -> Report {
        Report {
            cpu_s: self.cpu_s.min(other.cpu_s),
            wall_s: self.wall_s.min(other.wall_s),
            events: self.events,
            peak_mb: self.peak_mb.zip(other.peak_mb).map(|(a, b)| a.min(b)),
        }
    }

    /// As a child prints it.
    pub fn line(&self) -> String {
        let peak = self.peak_mb.map_or("-".to_owned(), |mb| mb.to_string());
        format!("{} {} {} {peak}", self.cpu_s, self.wall_s, self.events)
    }

    pub fn read(line: &str) -> Option<Report> {
        let mut words = line.split_whitespace();
        let cpu_s = words.next()?.parse().ok()?;
        let wall_s = words.next()?.parse().ok()?;
        let events = words.next()?.parse().ok()?;
        Some(Report { cpu_s, wall_s, events, peak_mb: words.next()?.parse().ok() })
    }
}

/// The high-water mark of resident memory of this process, where the system tells it.
fn peak_mb() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

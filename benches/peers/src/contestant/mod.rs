//! The contestants: who simulates, how long, and how each is used.
//!
//! Each library takes part twice: once tuned, the fastest way that was found for these very models,
//! and once as the examples of its guide write such models. All but the product and SimPy draw from
//! one generator ([`crate::limit::Draws`]), faster than those they bring; the product draws from
//! its own, which is keyed and costs more.

mod nexosim;
mod nexosim_guide;
mod product;
mod simcore;
mod simcore_guide;
pub mod simpy;
mod simu_des;
mod simu_des_guide;

use std::ops::Range;

use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::limit::{self, Outcome, STORM_END};
use crate::scenario::Scenario;

/// Who simulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contestant {
    /// The product, through a model file, all metrics on.
    Metastable,
    /// A loop written by hand for this very model.
    Limit,
    /// <https://crates.io/crates/simcore>
    Simcore,
    /// The same, as its guide has it.
    SimcoreGuide,
    /// <https://crates.io/crates/nexosim>
    Nexosim,
    /// The same, as its guide has it.
    NexosimGuide,
    /// <https://crates.io/crates/simu-des>
    SimuDes,
    /// The same, as its guide has it.
    SimuDesGuide,
    /// <https://simpy.readthedocs.io>
    Simpy,
    /// The same, as its guide has it.
    SimpyGuide,
}

/// Length of M/M/1 (s); the product's model file says the same.
const MM1_SECONDS: f64 = 2_000.0;

impl Contestant {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Contestant::Metastable => "metastable",
            Contestant::Limit => "limit (by hand)",
            Contestant::Simcore => "simcore 0.1, tuned",
            Contestant::SimcoreGuide => "simcore 0.1, as its guide has it",
            Contestant::Nexosim => "nexosim 1.0, tuned",
            Contestant::NexosimGuide => "nexosim 1.0, as its guide has it",
            Contestant::SimuDes => "simu-des 0.1, tuned",
            Contestant::SimuDesGuide => "simu-des 0.1, as its guide has it",
            Contestant::Simpy => "SimPy 4, tuned",
            Contestant::SimpyGuide => "SimPy 4, as its guide has it",
        }
    }

    /// Whether it runs in a Python of its own.
    pub fn is_python(self) -> bool {
        matches!(self, Contestant::Simpy | Contestant::SimpyGuide)
    }

    /// Simulates the scenario once for each seed, one after the other.
    pub fn run(self, scenario: Scenario, seeds: Range<u64>) -> Result<Vec<Outcome>> {
        if self == Contestant::Metastable {
            return product::run(scenario, seeds);
        }
        seeds.map(|seed| self.run_once(scenario, seed)).collect()
    }

    fn run_once(self, scenario: Scenario, seed: u64) -> Result<Outcome> {
        let seconds = self.seconds(scenario);
        match scenario {
            Scenario::Mm1 => match self {
                Contestant::Limit => Ok(limit::mm1(seed, seconds)),
                Contestant::Simcore => Ok(simcore::mm1(seed, seconds)),
                Contestant::SimcoreGuide => Ok(simcore_guide::mm1(seed, seconds)),
                Contestant::Nexosim => told(nexosim::mm1(seed, seconds)),
                Contestant::NexosimGuide => told(nexosim_guide::mm1(seed, seconds)),
                Contestant::SimuDes => Ok(simu_des::mm1(seed, seconds)),
                Contestant::SimuDesGuide => Ok(simu_des_guide::mm1(seed, seconds)),
                other => other.runs_elsewhere(),
            },
            Scenario::Storm => match self {
                Contestant::Limit => Ok(limit::storm(seed)),
                Contestant::Simcore => Ok(simcore::storm(seed)),
                Contestant::SimcoreGuide => Ok(simcore_guide::storm(seed)),
                Contestant::Nexosim => told(nexosim::storm(seed)),
                Contestant::NexosimGuide => told(nexosim_guide::storm(seed)),
                Contestant::SimuDes => Ok(simu_des::storm(seed)),
                Contestant::SimuDesGuide => Ok(simu_des_guide::storm(seed)),
                other => other.runs_elsewhere(),
            },
        }
    }

    fn runs_elsewhere(self) -> Result<Outcome> {
        bail!("{} is not run seed by seed in this process", self.name())
    }

    /// Simulated time of one run (s).
    pub fn seconds(self, scenario: Scenario) -> f64 {
        match (self, scenario) {
            (_, Scenario::Storm) => STORM_END,
            (Contestant::Simpy | Contestant::SimpyGuide, Scenario::Mm1) => MM1_SECONDS / 10.0,
            (_, Scenario::Mm1) => MM1_SECONDS,
        }
    }

    /// Runs that one process makes, one after the other: enough for a few tenths of a second.
    pub fn runs(self, scenario: Scenario) -> u32 {
        match (self, scenario) {
            (Contestant::Limit, Scenario::Mm1) => 6,
            (Contestant::Limit, Scenario::Storm) => 10,
            (Contestant::Metastable | Contestant::Simcore, Scenario::Mm1) => 2,
            (Contestant::Metastable, Scenario::Storm) => 4,
            (Contestant::Simcore, Scenario::Storm) => 3,
            _ => 1,
        }
    }

    /// Whether one run takes most of a minute or more.
    pub fn is_slow(self, scenario: Scenario) -> bool {
        self.is_python() && scenario == Scenario::Storm
    }
}

/// NeXosim's errors cannot be shared between threads, as `anyhow` wants it.
fn told<T>(result: Result<T, ::nexosim::simulation::SimulationError>) -> Result<T> {
    result.map_err(|error| anyhow!("{error}"))
}

//! The contestants: who simulates, how long, and how each is used.
//!
//! Where a library's documentation offers more than one way, the fastest was taken. All but the
//! product and SimPy draw from one generator ([`crate::limit::Draws`]), faster than those they
//! bring; the product draws from its own, which is keyed and costs more.

mod nexosim;
mod product;
mod simcore;
pub mod simpy;
mod simu_des;

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
    /// <https://crates.io/crates/nexosim>
    Nexosim,
    /// <https://crates.io/crates/simu-des>
    SimuDes,
    /// <https://simpy.readthedocs.io>
    Simpy,
}

/// Length of M/M/1 (s); the product's model file says the same.
const MM1_SECONDS: f64 = 2_000.0;

impl Contestant {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Contestant::Metastable => "metastable",
            Contestant::Limit => "limit (by hand)",
            Contestant::Simcore => "simcore 0.1",
            Contestant::Nexosim => "nexosim 1.0",
            Contestant::SimuDes => "simu-des 0.1",
            Contestant::Simpy => "SimPy 4",
        }
    }

    /// Simulates the scenario once.
    pub fn run(self, scenario: Scenario, seed: u64) -> Result<Outcome> {
        let seconds = self.seconds(scenario);
        match (self, scenario) {
            (Contestant::Metastable, _) => product::run(scenario, seed),
            (Contestant::Limit, Scenario::Mm1) => Ok(limit::mm1(seed, seconds)),
            (Contestant::Limit, Scenario::Storm) => Ok(limit::storm(seed)),
            (Contestant::Simcore, Scenario::Mm1) => Ok(simcore::mm1(seed, seconds)),
            (Contestant::Simcore, Scenario::Storm) => Ok(simcore::storm(seed)),
            (Contestant::Nexosim, Scenario::Mm1) => told(nexosim::mm1(seed, seconds)),
            (Contestant::Nexosim, Scenario::Storm) => told(nexosim::storm(seed)),
            (Contestant::SimuDes, Scenario::Mm1) => Ok(simu_des::mm1(seed, seconds)),
            (Contestant::SimuDes, Scenario::Storm) => Ok(simu_des::storm(seed)),
            (Contestant::Simpy, _) => bail!("SimPy runs in a Python of its own"),
        }
    }

    /// Simulated time of one run (s).
    pub fn seconds(self, scenario: Scenario) -> f64 {
        match (self, scenario) {
            (_, Scenario::Storm) => STORM_END,
            (Contestant::Simpy, Scenario::Mm1) => MM1_SECONDS / 10.0,
            (_, Scenario::Mm1) => MM1_SECONDS,
        }
    }

    /// Runs that one process makes, one after the other: enough for a few tenths of a second.
    pub fn runs(self, scenario: Scenario) -> u32 {
        match (self, scenario) {
            (Contestant::Limit, Scenario::Mm1) => 6,
            (Contestant::Limit, Scenario::Storm) => 10,
            (Contestant::Metastable | Contestant::Simcore, Scenario::Mm1) => 2,
            (Contestant::Metastable | Contestant::Simcore, Scenario::Storm) => 3,
            _ => 1,
        }
    }

    /// Whether one run takes most of a minute.
    pub fn is_slow(self, scenario: Scenario) -> bool {
        (self, scenario) == (Contestant::Simpy, Scenario::Storm)
    }
}

/// NeXosim's errors cannot be shared between threads, as `anyhow` wants it.
fn told<T>(result: Result<T, ::nexosim::simulation::SimulationError>) -> Result<T> {
    result.map_err(|error| anyhow!("{error}"))
}

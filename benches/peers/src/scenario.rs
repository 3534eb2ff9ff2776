//! The two models, and what physics demands of every run of them.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::limit::{ATTEMPTS, LATE, MM1_RATE, Outcome, SERVICE, STORM_END, STORM_RATE};

/// A model that all contestants simulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scenario {
    /// One queue, one server, nine tenths busy.
    Mm1,
    /// Retries keep a server overloaded long after a surge.
    Storm,
}

/// How far a rate may be from its expectation. Counts of 100,000 and more stray by 0.3 %.
const RATE_TOLERANCE: f64 = 0.02;
/// How far the mean sojourn time of M/M/1 may be from theory: successive requests wait alike, so
/// that over 200 s its standard deviation is still 5 % of it.
const SOJOURN_TOLERANCE: f64 = 0.25;

impl Scenario {
    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::Mm1 => "mm1",
            Scenario::Storm => "storm",
        }
    }

    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Scenario::Mm1 => "M/M/1: 900/s at a server that does 1,000/s",
            Scenario::Storm => {
                "Storm: 600/s, 3 attempts of 1 s, 1,000/s; a surge of 10 s, then stuck"
            }
        }
    }

    /// The product's model file of it.
    pub fn model_file(self) -> String {
        format!("{}/../models/{}.toml", env!("CARGO_MANIFEST_DIR"), self.name())
    }

    /// Whether the outcome of a run of so many seconds is what theory says.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(self, outcome: &Outcome, seconds: f64) -> Result<(), String> {
        match self {
            Scenario::Mm1 => {
                near("events/s", outcome.events as f64 / seconds, 2.0 * MM1_RATE, RATE_TOLERANCE)?;
                let theory = 1.0 / (1.0 / SERVICE - MM1_RATE);
                near("mean sojourn time (s)", sojourn_s(outcome), theory, SOJOURN_TOLERANCE)
            }
            Scenario::Storm => {
                if outcome.late_ok > 0 {
                    return Err(format!("{} successes from {LATE} s on", outcome.late_ok));
                }
                let offered = f64::from(ATTEMPTS) * STORM_RATE;
                near("offered/s", offered_per_s(outcome), offered, RATE_TOLERANCE)?;
                // New requests, timers of all attempts, and a server that is never idle.
                let events = STORM_RATE + offered + 1.0 / SERVICE;
                near("events/s", late_rate(outcome.late_events), events, RATE_TOLERANCE)
            }
        }
    }

    /// What shows that a contestant's runs are sound, in a few words.
    pub fn proof(self, outcome: &Outcome) -> String {
        match self {
            Scenario::Mm1 => format!("{:.2} ms", sojourn_s(outcome) * 1e3),
            Scenario::Storm => {
                format!("{:.0}/s, {} ok", offered_per_s(outcome), outcome.late_ok)
            }
        }
    }

    /// What the proof is.
    pub fn proof_title(self) -> &'static str {
        match self {
            Scenario::Mm1 => "mean sojourn",
            Scenario::Storm => "offered from 300 s on",
        }
    }
}

fn sojourn_s(outcome: &Outcome) -> f64 {
    outcome.sojourn_s / outcome.ok as f64
}

fn offered_per_s(outcome: &Outcome) -> f64 {
    late_rate(outcome.late_attempts)
}

fn late_rate(count: u64) -> f64 {
    count as f64 / (STORM_END - LATE)
}

fn near(what: &str, got: f64, expected: f64, tolerance: f64) -> Result<(), String> {
    // Not a number is not near either.
    if (got / expected - 1.0).abs() <= tolerance {
        return Ok(());
    }
    Err(format!("{what} is {got:.4}, not {expected:.4}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit;

    #[test]
    fn physics_passes_the_runs_of_the_limit() {
        assert_eq!(Scenario::Mm1.check(&limit::mm1(1, 2_000.0), 2_000.0), Ok(()));
        assert_eq!(Scenario::Storm.check(&limit::storm(1), STORM_END), Ok(()));
    }

    #[test]
    fn physics_refuses_other_models() {
        let storm = limit::storm(1);
        let healed = Outcome { late_ok: 1, ..storm };
        let one_try_less = Outcome { late_attempts: storm.late_attempts * 2 / 3, ..storm };
        let stale_timers = Outcome { late_events: storm.late_events * 11 / 10, ..storm };
        for wrong in [healed, one_try_less, stale_timers, Outcome::default()] {
            assert!(Scenario::Storm.check(&wrong, STORM_END).is_err(), "{wrong:?}");
        }
        let short = limit::mm1(1, 1_000.0);
        assert!(Scenario::Mm1.check(&short, 2_000.0).is_err());
        assert!(Scenario::Mm1.check(&Outcome { sojourn_s: f64::NAN, ..short }, 1_000.0).is_err());
    }
}

//! SimPy, in a Python of its own: `simpy_models.py` next to this package's manifest.

use std::env;
use std::process::{Command, Stdio};

use super::Contestant;
use crate::scenario::Scenario;

/// The interpreter: the one that `METASTABLE_PYTHON` names, or `python3`.
fn python() -> String {
    env::var("METASTABLE_PYTHON").unwrap_or_else(|_| "python3".into())
}

/// Whether there is a Python that knows SimPy.
pub fn is_there() -> bool {
    let mut import = Command::new(python());
    import.args(["-c", "import simpy"]).stdout(Stdio::null()).stderr(Stdio::null());
    import.status().is_ok_and(|status| status.success())
}

/// The command that simulates one run and prints one line of JSON.
pub fn command(contestant: Contestant, scenario: Scenario, seed: u64) -> Command {
    let way = if contestant == Contestant::SimpyGuide { "guide" } else { "tuned" };
    let seconds = contestant.seconds(scenario).to_string();
    let mut command = Command::new(python());
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/simpy_models.py"));
    command.args([scenario.name(), way, &seconds, &seed.to_string()]);
    command
}

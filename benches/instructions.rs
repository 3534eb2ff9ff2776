//! One small run, whose instructions the script beside this file counts.

use metastable::model::{Model, overridden};
use metastable::simulation::Simulation;

const STORM: &str = include_str!("models/storm.toml");
const CHECKOUT: &str = include_str!("../models/checkout.toml");

/// Name, model, settings, and whether its triggers act.
const RUNS: [(&str, &str, [&str; 3], bool); 3] = [
    ("storm", STORM, ["run.duration=30s", "trigger.0.at=5s", "trigger.0.lasts=5s"], true),
    ("checkout_stable", CHECKOUT, MINUTE, false),
    ("checkout_collapsed", CHECKOUT, MINUTE, true),
];

const MINUTE: [&str; 3] = ["run.duration=60s", "trigger.0.at=5s", "trigger.0.lasts=10s"];

/// All that is counted, under a name that the script knows.
#[inline(never)]
fn counted_run(model: &Model) -> u64 {
    Simulation::new(model, 1, 0.0).run(&mut ()).totals.events
}

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let Some((_, text, settings, triggered)) = RUNS.iter().find(|run| run.0 == wanted) else {
        // Cargo, which has no run in mind, and the script, which asks for their names.
        RUNS.iter().for_each(|run| println!("{}", run.0));
        return;
    };
    let text = overridden(text, &settings.map(String::from)).expect("the settings fit the model");
    let mut model = Model::parse(&text, &|_| Err("no other files".into())).expect("a sound model");
    if !triggered {
        // Not by a copy: that copies a hash map, in an order, and so to places in memory, that
        // differ from run to run, and how far a list can grow in place differs with them.
        model.triggers.clear();
    }
    println!("{}", counted_run(&model));
}

//! What runs one model after the other on one worker.

use crate::measure::Record;
use crate::model::Model;
use crate::simulation::{Simulation, Watch};

/// An engine for models that live as long as `'m`. A run leaves its room to the next one, so that
/// memory is asked for once a worker rather than once a run.
#[derive(Debug, Default)]
pub struct Engine<'m> {
    last: Option<Simulation<'m>>,
}

impl<'m> Engine<'m> {
    /// Runs a model, untraced, to its end.
    pub fn run(&mut self, model: &'m Model, seed: u64, watch: &mut impl Watch) -> Record {
        let simulation = match &mut self.last {
            None => self.last.insert(Simulation::new(model, seed, 0.0)),
            Some(last) => {
                last.restart(model, seed, 0.0);
                last
            }
        };
        simulation.run(watch)
    }
}

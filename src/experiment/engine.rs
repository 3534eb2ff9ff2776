//! What runs one model after the other on one worker.

use std::marker::PhantomData;

use crate::measure::Record;
use crate::model::Model;
use crate::simulation::{Simulation, Watch};

/// An engine for models that live as long as `'m`. What a run can leave to the next one is kept
/// here and nowhere else.
#[derive(Debug, Default)]
pub struct Engine<'m> {
    models: PhantomData<&'m Model>,
}

impl<'m> Engine<'m> {
    /// Runs a model, untraced, to its end.
    pub fn run(&mut self, model: &'m Model, seed: u64, watch: &mut impl Watch) -> Record {
        Simulation::new(model, seed, 0.0).run(watch)
    }
}

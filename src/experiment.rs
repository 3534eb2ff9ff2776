//! Many runs from one model. For now: a run and its untriggered twin, side by side on two threads.

use std::ops::ControlFlow;
use std::thread;

use crate::kernel::Time;
use crate::measure::{AttemptRow, Record};
use crate::model::Model;
use crate::simulation::{Simulation, Watch};
use crate::verdict::{Verdict, judge};

/// A run, its twin, and what they say.
#[derive(Clone, Debug)]
pub struct Twins {
    /// With triggers and operator.
    pub record: Record,
    /// The same seed without; `None` for a model without triggers.
    pub twin: Option<Record>,
    /// What they say.
    pub verdict: Verdict,
}

/// Who looks on while twins run. Called from two threads.
pub trait Onlooker: Sync {
    /// A break ends both runs.
    fn progress(&self, twin: bool, now: Time) -> ControlFlow<()>;
}

struct Eyes<'o, O, S> {
    onlooker: &'o O,
    twin: bool,
    sink: S,
}

impl<O: Onlooker, S: FnMut(&[AttemptRow])> Watch for Eyes<'_, O, S> {
    fn attempts(&mut self, rows: &[AttemptRow]) {
        (self.sink)(rows);
    }

    fn progress(&mut self, now: Time) -> ControlFlow<()> {
        self.onlooker.progress(self.twin, now)
    }
}

/// Runs a model and its twin. `sink` gets the attempts of the share `trace` of user requests, in
/// batches.
pub fn run_twins(
    model: &Model,
    seed: u64,
    trace: f64,
    onlooker: &impl Onlooker,
    sink: impl FnMut(&[AttemptRow]) + Send,
) -> Twins {
    let calm = (!model.triggers.is_empty()).then(|| model.untriggered());
    let (record, twin) = thread::scope(|scope| {
        let twin = calm.as_ref().map(|calm| {
            let mut eyes = Eyes { onlooker, twin: true, sink: |_: &[AttemptRow]| {} };
            scope.spawn(move || Simulation::new(calm, seed, 0.0).run(&mut eyes))
        });
        let mut eyes = Eyes { onlooker, twin: false, sink };
        let record = Simulation::new(model, seed, trace).run(&mut eyes);
        let twin = twin.map(|thread| thread.join().expect("the twin run does not panic"));
        (record, twin)
    });
    let verdict = judge(model, &record, twin.as_ref());
    Twins { record, twin, verdict }
}

//! A run and its untriggered twin, side by side on two threads, or, where that takes much memory,
//! one after the other.

use std::ops::ControlFlow;
use std::thread;

use crate::kernel::{Span, Time};
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

/// Who looks on while runs go on. Called from many threads.
pub trait Onlooker: Sync {
    /// One of the runs has come further by so much simulated time; a break ends them all.
    fn progress(&self, by: Span) -> ControlFlow<()>;

    /// A run of an ensemble is complete, and its twin with it.
    fn complete(&self) {}
}

/// Nobody looks on.
impl Onlooker for () {
    fn progress(&self, _by: Span) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// One run, as its onlooker sees it.
pub(super) struct Eyes<'o, O, S> {
    onlooker: &'o O,
    seen: Time,
    sink: S,
}

impl<'o, O, S> Eyes<'o, O, S> {
    pub(super) fn new(onlooker: &'o O, sink: S) -> Self {
        Eyes { onlooker, seen: Time::ZERO, sink }
    }
}

impl<O: Onlooker, S: FnMut(&[AttemptRow])> Watch for Eyes<'_, O, S> {
    fn attempts(&mut self, rows: &[AttemptRow]) {
        (self.sink)(rows);
    }

    fn progress(&mut self, now: Time) -> ControlFlow<()> {
        let by = now.since(self.seen);
        self.seen = now;
        self.onlooker.progress(by)
    }
}

impl Twins {
    /// A run and its twin, judged.
    pub(super) fn judged(model: &Model, record: Record, twin: Option<Record>) -> Self {
        let verdict = judge(model, &record, twin.as_ref());
        Twins { record, twin, verdict }
    }
}

/// The system without its triggers; `None` where there are none to take away.
pub(super) fn calm(model: &Model) -> Option<Model> {
    (!model.triggers.is_empty()).then(|| model.untriggered())
}

/// A herd of more clients takes so much memory, some 120 bytes each, that the run and its twin,
/// which has them all too, go one after the other.
const LARGE: u32 = 200_000;

fn is_large(model: &Model) -> bool {
    model.tiers.iter().any(|tier| tier.is_herd() && tier.replicas > LARGE)
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
    let calm = calm(model);
    if is_large(model) {
        let record = Simulation::new(model, seed, trace).run(&mut Eyes::new(onlooker, sink));
        let mut eyes = Eyes::new(onlooker, |_: &[AttemptRow]| {});
        let twin = calm.as_ref().map(|calm| Simulation::new(calm, seed, 0.0).run(&mut eyes));
        return Twins::judged(model, record, twin);
    }
    let (record, twin) = thread::scope(|scope| {
        let twin = calm.as_ref().map(|calm| {
            let mut eyes = Eyes::new(onlooker, |_: &[AttemptRow]| {});
            scope.spawn(move || Simulation::new(calm, seed, 0.0).run(&mut eyes))
        });
        let mut eyes = Eyes::new(onlooker, sink);
        let record = Simulation::new(model, seed, trace).run(&mut eyes);
        let twin = twin.map(|thread| thread.join().expect("the twin run does not panic"));
        (record, twin)
    });
    Twins::judged(model, record, twin)
}

//! NeXosim: one model that schedules its own inputs, on the single-threaded executor.
//!
//! Its executor of one thread (`with_num_threads(1)`) is the faster for a model without anything to
//! do in parallel. Client and server are one model, since a message between two models costs a task
//! more. Inputs are plain methods where nothing is awaited. Timers are keyed events, cancelled once
//! answered, as its documentation's alarm clock is; to let them come up stale costs the same here.

use std::collections::VecDeque;
use std::time::Duration;

use nexosim::model::{BuildContext, Context, Model, ProtoModel, schedulable};
use nexosim::ports::QuerySource;
use nexosim::simulation::{EventKey, Mailbox, SimInit, SimulationError};
use nexosim::time::MonotonicTime;
use serde::{Deserialize, Serialize};

use crate::limit::{ATTEMPTS, Draws, LATE, MM1_RATE, Outcome, SERVICE, STORM_END, TIMEOUT};

/// Whole nanoseconds, as the library's clock has them; events must lie in the future.
pub(super) fn span(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9) as u64 + 1)
}

/// M/M/1 for so many seconds.
pub fn mm1(seed: u64, seconds: f64) -> Result<Outcome, SimulationError> {
    let mailbox = Mailbox::new();
    let mut bench = SimInit::with_num_threads(1);
    let outcome = QuerySource::new().connect(Mm1::outcome, &mailbox).register(&mut bench);
    let bench = bench.add_model(Mm1Seed(seed), mailbox, "queue");
    let mut simulation = bench.init(MonotonicTime::EPOCH)?;
    simulation.step_until(Duration::from_secs_f64(seconds))?;
    Ok(simulation.process_query(&outcome, ())?)
}

#[derive(Default, Serialize, Deserialize)]
struct Mm1 {
    /// Arrivals of those who wait or, at the head, are served.
    present: VecDeque<MonotonicTime>,
    outcome: Outcome,
}

/// Builds the model; its draws are no part of the state that the library can save.
struct Mm1Seed(u64);

impl ProtoModel for Mm1Seed {
    type Model = Mm1;

    fn build(self, _: &mut BuildContext<Self>) -> (Mm1, Draws) {
        (Mm1::default(), Draws::new(self.0))
    }
}

#[Model(type Env = Draws)]
impl Mm1 {
    #[nexosim(init)]
    async fn init(&mut self, context: &Context<Self>, draws: &mut Draws) {
        self.plan_request(context, draws);
    }

    fn plan_request(&mut self, context: &Context<Self>, draws: &mut Draws) {
        let gap = span(draws.exponential(1.0 / MM1_RATE));
        context.schedule_event(gap, schedulable!(Self::request), ()).expect("in the future");
    }

    fn serve(&mut self, context: &Context<Self>, draws: &mut Draws) {
        let service = span(draws.exponential(SERVICE));
        context
            .schedule_event(service, schedulable!(Self::end_service), ())
            .expect("in the future");
    }

    #[nexosim(schedulable)]
    fn request(&mut self, (): (), context: &Context<Self>, draws: &mut Draws) {
        self.outcome.events += 1;
        self.outcome.requests += 1;
        self.outcome.attempts += 1;
        self.present.push_back(context.time());
        if self.present.len() == 1 {
            self.serve(context, draws);
        }
        self.plan_request(context, draws);
    }

    #[nexosim(schedulable)]
    fn end_service(&mut self, (): (), context: &Context<Self>, draws: &mut Draws) {
        let arrived = self.present.pop_front().expect("somebody is in service");
        self.outcome.events += 1;
        self.outcome.ok += 1;
        self.outcome.sojourn_s += context.time().duration_since(arrived).as_secs_f64();
        if !self.present.is_empty() {
            self.serve(context, draws);
        }
    }

    async fn outcome(&mut self) -> Outcome {
        self.outcome
    }
}

/// The storm.
pub fn storm(seed: u64) -> Result<Outcome, SimulationError> {
    let mailbox = Mailbox::new();
    let mut bench = SimInit::with_num_threads(1);
    let outcome = QuerySource::new().connect(Storm::outcome, &mailbox).register(&mut bench);
    let bench = bench.add_model(StormSeed(seed), mailbox, "storm");
    let mut simulation = bench.init(MonotonicTime::EPOCH)?;
    simulation.step_until(Duration::from_secs_f64(LATE))?;
    let early: Outcome = simulation.process_query(&outcome, ())?;
    simulation.step_until(Duration::from_secs_f64(STORM_END - LATE))?;
    let outcome: Outcome = simulation.process_query(&outcome, ())?;
    Ok(outcome.with_late(&early))
}

/// Builds the model, as [`Mm1Seed`] does.
struct StormSeed(u64);

impl ProtoModel for StormSeed {
    type Model = Storm;

    fn build(self, _: &mut BuildContext<Self>) -> (Storm, Draws) {
        (Storm::default(), Draws::new(self.0))
    }
}

#[derive(Serialize, Deserialize)]
struct Attempt {
    tries: u8,
    /// Until the client has left.
    timer: Option<EventKey>,
}

#[derive(Default, Serialize, Deserialize)]
struct Storm {
    /// Attempts that wait or, at the head, are served. They are named by their number since the
    /// start, so that the queue alone holds them: what is served has no timer any more.
    queue: VecDeque<Attempt>,
    served: u64,
    outcome: Outcome,
}

#[Model(type Env = Draws)]
impl Storm {
    #[nexosim(init)]
    async fn init(&mut self, context: &Context<Self>, draws: &mut Draws) {
        self.plan_request(context, draws);
    }

    fn plan_request(&mut self, context: &Context<Self>, draws: &mut Draws) {
        let now = context.time().duration_since(MonotonicTime::EPOCH).as_secs_f64();
        let gap = span(draws.next_request(now) - now);
        context.schedule_event(gap, schedulable!(Self::request), ()).expect("in the future");
    }

    fn serve(&mut self, context: &Context<Self>, draws: &mut Draws) {
        let service = span(draws.exponential(SERVICE));
        context
            .schedule_event(service, schedulable!(Self::end_service), ())
            .expect("in the future");
    }

    fn send(&mut self, tries: u8, context: &Context<Self>, draws: &mut Draws) {
        let attempt = self.outcome.attempts;
        self.outcome.attempts += 1;
        let timer = context
            .schedule_keyed_event(
                Duration::from_secs_f64(TIMEOUT),
                schedulable!(Self::time_out),
                attempt,
            )
            .expect("in the future");
        self.queue.push_back(Attempt { tries, timer: Some(timer) });
        if self.queue.len() == 1 {
            self.serve(context, draws);
        }
    }

    #[nexosim(schedulable)]
    fn request(&mut self, (): (), context: &Context<Self>, draws: &mut Draws) {
        self.outcome.events += 1;
        self.outcome.requests += 1;
        self.send(1, context, draws);
        self.plan_request(context, draws);
    }

    #[nexosim(schedulable)]
    fn end_service(&mut self, (): (), context: &Context<Self>, draws: &mut Draws) {
        let attempt = self.queue.pop_front().expect("somebody is in service");
        self.served += 1;
        self.outcome.events += 1;
        if let Some(timer) = attempt.timer {
            timer.cancel();
            self.outcome.ok += 1;
        }
        if !self.queue.is_empty() {
            self.serve(context, draws);
        }
    }

    #[nexosim(schedulable)]
    fn time_out(&mut self, attempt: u64, context: &Context<Self>, draws: &mut Draws) {
        self.outcome.events += 1;
        let attempt = &mut self.queue[(attempt - self.served) as usize];
        attempt.timer = None;
        let tries = attempt.tries;
        if tries < ATTEMPTS {
            self.send(tries + 1, context, draws);
        } else {
            self.outcome.failed += 1;
        }
    }

    async fn outcome(&mut self) -> Outcome {
        self.outcome
    }
}

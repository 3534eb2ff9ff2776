//! NeXosim, as its guide has it: client and server are models that are connected by ports.
//!
//! This follows the example of the espresso machine (`examples/espresso_machine.rs`): models with
//! `Output`s that are connected to inputs of others, messages sent with `send().await`, and events
//! to oneself that are scheduled with a key and cancelled by it. Keys are kept in a map, since many
//! attempts are awaited at once. Only the executor is another one than there, that of one thread:
//! with a thread for each processor, these small models would cost more.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use nexosim::model::{BuildContext, Context, Model, ProtoModel, schedulable};
use nexosim::ports::{Output, QuerySource};
use nexosim::simulation::{EventKey, Mailbox, SimInit, SimulationError};
use nexosim::time::MonotonicTime;
use serde::{Deserialize, Serialize};

use super::nexosim::span;
use crate::limit::{ATTEMPTS, Draws, LATE, MM1_RATE, Outcome, SERVICE, STORM_END, TIMEOUT};

#[derive(Default, Serialize, Deserialize)]
struct Server {
    /// The number of an attempt that has been served.
    response: Output<u64>,
    /// Those who wait or, at the head, are served. It is not told that clients have left.
    queue: VecDeque<u64>,
}

/// A model with its draws, which are no part of the state that the library can save.
struct Drawing<M>(M, Draws);

impl<M: Model<Env = Draws>> ProtoModel for Drawing<M> {
    type Model = M;

    fn build(self, _: &mut BuildContext<Self>) -> (M, Draws) {
        (self.0, self.1)
    }
}

#[Model(type Env = Draws)]
impl Server {
    fn serve(&mut self, context: &Context<Self>, draws: &mut Draws) {
        let service = span(draws.exponential(SERVICE));
        context
            .schedule_event(service, schedulable!(Self::end_service), ())
            .expect("in the future");
    }

    async fn request(&mut self, attempt: u64, context: &Context<Self>, draws: &mut Draws) {
        self.queue.push_back(attempt);
        if self.queue.len() == 1 {
            self.serve(context, draws);
        }
    }

    #[nexosim(schedulable)]
    async fn end_service(&mut self, (): (), context: &Context<Self>, draws: &mut Draws) {
        let attempt = self.queue.pop_front().expect("somebody is in service");
        if !self.queue.is_empty() {
            self.serve(context, draws);
        }
        self.response.send(attempt).await;
    }
}

/// M/M/1 for so many seconds.
pub fn mm1(seed: u64, seconds: f64) -> Result<Outcome, SimulationError> {
    let (mut client, mut server) = (Mm1Client::default(), Server::default());
    let (client_box, server_box) = (Mailbox::new(), Mailbox::new());
    client.request.connect(Server::request, &server_box);
    server.response.connect(Mm1Client::response, &client_box);
    let mut bench = SimInit::with_num_threads(1);
    let outcome = QuerySource::new().connect(Mm1Client::outcome, &client_box).register(&mut bench);
    let mut simulation = bench
        .add_model(Drawing(client, Draws::new(seed)), client_box, "client")
        .add_model(Drawing(server, Draws::new(!seed)), server_box, "server")
        .init(MonotonicTime::EPOCH)?;
    simulation.step_until(Duration::from_secs_f64(seconds))?;
    Ok(simulation.process_query(&outcome, ())?)
}

#[derive(Default, Serialize, Deserialize)]
struct Mm1Client {
    /// The number of an attempt that is to be served.
    request: Output<u64>,
    /// When those left that are awaited.
    awaited: HashMap<u64, MonotonicTime>,
    outcome: Outcome,
}

#[Model(type Env = Draws)]
impl Mm1Client {
    #[nexosim(init)]
    async fn init(&mut self, context: &Context<Self>, draws: &mut Draws) {
        self.plan_request(context, draws);
    }

    fn plan_request(&mut self, context: &Context<Self>, draws: &mut Draws) {
        let gap = span(draws.exponential(1.0 / MM1_RATE));
        context.schedule_event(gap, schedulable!(Self::next_request), ()).expect("in the future");
    }

    #[nexosim(schedulable)]
    async fn next_request(&mut self, (): (), context: &Context<Self>, draws: &mut Draws) {
        let attempt = self.outcome.attempts;
        self.outcome.events += 1;
        self.outcome.requests += 1;
        self.outcome.attempts += 1;
        self.awaited.insert(attempt, context.time());
        self.plan_request(context, draws);
        self.request.send(attempt).await;
    }

    /// Comes at the end of the service.
    async fn response(&mut self, attempt: u64, context: &Context<Self>) {
        let sent = self.awaited.remove(&attempt).expect("nobody leaves");
        self.outcome.events += 1;
        self.outcome.ok += 1;
        self.outcome.sojourn_s += context.time().duration_since(sent).as_secs_f64();
    }

    async fn outcome(&mut self) -> Outcome {
        self.outcome
    }
}

/// The storm.
pub fn storm(seed: u64) -> Result<Outcome, SimulationError> {
    let (mut client, mut server) = (StormClient::default(), Server::default());
    let (client_box, server_box) = (Mailbox::new(), Mailbox::new());
    client.request.connect(Server::request, &server_box);
    server.response.connect(StormClient::response, &client_box);
    let mut bench = SimInit::with_num_threads(1);
    let outcome =
        QuerySource::new().connect(StormClient::outcome, &client_box).register(&mut bench);
    let mut simulation = bench
        .add_model(Drawing(client, Draws::new(seed)), client_box, "client")
        .add_model(Drawing(server, Draws::new(!seed)), server_box, "server")
        .init(MonotonicTime::EPOCH)?;
    simulation.step_until(Duration::from_secs_f64(LATE))?;
    let early: Outcome = simulation.process_query(&outcome, ())?;
    simulation.step_until(Duration::from_secs_f64(STORM_END - LATE))?;
    let outcome: Outcome = simulation.process_query(&outcome, ())?;
    Ok(outcome.with_late(&early))
}

#[derive(Serialize, Deserialize)]
struct Attempt {
    tries: u8,
    timer: EventKey,
}

#[derive(Default, Serialize, Deserialize)]
struct StormClient {
    /// The number of an attempt that is to be served.
    request: Output<u64>,
    /// Attempts whose answer is still awaited, by number.
    awaited: HashMap<u64, Attempt>,
    outcome: Outcome,
}

#[Model(type Env = Draws)]
impl StormClient {
    #[nexosim(init)]
    async fn init(&mut self, context: &Context<Self>, draws: &mut Draws) {
        self.plan_request(context, draws);
    }

    fn plan_request(&mut self, context: &Context<Self>, draws: &mut Draws) {
        let now = context.time().duration_since(MonotonicTime::EPOCH).as_secs_f64();
        let gap = span(draws.next_request(now) - now);
        context.schedule_event(gap, schedulable!(Self::next_request), ()).expect("in the future");
    }

    async fn send(&mut self, tries: u8, context: &Context<Self>) {
        let attempt = self.outcome.attempts;
        self.outcome.attempts += 1;
        let timeout = Duration::from_secs_f64(TIMEOUT);
        let timer = context
            .schedule_keyed_event(timeout, schedulable!(Self::time_out), attempt)
            .expect("in the future");
        self.awaited.insert(attempt, Attempt { tries, timer });
        self.request.send(attempt).await;
    }

    #[nexosim(schedulable)]
    async fn next_request(&mut self, (): (), context: &Context<Self>, draws: &mut Draws) {
        self.outcome.events += 1;
        self.outcome.requests += 1;
        self.plan_request(context, draws);
        self.send(1, context).await;
    }

    /// Comes at the end of the service, whether it is still awaited or not.
    async fn response(&mut self, attempt: u64) {
        self.outcome.events += 1;
        if let Some(attempt) = self.awaited.remove(&attempt) {
            attempt.timer.cancel();
            self.outcome.ok += 1;
        }
    }

    #[nexosim(schedulable)]
    async fn time_out(&mut self, attempt: u64, context: &Context<Self>) {
        self.outcome.events += 1;
        let attempt = self.awaited.remove(&attempt).expect("timers of the answered are cancelled");
        if attempt.tries < ATTEMPTS {
            self.send(attempt.tries + 1, context).await;
        } else {
            self.outcome.failed += 1;
        }
    }

    async fn outcome(&mut self) -> Outcome {
        self.outcome
    }
}

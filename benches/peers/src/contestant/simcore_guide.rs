//! simcore, as its guide has it: client and server are components that send each other events.
//!
//! This follows the example of the crate's front page (`examples/intro-callbacks.rs`): components
//! with a context of their own, `Request` to the server and `Response` back through `emit`, the
//! time of the request carried in both, `cast!` in the handler. There is no delay in the network
//! here, so that they go with `emit_now`. Timers are `emit_self`, and the timer of an attempt that
//! is answered is cancelled by the id that its emission gave, as the page of
//! `SimulationContext::cancel_event` shows. To keep that id with the entity it belongs to, in a
//! map, is what the simulators that its authors have built on it do (DSLab's of functions as a
//! service: `end_event` of a container). The run ends with `step_until_time`. Of the guide's two
//! styles this is the faster one.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use serde::Serialize;
use simcore::{Event, EventHandler, EventId, Id, Simulation, SimulationContext, cast};

use crate::limit::{ATTEMPTS, Draws, LATE, MM1_RATE, Outcome, SERVICE, STORM_END, TIMEOUT};

/// The client plans its next request.
#[derive(Clone, Serialize)]
struct NextRequest {}

/// From a client to the server.
#[derive(Clone, Serialize)]
struct Request {
    attempt: u64,
    time: f64,
}

/// From the server to a client.
#[derive(Clone, Serialize)]
struct Response {
    attempt: u64,
    req_time: f64,
}

#[derive(Clone, Serialize)]
struct ServiceEnd {}

#[derive(Clone, Serialize)]
struct Timeout {
    attempt: u64,
}

/// One who has asked and what is to be sent back.
struct Job {
    client: Id,
    response: Response,
}

struct Server {
    ctx: SimulationContext,
    draws: Draws,
    /// Those who wait or, at the head, are served. It is not told that clients have left.
    queue: VecDeque<Job>,
}

impl Server {
    fn add_to(simulation: &mut Simulation, seed: u64) -> Id {
        let ctx = simulation.create_context("server");
        // Other draws than those of the client.
        let draws = Draws::new(!seed);
        let server = Server { ctx, draws, queue: VecDeque::new() };
        simulation.add_handler("server", Rc::new(RefCell::new(server)))
    }

    fn serve(&mut self) {
        self.ctx.emit_self(ServiceEnd {}, self.draws.exponential(SERVICE));
    }

    fn on_request(&mut self, client: Id, response: Response) {
        self.queue.push_back(Job { client, response });
        if self.queue.len() == 1 {
            self.serve();
        }
    }

    fn on_service_end(&mut self) {
        let job = self.queue.pop_front().expect("somebody is in service");
        self.ctx.emit_now(job.response, job.client);
        if !self.queue.is_empty() {
            self.serve();
        }
    }
}

impl EventHandler for Server {
    fn on(&mut self, event: Event) {
        cast!(match event.data {
            Request { attempt, time } => {
                self.on_request(event.src, Response { attempt, req_time: time })
            }
            ServiceEnd {} => {
                self.on_service_end()
            }
        })
    }
}

/// M/M/1 for so many seconds.
pub fn mm1(seed: u64, seconds: f64) -> Outcome {
    let mut simulation = Simulation::new(seed);
    let server = Server::add_to(&mut simulation, seed);
    let client = Rc::new(RefCell::new(Mm1Client {
        ctx: simulation.create_context("client"),
        server,
        draws: Draws::new(seed),
        outcome: Outcome::default(),
    }));
    simulation.add_handler("client", client.clone());
    client.borrow_mut().plan_request();
    simulation.step_until_time(seconds);
    client.borrow().outcome
}

struct Mm1Client {
    ctx: SimulationContext,
    server: Id,
    draws: Draws,
    outcome: Outcome,
}

impl Mm1Client {
    fn plan_request(&mut self) {
        self.ctx.emit_self(NextRequest {}, self.draws.exponential(1.0 / MM1_RATE));
    }

    fn on_next_request(&mut self) {
        let attempt = self.outcome.attempts;
        self.outcome.requests += 1;
        self.outcome.attempts += 1;
        self.ctx.emit_now(Request { attempt, time: self.ctx.time() }, self.server);
        self.plan_request();
    }

    fn on_response(&mut self, req_time: f64) {
        self.outcome.ok += 1;
        self.outcome.sojourn_s += self.ctx.time() - req_time;
    }
}

impl EventHandler for Mm1Client {
    fn on(&mut self, event: Event) {
        // A response comes at the end of its service.
        self.outcome.events += 1;
        cast!(match event.data {
            NextRequest {} => {
                self.on_next_request()
            }
            Response { req_time, .. } => {
                self.on_response(req_time)
            }
        })
    }
}

/// The storm.
pub fn storm(seed: u64) -> Outcome {
    let mut simulation = Simulation::new(seed);
    let server = Server::add_to(&mut simulation, seed);
    let client = Rc::new(RefCell::new(StormClient {
        ctx: simulation.create_context("client"),
        server,
        draws: Draws::new(seed),
        awaited: HashMap::new(),
        outcome: Outcome::default(),
    }));
    simulation.add_handler("client", client.clone());
    client.borrow_mut().plan_request();
    simulation.step_until_time(LATE);
    let early = client.borrow().outcome;
    simulation.step_until_time(STORM_END);
    client.borrow().outcome.with_late(&early)
}

struct Attempt {
    tries: u8,
    timer: EventId,
}

struct StormClient {
    ctx: SimulationContext,
    server: Id,
    draws: Draws,
    /// Attempts whose answer is still awaited, by number.
    awaited: HashMap<u64, Attempt>,
    outcome: Outcome,
}

impl StormClient {
    fn plan_request(&mut self) {
        let now = self.ctx.time();
        self.ctx.emit_self(NextRequest {}, self.draws.next_request(now) - now);
    }

    fn send(&mut self, tries: u8) {
        let attempt = self.outcome.attempts;
        self.outcome.attempts += 1;
        self.ctx.emit_now(Request { attempt, time: self.ctx.time() }, self.server);
        let timer = self.ctx.emit_self(Timeout { attempt }, TIMEOUT);
        self.awaited.insert(attempt, Attempt { tries, timer });
    }

    fn on_next_request(&mut self) {
        self.outcome.requests += 1;
        self.send(1);
        self.plan_request();
    }

    fn on_response(&mut self, attempt: u64) {
        if let Some(attempt) = self.awaited.remove(&attempt) {
            self.ctx.cancel_event(attempt.timer);
            self.outcome.ok += 1;
        }
    }

    fn on_timeout(&mut self, attempt: u64) {
        let attempt = self.awaited.remove(&attempt).expect("timers of the answered are cancelled");
        if attempt.tries < ATTEMPTS {
            self.send(attempt.tries + 1);
        } else {
            self.outcome.failed += 1;
        }
    }
}

impl EventHandler for StormClient {
    fn on(&mut self, event: Event) {
        // A response comes at the end of its service, whether it is still awaited or not.
        self.outcome.events += 1;
        cast!(match event.data {
            NextRequest {} => {
                self.on_next_request()
            }
            Response { attempt, .. } => {
                self.on_response(attempt)
            }
            Timeout { attempt } => {
                self.on_timeout(attempt)
            }
        })
    }
}

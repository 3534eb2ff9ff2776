//! simcore: one component with callbacks, which its documentation gives as the faster of its two
//! styles ("async mode has additional performance overhead").
//!
//! The client and the server are one component and call each other directly: "if immediate
//! request/response is assumed, it is both more convenient and efficient to interact via direct
//! calls instead of events". Timers, all equally long, go into the list for events that come in
//! order (`emit_ordered_self`): it needs no heap, and doubles the speed of the storm. They are
//! cancelled once answered. `step` in a loop spares the look ahead of `step_until_time`, and
//! handles one event past the end.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use serde::Serialize;
use simcore::{Event, EventHandler, EventId, Simulation, SimulationContext, cast};

use crate::limit::{ATTEMPTS, Draws, LATE, MM1_RATE, Outcome, SERVICE, STORM_END, TIMEOUT};

#[derive(Clone, Serialize)]
struct NextRequest {}

#[derive(Clone, Serialize)]
struct ServiceEnd {}

#[derive(Clone, Serialize)]
struct Timeout {
    attempt: u64,
}

fn run_until(simulation: &Simulation, seconds: f64) {
    while simulation.time() < seconds && simulation.step() {}
}

/// M/M/1 for so many seconds.
pub fn mm1(seed: u64, seconds: f64) -> Outcome {
    let mut simulation = Simulation::new(seed);
    let queue = Rc::new(RefCell::new(Mm1 {
        context: simulation.create_context("queue"),
        draws: Draws::new(seed),
        present: VecDeque::new(),
        outcome: Outcome::default(),
    }));
    simulation.add_handler("queue", queue.clone());
    queue.borrow_mut().plan_request();
    run_until(&simulation, seconds);
    queue.borrow().outcome
}

struct Mm1 {
    context: SimulationContext,
    draws: Draws,
    /// Arrivals of those who wait or, at the head, are served.
    present: VecDeque<f64>,
    outcome: Outcome,
}

impl Mm1 {
    fn plan_request(&mut self) {
        self.context.emit_self(NextRequest {}, self.draws.exponential(1.0 / MM1_RATE));
    }

    fn serve(&mut self) {
        self.context.emit_self(ServiceEnd {}, self.draws.exponential(SERVICE));
    }
}

impl EventHandler for Mm1 {
    fn on(&mut self, event: Event) {
        let now = event.time;
        self.outcome.events += 1;
        cast!(match event.data {
            NextRequest {} => {
                self.outcome.requests += 1;
                self.outcome.attempts += 1;
                self.present.push_back(now);
                if self.present.len() == 1 {
                    self.serve();
                }
                self.plan_request();
            }
            ServiceEnd {} => {
                let arrived = self.present.pop_front().expect("somebody is in service");
                self.outcome.ok += 1;
                self.outcome.sojourn_s += now - arrived;
                if !self.present.is_empty() {
                    self.serve();
                }
            }
        })
    }
}

/// The storm.
pub fn storm(seed: u64) -> Outcome {
    let mut simulation = Simulation::new(seed);
    let storm = Rc::new(RefCell::new(Storm {
        context: simulation.create_context("storm"),
        draws: Draws::new(seed),
        queue: VecDeque::new(),
        served: 0,
        outcome: Outcome::default(),
    }));
    simulation.add_handler("storm", storm.clone());
    storm.borrow_mut().plan_request(0.0);
    run_until(&simulation, LATE);
    let early = storm.borrow().outcome;
    run_until(&simulation, STORM_END);
    storm.borrow().outcome.with_late(&early)
}

struct Attempt {
    tries: u8,
    /// Until the client has left.
    timer: Option<EventId>,
}

struct Storm {
    context: SimulationContext,
    draws: Draws,
    /// Attempts that wait or, at the head, are served. They are named by their number since the
    /// start, so that the queue alone holds them: what is served has no timer any more.
    queue: VecDeque<Attempt>,
    served: u64,
    outcome: Outcome,
}

impl Storm {
    fn plan_request(&mut self, now: f64) {
        self.context.emit_self(NextRequest {}, self.draws.next_request(now) - now);
    }

    fn serve(&mut self) {
        self.context.emit_self(ServiceEnd {}, self.draws.exponential(SERVICE));
    }

    fn send(&mut self, tries: u8) {
        let attempt = self.outcome.attempts;
        self.outcome.attempts += 1;
        let timer = Some(self.context.emit_ordered_self(Timeout { attempt }, TIMEOUT));
        self.queue.push_back(Attempt { tries, timer });
        if self.queue.len() == 1 {
            self.serve();
        }
    }

    fn end_service(&mut self) {
        let attempt = self.queue.pop_front().expect("somebody is in service");
        self.served += 1;
        if let Some(timer) = attempt.timer {
            self.context.cancel_event(timer);
            self.outcome.ok += 1;
        }
        if !self.queue.is_empty() {
            self.serve();
        }
    }

    fn time_out(&mut self, attempt: u64) {
        let attempt = &mut self.queue[(attempt - self.served) as usize];
        attempt.timer = None;
        let tries = attempt.tries;
        if tries < ATTEMPTS {
            self.send(tries + 1);
        } else {
            self.outcome.failed += 1;
        }
    }
}

impl EventHandler for Storm {
    fn on(&mut self, event: Event) {
        self.outcome.events += 1;
        let now = event.time;
        cast!(match event.data {
            Timeout { attempt } => {
                self.time_out(attempt)
            }
            ServiceEnd {} => {
                self.end_service()
            }
            NextRequest {} => {
                self.outcome.requests += 1;
                self.send(1);
                self.plan_request(now);
            }
        })
    }
}

//! simu-des, as its guide has it: the server is a `Resource`, whoever is served is a process.
//!
//! This follows the tutorial: a process queues for the resource with `request().await`, holds the
//! guard through a timeout and frees it by dropping it (chapter 4, `intro_charging_station`); a
//! client waits for a process of its own making (chapter 2, `intro_charging`) and races it against
//! a timeout with `any_of!` (chapter 3, `intro_cancellation`), through `discard()` as `llms.txt`
//! has it. A handle that loses is dropped, which detaches its process: the attempt stays in the
//! queue and is served.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use simu::{EnvHandle, Resource, SimEnv, any_of};

use crate::limit::{ATTEMPTS, Draws, LATE, MM1_RATE, Outcome, SERVICE, STORM_END, TIMEOUT};

/// What all processes share.
struct World {
    env: EnvHandle,
    draws: RefCell<Draws>,
    server: Resource,
    outcome: RefCell<Outcome>,
}

impl World {
    fn new(env: &SimEnv, seed: u64) -> Rc<Self> {
        Rc::new(World {
            env: env.handle(),
            draws: RefCell::new(Draws::new(seed)),
            server: Resource::new(1),
            outcome: RefCell::default(),
        })
    }

    /// To wait for the server and to be served.
    async fn be_served(&self) {
        self.outcome.borrow_mut().attempts += 1;
        let _server = self.server.request().await;
        let service = self.draws.borrow_mut().exponential(SERVICE);
        self.env.timeout(service).await;
        self.outcome.borrow_mut().events += 1;
    }

    fn count_request(&self) {
        let mut outcome = self.outcome.borrow_mut();
        outcome.events += 1;
        outcome.requests += 1;
    }

    async fn mm1_clients(self: Rc<Self>) {
        loop {
            let gap = self.draws.borrow_mut().exponential(1.0 / MM1_RATE);
            self.env.timeout(gap).await;
            self.env.spawn(Rc::clone(&self).mm1_request());
        }
    }

    async fn mm1_request(self: Rc<Self>) {
        self.count_request();
        let arrived = self.env.now();
        self.be_served().await;
        let mut outcome = self.outcome.borrow_mut();
        outcome.ok += 1;
        outcome.sojourn_s += self.env.now() - arrived;
    }

    async fn storm_clients(self: Rc<Self>) {
        loop {
            let now = self.env.now();
            let next = self.draws.borrow_mut().next_request(now);
            self.env.timeout(next - now).await;
            self.env.spawn(Rc::clone(&self).storm_request());
        }
    }

    async fn storm_request(self: Rc<Self>) {
        self.count_request();
        for _ in 0..ATTEMPTS {
            let answered = Rc::new(Cell::new(false));
            let (world, answer) = (Rc::clone(&self), Rc::clone(&answered));
            let attempt = self.env.spawn(async move {
                world.be_served().await;
                answer.set(true);
            });
            any_of![self.env.timeout(TIMEOUT), attempt.discard()].await;
            if answered.get() {
                self.outcome.borrow_mut().ok += 1;
                return;
            }
            self.outcome.borrow_mut().events += 1;
        }
        self.outcome.borrow_mut().failed += 1;
    }

    fn outcome(&self) -> Outcome {
        *self.outcome.borrow()
    }
}

/// M/M/1 for so many seconds.
pub fn mm1(seed: u64, seconds: f64) -> Outcome {
    let mut env = SimEnv::with_seed(seed);
    let world = World::new(&env, seed);
    env.spawn(Rc::clone(&world).mm1_clients());
    env.run_until(seconds);
    world.outcome()
}

/// The storm.
pub fn storm(seed: u64) -> Outcome {
    let mut env = SimEnv::with_seed(seed);
    let world = World::new(&env, seed);
    env.spawn(Rc::clone(&world).storm_clients());
    env.run_until(LATE);
    let early = world.outcome();
    env.run_until(STORM_END);
    world.outcome().with_late(&early)
}

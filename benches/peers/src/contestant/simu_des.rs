//! simu-des: processes are `async` blocks over simulated time.
//!
//! The server is one process with a queue, woken by an event when it was idle: about twice as fast
//! here as a process and a `Resource` for each attempt. A client's request is a process that races
//! the answer against a timeout with `any_of!`, as the tutorial has it. One who leaves takes the
//! trigger of the answer along, so that nobody is woken for nothing.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use simu::{EnvHandle, EventTrigger, SimEnv, any_of};

use crate::limit::{ATTEMPTS, Draws, LATE, MM1_RATE, Outcome, SERVICE, STORM_END, TIMEOUT};

/// A queue of `T`, its server, and what they have come to; shared by all processes.
struct World<T> {
    env: EnvHandle,
    draws: RefCell<Draws>,
    /// Those who wait or, at the head, are served.
    queue: RefCell<VecDeque<T>>,
    /// Wakes the server while it is idle.
    idle: Cell<Option<EventTrigger>>,
    outcome: RefCell<Outcome>,
}

impl<T: 'static> World<T> {
    fn new(env: &SimEnv, seed: u64) -> Rc<Self> {
        Rc::new(World {
            env: env.handle(),
            draws: RefCell::new(Draws::new(seed)),
            queue: RefCell::default(),
            idle: Cell::default(),
            outcome: RefCell::default(),
        })
    }

    fn enqueue(&self, entry: T) {
        self.outcome.borrow_mut().attempts += 1;
        self.queue.borrow_mut().push_back(entry);
        if let Some(idle) = self.idle.take() {
            idle.fire();
        }
    }

    /// The server's process; `answer` is told who has been served.
    async fn serve(self: Rc<Self>, answer: impl Fn(T, f64, &mut Outcome) + 'static) {
        loop {
            if self.queue.borrow().is_empty() {
                let (idle, wakened) = self.env.event();
                self.idle.set(Some(idle));
                wakened.await;
            }
            let service = self.draws.borrow_mut().exponential(SERVICE);
            self.env.timeout(service).await;
            let served = self.queue.borrow_mut().pop_front().expect("somebody is in service");
            let mut outcome = self.outcome.borrow_mut();
            outcome.events += 1;
            answer(served, self.env.now(), &mut outcome);
        }
    }

    fn outcome(&self) -> Outcome {
        *self.outcome.borrow()
    }
}

/// M/M/1 for so many seconds.
pub fn mm1(seed: u64, seconds: f64) -> Outcome {
    let mut env = SimEnv::with_seed(seed);
    let world = World::new(&env, seed);
    env.spawn(Rc::clone(&world).serve(|arrived: f64, now, outcome| {
        outcome.ok += 1;
        outcome.sojourn_s += now - arrived;
    }));
    env.spawn(Rc::clone(&world).mm1_clients());
    env.run_until(seconds);
    world.outcome()
}

impl World<f64> {
    async fn mm1_clients(self: Rc<Self>) {
        loop {
            let gap = self.draws.borrow_mut().exponential(1.0 / MM1_RATE);
            self.env.timeout(gap).await;
            self.outcome.borrow_mut().events += 1;
            self.outcome.borrow_mut().requests += 1;
            self.enqueue(self.env.now());
        }
    }
}

/// Whoever takes the trigger out first decides: the server answers, or the client leaves.
type Answer = Rc<Cell<Option<EventTrigger>>>;

/// The storm.
pub fn storm(seed: u64) -> Outcome {
    let mut env = SimEnv::with_seed(seed);
    let world = World::new(&env, seed);
    env.spawn(Rc::clone(&world).serve(|answer: Answer, _, _| {
        if let Some(answer) = answer.take() {
            answer.fire();
        }
    }));
    env.spawn(Rc::clone(&world).storm_clients());
    env.run_until(LATE);
    let early = world.outcome();
    env.run_until(STORM_END);
    world.outcome().with_late(&early)
}

impl World<Answer> {
    async fn storm_clients(self: Rc<Self>) {
        loop {
            let now = self.env.now();
            let next = self.draws.borrow_mut().next_request(now);
            self.env.timeout(next - now).await;
            self.env.spawn(Rc::clone(&self).request());
        }
    }

    async fn request(self: Rc<Self>) {
        self.outcome.borrow_mut().events += 1;
        self.outcome.borrow_mut().requests += 1;
        for _ in 0..ATTEMPTS {
            let (trigger, answered) = self.env.event();
            let answer = Rc::new(Cell::new(Some(trigger)));
            self.enqueue(Rc::clone(&answer));
            any_of![self.env.timeout(TIMEOUT), answered].await;
            if answer.take().is_none() {
                self.outcome.borrow_mut().ok += 1;
                return;
            }
            self.outcome.borrow_mut().events += 1;
        }
        self.outcome.borrow_mut().failed += 1;
    }
}

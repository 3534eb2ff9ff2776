//! The lower limit for the cost of a run: two models, each written by hand as one loop that knows
//! no other. No event list, no ids with generations, no metrics but a few totals. What a general
//! engine costs above this is what its generality costs.
//!
//! Time is seconds in `f64`, the cheapest clock there is. Next to each model stand its parameters,
//! which all who run these models share, and the one generator of random numbers that everyone but
//! the product draws from.

use std::collections::VecDeque;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, Exp1};
use serde::{Deserialize, Serialize};

/// New requests of the M/M/1 queue [1/s]: nine tenths of what its server can do.
pub const MM1_RATE: f64 = 900.0;
/// Mean service time of both models (s).
pub const SERVICE: f64 = 1e-3;
/// New requests of the storm before and after its surge [1/s].
pub const STORM_RATE: f64 = 600.0;
/// New requests during the surge [1/s].
pub const SURGE_RATE: f64 = 1_500.0;
/// The surge begins (s).
pub const SURGE_FROM: f64 = 60.0;
/// The surge ends (s).
pub const SURGE_TO: f64 = 70.0;
/// How long the client of the storm waits for an attempt (s).
pub const TIMEOUT: f64 = 1.0;
/// How often it tries in all.
pub const ATTEMPTS: u8 = 3;
/// Length of the storm (s).
pub const STORM_END: f64 = 600.0;
/// From here on the storm must feed itself (s).
pub const LATE: f64 = 300.0;

/// What a run has come to: enough to check its physics and to divide its cost by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Model events: new requests, ends of service, timers that found their attempt still awaited.
    /// A retry at once belongs to its timer.
    pub events: u64,
    /// New requests.
    pub requests: u64,
    /// Requests answered while the client waited.
    pub ok: u64,
    /// Requests given up after the last attempt.
    pub failed: u64,
    /// Attempts, the first of each request included.
    pub attempts: u64,
    /// Sum over all that were served of their time at the server (s); M/M/1 alone.
    pub sojourn_s: f64,
    /// Of the events, those from [`LATE`] on; storm alone, as the next two.
    pub late_events: u64,
    /// Of the attempts, those from [`LATE`] on.
    pub late_attempts: u64,
    /// Of the requests answered, those from [`LATE`] on.
    pub late_ok: u64,
}

impl Outcome {
    /// With what came after `early`, the outcome up to [`LATE`], as its late part.
    pub fn with_late(self, early: &Outcome) -> Outcome {
        Outcome {
            late_events: self.events - early.events,
            late_attempts: self.attempts - early.attempts,
            late_ok: self.ok - early.ok,
            ..self
        }
    }
}

/// Draws: xoshiro256++ through the ziggurat, as fast as good random numbers come.
#[derive(Clone, Debug)]
pub struct Draws(Xoshiro256PlusPlus);

impl Draws {
    /// A run of draws of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Draws(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Exponential, by its mean.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        let draw: f64 = Exp1.sample(&mut self.0);
        draw * mean
    }

    /// When the storm's next request comes after one at `now`. A gap that would cross a change of
    /// the rate is drawn anew from there: the exponential law has no memory.
    #[inline]
    pub fn next_request(&mut self, mut now: f64) -> f64 {
        loop {
            let (rate, holds_until) = match now {
                now if now < SURGE_FROM => (STORM_RATE, SURGE_FROM),
                now if now < SURGE_TO => (SURGE_RATE, SURGE_TO),
                _ => (STORM_RATE, f64::INFINITY),
            };
            let next = now + self.exponential(1.0 / rate);
            if next < holds_until {
                return next;
            }
            now = holds_until;
        }
    }
}

/// M/M/1: Poisson arrivals, one exponential server, first in first out, so many `seconds`.
pub fn mm1(seed: u64, seconds: f64) -> Outcome {
    let mut draws = Draws::new(seed);
    let mut outcome = Outcome::default();
    // Arrivals of those who wait or, at the head, are served.
    let mut present: VecDeque<f64> = VecDeque::new();
    let mut next_request = draws.exponential(1.0 / MM1_RATE);
    let mut service_end = f64::INFINITY;
    loop {
        if next_request <= service_end {
            if next_request >= seconds {
                break;
            }
            if present.is_empty() {
                service_end = next_request + draws.exponential(SERVICE);
            }
            present.push_back(next_request);
            next_request += draws.exponential(1.0 / MM1_RATE);
            outcome.requests += 1;
        } else {
            if service_end >= seconds {
                break;
            }
            let arrived = present.pop_front().expect("somebody is in service");
            outcome.sojourn_s += service_end - arrived;
            outcome.ok += 1;
            service_end = match present.is_empty() {
                true => f64::INFINITY,
                false => service_end + draws.exponential(SERVICE),
            };
        }
    }
    Outcome { events: outcome.requests + outcome.ok, attempts: outcome.requests, ..outcome }
}

/// The storm: a surge makes clients time out and retry, and the server, which is not told that they
/// have left, serves the abandoned for ever after.
pub fn storm(seed: u64) -> Outcome {
    let mut storm = Storm::new(seed);
    storm.run_until(LATE);
    let early = storm.outcome;
    storm.run_until(STORM_END);
    storm.outcome.with_late(&early)
}

/// Bits of an attempt; the two lowest count the tries of its request so far.
const TRIES: u8 = 0b00011;
/// The server has still to serve it.
const UNSERVED: u8 = 0b00100;
/// Its timer has still to come up.
const TIMED: u8 = 0b01000;
/// The client waits for it.
const AWAITED: u8 = 0b10000;

struct Storm {
    draws: Draws,
    outcome: Outcome,
    /// One byte for each attempt that the server or a timer has still to do with.
    attempts: Vec<u8>,
    free: Vec<u32>,
    /// Attempts that wait or, at the head, are served.
    queue: VecDeque<u32>,
    /// All timeouts are equally long, so timers come up in the order in which they were set.
    timers: VecDeque<(f64, u32)>,
    next_request: f64,
    service_end: f64,
}

impl Storm {
    fn new(seed: u64) -> Self {
        let mut draws = Draws::new(seed);
        let next_request = draws.next_request(0.0);
        Storm {
            draws,
            outcome: Outcome::default(),
            attempts: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            timers: VecDeque::new(),
            next_request,
            service_end: f64::INFINITY,
        }
    }

    fn run_until(&mut self, end: f64) {
        loop {
            let timer = self.timers.front().map_or(f64::INFINITY, |timer| timer.0);
            let now = self.next_request.min(self.service_end).min(timer);
            if now >= end {
                return;
            }
            if now == timer {
                self.time_out(now);
            } else if now == self.service_end {
                self.end_service(now);
            } else {
                self.outcome.events += 1;
                self.outcome.requests += 1;
                self.send(now, 1);
                self.next_request = self.draws.next_request(now);
            }
        }
    }

    #[inline]
    fn send(&mut self, now: f64, tries: u8) {
        let attempt = tries | UNSERVED | TIMED | AWAITED;
        let id = match self.free.pop() {
            Some(id) => {
                self.attempts[id as usize] = attempt;
                id
            }
            None => {
                self.attempts.push(attempt);
                self.attempts.len() as u32 - 1
            }
        };
        self.outcome.attempts += 1;
        self.timers.push_back((now + TIMEOUT, id));
        if self.queue.is_empty() {
            self.service_end = now + self.draws.exponential(SERVICE);
        }
        self.queue.push_back(id);
    }

    #[inline]
    fn time_out(&mut self, now: f64) {
        let (_, id) = self.timers.pop_front().expect("a timer has come up");
        let attempt = &mut self.attempts[id as usize];
        let (awaited, tries) = (*attempt & AWAITED != 0, *attempt & TRIES);
        *attempt &= !(TIMED | AWAITED);
        if *attempt & UNSERVED == 0 {
            self.free.push(id);
        }
        if awaited {
            self.outcome.events += 1;
            if tries < ATTEMPTS {
                self.send(now, tries + 1);
            } else {
                self.outcome.failed += 1;
            }
        }
    }

    #[inline]
    fn end_service(&mut self, now: f64) {
        let id = self.queue.pop_front().expect("somebody is in service");
        let attempt = &mut self.attempts[id as usize];
        self.outcome.ok += u64::from(*attempt & AWAITED != 0);
        self.outcome.events += 1;
        *attempt &= !(UNSERVED | AWAITED);
        if *attempt & TIMED == 0 {
            self.free.push(id);
        }
        self.service_end = match self.queue.is_empty() {
            true => f64::INFINITY,
            false => now + self.draws.exponential(SERVICE),
        };
    }
}

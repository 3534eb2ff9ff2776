//! The event list alone: the hold model, timers that mostly go stale, and ties.
//!
//! Times are per event that leaves, the way in included. Random spans come from a table, so that
//! the list is measured and not the generator.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use metastable::kernel::{EventList, Lane, Packed, Span, Time};

const TABLE: usize = 1 << 16;

/// Shaped like the event of the simulation: a client, the number of its request, and a kind.
#[derive(Clone, Copy)]
struct Payload(u32, u32, u8);

impl Packed for Payload {
    fn pack(self) -> (u8, u64) {
        (self.2, u64::from(self.1) << 32 | u64::from(self.0))
    }

    fn unpack(kind: u8, rest: u64) -> Self {
        Payload(rest as u32, (rest >> 32) as u32, kind)
    }
}

/// Exponential spans, endlessly.
struct Spans {
    table: Vec<Span>,
    next: usize,
}

impl Spans {
    fn exponential(mean: f64) -> Self {
        let mut state = 1u64;
        let draw = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let unit = ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
            Span::from_seconds(-mean * unit.ln())
        };
        Spans { table: (0..TABLE).map(draw).collect(), next: 0 }
    }

    fn draw(&mut self) -> Span {
        self.next = (self.next + 1) % TABLE;
        self.table[self.next]
    }
}

/// One event leaves, one comes: the number pending stays.
struct Hold {
    list: EventList<Payload>,
    spans: Spans,
}

impl Hold {
    fn warm(pending: u32) -> Self {
        let mut hold = Hold { list: EventList::new(), spans: Spans::exponential(1.0) };
        for number in 0..pending {
            let span = hold.spans.draw();
            hold.list.push(Time::ZERO + span, Payload(number, 0, 0));
        }
        (0..3 * pending).for_each(|_| hold.step());
        hold
    }

    fn step(&mut self) {
        if let Some(due) = self.list.pop_before(Time::NEVER) {
            let span = self.spans.draw();
            self.list.push(due.time + span, black_box(due.event()));
        }
    }
}

/// Clients in a closed loop; each request has a timer, and 95 % end before it.
struct Timers {
    list: EventList<Payload>,
    lane: Option<Lane>,
    works: Spans,
    /// Number of the present request of each client: events of another are stale.
    requests: Vec<u32>,
}

impl Timers {
    const TIMEOUT: Span = Span::from_secs(1);
    const TIMER: u8 = 1;

    fn warm(clients: u32, in_lane: bool) -> Self {
        let mut list = EventList::new();
        let lane = if in_lane { list.lane(Self::TIMEOUT) } else { None };
        let mut timers = Timers {
            list,
            lane,
            works: Spans::exponential(1.0 / 20f64.ln()),
            requests: vec![0; clients as usize],
        };
        (0..clients).for_each(|client| timers.ask(Time::ZERO, client));
        (0..12 * clients).for_each(|_| timers.step());
        timers
    }

    fn ask(&mut self, now: Time, client: u32) {
        let request = &mut self.requests[client as usize];
        *request += 1;
        let work = self.works.draw();
        let timer = Payload(client, *request, Self::TIMER);
        match self.lane {
            Some(lane) => self.list.push_in(lane, now + Self::TIMEOUT, timer),
            None => self.list.push(now + Self::TIMEOUT, timer),
        }
        self.list.push(now + work, Payload(client, *request, 0));
    }

    fn step(&mut self) {
        if let Some(due) = self.list.pop_before(Time::NEVER) {
            let Payload(client, request, _) = due.event();
            if self.requests[client as usize] == request {
                self.ask(due.time, client);
            }
        }
    }
}

/// A thousand events at one instant, as at the start of a run, in and out again.
#[derive(Default)]
struct Ties {
    list: EventList<Payload>,
    now: Time,
}

impl Ties {
    fn step(&mut self) {
        if self.list.is_empty() {
            self.now += Span::from_millis(1);
            (0..1_000).for_each(|number| self.list.push(self.now, Payload(number, 0, 0)));
        }
        black_box(self.list.pop_before(Time::NEVER).map(|due| due.event()));
    }
}

/// Measures steps from one warm state on, which is made when the first is measured.
fn measure<S>(criterion: &mut Criterion, name: &str, warm: impl Fn() -> S, step: fn(&mut S)) {
    let mut state = None;
    criterion.bench_function(name, |bencher| {
        let state = state.get_or_insert_with(&warm);
        bencher.iter(|| step(state));
    });
}

fn hold(criterion: &mut Criterion) {
    for pending in [3, 100, 10_000, 1_000_000] {
        measure(criterion, &format!("hold/{pending}"), || Hold::warm(pending), Hold::step);
    }
}

/// Timeouts that are cut by a deadline have spans of every length, and so no lane.
fn timers(criterion: &mut Criterion) {
    for (name, lane) in [("timers_95_stale", true), ("timers_95_stale_no_lane", false)] {
        for clients in [300, 300_000] {
            let warm = || Timers::warm(clients, lane);
            measure(criterion, &format!("{name}/{clients}"), warm, Timers::step);
        }
    }
}

fn ties(criterion: &mut Criterion) {
    measure(criterion, "ties/1000", Ties::default, Ties::step);
}

criterion_group!(benches, hold, timers, ties);
criterion_main!(benches);

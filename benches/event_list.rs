//! The event list under load: the hold model, and timers of one constant span that mostly go stale.
//!
//! Times are per event popped. Random spans come from a table, so that the list is measured and not
//! the generator.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use metastable::kernel::{EventList, Lane, Span, Time};

const TABLE: usize = 1 << 16;

/// As large as the event of the simulation.
type Payload = (u32, u32, u32);

/// Exponential spans, endlessly.
#[derive(Clone)]
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
#[derive(Clone)]
struct Hold {
    list: EventList<Payload>,
    spans: Spans,
}

impl Hold {
    fn warm(pending: u32) -> Self {
        let mut hold = Hold { list: EventList::new(), spans: Spans::exponential(1.0) };
        for number in 0..pending {
            let span = hold.spans.draw();
            hold.list.push(Time::ZERO + span, (number, 0, 0));
        }
        (0..3 * pending).for_each(|_| hold.step());
        hold
    }

    fn step(&mut self) {
        if let Some((now, payload)) = self.list.pop_before(Time::NEVER) {
            let span = self.spans.draw();
            self.list.push(now + span, black_box(payload));
        }
    }
}

/// Clients in a closed loop; each request has a timer, and 95 % end before it.
#[derive(Clone)]
struct Timers {
    list: EventList<Payload>,
    lane: Lane,
    works: Spans,
    /// Number of the present request of each client: events of another are stale.
    requests: Vec<u32>,
}

impl Timers {
    const TIMEOUT: Span = Span::from_secs(1);
    const TIMER: u32 = 1;

    fn warm(clients: u32) -> Self {
        let mut list = EventList::new();
        let lane = list.lane(Self::TIMEOUT).expect("the first lane");
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
        let timer = (client, *request, Self::TIMER);
        self.list.push_in(self.lane, now, timer);
        self.list.push(now + work, (client, *request, 0));
    }

    fn step(&mut self) {
        if let Some((now, (client, request, _))) = self.list.pop_before(Time::NEVER)
            && self.requests[client as usize] == request
        {
            self.ask(now, client);
        }
    }
}

fn hold(criterion: &mut Criterion) {
    for pending in [3, 100, 10_000, 1_000_000] {
        criterion.bench_function(&format!("hold/{pending}"), |bencher| {
            let mut hold = Hold::warm(pending);
            bencher.iter(|| hold.step());
        });
    }
}

fn timers(criterion: &mut Criterion) {
    for clients in [300, 300_000] {
        criterion.bench_function(&format!("timers_95_stale/{clients}"), |bencher| {
            let mut timers = Timers::warm(clients);
            bencher.iter(|| timers.step());
        });
    }
}

/// A thousand events at one instant, as at the start of a run, in and out again.
fn ties(criterion: &mut Criterion) {
    criterion.bench_function("ties/1000_in_and_out", |bencher| {
        let push_all = |list: &mut EventList<Payload>, at| {
            (0..1_000).for_each(|number| list.push(at, (number, 0, 0)));
        };
        let mut now = Time::ZERO;
        let mut list = EventList::new();
        bencher.iter_batched(
            || (),
            |()| {
                now += Span::from_millis(1);
                push_all(&mut list, now);
                while let Some(event) = list.pop_before(Time::NEVER) {
                    black_box(event);
                }
            },
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, hold, timers, ties);
criterion_main!(benches);

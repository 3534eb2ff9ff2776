//! Whole runs, from the model's text to the record, with all that is measured in them.
//!
//! Criterion tells the time of a run and the events handled in a second (its elements); a line
//! below tells the cost of one event in the best of the runs. An event handled may be one that no
//! model has: a timer whose call has ended, or a retry that waits for no time. Events of the model
//! are arrivals, ends of service, timeouts that fire, and back-offs.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use metastable::measure::Record;
use metastable::mechanism::retry::Backoff;
use metastable::model::{Model, overridden};
use metastable::simulation::Simulation;

const MM1: &str = include_str!("models/mm1.toml");
const STORM: &str = include_str!("models/storm.toml");
const IN_FLIGHT: &str = include_str!("models/in_flight.toml");
const HERD: &str = include_str!("models/herd_million.toml");
const CHECKOUT: &str = include_str!("../models/checkout.toml");

const SEED: u64 = 1;

fn model(text: &str, settings: &[String]) -> Model {
    let text = overridden(text, settings).expect("the settings fit the model");
    Model::parse(&text, &|_| Err("no other files".into())).expect("the model is sound")
}

fn run(model: &Model) -> Record {
    Simulation::new(model, SEED, 0.0).run(&mut ())
}

fn events_of_the_model(model: &Model, record: &Record) -> u64 {
    let all = 0..record.windows.len();
    let servers = model.tier_ids().filter(|&tier| !model.tier(tier).is_client());
    let served: u64 = servers.map(|tier| record.tier_sum(tier, all.clone()).finished).sum();
    let fired = model.edge_ids().map(|edge| {
        let sum = record.edge_sum(edge, all.clone());
        let waits = model.edge(edge).retry.backoff != Backoff::Immediate;
        sum.timed_out + if waits { sum.attempts - sum.sent_calls() } else { 0 }
    });
    record.totals.requests + served + fired.sum::<u64>()
}

fn measure(criterion: &mut Criterion, name: &str, model: &Model) {
    let record = run(model);
    let events = record.totals.events;
    let surplus = events as f64 / events_of_the_model(model, &record) as f64;
    drop(record);
    let mut best = Duration::MAX;
    let mut group = criterion.benchmark_group("whole_runs");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    // The run above has warmed up.
    group.warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_secs(5));
    group.throughput(Throughput::Elements(events));
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|runs| {
            let time = |_| {
                let start = Instant::now();
                black_box(run(model));
                let time = start.elapsed();
                best = best.min(time);
                time
            };
            (0..runs).map(time).sum()
        });
    });
    group.finish();
    if best < Duration::MAX {
        let ns = best.as_nanos() as f64 / events as f64;
        println!(
            "{name}: {events} events handled, {surplus:.2} for each event of the model\n\
             {name}: {ns:.1} ns each in the best run, {:.1} for each event of the model\n",
            ns * surplus
        );
    }
}

fn mm1(criterion: &mut Criterion) {
    measure(criterion, "mm1", &model(MM1, &[]));
}

fn storm(criterion: &mut Criterion) {
    measure(criterion, "storm", &model(STORM, &[]));
}

/// Five minutes in place of fifteen, in most of which it has collapsed, if it does.
fn checkout(criterion: &mut Criterion) {
    let settings = ["run.duration=5m", "trigger.0.at=30s"].map(String::from);
    let collapsed = model(CHECKOUT, &settings);
    measure(criterion, "checkout/stable", &collapsed.untriggered());
    measure(criterion, "checkout/collapsed", &collapsed);
}

/// The same traffic with ever more in flight: how the cost of an event grows once the run no longer
/// fits into the processor's caches.
fn in_flight(criterion: &mut Criterion) {
    for (number, work) in [(100, "1ms"), (10_000, "100ms"), (1_000_000, "10s")] {
        let settings = [
            format!("tier.server.work.exponential={work}"),
            format!("trigger.0.demand.client.burst={number}"),
        ];
        measure(criterion, &format!("in_flight/{number}"), &model(IN_FLIGHT, &settings));
    }
}

/// A population that comes back at once, most of it in back-off: what a client costs.
fn herd(criterion: &mut Criterion) {
    let settings =
        ["tier.client.arrivals.herd.clients=100000", "tier.backend.admission.permits=30"];
    measure(criterion, "herd/100000", &model(HERD, &settings.map(String::from)));
}

criterion_group!(benches, mm1, storm, checkout, in_flight, herd);
criterion_main!(benches);

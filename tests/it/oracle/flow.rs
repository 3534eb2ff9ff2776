//! What comes: Poisson streams added and thinned, and what a rate limit lets through.

use super::{API, CLIENT, by_window, interval, judge, judge_within, model, run, station};
use metastable::kernel::{Span, Time};
use metastable::measure::Record;
use metastable::simulation::Simulation;

/// Counts of demand in windows of a second between two instants.
fn counts(record: &Record, from_s: u64, to_s: u64) -> Vec<f64> {
    let at = |seconds| Time::ZERO + Span::from_secs(seconds);
    let windows = record.windows_between(at(from_s), at(to_s));
    record.tiers[CLIENT.index()][windows].iter().map(|row| row.demand as f64).collect()
}

/// Variance over mean of counts, by 40 batches: 1 for a Poisson process. Cox & Lewis, *The
/// Statistical Analysis of Series of Events* (1966), section 4.5.
fn dispersion(counts: &[f64]) -> Vec<f64> {
    let batch = |counts: &[f64]| {
        let n = counts.len() as f64;
        let mean = counts.iter().sum::<f64>() / n;
        counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (n - 1.0) / mean
    };
    counts.chunks_exact(counts.len() / 40).map(batch).collect()
}

/// Superposed and thinned Poisson processes are Poisson. Kingman, *Poisson Processes* (1993),
/// chapters 2 and 5.
#[test]
fn a_demand_trigger_gives_a_poisson_stream_of_its_rate_and_only_while_it_lasts() {
    for factor in [0.4, 1.7, 2.5] {
        let text = format!(
            "run = {{ duration = \"18000s\", window = \"1s\" }}
             [tier.client]
             arrivals.poisson = \"20/s\"
             calls = [\"api\"]
             [tier.api]
             work.constant = \"1ms\"
             [[trigger]]
             at = \"6000s\"
             lasts = \"6000s\"
             demand = {{ client = {factor} }}"
        );
        let record = run(&text, 21);
        let stretches = [(0, 6000, 20.0), (6000, 12000, 20.0 * factor), (12000, 18000, 20.0)];
        for (from, to, rate) in stretches {
            let counts = counts(&record, from, to);
            judge(&format!("demand x{factor} from {from} s [1/s]"), &counts, rate);
            judge_within(
                &format!("demand x{factor} from {from} s, dispersion"),
                &dispersion(&counts),
                1.0,
                0.1,
            );
        }
    }
}

#[test]
fn evenly_spaced_demand_has_no_dispersion() {
    let record = run(&station("even = \"100/s\"", 40, 1, "work.constant = \"1ms\""), 22);
    let demand = by_window(&record, CLIENT, |row| row.demand as f64);
    assert!(demand.iter().all(|&count| count == 100.0), "{demand:?}");
}

/// Rate at which a bucket that holds one token lets in a Poisson stream [1/s]: after each, a token
/// takes 1/rate to come, and the next arrival, without memory, 1/lambda more. Renewal theory; a
/// dead-time counter of type I.
fn dead_time_rate(lambda: f64, rate: f64) -> f64 {
    1.0 / (1.0 / rate + 1.0 / lambda)
}

#[test]
fn a_rate_limit_that_holds_one_token_is_a_counter_with_a_dead_time() {
    for rate in [7.0, 100.0, 400.0] {
        let tier = format!("admission = {{ rate = \"{rate}/s\", burst = 1 }}");
        let record = run(&station("poisson = \"500/s\"", 40, 20, &tier), 23);
        let admitted = by_window(&record, API, |row| row.admitted as f64 / 20.0);
        judge(&format!("limit {rate}/s, burst 1"), &admitted, dead_time_rate(500.0, rate));
    }
}

/// A bucket that is never full under a steady overload loses no token.
#[test]
fn a_rate_limit_lets_in_its_rate_and_its_burst_and_no_more() {
    for (rate, burst) in [(7.0, 20.0), (30.0, 20.0), (250.0, 100.0)] {
        let tier = format!("admission = {{ rate = \"{rate}/s\", burst = {burst} }}");
        let record = run(&station("poisson = \"500/s\"", 20, 10, &tier), 23);
        let total: u64 = record.tiers[API.index()].iter().map(|row| row.admitted).sum();
        let exact = 200.0 * rate;
        assert!((total as f64 - exact).abs() <= 1.0, "{total} admitted at {rate}/s");
    }
}

/// A demand that is the limit exactly, evenly spaced, is let in whole: what nanoseconds round off
/// must cost nobody a token.
#[test]
fn evenly_spaced_demand_at_the_limit_is_let_in() {
    for rate in [3, 7, 30, 60, 70, 90, 110] {
        let tier = format!("work.constant = \"1ms\"\nadmission = \"{rate}/s\"");
        let record = run(&station(&format!("even = \"{rate}/s\""), 10, 10, &tier), 24);
        let sum = record.tier_sum(API, 0..10);
        assert_eq!((sum.refused_total(), sum.offered), (0, rate * 100), "{rate}/s");
    }
}

#[test]
fn a_seed_gives_the_same_intervals_again() {
    let text = station("poisson = \"50/s\"", 40, 10, "concurrency = 1\nwork.constant = \"15ms\"");
    let model = model(&text);
    let waits = |seed| {
        let record = Simulation::new(&model, seed, 0.0).run(&mut ());
        interval(&by_window(&record, API, super::wait_mean))
    };
    assert_eq!(waits(25), waits(25));
    assert_ne!(waits(25), waits(26));
}

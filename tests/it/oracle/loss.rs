//! Stations that turn some away: M/M/1/K and Erlang's loss system.

use super::{API, by_window, judge, judge_within, run, share, station};
use metastable::mechanism::outcome::Reason;

/// Share lost by `c` servers without a queue under `a` Erlang. Erlang's B formula by its recursion,
/// Gross et al., eq. 2.53; insensitive to the law of service (Sevastyanov 1957; Kelly, section
/// 3.3).
pub fn erlang_b(c: u32, a: f64) -> f64 {
    (1..=c).fold(1.0, |blocked, servers| a * blocked / (f64::from(servers) + a * blocked))
}

/// Share lost by M/M/1/K, K the places, that in service included. Gross et al., eq. 2.46.
fn mm1k_loss(places: i32, rho: f64) -> f64 {
    if rho == 1.0 {
        return 1.0 / f64::from(places + 1);
    }
    (1.0 - rho) * rho.powi(places) / (1.0 - rho.powi(places + 1))
}

fn lost(row: &metastable::measure::TierRow) -> f64 {
    share(row.refused[Reason::QueueFull as usize], row.offered)
}

#[test]
fn a_full_queue_loses_the_share_of_the_finite_birth_and_death_process() {
    for (places, lambda) in [(1, 5.0), (5, 8.0), (10, 10.0), (20, 12.0)] {
        let waiting = places - 1;
        let tier = format!(
            "concurrency = 1\nwork.exponential = \"100ms\"\nqueue.fifo.capacity = {waiting}"
        );
        let record = run(&station(&format!("poisson = \"{lambda}/s\""), 40, 2_500, &tier), 11);
        let theory = mm1k_loss(places, lambda / 10.0);
        judge(&format!("M/M/1/{places} loss"), &by_window(&record, API, lost), theory);
    }
}

#[test]
fn loss_without_a_queue_is_erlangs_and_depends_on_the_mean_of_service_alone() {
    let laws = [
        "constant = \"MEAN\"",
        "exponential = \"MEAN\"",
        "lognormal = { mean = \"MEAN\", cv = 2.0 }",
        "hyperexponential = { mean = \"MEAN\", cv = 3.0 }",
    ];
    for law in laws {
        for (mean, a) in [("250ms", 5.0), ("500ms", 10.0)] {
            let law = law.replace("MEAN", mean);
            let tier = format!("concurrency = 10\nwork.{law}\nqueue = \"none\"");
            let record = run(&station("poisson = \"20/s\"", 40, 2_500, &tier), 12);
            let lost = by_window(&record, API, lost);
            judge(&format!("M/G/10/10 {law}"), &lost, erlang_b(10, a));
        }
    }
}

/// A bulkhead of 10 without a queue at 20/s: what its reporter saw, and what he had expected
/// (evenly spaced arrivals).
#[test]
fn a_bulkhead_rejects_what_erlang_says_and_nothing_when_arrivals_are_even() {
    let sheet = [
        (100, 0.000_038, 3e-5),
        (250, 0.018_4, 0.002),
        (300, 0.043_1, 0.002),
        (400, 0.122, 0.003),
        (500, 0.215, 0.004),
    ];
    for (millis, published, widest) in sheet {
        let theory = erlang_b(10, f64::from(millis) * 0.02);
        assert!((theory - published).abs() < 0.005 * published.max(0.01), "{theory}");
        let tier = format!("concurrency = 10\nwork.constant = \"{millis}ms\"\nqueue = \"none\"");
        let record = run(&station("poisson = \"20/s\"", 40, 2_000, &tier), 13);
        let lost = by_window(&record, API, lost);
        judge_within(&format!("bulkhead {millis} ms"), &lost, theory, widest);
    }
    for millis in [100, 250, 400, 500] {
        let tier = format!("concurrency = 10\nwork.constant = \"{millis}ms\"\nqueue = \"none\"");
        let record = run(&station("even = \"20/s\"", 10, 100, &tier), 13);
        assert_eq!(record.tier_sum(API, 0..10).refused_total(), 0, "{millis} ms");
    }
}

//! Stations that serve everyone: M/M/1, M/M/c, M/G/1, closed loops, the order of the queue.

use super::{
    API, CALL, CLIENT, by_window, judge, judge_within, run, share, sojourn_mean, station, traced,
    wait_mean,
};
use metastable::kernel::Span;

/// Mean sojourn of M/M/1 [s]. Kleinrock, eq. 3.26.
fn mm1_sojourn(lambda: f64, mu: f64) -> f64 {
    1.0 / (mu - lambda)
}

/// P(sojourn > t) of M/M/1. Kleinrock, eq. 5.119: the sojourn is exponential with rate mu - lambda.
fn mm1_sojourn_beyond(lambda: f64, mu: f64, t: f64) -> f64 {
    (-(mu - lambda) * t).exp()
}

/// Probability of waiting in M/M/c with `a` Erlang offered. Erlang's C formula, Gross et al., eq.
/// 2.38.
pub fn erlang_c(c: u32, a: f64) -> f64 {
    let blocked = super::loss::erlang_b(c, a);
    let rho = a / f64::from(c);
    blocked / (1.0 - rho + rho * blocked)
}

/// Mean wait of M/M/c [s]. Gross et al., eq. 2.36.
pub fn mmc_wait(c: u32, lambda: f64, mean_s: f64) -> f64 {
    erlang_c(c, lambda * mean_s) * mean_s / (f64::from(c) - lambda * mean_s)
}

/// Mean wait of M/G/1 [s], `cv` the coefficient of variation of service. Pollaczek and Khinchine;
/// Kleinrock, eq. 5.65.
pub fn mg1_wait(lambda: f64, mean_s: f64, cv: f64) -> f64 {
    lambda * mean_s * mean_s * (1.0 + cv * cv) / (2.0 * (1.0 - lambda * mean_s))
}

/// Mean square of the wait in M/M/1 under FIFO [s²]: zero with probability 1 - rho, else
/// exponential. Kleinrock, 5.119.
fn mm1_wait_square_fifo(lambda: f64, mu: f64) -> f64 {
    lambda / mu * 2.0 / (mu - lambda).powi(2)
}

/// The same under LIFO without pre-emption: E W²(LIFO) = E W²(FIFO) / (1 - rho). Takács, *Delay
/// distributions for one line with Poisson input, general holding times, and various orders of
/// service*, Bell Syst. Tech. J. 42 (1963).
fn mm1_wait_square_lifo(lambda: f64, mu: f64) -> f64 {
    mm1_wait_square_fifo(lambda, mu) / (1.0 - lambda / mu)
}

/// Throughput of M/M/1//N [1/s]: N machines that run for `think_s` and are mended one at a time in
/// `mean_s`. Gross et al., section 2.8 (finite-source queues).
fn repairman_throughput(machines: u32, think_s: f64, mean_s: f64) -> f64 {
    let mut weight = 1.0;
    let mut total = 1.0;
    for broken in 0..machines {
        weight *= f64::from(machines - broken) * mean_s / think_s;
        total += weight;
    }
    (1.0 - 1.0 / total) / mean_s
}

#[test]
fn the_mean_sojourn_of_a_single_server_is_the_inverse_of_its_spare_rate() {
    for (lambda, window_s) in [(0.5, 4_000), (0.9, 60_000)] {
        let tier = "concurrency = 1\nwork.exponential = \"1s\"";
        let record = run(&station(&format!("poisson = \"{lambda}/s\""), 40, window_s, tier), 1);
        let sojourns = by_window(&record, API, sojourn_mean);
        judge(&format!("M/M/1 rho {lambda} sojourn"), &sojourns, mm1_sojourn(lambda, 1.0));
        let busy = by_window(&record, API, |row| row.busy_area / f64::from(window_s));
        judge(&format!("M/M/1 rho {lambda} busy"), &busy, lambda);
    }
}

#[test]
fn the_sojourn_of_a_single_server_is_exponential() {
    let tier = "concurrency = 1\nwork.exponential = \"100ms\"";
    let record = run(&station("poisson = \"9/s\"", 40, 3_000, tier), 2);
    // Buckets end at multiples of 2²³ ns here; one nanosecond less is the last value of a bucket.
    for edges in [12, 24, 60] {
        let t = Span::from_nanos(edges * (1 << 23) - 1);
        let beyond = mm1_sojourn_beyond(9.0, 10.0, t.seconds());
        let counted =
            by_window(&record, API, |row| share(row.sojourn.count_above(t), row.sojourn.count()));
        judge(&format!("M/M/1 P(sojourn > {:.3} s)", t.seconds()), &counted, beyond);
    }
}

/// The example of every textbook: 10/s served, 9/s asked, 60.7 % stay longer than half a second.
#[test]
fn three_in_five_stay_longer_than_half_a_second_at_nine_tenths_load() {
    let tier = "concurrency = 1\nwork.exponential = \"100ms\"";
    let (_, rows) = traced(&station("poisson = \"9/s\"", 40, 1_000, tier), 3);
    let sojourns: Vec<f64> = rows
        .iter()
        .filter(|row| row.outcome.is_some())
        .map(|row| f64::from(row.ended.since(row.arrived) > Span::from_millis(500)))
        .collect();
    judge("M/M/1 P(sojourn > 0.5 s) by trace", &sojourns, mm1_sojourn_beyond(9.0, 10.0, 0.5));
}

#[test]
fn the_share_that_waits_for_one_of_several_servers_is_erlangs() {
    for (servers, lambda, window_s) in
        [(2, 10.0, 1_500), (2, 16.0, 2_000), (5, 40.0, 1_000), (10, 80.0, 1_000)]
    {
        let tier = format!("concurrency = {servers}\nwork.exponential = \"100ms\"");
        let record = run(&station(&format!("poisson = \"{lambda}/s\""), 40, window_s, &tier), 4);
        let waits = by_window(&record, API, |row| {
            share(row.wait.count_above(Span::ZERO), row.wait.count())
        });
        judge(&format!("M/M/{servers} P(wait)"), &waits, erlang_c(servers, lambda * 0.1));
        let means = by_window(&record, API, wait_mean);
        let theory = mmc_wait(servers, lambda, 0.1);
        judge(&format!("M/M/{servers} wait"), &means, theory);
    }
}

/// A Poisson stream dealt out at random is as many independent Poisson streams; dealt out in turn,
/// each replica sees gaps that are sums of `n` exponentials, and waits less; from one queue, it is
/// M/M/c.
#[test]
fn replicas_wait_as_their_balance_says() {
    let tier = |balance: &str| {
        format!(
            "replicas = 4\nconcurrency = 1\nwork.exponential = \"100ms\"\nbalance = \"{balance}\""
        )
    };
    let waits = |balance: &str| {
        let record = run(&station("poisson = \"28/s\"", 40, 1_000, &tier(balance)), 10);
        by_window(&record, API, wait_mean)
    };
    judge("4 x M/M/1, random", &waits("random"), mg1_wait(7.0, 0.1, 1.0));
    judge("4 x M/M/1, shared queue", &waits("shared"), mmc_wait(4, 28.0, 0.1));
    judge("4 x E4/M/1, in turn", &waits("round-robin"), erlang_m1_wait(4, 7.0, 10.0));
}

/// Mean wait of G/M/1 whose gaps are Erlang with `stages` [s]: sigma / (mu (1 - sigma)), where
/// sigma in (0, 1) solves sigma = A*(mu - mu sigma) for the transform A* of the gaps. Kleinrock,
/// section 6.4.
fn erlang_m1_wait(stages: i32, lambda: f64, mu: f64) -> f64 {
    let rate = f64::from(stages) * lambda;
    let sigma = (0..1_000).fold(0.5, |sigma, _| (rate / (rate + mu - mu * sigma)).powi(stages));
    sigma / (mu * (1.0 - sigma))
}

/// Arrivals that do not look ahead see time averages. Wolff, *Poisson arrivals see time averages*,
/// Oper. Res. 30 (1982).
#[test]
fn poisson_arrivals_see_time_averages() {
    let tier = "concurrency = 1\nwork.lognormal = { mean = \"100ms\", cv = 2.0 }";
    let record = run(&station("poisson = \"6/s\"", 40, 500, tier), 5);
    let waits = |row: &metastable::measure::TierRow| {
        share(row.wait.count_above(Span::ZERO), row.wait.count())
    };
    let gap = by_window(&record, API, |row| waits(row) - row.busy_area / 500.0);
    judge_within("PASTA, seen less actual utilisation", &gap, 0.0, 0.01);
    judge("PASTA, P(wait) = rho", &by_window(&record, API, waits), 0.6);
}

/// The contrary: evenly spaced arrivals at a constant service never see it busy, however busy it
/// is.
#[test]
fn evenly_spaced_arrivals_do_not_see_time_averages() {
    let tier = "concurrency = 1\nwork.constant = \"90ms\"";
    let record = run(&station("even = \"10/s\"", 10, 100, tier), 5);
    let sum = record.tier_sum(API, 0..10);
    assert_eq!(sum.wait.count_above(Span::ZERO), 0);
    assert!((sum.busy_area / 1000.0 - 0.9).abs() < 1e-6);
}

#[test]
fn the_mean_wait_depends_on_the_law_of_service_by_its_variation_alone() {
    let laws = [
        ("constant = \"100ms\"", 0.0, 1_000),
        ("gamma = { mean = \"100ms\", shape = 2.0 }", 0.5f64.sqrt(), 1_500),
        ("erlang = { mean = \"100ms\", stages = 4 }", 0.5, 1_200),
        ("exponential = \"100ms\"", 1.0, 2_000),
        ("lognormal = { mean = \"100ms\", cv = 1.5 }", 1.5, 6_000),
        ("hyperexponential = { mean = \"100ms\", cv = 2.0 }", 2.0, 6_000),
    ];
    for (law, cv, window_s) in laws {
        let tier = format!("concurrency = 1\nwork.{law}");
        let record = run(&station("poisson = \"7/s\"", 40, window_s, &tier), 6);
        let waits = by_window(&record, API, wait_mean);
        judge(&format!("M/G/1 wait, {law}"), &waits, mg1_wait(7.0, 0.1, cv));
    }
}

#[test]
fn newest_first_leaves_the_mean_and_widens_the_spread() {
    let (lambda, mu) = (6.0, 10.0);
    let orders =
        [("fifo", mm1_wait_square_fifo(lambda, mu)), ("lifo", mm1_wait_square_lifo(lambda, mu))];
    for (order, square) in orders {
        let tier = format!("concurrency = 1\nwork.exponential = \"100ms\"\nqueue = \"{order}\"");
        let (_, rows) = traced(&station("poisson = \"6/s\"", 40, 4_000, &tier), 7);
        let waits: Vec<f64> = rows
            .iter()
            .filter(|row| row.outcome.is_some())
            .map(|row| row.started.since(row.arrived).seconds())
            .collect();
        judge(&format!("M/M/1 {order} wait"), &waits, mg1_wait(lambda, 1.0 / mu, 1.0));
        let squares: Vec<f64> = waits.iter().map(|wait| wait * wait).collect();
        judge_within(&format!("M/M/1 {order} wait²"), &squares, square, 0.1 * square);
    }
}

#[test]
fn a_closed_loop_is_the_problem_of_the_machine_repairman() {
    for (clients, think_s) in [(5, 1.0), (12, 1.0), (30, 1.0)] {
        let arrivals =
            format!("closed = {{ clients = {clients}, think.exponential = \"{think_s}s\" }}");
        let tier = "concurrency = 1\nwork.exponential = \"100ms\"";
        let record = run(&station(&arrivals, 40, 1_000, tier), 8);
        let throughput = by_window(&record, API, |row| row.finished as f64 / 1_000.0);
        let theory = repairman_throughput(clients, think_s, 0.1);
        judge(&format!("M/M/1//{clients} throughput"), &throughput, theory);
        // Little's law over the whole loop: N = X (R + Z).
        let response = by_window(&record, CLIENT, sojourn_mean);
        let theory = f64::from(clients) / theory - think_s;
        judge(&format!("M/M/1//{clients} response"), &response, theory);
    }
}

/// Little, *A proof for the queuing formula L = λW*, Oper. Res. 9 (1961). Window by window both
/// sides differ only by those who are under way at its borders.
#[test]
fn littles_law_holds_for_the_tier_its_queue_its_servers_and_the_client() {
    let tier = "concurrency = 3\nwork.exponential = \"100ms\"\nqueue.fifo = { capacity = 10 }";
    let record = run(&station("poisson = \"28/s\"", 40, 200, tier), 9);
    let sum = |times: &metastable::measure::Sparse| {
        times.count() as f64 * times.mean_s().unwrap_or_default()
    };
    let gap = by_window(&record, API, |row| row.in_flight_area / sum(&row.sojourn));
    judge("Little, tier", &gap, 1.0);
    let gap = by_window(&record, API, |row| row.queue_area / sum(&row.wait));
    judge("Little, queue", &gap, 1.0);
    let gap = by_window(&record, API, |row| row.busy_area * 1e9 / row.worked_ns as f64);
    judge("Little, servers", &gap, 1.0);
    let gap = by_window(&record, CLIENT, |row| row.in_flight_area / sum(&row.sojourn));
    judge("Little, client", &gap, 1.0);
    let edge = &record.edges[CALL.index()];
    let refused = by_window(&record, API, |row| row.refused_total() as f64);
    assert!(refused.iter().sum::<f64>() > 0.0, "the law is to hold under loss as well");
    assert_eq!(edge.iter().map(|row| row.refused).sum::<u64>() as f64, refused.iter().sum::<f64>());
}

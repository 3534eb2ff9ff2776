//! Stations that call stations: tandems, workers that are held, pools of connections.

use super::queueing::{mg1_wait, mmc_wait};
use super::{
    API, CALL, CLIENT, by_window, by_window_of_edge, judge, run, share, sojourn_mean, wait_mean,
};
use metastable::document::{EdgeId, TierId};
use metastable::measure::{EdgeRow, Sparse, TierRow};
use metastable::mechanism::outcome::Reason;

const DB: TierId = TierId(2);

/// client -> api -> db at `lambda`/s, measured in 40 windows after one to warm up.
fn tandem(lambda: f64, window_s: u32, api: &str, db: &str) -> String {
    let duration = 41 * window_s;
    format!(
        "run = {{ duration = \"{duration}s\", warmup = \"{window_s}s\", window = \"{window_s}s\" }}
         [tier.client]
         arrivals.poisson = \"{lambda}/s\"
         calls = [\"api\"]
         [tier.api]
         calls = [\"db\"]
         {api}
         [tier.db]
         {db}"
    )
}

fn sum(times: &Sparse) -> f64 {
    times.count() as f64 * times.mean_s().unwrap_or_default()
}

/// Burke: what leaves M/M/1 is Poisson, so the next station is M/M/1 again (Oper. Res. 4, 1956).
/// The answer goes back through the first station, which is free for it unless it is at work
/// (probability rho, by the arrival theorem), and then for the rest of that work, which is
/// exponential again.
#[test]
fn a_worker_that_does_not_wait_makes_a_tandem_of_independent_stations() {
    let (lambda, mu1, mu2) = (6.0, 10.0, 8.0);
    let api = "concurrency = 1\nasynchronous = true\nwork.exponential = \"100ms\"";
    let db = "concurrency = 1\nwork.exponential = \"125ms\"";
    let record = run(&tandem(lambda, 2_000, api, db), 31);
    let first = by_window(&record, API, wait_mean);
    judge("tandem, wait at the first", &first, mg1_wait(lambda, 1.0 / mu1, 1.0));
    let second = by_window(&record, DB, sojourn_mean);
    judge("tandem, sojourn at the second", &second, 1.0 / (mu2 - lambda));
    let both = by_window(&record, API, sojourn_mean);
    let theory = 1.0 / (mu1 - lambda) + 1.0 / (mu2 - lambda) + lambda / mu1 / mu1;
    judge("tandem, there and back", &both, theory);
}

/// A worker that waits for its callee serves for its own work and the callee's sojourn: M/G/1 with
/// the sum of two exponentials of mean 30 and 40 ms, whose variance is the sum of theirs.
#[test]
fn a_worker_that_waits_serves_as_long_as_its_work_and_its_callee() {
    let api = "concurrency = 1\nwork.exponential = \"30ms\"";
    let db = "work.exponential = \"40ms\"";
    let record = run(&tandem(10.0, 1_000, api, db), 32);
    let cv = (0.03f64.powi(2) + 0.04f64.powi(2)).sqrt() / 0.07;
    let waits = by_window(&record, API, wait_mean);
    judge("held worker, wait", &waits, mg1_wait(10.0, 0.07, cv));
    let busy = by_window(&record, API, |row| row.busy_area / 1_000.0);
    judge("held worker, utilisation", &busy, 0.7);
}

/// The same where the callee has a queue: whatever its sojourn is, it is held worker time, one for
/// one.
#[test]
fn the_time_that_workers_are_held_is_their_work_and_the_sojourn_of_the_callee() {
    let api = "concurrency = 8\nwork.exponential = \"30ms\"\nqueue = \"none\"";
    let db = "concurrency = 3\nwork.exponential = \"40ms\"";
    let record = run(&tandem(80.0, 100, api, db), 33);
    let rows = record.tiers[API.index()].iter().zip(&record.tiers[DB.index()]);
    let ratio: Vec<f64> = rows
        .map(|(api, db)| api.busy_area / (api.worked_ns as f64 / 1e9 + sum(&db.sojourn)))
        .collect();
    judge("held = work + callee's sojourn", &ratio, 1.0);
    let lost = record.tier_sum(API, 0..40);
    assert!(share(lost.refused[Reason::QueueFull as usize], lost.offered) > 0.01);
}

/// A pool of c connections to a callee that serves all at once is M/M/c, the queue being the
/// caller's.
#[test]
fn a_pool_of_connections_waits_like_erlangs_queue() {
    let text = "run = { duration = \"41000s\", warmup = \"1000s\", window = \"1000s\" }
        [tier.client]
        arrivals.poisson = \"40/s\"
        [tier.client.call.api]
        pool = { size = 5 }
        [tier.api]
        work.exponential = \"100ms\"";
    let record = run(text, 34);
    let wait = mmc_wait(5, 40.0, 0.1);
    let waiting = by_window_of_edge(&record, CALL, |row| row.pool_waiting_area / 1_000.0);
    judge("pool, calls that wait", &waiting, 40.0 * wait);
    let used = by_window_of_edge(&record, CALL, |row| row.pool_area / 1_000.0);
    judge("pool, connections in use", &used, 4.0);
    let response = by_window(&record, CLIENT, sojourn_mean);
    judge("pool, response time", &response, wait + 0.1);
    let rows = record.edges[CALL.index()].iter().zip(&record.tiers[API.index()]);
    let ratio: Vec<f64> =
        rows.map(|(e, t): (&EdgeRow, &TierRow)| e.pool_area / sum(&t.sojourn)).collect();
    judge("Little, pool", &ratio, 1.0);
    let rows = record.edges[CALL.index()].iter().zip(&record.tiers[CLIENT.index()]);
    let held = |(edge, tier): (&EdgeRow, &TierRow)| {
        (edge.pool_area + edge.pool_waiting_area) / sum(&tier.sojourn)
    };
    judge("Little, edge", &rows.map(held).collect::<Vec<_>>(), 1.0);
}

/// Little's law on an edge: calls in back-off are retries a second times the length of the
/// back-off; connections in use are attempts a second times the way there, the service and the way
/// back.
#[test]
fn littles_law_holds_for_back_off_and_for_connections_over_a_network() {
    let text = "run = { duration = \"4100s\", warmup = \"100s\", window = \"100s\" }
        [tier.client]
        arrivals.poisson = \"40/s\"
        [tier.client.call.api]
        attempts = 3
        backoff.fixed = \"300ms\"
        pool = { size = 100 }
        network.delay.exponential = \"20ms\"
        [tier.api]
        work.exponential = \"60ms\"
        errors = \"30%\"";
    let record = run(text, 35);
    let edge = |figure: fn(&EdgeRow) -> f64| by_window_of_edge(&record, EdgeId(0), figure);
    let retries = 40.0 * (0.3 + 0.09);
    judge("back-off, calls", &edge(|row| row.backoff_area / 100.0), retries * 0.3);
    let ratio = edge(|row| row.backoff_area / ((row.attempts - row.calls) as f64 * 0.3));
    judge("Little, back-off", &ratio, 1.0);
    let attempts = 40.0 + retries;
    judge("connections over a network", &edge(|row| row.pool_area / 100.0), attempts * 0.1);
}

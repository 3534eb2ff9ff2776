//! Closed forms of retries: how often the last tier is asked for one request of a user.

use super::{by_window, by_window_of_edge, interval, judge, judge_within, model, run, share};
use metastable::document::{EdgeId, TierId};
use metastable::kernel::{Span, Time};
use metastable::measure::{Record, TierRow};

/// Attempts of a call whose attempts fail independently with probability `p`, `most` of them at
/// most.
fn attempts(p: f64, most: i32) -> f64 {
    (0..most).map(|failed| p.powi(failed)).sum()
}

/// Calls that reach the last of `layers` callers in a row for one request: a layer fails when all
/// its attempts have. The product of Σ pⁿ over the layers, p raised to the power `most` from each
/// to the next above.
fn nested(p: f64, most: i32, layers: u32) -> f64 {
    (0..layers).map(|layer| attempts(p.powi(most.pow(layer)), most)).product()
}

/// P(b1 + b2 < limit) for b1 uniform below `first` and b2 uniform below `second`, `limit` at most
/// the smaller: the area of a triangle in a rectangle.
fn both_below(limit: f64, first: f64, second: f64) -> f64 {
    limit * limit / 2.0 / (first * second)
}

/// edge -> a -> b -> db, each with these settings of its call, at 100/s in 40 windows.
fn layers(call: &str, errors: &str, duration_s: u32) -> String {
    let window = duration_s / 40;
    format!(
        "run = {{ duration = \"{duration_s}s\", window = \"{window}s\" }}
         [tier.edge]
         arrivals.poisson = \"100/s\"
         [tier.edge.call.a]
         {call}
         [tier.a.call.b]
         {call}
         [tier.b.call.db]
         {call}
         [tier.db]
         errors = \"{errors}\""
    )
}

/// Attempts at the last tier for each request of the user, window by window.
fn amplification(record: &Record, last: TierId) -> Vec<f64> {
    let demand = by_window(record, TierId(0), |row| row.demand as f64);
    let offered = by_window(record, last, |row| row.offered as f64);
    offered.iter().zip(demand).map(|(offered, demand)| offered / demand).collect()
}

#[test]
fn the_closed_forms_are_the_published_numbers() {
    let near = |got: f64, published: f64, digits: f64| {
        assert!((got - published).abs() <= digits, "{got}, not {published}");
    };
    near(nested(1.0, 3, 3), 27.0, 1e-12);
    near(nested(0.9, 3, 3), 9.42, 0.005);
    near(nested(0.5, 3, 3), 2.00, 0.005);
    near(nested(1.0, 4, 3), 64.0, 1e-12);
    near(nested(0.5, 4, 3), 2.000, 0.0005);
    near(attempts(0.1, 4), 1.111, 0.0015);
    near(attempts(0.5, 4), 1.875, 0.0025);
    near(2.0 + both_below(20.0, 25.0, 75.0), 2.1067, 5e-5);
}

#[test]
fn retries_of_three_layers_multiply() {
    for (p, most) in [(1.0, 3), (0.9, 3), (0.5, 3), (1.0, 4), (0.5, 4)] {
        let errors = format!("{}%", p * 100.0);
        let record = run(&layers(&format!("attempts = {most}"), &errors, 2_000), 41);
        let what = format!("3 layers x {most} attempts, p {p}");
        judge(&what, &amplification(&record, TierId(3)), nested(p, most, 3));
        let failed = by_window(&record, TierId(0), |row| share(row.failed, row.finished));
        // Below p = 0.9 no user fails in a run of this length.
        let theory = p.powi(most.pow(3));
        if p >= 0.9 {
            judge_within(&format!("{what}, users that fail"), &failed, theory, 0.01);
        }
    }
}

/// Instant failures reach each tier in the same instant, so a total outage multiplies exactly,
/// window by window.
#[test]
fn in_a_total_outage_four_attempts_on_three_layers_are_sixty_four() {
    let record = run(&layers("attempts = 4", "100%", 40), 42);
    for (tier, times) in [(1, 4), (2, 16), (3, 64)] {
        let demand = by_window(&record, TierId(0), |row| row.demand as f64);
        let offered = by_window(&record, TierId(tier), |row| row.offered as f64);
        assert!(demand.iter().zip(offered).all(|(d, o)| d * f64::from(times) == o));
    }
}

#[test]
fn retries_at_the_edge_alone_do_not_multiply() {
    let text = layers("", "100%", 40).replacen(
        "[tier.edge.call.a]",
        "[tier.edge.call.a]\nattempts = 4",
        1,
    );
    let record = run(&text, 43);
    assert!(amplification(&record, TierId(3)).iter().all(|&times| times == 4.0));
}

/// In a total outage, a tenth more at each of three layers: 1.1³.
#[test]
fn a_budget_of_a_tenth_on_three_layers_makes_a_third_more() {
    let budget =
        "attempts = 4\nbudget = { ratio = \"10%\", start = 0, deposit = \"request\", cap = 100 }";
    let record = run(&layers(budget, "100%", 400), 44);
    let counts = |tier: u16| record.tier_sum(TierId(tier), 0..40).offered as f64;
    let demand = record.tier_sum(TierId(0), 0..40).demand as f64;
    let got = counts(3) / demand;
    // Each bucket may still hold its last token or less: one part in 40,000.
    assert!((got - 1.331).abs() < 1e-3, "{got}");
    judge("3 budgets of 10 %", &amplification(&record, TierId(3)), 1.1f64.powi(3));
}

/// Attempts of 40 ms inside a deadline of 100 ms, 100 callers at 10/s each.
fn deadline(backoff: &str, rest: &str) -> String {
    format!(
        "run = {{ duration = \"200s\", window = \"5s\" }}
         [tier.client]
         clients = 100
         arrivals.poisson = \"1000/s\"
         [tier.client.call.api]
         timeout = \"40ms\"
         deadline = \"100ms\"
         attempts = 3
         {backoff}
         [tier.api]
         {rest}"
    )
}

const BLACK_HOLE: &str = "[[trigger]]
    at = \"0s\"
    lasts = \"200s\"
    down = { api = \"black-hole\" }";

/// Delays uniform below 25 ms and below 75 ms: exponential, threefold, full jitter.
const JITTER: &str = "backoff.exponential = { base = \"25ms\", factor = 3.0, jitter = \"full\" }";

#[test]
fn a_black_hole_leaves_time_for_a_third_attempt_in_one_case_of_ten() {
    let record = run(&deadline(JITTER, BLACK_HOLE), 45);
    let calls = by_window_of_edge(&record, EdgeId(0), |row| row.attempts as f64 / row.calls as f64);
    judge_within("black hole, attempts", &calls, 2.0 + both_below(20.0, 25.0, 75.0), 0.01);
    let longest = record.tier_sum(TierId(0), 0..40).sojourn.count_above(Span::from_millis(101));
    assert_eq!(longest, 0, "every request ends by its deadline");
}

#[test]
fn failures_at_once_leave_time_for_all_three_attempts() {
    let record = run(&deadline(JITTER, "errors = \"100%\""), 46);
    let sum = record.edge_sum(EdgeId(0), 0..40);
    let under_way = record.totals.in_flight;
    assert!(sum.attempts <= 3 * sum.calls && sum.attempts >= 3 * (sum.calls - under_way));
}

#[test]
fn without_delay_there_is_always_time_for_three_attempts() {
    for rest in [BLACK_HOLE, "errors = \"100%\""] {
        let record = run(&deadline("", rest), 47);
        let sum = record.edge_sum(EdgeId(0), 0..40);
        let under_way = record.totals.in_flight;
        assert!(sum.attempts <= 3 * sum.calls && sum.attempts >= 3 * (sum.calls - under_way));
    }
}

#[test]
fn three_retries_multiply_the_load_by_the_geometric_sum() {
    for p in [0.1, 0.5, 1.0] {
        let text = format!(
            "run = {{ duration = \"100s\", window = \"2500ms\" }}
             [tier.client]
             clients = 100
             arrivals.poisson = \"1000/s\"
             [tier.client.call.api]
             attempts = 4
             [tier.api]
             errors = \"{}%\"",
            p * 100.0
        );
        let record = run(&text, 48);
        let times = amplification(&record, TierId(1));
        judge(&format!("3 retries, p {p}"), &times, attempts(p, 4));
    }
}

/// A budget of a tenth of successes: at p = 0.5 half of the attempts succeed and pay for a tenth of
/// themselves, so the load is x with x = 1 + 0.05 x; at most that, and the initial tokens.
#[test]
fn a_budget_pays_a_tenth_of_what_succeeds() {
    let text = "run = { duration = \"400s\", window = \"10s\" }
        [tier.client]
        arrivals.poisson = \"200/s\"
        [tier.client.call.api]
        attempts = 4
        budget = { ratio = \"10%\", cap = 5, start = 0 }
        [tier.api]
        errors = \"50%\"";
    let model = model(text);
    let record = metastable::simulation::Simulation::new(&model, 49, 0.0).run(&mut ());
    let times = amplification(&record, TierId(1));
    judge("budget 10 % of successes, p 0.5", &times, 1.0 / 0.95);
    let good = |row: &TierRow| row.good as f64 / row.finished as f64;
    assert!(interval(&by_window(&record, TierId(1), good)).covers(0.5));
    assert!(record.windows_between(Time::ZERO, Time::ZERO + Span::from_secs(400)) == (0..40));
}

//! Single cases in which the engine once went wrong, each with the smallest model that shows it.

use super::{model, traced};
use metastable::document::{EdgeId, TierId};
use metastable::kernel::{Span, Time};
use metastable::measure::{EdgeFigures, Frame};
use metastable::mechanism::outcome::Reason;

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// The outage ends on the border of a window, in which nothing has arrived yet.
#[test]
fn attempts_held_by_an_outage_are_offered_once_and_in_the_window_in_which_they_came() {
    let model = model(
        "run = { duration = \"4s\", window = \"1s\" }
         [tier.client]
         arrivals.even = \"10/s\"
         calls = [\"api\"]
         [tier.api]
         work.constant = \"1ms\"
         [[trigger]]
         at = \"1s\"
         lasts = \"1s\"
         down = { api = \"hold\" }",
    );
    let (record, rows) = traced(&model, 1);
    let offered: Vec<u64> = record.tiers[1].iter().map(|row| row.offered).collect();
    assert_eq!(offered, [9, 10, 10, 10], "the first request comes after 100 ms");
    assert_eq!(record.totals.answered, 39);
    let held = rows.iter().filter(|row| row.sent >= at(1000) && row.sent < at(2000));
    assert!(held.clone().count() == 10 && held.clone().all(|row| row.ended == at(2001)));
}

/// Four times the clients: the new ones are not the old ones, and have connections and budgets of
/// their own.
#[test]
fn the_clients_that_a_surge_adds_to_a_closed_loop_have_pools_and_budgets_of_their_own() {
    let model = model(
        "run = { duration = \"6s\", window = \"1s\" }
         [tier.client]
         arrivals.closed = { clients = 3, think.constant = \"100ms\" }
         [tier.client.call.api]
         attempts = 2
         pool = { size = 1 }
         budget = { ratio = \"10%\" }
         [tier.api]
         work.constant = \"100ms\"
         [[trigger]]
         at = \"2s\"
         lasts = \"2s\"
         demand = { client = 4.0 }",
    );
    let (record, _) = traced(&model, 1);
    let pool: Vec<f64> = record.edges[0].iter().map(|row| row.pool_area).collect();
    let waiting: f64 = record.edges[0].iter().map(|row| row.pool_waiting_area).sum();
    assert_eq!(waiting, 0.0, "nobody shares a connection");
    assert!((pool[3] - 6.0).abs() < 0.3, "12 clients, half of their time in a call: {pool:?}");
}

/// Calls end in all ways here: answered, failed, given up, and left alone at work and in back-off
/// when their own caller stops; once all is quiet none is counted any more. With a share of nothing
/// the retries can be seen, with the whole the calls.
#[test]
fn every_call_leaves_the_budget_of_concurrent_retries_in_the_end() {
    let all = [("0%", 1000), ("100%", 0)];
    for (ratio, least, debit) in all.iter().flat_map(|(r, l)| [(r, l, "decision"), (r, l, "send")])
    {
        let budget = format!("ratio = \"{ratio}\", least = {least}, debit = \"{debit}\"");
        let text = "run = { duration = \"12s\", window = \"1s\" }
             [tier.client]
             arrivals.profile = [{ at = \"0s\", rate = \"200/s\" },
                                 { at = \"6s\", rate = \"200/s\" },
                                 { at = \"6s\", rate = \"0/s\" }]
             [tier.client.call.api]
             timeout = \"200ms\"
             attempts = 2
             budget.concurrent = { BUDGET }
             [tier.api]
             abandoned = \"interrupt\"
             work.constant = \"1ms\"
             [tier.api.call.db]
             timeout = \"60ms\"
             attempts = 3
             backoff.fixed = \"30ms\"
             cache = { keys = 100, uncacheable = \"90%\", lookup.constant = \"2ms\" }
             budget.concurrent = { BUDGET }
             [tier.db]
             concurrency = 2
             errors = \"20%\"
             work.exponential = \"20ms\"";
        let (record, _) = traced(&model(&text.replace("BUDGET", &budget)), 1);
        for edge in &record.edges {
            let tokens: Vec<f64> = edge.iter().filter_map(|row| row.tokens).collect();
            let quiet = f64::from(*least);
            assert!(tokens[..6].iter().any(|left| *left != quiet), "{budget}: {tokens:?}");
            assert_eq!(tokens.last(), Some(&quiet), "{budget}: {tokens:?}");
            assert!(edge.iter().map(|row| row.gave_up).sum::<u64>() > 0);
        }
    }
}

/// The lookup takes so long that a hit falls into the window after its call.
#[test]
fn a_hit_in_a_window_without_calls_leaves_the_rate_of_retries_at_zero() {
    let model = model(
        "run = { duration = \"4s\", window = \"1s\" }
         [tier.client]
         arrivals.profile = [{ at = \"0s\", rate = \"10/s\" }, { at = \"1s\", rate = \"10/s\" },
                             { at = \"1s\", rate = \"0/s\" }]
         [tier.client.call.api]
         cache = { keys = 10, lookup.constant = \"1500ms\" }
         [tier.api]
         work.constant = \"1ms\"",
    );
    let (record, _) = traced(&model, 1);
    let row = &record.edges[0][2];
    assert!(row.hits > row.calls, "{row:?}");
    let figures = EdgeFigures::of(row, &Frame { seconds: 1.0, demand: 0 });
    assert_eq!(figures.retries_per_s, Some(0.0));
}

#[test]
fn servers_added_to_a_shared_queue_are_counted() {
    let model = model(
        "run = { duration = \"20s\", window = \"1s\" }
         [tier.client]
         arrivals.poisson = \"50/s\"
         calls = [\"api\"]
         [tier.api]
         replicas = 2
         concurrency = 1
         balance = \"shared\"
         work.constant = \"100ms\"
         [[playbook]]
         when = { at = \"10s\" }
         add = { api = 3 }",
    );
    let (record, _) = traced(&model, 1);
    let servers: Vec<Option<u32>> = record.tiers[1].iter().map(|row| row.servers).collect();
    assert_eq!((servers[9], servers[10]), (Some(2), Some(5)));
    assert!(record.tiers[1].iter().all(|row| row.busy_area <= f64::from(row.servers.unwrap())));
}

/// Two calls made together to one callee are two operations, with two draws.
#[test]
fn calls_made_together_to_one_callee_draw_lengths_of_their_own() {
    let model = model(
        "run = { duration = \"20s\", window = \"1s\" }
         [tier.client]
         arrivals.even = \"10/s\"
         calls = [[\"api\", \"api\"]]
         [tier.api]
         work.exponential = \"10ms\"",
    );
    let (_, mut rows) = traced(&model, 1);
    rows.retain(|row| row.outcome.is_some());
    rows.sort_by_key(|row| row.request);
    let pairs: Vec<_> =
        rows.chunk_by(|a, b| a.request == b.request).filter(|pair| pair.len() == 2).collect();
    let alike = pairs.iter().filter(|pair| pair[0].ended == pair[1].ended).count();
    assert!(pairs.len() > 150 && alike == 0, "{alike} of {} pairs are alike", pairs.len());
}

/// A process that stands still does not answer, though the answer that it waits for has come.
#[test]
fn a_paused_tier_does_not_go_on_when_its_callee_answers() {
    for asynchronous in [false, true] {
        let model = model(&format!(
            "run = {{ duration = \"4s\", window = \"1s\" }}
             [tier.client]
             arrivals.profile = [
                 {{ at = \"0s\", rate = \"0/s\" }}, {{ at = \"900ms\", rate = \"0/s\" }},
                 {{ at = \"900ms\", rate = \"200/s\" }}, {{ at = \"999ms\", rate = \"200/s\" }},
                 {{ at = \"999ms\", rate = \"0/s\" }}]
             calls = [\"api\"]
             [tier.api]
             concurrency = 1000
             asynchronous = {asynchronous}
             calls = [\"db\"]
             [tier.db]
             work.constant = \"150ms\"
             [[trigger]]
             at = \"1s\"
             lasts = \"1s\"
             pause = [\"api\"]"
        ));
        let (record, rows) = traced(&model, 1);
        let api: Vec<_> = rows.iter().filter(|row| row.edge == EdgeId(0)).collect();
        assert!(api.len() > 10 && record.totals.in_flight == 0);
        assert!(api.iter().all(|row| row.ended >= at(2000)), "asynchronous: {asynchronous}");
        assert_eq!(record.tier_sum(TierId(1), 0..4).finished, api.len() as u64);
    }
}

/// What arrives at a free server is at the head of the queue, though there is none.
#[test]
fn a_tier_that_skips_the_abandoned_does_so_with_servers_free() {
    let model = model(
        "run = { duration = \"10s\", window = \"1s\" }
         [tier.client]
         arrivals.even = \"10/s\"
         [tier.client.call.api]
         timeout = \"30ms\"
         network.delay.constant = \"50ms\"
         [tier.api]
         concurrency = 4
         abandoned = \"skip\"
         work.constant = \"1ms\"",
    );
    let (record, _) = traced(&model, 1);
    let sum = record.tier_sum(TierId(1), 0..10);
    assert_eq!((sum.refused[Reason::Left as usize], sum.finished), (99, 0));
    assert_eq!(sum.worked_ns, 0);
}

/// Twins differ by what the trigger does, and not by luck: the same attempt works equally long in
/// both.
#[test]
fn the_same_request_meets_the_same_fate_whatever_happens_to_others() {
    let text = |more: &str| {
        format!(
            "run = {{ duration = \"20s\", window = \"1s\" }}
             [tier.client]
             arrivals.poisson = \"50/s\"
             [tier.client.call.api]
             attempts = 3
             network.delay.exponential = \"5ms\"
             [tier.api]
             work.exponential = \"10ms\"
             errors = \"20%\"
             {more}"
        )
    };
    let trigger = "[[trigger]]\nat = \"5s\"\nlasts = \"5s\"\ndemand = { client = 3.0 }";
    let limited = text("") + "\nqueue.fifo = {}\nconcurrency = 1000";
    let fates = |text: &str| {
        let model = model(text);
        let (_, mut rows) = traced(&model, 7);
        rows.retain(|row| row.request >> 48 == 0 && row.outcome.is_some());
        rows.sort_by_key(|row| (row.request, row.attempt));
        let fate = |row: &metastable::measure::AttemptRow| {
            let work = row.ended.since(row.started);
            (row.request, row.attempt, row.sent, row.arrived, work, row.outcome)
        };
        rows.iter().map(fate).collect::<Vec<_>>()
    };
    let base = fates(&text(""));
    assert!(base.len() > 1_100);
    assert_eq!(base, fates(&text(trigger)));
    assert_eq!(base, fates(&limited));
}

/// Work that a pause interrupts is as long as any other.
#[test]
fn a_pause_is_no_work() {
    let model = model(
        "run = { duration = \"30s\", window = \"1s\" }
         [tier.client]
         arrivals.even = \"50/s\"
         [tier.client.call.api]
         timeout = \"5s\"
         [tier.api]
         concurrency = 10
         work.constant = \"100ms\"
         [[trigger]]
         at = \"10s\"
         lasts = \"10s\"
         pause = [\"api\"]",
    );
    let (record, _) = traced(&model, 1);
    let sum = record.tier_sum(TierId(1), 0..30);
    assert_eq!(sum.worked_ns, 100_000_000 * sum.finished);
    assert!(sum.wasted_ns > 1_000_000_000 && sum.wasted_ns < sum.worked_ns);
}

/// What a user does at a client holds no server, of which a client has none.
#[test]
fn a_request_may_be_work_at_the_client_and_nothing_else() {
    let model = model(
        "run = { duration = \"30s\", window = \"1s\" }
         [tier.client]
         arrivals.even = \"50/s\"
         class.own = { share = \"50%\", steps = [{ work.constant = \"5ms\" }] }
         class.remote = { share = \"50%\", calls = [\"api\"] }
         [tier.client.call.api]
         [tier.api]
         work.constant = \"5ms\"",
    );
    let (record, rows) = traced(&model, 1);
    let sum = record.tier_sum(TierId(0), 0..30);
    assert_eq!(sum.good, 1_499, "the last has just begun");
    assert_eq!(sum.sojourn.sum_s(), 0.005 * 1_499.0);
    assert!((600..900).contains(&rows.len()), "{} went to the api", rows.len());
}

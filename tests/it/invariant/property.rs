//! The properties themselves.

use proptest::prelude::*;

use super::random_model::{RandomModel, random_model};
use super::{model, traced};
use metastable::document::{EdgeId, TierId};
use metastable::kernel::Time;
use metastable::measure::{AttemptRow, EdgeRow, Record, TierRow};
use metastable::mechanism::outcome::{Outcome, Reason};
use metastable::model::Model;

fn whole(record: &Record, tier: TierId) -> TierRow {
    record.tier_sum(tier, 0..record.windows.len())
}

fn whole_edge(record: &Record, edge: EdgeId) -> EdgeRow {
    record.edge_sum(edge, 0..record.windows.len())
}

/// Each number of a row is what such a number can be.
fn rows_are_sound(model: &Model, record: &Record) -> Result<(), TestCaseError> {
    for (tier, rows) in model.tier_ids().zip(&record.tiers) {
        for row in rows {
            prop_assert!(row.queue_area >= 0.0 && row.busy_area >= 0.0);
            prop_assert!(row.in_flight_area >= row.queue_area - 1e-9);
            prop_assert!(row.good + row.failed <= row.finished);
            prop_assert!(row.turned_away <= row.failed);
            prop_assert!(row.wasted_ns <= row.worked_ns);
        }
        prop_assert_eq!(rows.len(), record.windows.len());
        let sum = whole(record, tier);
        prop_assert!(sum.sojourn.count() >= sum.finished);
        // Not so window by window: what an outage has held is let in after the window in which it
        // came.
        prop_assert!(sum.admitted <= sum.offered);
    }
    for rows in &record.edges {
        for row in rows {
            let least = row.pool_area.min(row.pool_waiting_area).min(row.backoff_area);
            prop_assert!(least >= 0.0, "{:?}", row);
            prop_assert!(row.tokens.is_none_or(|tokens| tokens >= 0.0));
            prop_assert!(row.ghosts <= row.attempts && row.throttled <= row.gave_up);
        }
    }
    for (tier, herd) in model.tier_ids().zip(&record.herds) {
        let Some(herd) = herd else { continue };
        let (settled, begun) = (herd.through + herd.lost, whole(record, tier).demand);
        prop_assert!(settled <= begun && begun <= herd.clients, "{:?}", herd);
        prop_assert_eq!(settled + record.totals.in_flight, begun);
        prop_assert!(herd.attempts.iter().sum::<u64>() <= begun);
    }
    prop_assert!(record.windows.windows(2).all(|pair| pair[0].to == pair[1].from));
    prop_assert!(record.log.windows(2).all(|pair| pair[0].at <= pair[1].at));
    Ok(())
}

/// Requests, calls and attempts are conserved.
fn nothing_is_lost(
    model: &Model,
    record: &Record,
    rows: &[AttemptRow],
) -> Result<(), TestCaseError> {
    let totals = &record.totals;
    prop_assert_eq!(totals.requests, totals.answered + totals.failed + totals.in_flight);
    let mut attempts = 0;
    for edge in model.edge_ids() {
        let sum = whole_edge(record, edge);
        let own = rows.iter().filter(|row| row.edge == edge);
        let under_way = own.clone().filter(|row| row.outcome.is_none()).count() as u64;
        let ended = sum.ok + sum.failed + sum.refused + sum.timed_out;
        // An answer on its way back at the end of the run has an outcome that its caller has not
        // seen yet.
        let returning = own
            .clone()
            .filter(|row| row.ended == model.run.end() && row.outcome.is_some() && row.awaited)
            .count() as u64;
        prop_assert!(sum.attempts >= ended + under_way, "{:?}, {} under way", sum, under_way);
        prop_assert!(sum.attempts <= ended + under_way + returning);
        prop_assert_eq!(own.count() as u64, sum.attempts);
        attempts += sum.attempts;
    }
    prop_assert_eq!(attempts, totals.attempts);
    for tier in model.tier_ids().filter(|&tier| !model.tier(tier).is_client()) {
        let sum = whole(record, tier);
        let refused = sum.refused_total() - sum.refused[Reason::Pool as usize];
        let arrived =
            rows.iter().filter(|row| row.tier == tier && row.arrived != Time::NEVER).count();
        prop_assert_eq!(sum.offered, arrived as u64);
        prop_assert!(sum.offered >= sum.finished + refused, "{:?}", sum);
    }
    Ok(())
}

/// Each attempt goes forward in time, and each call stops where its rule says.
fn attempts_are_sound(model: &Model, rows: &[AttemptRow]) -> Result<(), TestCaseError> {
    for row in rows {
        prop_assert!(row.sent <= row.ended);
        prop_assert!(row.arrived == Time::NEVER || row.sent <= row.arrived);
        prop_assert!(row.started == Time::NEVER || row.arrived <= row.started);
        prop_assert!(row.attempt >= 1 && row.attempt <= model.edge(row.edge).retry.attempts);
        prop_assert_eq!(row.awaited, row.outcome != Some(Outcome::TimedOut));
    }
    Ok(())
}

/// When nothing comes any more, nothing is left anywhere.
fn everything_has_drained(model: &Model, record: &Record) -> Result<(), TestCaseError> {
    prop_assert_eq!(record.totals.in_flight, 0);
    for (tier, rows) in model.tier_ids().zip(&record.tiers) {
        let last = rows.last().expect("a run has windows");
        let levels = last.queue_area + last.in_flight_area + last.busy_area;
        prop_assert_eq!(levels, 0.0, "{}", model.names.tier_name(tier));
        let black_hole = format!("{:?}", model.triggers).contains("BlackHole");
        if !model.tier(tier).is_client() && !black_hole {
            let sum = whole(record, tier);
            let refused = sum.refused_total() - sum.refused[Reason::Pool as usize];
            prop_assert_eq!(sum.offered, sum.finished + refused);
        }
    }
    for (edge, rows) in model.edge_ids().zip(&record.edges) {
        let last = rows.last().expect("a run has windows");
        let levels = last.pool_area + last.pool_waiting_area + last.backoff_area;
        prop_assert_eq!(levels, 0.0, "{}", model.names.edge_name(edge));
        let sum = whole_edge(record, edge);
        prop_assert_eq!(sum.attempts, sum.ok + sum.failed + sum.refused + sum.timed_out);
        prop_assert!(sum.hits + sum.misses <= sum.calls);
    }
    Ok(())
}

/// The instants of first attempts along the client's edges, by request, for requests of the base
/// sources.
fn first_sent(model: &Model, rows: &[AttemptRow]) -> Vec<(u64, EdgeId, Time)> {
    let base = |row: &&AttemptRow| {
        row.attempt == 1
            && row.request >> 48 == 0
            && model.tier(model.edge(row.edge).caller).is_client()
    };
    let mut first: Vec<_> =
        rows.iter().filter(base).map(|row| (row.request, row.edge, row.sent)).collect();
    first.sort_unstable_by_key(|&(request, edge, sent)| (request, sent, edge.0));
    first.dedup_by_key(|&mut (request, ..)| request);
    first
}

fn is_open(random: &RandomModel) -> bool {
    !random.system.contains("arrivals.closed")
}

/// `PROPTEST_CASES=5000` hunts.
fn config() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases = asked.unwrap_or(64);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_request_and_attempt_is_accounted_for(
        random in random_model(false),
        seed in 1..1000u64,
    ) {
        let model = model(&random.text());
        let (record, rows) = traced(&model, seed);
        rows_are_sound(&model, &record)?;
        nothing_is_lost(&model, &record, &rows)?;
        attempts_are_sound(&model, &rows)?;
    }

    #[test]
    fn when_demand_ends_every_queue_pool_and_server_comes_free(
        random in random_model(true),
        seed in 1..1000u64,
    ) {
        let model = model(&random.text());
        let (record, rows) = traced(&model, seed);
        nothing_is_lost(&model, &record, &rows)?;
        everything_has_drained(&model, &record)?;
    }

    #[test]
    fn the_same_seed_gives_the_same_record(
        random in random_model(false),
        seed in 1..1000u64,
    ) {
        let model = model(&random.text());
        let (record, rows) = traced(&model, seed);
        let (again, rows_again) = traced(&model, seed);
        prop_assert_eq!(format!("{record:?}{rows:?}"), format!("{again:?}{rows_again:?}"));
    }

    #[test]
    fn another_retry_rule_leaves_every_request_at_its_instant(
        random in random_model(false),
        seed in 1..1000u64,
    ) {
        prop_assume!(is_open(&random));
        // What is throttled away is never sent.
        let uncached = random.without_caches().without_throttles();
        let plain = uncached.without_retries();
        let (one, other) = (model(&uncached.text()), model(&plain.text()));
        let (_, with) = traced(&one, seed);
        let (_, without) = traced(&other, seed);
        prop_assert_eq!(first_sent(&one, &with), first_sent(&other, &without));
    }

    #[test]
    fn a_trigger_leaves_the_base_requests_at_their_instants(
        random in random_model(false),
        seed in 1..1000u64,
    ) {
        prop_assume!(is_open(&random));
        let triggered = model(&random.without_caches().without_throttles().text());
        let calm = triggered.untriggered();
        let (_, with) = traced(&triggered, seed);
        let (_, without) = traced(&calm, seed);
        prop_assert_eq!(first_sent(&triggered, &with), first_sent(&calm, &without));
    }
}

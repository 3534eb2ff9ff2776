//! Single cases of herds and of callers that guard themselves, each the smallest that shows it.

use super::{model, traced};
use metastable::measure::Record;
use metastable::verdict::{HerdFigures, herd_figures};

fn herd(text: &str) -> HerdFigures {
    let model = model(text);
    let (record, _) = traced(&model, 1);
    let client = model.tier_ids().find(|&tier| model.tier(tier).is_herd()).unwrap();
    herd_figures(&model, &record, client).unwrap()
}

/// 30 ms there, 5 ms of work, 30 ms back, three times: sends at 0, 100 and 200 ms.
#[test]
fn an_answer_between_two_ticks_is_acted_upon_at_the_next() {
    let figures = herd(
        "run = { duration = \"2s\", window = \"100ms\" }
         [tier.client]
         arrivals.herd = { clients = 1 }
         timer = \"100ms\"
         [tier.client.call.api]
         attempts = 3
         network.delay.constant = \"30ms\"
         [tier.api]
         errors = \"100%\"
         work.constant = \"5ms\"",
    );
    assert_eq!((figures.lost_share, figures.longest_wait_s), (1.0, 0.265));
}

#[test]
fn attempts_of_a_client_are_those_of_all_its_calls() {
    let figures = herd(
        "run = { duration = \"10s\" }
         [tier.client]
         arrivals.herd = { clients = 10, over = \"1s\" }
         calls = [[\"a\", \"b\"]]
         [tier.client.call.a]
         [tier.client.call.b]
         attempts = 3
         [tier.a]
         work.constant = \"1ms\"
         [tier.b]
         work.constant = \"1ms\"
         errors = \"100%\"",
    );
    assert_eq!((figures.attempts_mean, figures.attempts_p50), (Some(4.0), Some(4)));
}

/// All come back at 1.3 s; the trigger ends at 1.2 s, within the second window.
#[test]
fn what_is_sent_counts_also_in_the_window_in_which_the_trigger_ends() {
    let figures = herd(
        "run = { duration = \"60s\", window = \"1s\" }
         [tier.client]
         arrivals.herd = { clients = 1000 }
         [tier.client.call.api]
         attempts = 100
         backoff.fixed = \"1300ms\"
         [tier.api]
         [[trigger]]
         at = \"0s\"
         lasts = \"1200ms\"
         down = { api = \"fail\" }",
    );
    assert_eq!((figures.sent, figures.peak_per_s, figures.through_share), (1000, 1000.0, 1.0));
}

/// Attempts along the first edge between two seconds.
fn attempts(record: &Record, from: usize, to: usize) -> u64 {
    record.edges[0][from..to].iter().map(|row| row.attempts).sum()
}

/// Down from 30 to 60 s. Five failures open the breaker; one attempt every ten seconds tries.
#[test]
fn an_open_breaker_lets_one_attempt_through_each_time() {
    let model = model(
        "run = { duration = \"2m\", window = \"1s\" }
         [tier.client]
         arrivals.even = \"100/s\"
         [tier.client.call.api]
         attempts = 3
         breaker = { failures = 5, open = \"10s\" }
         [tier.api]
         work.constant = \"1ms\"
         [[trigger]]
         at = \"30s\"
         lasts = \"30s\"
         down = { api = \"fail\" }",
    );
    let (record, _) = traced(&model, 1);
    assert_eq!(attempts(&record, 30, 31), 5);
    // The trials at 40 and 50 s fail; that at 60 s closes it.
    assert_eq!(attempts(&record, 31, 60), 2);
    assert_eq!(attempts(&record, 61, 120), 59 * 100);
    let turned_away: u64 = record.edges[0].iter().map(|row| row.throttled).sum();
    let gave_up: u64 = record.edges[0].iter().map(|row| row.gave_up).sum();
    assert!(turned_away > 2_900 && gave_up >= turned_away, "{turned_away} {gave_up}");
}

/// 20 callers want 10/s each, and a server lets 100/s in: each slows down to about its share.
#[test]
fn callers_that_are_throttled_slow_down_to_what_is_borne() {
    let offered = |pace: &str| {
        let model = model(&format!(
            "run = {{ duration = \"2m\", window = \"1s\" }}
             [tier.client]
             arrivals.poisson = \"200/s\"
             clients = 20
             [tier.client.call.api]
             {pace}
             [tier.api]
             admission = \"100/s\"
             work.constant = \"1ms\""
        ));
        let (record, _) = traced(&model, 1);
        attempts(&record, 60, 120) as f64 / 60.0
    };
    let (paced, plain) = (offered("pace = \"adaptive\""), offered(""));
    assert!((195.0..205.0).contains(&plain), "{plain}");
    assert!((90.0..160.0).contains(&paced), "{paced}");
}

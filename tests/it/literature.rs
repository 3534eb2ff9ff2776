//! Published and founding cases: each shipped model runs, and what must come out comes out.

use std::sync::Mutex;

use metastable::experiment::{Twins, run_twins};
use metastable::kernel::Time;
use metastable::measure::AttemptRow;
use metastable::mechanism::outcome::Outcome;
use metastable::model::Model;
use metastable::output::Summary;
use metastable::verdict::{Class, beats};

fn model(name: &str) -> Model {
    let path = format!("{}/models/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    Model::parse(&text, &|_| Err("no file".into())).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

fn run(model: &Model) -> (Twins, Summary) {
    let twins = run_twins(model, model.run.seed, 0.0, &(), |_| {});
    let summary = Summary::of(model, &twins);
    (twins, summary)
}

/// Runs a shipped model and holds it against its own `[expect]` table.
fn as_expected(name: &str) -> (Model, Twins, Summary) {
    let model = model(name);
    assert!(
        !model.expect.is_empty() && !model.source.is_empty(),
        "{name} lacks [expect] or source"
    );
    let (twins, summary) = run(&model);
    let missed: Vec<_> =
        summary.expectations.iter().filter(|expectation| !expectation.met).collect();
    assert!(missed.is_empty(), "{name}: {missed:#?}");
    (model, twins, summary)
}

fn phase<'s>(summary: &'s Summary, name: &str) -> &'s metastable::output::summary::PhaseSummary {
    summary.phases.iter().find(|phase| phase.name == name).unwrap()
}

/// 500/s x 100 ms = 50 in flight; 500/s x 1 s = 500 > 100, so exactly 100 are, and 100/s are
/// completed.
#[test]
fn a_slow_database_exhausts_the_pool_and_littles_law_says_when() {
    let (model, twins, summary) = as_expected("little_pool");
    let db = model.names.find_tier("db").unwrap();
    let record = &twins.record;
    // From five seconds into the slow-down to its end: every window has all connections in use, all
    // of the time.
    let from = Time::ZERO + metastable::kernel::Span::from_secs(125);
    let to = Time::ZERO + metastable::kernel::Span::from_secs(360);
    for index in record.windows_between(from, to) {
        assert_eq!(record.tiers[db.index()][index].in_flight_area, 1.0 * 100.0, "window {index}");
        assert_eq!(record.edges[0][index].pool_area, 100.0, "window {index}");
    }
    let during = &phase(&summary, "during").tiers["db"];
    assert!((during.throughput_per_s.unwrap() - 100.0).abs() < 2.0);
    assert!((during.refused_pool_per_s.unwrap() - 400.0).abs() < 8.0);
}

/// Nested badly, the database works on for callers that have left; with a deadline passed down it
/// does not.
#[test]
fn a_deadline_passed_down_takes_the_work_for_nobody_away() {
    let (_, _, badly) = as_expected("orphan_work");
    let (_, _, well) = as_expected("orphan_work_deadline");
    let wasted =
        |summary: &Summary| phase(summary, "during").tiers["db"].wasted_work_per_s.unwrap();
    assert!(wasted(&badly) > 60.0 && wasted(&well) < 0.1, "{} {}", wasted(&badly), wasted(&well));
}

#[test]
fn three_layers_of_three_attempts_make_exactly_27() {
    let (_, _, summary) = as_expected("amplification_27");
    assert_eq!(summary.tiers["db"].amplification, Some(27.0));
}

#[test]
fn one_layer_of_three_attempts_makes_exactly_3() {
    let (_, _, summary) = as_expected("amplification_client_only");
    assert_eq!(summary.tiers["db"].amplification, Some(3.0));
}

/// No token is there at the start, so retries are at most a tenth of the successes in every prefix
/// of the run.
#[test]
fn a_budget_holds_retries_to_a_tenth_of_the_successes() {
    let (_, twins, summary) = as_expected("amplification_budget");
    let (mut retries, mut successes) = (0, 0);
    for row in &twins.record.edges[0] {
        retries += row.attempts - row.calls.min(row.attempts);
        successes += row.ok;
        assert!(
            retries as f64 <= 0.1 * successes as f64 + 1.0,
            "{retries} retries, {successes} successes"
        );
    }
    assert!(retries > 0 && phase(&summary, "during").tiers["db"].amplification.unwrap() <= 1.15);
}

/// At time t the queue holds 500 t and who arrives waits t/2. The last who is answered in time
/// arrived at 4 s, and is answered at 6 s: from then on there is no goodput at all.
#[test]
fn an_unbounded_queue_serves_only_the_dead() {
    as_expected("overload_unbounded");
    let model = model("overload_unbounded");
    let rows = Mutex::new(Vec::new());
    let twins = run_twins(&model, 1, 1.0, &(), |batch: &[AttemptRow]| {
        rows.lock().unwrap().extend_from_slice(batch)
    });
    let rows = rows.into_inner().unwrap();
    for (arrives, waits) in [(1.0, 0.5), (2.0, 1.0), (4.0, 2.0), (6.0, 3.0)] {
        let near = |row: &&AttemptRow| (row.arrived.seconds() - arrives).abs() < 0.001;
        let row = rows.iter().find(near).unwrap();
        let waited = row.started.since(row.arrived).seconds();
        assert!((waited - waits).abs() < 0.05 * waits, "{arrives} s: {waited} s");
    }
    let late = |row: &&AttemptRow| row.sent.seconds() > 4.01 && row.outcome == Some(Outcome::Ok);
    assert_eq!(rows.iter().filter(late).count(), 0);
    let after_five = beats(&twins.record, model.names.find_tier("client").unwrap())
        .into_iter()
        .filter(|beat| beat.from.seconds() >= 5.0);
    let good: u64 = after_five.map(|beat| beat.good).sum();
    assert!((good as f64) < 0.02 * 1000.0 * 115.0, "{good} answered after 5 s");
}

#[test]
fn a_queue_of_half_a_second_gives_full_goodput_for_ever() {
    let (_, _, summary) = as_expected("overload_bounded");
    assert!((summary.tiers["server"].refused_per_s.unwrap() - 500.0).abs() < 15.0);
}

/// 6,000/s x 3 = 18,000/s > 10,000/s, an hour later as on the first minute.
#[test]
fn a_spike_outlives_itself() {
    let (model, twins, summary) = as_expected("spike_metastable");
    let twin = twins.twin.as_ref().unwrap();
    let calm = metastable::verdict::classify(
        &beats(twin, model.names.find_tier("client").unwrap()),
        None,
        None,
        &model.criteria,
    );
    assert_eq!(calm.class, Class::Stable);
    assert_eq!(summary.verdict.evidence.sustaining_edge.as_deref(), Some("client->api"));
    let end = &phase(&summary, "end").tiers;
    assert!(end["client"].goodput_per_s.unwrap() < 0.05 * 6000.0);
}

#[test]
fn opened_in_one_step_onto_a_cold_cache_it_collapses_again() {
    as_expected("spike_one_step");
}

#[test]
fn given_back_by_a_ramp_it_recovers_and_stays() {
    as_expected("spike_ramp");
}

#[test]
fn the_three_spikes_differ_in_their_playbook_alone() {
    let system = |name: &str| {
        let text =
            std::fs::read_to_string(format!("{}/models/{name}.toml", env!("CARGO_MANIFEST_DIR")))
                .unwrap();
        let from = text.find("run    =").unwrap();
        let to = text.find("[[playbook]]").or(text.find("[expect]")).unwrap();
        text[from..to].to_owned()
    };
    assert_eq!(system("spike_metastable"), system("spike_one_step"));
    assert_eq!(system("spike_metastable"), system("spike_ramp"));
}

#[test]
fn a_lost_answer_charges_a_hundred_customers_a_day_twice() {
    as_expected("double_charge");
}

#[test]
fn one_key_for_each_payment_charges_nobody_twice() {
    as_expected("double_charge_keyed");
}

#[test]
fn a_checkout_with_nested_timeouts_still_does_not_recover() {
    as_expected("checkout");
}

/// What the README shows line by line is a whole model, and does what it says.
#[test]
fn the_model_of_the_readme_runs_as_printed() {
    let readme =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let block = readme.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let model = Model::parse(block, &|_| Err("no file".into())).unwrap();
    let (_, summary) = run(&model);
    let missed: Vec<_> = summary.expectations.iter().filter(|e| !e.met).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    assert_eq!(summary.verdict.evidence.recovered_by.as_deref(), Some("operator"));
}

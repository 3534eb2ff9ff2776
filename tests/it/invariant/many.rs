//! One run in many: runs in used room, and branches of a common past.

use std::fmt::Debug;

use metastable::experiment::run_branches;
use metastable::kernel::{Span, Time};
use metastable::measure::Record;
use metastable::mechanism::outcome::Reason;
use metastable::model::Model;
use metastable::simulation::{Simulation, TooLate};
use proptest::prelude::*;

use super::model;
use super::random_model::{RandomModel, random_model};

const STORM: &str = r#"
    run = { duration = "4m" }
    [tier.client]
    arrivals.poisson = "60/s"
    [tier.client.call.api]
    timeout  = "1s"
    attempts = 3
    [tier.api]
    concurrency      = 1
    work.exponential = "10ms"
    queue.fifo       = { capacity = 500 }
    [[trigger]]
    at     = "1m"
    lasts  = "30s"
    demand = { client = 3 }
"#;

const END_OF_TRIGGER: Time = Time::from_nanos(90_000_000_000);

/// The storm with an operator who does this when that.
fn rescued(when: &str, action: &str) -> Model {
    model(&format!("{STORM}\n[[playbook]]\nwhen = {when}\n{action}\n"))
}

fn said(value: &impl Debug) -> String {
    format!("{value:?}")
}

#[test]
fn a_branch_is_bit_equal_to_the_run_from_the_start() {
    let trunk_model = model(STORM);
    let mut trunk = Simulation::new(&trunk_model, 1, 0.0);
    trunk.run_to(END_OF_TRIGGER, &mut ());
    let playbooks = [
        rescued("{ after_trigger = \"30s\" }", "retries = \"off\""),
        rescued("{ goodput = \"< 50%\", for = \"40s\" }", "flush = [\"api\"]"),
        rescued("{ at = \"2m\" }", "limit = { api = \"50/s\" }"),
        rescued("{ queue_empty = \"api\", for = \"3m\" }", "add = { api = 1 }"),
    ];
    let mut records = Vec::new();
    for rescued in &playbooks {
        let branch = trunk.branch(&rescued.playbook).unwrap().run(&mut ());
        assert_eq!(said(&branch), said(&Simulation::new(rescued, 1, 0.0).run(&mut ())));
        records.push(said(&branch));
    }
    let untouched = said(&trunk.run(&mut ()));
    assert_eq!(untouched, said(&Simulation::new(&trunk_model, 1, 0.0).run(&mut ())));
    assert!(records[..3].iter().all(|record| *record != untouched), "the operators did something");
}

#[test]
fn a_playbook_that_would_have_acted_before_cannot_branch_off() {
    let trunk_model = model(STORM);
    let mut trunk = Simulation::new(&trunk_model, 1, 0.0);
    trunk.run_to(END_OF_TRIGGER, &mut ());
    let early = rescued("{ at = \"70s\" }", "retries = \"off\"");
    let refusal = trunk.branch(&early.playbook).err();
    assert_eq!(refusal, Some(TooLate { at: Time::ZERO + Span::from_secs(70) }));
}

#[test]
fn branches_are_the_same_on_any_number_of_threads() {
    let storm = model(STORM);
    let late = rescued("{ after_trigger = \"30s\" }", "retries = \"off\"");
    let early = rescued("{ at = \"70s\" }", "retries = \"off\"");
    let playbooks = [late.playbook.clone(), early.playbook, Vec::new()];
    let branches = |threads| {
        let digest = |record: Record| said(&record);
        run_branches(&storm, 1, END_OF_TRIGGER, &playbooks, Some(threads), digest).unwrap()
    };
    let one = branches(1);
    assert!(one[0].is_ok() && one[1].is_err() && one[2].is_ok() && one[0] != one[2]);
    assert_eq!(one, branches(2));
    assert_eq!(one, branches(16));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn a_run_in_used_room_is_a_run_in_new_room(
        first in random_model(false),
        second in random_model(false),
        seed in 0u64..1_000,
    ) {
        let (first, second) = (model(&first.text()), model(&second.text()));
        let mut engine = Simulation::new(&first, seed, 0.0);
        engine.run(&mut ());
        engine.restart(&second, seed, 0.0);
        let reused = engine.run(&mut ());
        prop_assert_eq!(said(&reused), said(&Simulation::new(&second, seed, 0.0).run(&mut ())));
    }
}

/// A retry that waits for no time goes at once where nobody would look at its back-off. A pool that
/// is never empty makes it wait its turn in the event list.
#[test]
fn a_retry_at_once_counts_what_one_by_the_list_counts() {
    let clients = "[tier.client.call.api]\n    backoff = \"immediate\"";
    let at_once = model(&STORM.replace("[tier.client.call.api]", clients));
    let pool = format!("{clients}\n    pool = {{ size = 1000000, wait = \"1s\" }}");
    let by_list = model(&STORM.replace("[tier.client.call.api]", &pool));
    let run = |model| {
        let mut record = Simulation::new(model, 1, 0.0).run(&mut ());
        record.edges.iter_mut().flatten().for_each(|row| row.pool_area = 0.0);
        assert!(record.totals.attempts > 2 * record.totals.requests, "it retries");
        said(&record)
    };
    assert_eq!(run(&at_once), run(&by_list));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    /// An attempt whose caller leaves it in a queue is forgotten but for its place there, unless
    /// the trace wants to know it to its end.
    #[test]
    fn what_is_forgotten_counts_like_what_is_traced(
        random in random_model(false),
        seed in 0u64..1_000,
    ) {
        let model = model(&random.text());
        let run = |trace| said(&Simulation::new(&model, seed, trace).run(&mut ()));
        prop_assert_eq!(run(0.0), run(1.0));
    }
}

/// Nearly always one of the forgotten is in service here: when the server pauses, when its work
/// fails, and when it is restarted. Then one more whose caller waits.
#[test]
fn the_forgotten_in_service_pause_fail_and_fall_like_others() {
    let pause = r#"
    [[trigger]]
    at    = "72s"
    lasts = "1500ms"
    pause = ["api"]
"#;
    let befalls = r#"
    [[trigger]]
    at    = "75s"
    lasts = "5s"
    fail  = { api = "30%" }
    [[playbook]]
    when    = { at = "82s" }
    restart = { api = "1s" }
    [[playbook]]
    when    = { at = "83200ms" }
    restart = { api = "1s" }
    [[playbook]]
    when    = { at = "2m" }
    restart = { api = "1s" }
"#;
    for pause in [pause, ""] {
        let model = model(&format!("{STORM}{pause}{befalls}"));
        let run = |trace| Simulation::new(&model, 1, trace).run(&mut ());
        let (forgotten, traced) = (run(0.0), run(1.0));
        let refused = forgotten.tiers[1].iter().map(|row| row.refused[Reason::Dropped as usize]);
        let dropped: u64 = refused.sum();
        assert!(dropped > 500, "the restarts find a full queue, not {dropped}");
        assert_eq!(said(&forgotten), said(&traced));
    }
}

/// All that is counted, but for the events handled.
fn counted(record: &Record) -> String {
    said(&(&record.windows, &record.tiers, &record.edges, record.totals.requests))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    /// Where nothing can befall a request but its one call, the engine goes a short way. A lever
    /// that could make requests fail, though it is as good as never moved, bars it.
    #[test]
    fn the_short_way_counts_what_the_long_way_counts(
        random in random_model(false),
        seed in 0u64..1_000,
    ) {
        // An operator may wait for the last trigger.
        let random = RandomModel { playbook: String::new(), ..random };
        let short = model(&random.text());
        let at = f64::from(random.duration_s) - 0.001;
        let lever = "fail = { t0 = \"0.0000000001%\" }";
        let trigger = format!("\n[[trigger]]\nat = \"{at}s\"\nlasts = \"1ms\"\n{lever}\n");
        let triggers = format!("{}{trigger}", random.triggers);
        let long = model(&RandomModel { triggers, ..random }.text());
        let run = |model| Simulation::new(model, seed, 0.0).run(&mut ());
        prop_assert_eq!(counted(&run(&short)), counted(&run(&long)));
    }
}

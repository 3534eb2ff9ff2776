//! Herds: every row of the published table of back-off strategies, against an independent
//! simulation of 200 seeds (`literature_cases/herd_200_seeds.csv`: mean and standard deviation of
//! one run) and against the published means over five.

use metastable::experiment::{Draws, Plan, run_ensemble};
use metastable::model::{Model, overridden};
use metastable::verdict::HerdFigures;
use statrs::distribution::{ContinuousCDF, StudentsT};

const SEEDS: u32 = 200;

/// Mean and standard deviation of one run.
#[derive(Clone, Copy, Debug)]
struct Spread {
    mean: f64,
    sd: f64,
}

/// A row of the reference: sent, peak, half through, 99 % through (never: `None`).
struct Row {
    policy: String,
    figures: [Option<Spread>; 4],
}

const FIGURES: [&str; 4] = ["sent", "peak_per_s", "through_50_s", "through_99_s"];

/// Half a unit of the last digit that the reference prints.
const ROUNDING: [f64; 4] = [0.05, 0.05, 0.005, 0.005];

/// Published means over five seeds; `None` where none is given, or never.
const PUBLISHED: [(&str, [Option<f64>; 4]); 12] = [
    ("fixed_5s", [Some(9423.0), Some(1174.0), Some(50.4), Some(73.5)]),
    ("exp_cap60", [Some(9423.0), Some(1174.0), Some(242.4), Some(507.5)]),
    ("exp_cap300", [Some(8960.0), Some(1174.0), None, None]),
    ("exp_full_jitter", [Some(2011.0), Some(152.0), Some(43.5), Some(84.5)]),
    ("exp_equal_jitter", [Some(2152.0), Some(224.0), Some(48.4), Some(103.3)]),
    ("exp_pm10", [Some(3754.0), Some(706.0), None, Some(129.4)]),
    ("exp_pm25", [Some(2554.0), Some(370.0), None, Some(72.8)]),
    ("decorrelated", [Some(2324.0), Some(264.0), Some(39.0), Some(73.4)]),
    ("retry_after_exact", [Some(9423.0), Some(1174.0), Some(150.4), Some(283.5)]),
    ("retry_after_full_jitter", [Some(3818.0), Some(1208.0), Some(44.6), Some(60.9)]),
    ("retry_after_floor_1to2x", [Some(3762.0), Some(1174.0), Some(74.1), Some(90.9)]),
    ("retry_after_ignored", [Some(2324.0), Some(264.0), Some(39.0), Some(73.4)]),
];

/// Half a unit of the last digit that was published.
const PUBLISHED_ROUNDING: [f64; 4] = [0.5, 0.5, 0.05, 0.05];

fn reference() -> Vec<Row> {
    let text = include_str!("literature_cases/herd_200_seeds.csv");
    let rows = text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let figure = |mean: usize| {
            let mean_value = cells[mean].parse().ok()?;
            Some(Spread { mean: mean_value, sd: cells[mean + 1].parse().ok()? })
        };
        Row { policy: cells[0].to_owned(), figures: [2, 4, 6, 8].map(figure) }
    });
    rows.collect()
}

/// A shipped model with some settings.
fn shipped(name: &str, settings: &[&str]) -> Model {
    let path = format!("{}/models/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    let text = overridden(&text, &settings).unwrap();
    Model::parse(&text, &|_| Err("no file".into())).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

/// The shipped model under a policy, with further settings.
fn herd(policy: &str, settings: &[&str]) -> Model {
    let retry = format!("tier.client.call.backend.retry={policy}");
    shipped("herd", &[&[retry.as_str()], settings].concat())
}

/// Long enough for all to get through, and short enough to test: only the slow take so long.
fn horizon(policy: &str) -> &'static str {
    match policy {
        "exp_cap60" | "exp_cap300" | "retry_after_exact" => "run.duration=20m",
        _ => "run.duration=3m",
    }
}

fn replicate(model: &Model) -> Vec<HerdFigures> {
    let plan = Plan { root: Some(1), seeds: SEEDS, draws: Draws::Shared, threads: None };
    let herds = run_ensemble(std::slice::from_ref(model), &plan, &(), |model, twins| {
        let client = model.names.find_tier("client").unwrap();
        metastable::verdict::herd_figures(model, &twins.record, client).unwrap()
    });
    herds.unwrap().remove(0)
}

/// Mean and standard deviation of a figure; `None` where no run has it.
fn spread(herds: &[HerdFigures], figure: &str) -> Option<Spread> {
    let values: Vec<f64> = herds.iter().filter_map(|herd| herd.figure(figure)).collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() == herds.len()).then(|| Spread { mean, sd: (squares / (count - 1.0)).sqrt() })
}

/// Four standard errors of the difference of two means over so many seeds each, and what the
/// reference has rounded off.
fn tolerance(reference: Spread, own: Spread, rounding: f64) -> f64 {
    let variance = (reference.sd.powi(2) + own.sd.powi(2)) / f64::from(SEEDS);
    4.0 * variance.sqrt() + rounding
}

/// In the discretisation of the reference: clients act every 100 ms, twelve permits in each 100 ms.
#[test]
fn every_strategy_agrees_with_the_reference_and_with_what_was_published() {
    let t = StudentsT::new(0.0, 1.0, f64::from(SEEDS - 1)).unwrap().inverse_cdf(0.995);
    let mut wrong = Vec::new();
    for row in reference() {
        let herds = replicate(&herd(&row.policy, &[horizon(&row.policy)]));
        let published = PUBLISHED.iter().find(|(policy, _)| *policy == row.policy).unwrap().1;
        for (index, figure) in FIGURES.into_iter().enumerate() {
            let own = spread(&herds, figure);
            let note = format!("{} {figure}: {own:?}", row.policy);
            let (Some(wanted), Some(own)) = (row.figures[index], own) else {
                if row.figures[index].is_some() != own.is_some() {
                    wrong.push(note);
                }
                continue;
            };
            if (own.mean - wanted.mean).abs() > tolerance(wanted, own, ROUNDING[index]) {
                wrong.push(format!("{note} is not {wanted:?}"));
            }
            // The 99 % prediction interval of a mean over five seeds.
            let half = t * own.sd * (1.0 / 5.0 + 1.0 / f64::from(SEEDS)).sqrt();
            if let Some(published) = published[index]
                && (own.mean - published).abs() > half + PUBLISHED_ROUNDING[index]
            {
                wrong.push(format!("{note} ± {half} leaves out {published}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Where clients act at any time and the server counts in windows of 100 ms: times within 3 % and
/// peaks within 10 %, and the sampling error on top.
#[test]
fn in_continuous_time_every_strategy_stays_close_to_the_reference() {
    let mut wrong = Vec::new();
    for row in reference() {
        let mut model = herd(&row.policy, &[horizon(&row.policy)]);
        model.tiers.iter_mut().for_each(|tier| tier.timer = None);
        let herds = replicate(&model);
        for (index, share) in [0.03, 0.10, 0.03, 0.03].into_iter().enumerate() {
            let own = spread(&herds, FIGURES[index]);
            let (Some(wanted), Some(own)) = (row.figures[index], own) else {
                assert_eq!(row.figures[index].is_some(), own.is_some(), "{}", row.policy);
                continue;
            };
            let most = share * wanted.mean + tolerance(wanted, own, ROUNDING[index]);
            if (own.mean - wanted.mean).abs() > most {
                wrong.push(format!("{} {}: {own:?}, {wanted:?}", row.policy, FIGURES[index]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The orders that the table is quoted for.
#[test]
fn jitter_beats_discipline_and_an_obeyed_retry_after_is_no_help() {
    let mean = |policy: &str, figure: &str| {
        let herds = replicate(&herd(policy, &[horizon(policy)]));
        spread(&herds, figure).map(|spread| spread.mean)
    };
    let nearly_all = |policy: &str| mean(policy, "through_99_s").unwrap();
    let (fixed, exponential) = (nearly_all("fixed_5s"), nearly_all("exp_cap60"));
    assert!((6.5..7.5).contains(&(exponential / fixed)), "about seven times as slow");
    assert_eq!(mean("exp_cap300", "through_99_s"), None, "a higher cap makes it worse");
    let peak = mean("exp_pm10", "peak_per_s").unwrap() / 120.0;
    assert!((5.4..6.6).contains(&peak), "5.9 times the capacity, {peak}");
    let (exact, ignored) = (nearly_all("retry_after_exact"), nearly_all("retry_after_ignored"));
    assert!((3.5..4.5).contains(&(exact / ignored)), "about four times as slow");
    let spread = nearly_all("retry_after_full_jitter");
    let others = ["fixed_5s", "exp_full_jitter", "exp_equal_jitter", "exp_pm25", "decorrelated"];
    assert!(others.into_iter().all(|policy| nearly_all(policy) > spread), "the fastest of all");
    // Sends that were due anyway when the backend came back.
    assert!(mean("retry_after_full_jitter", "peak_per_s").unwrap() > 9.0 * 120.0);
}

/// A herd that fails together, at a backend that is down for so many seconds.
fn outage(clients: u32, down: &str, call: &str) -> Model {
    let text = format!(
        "run = {{ duration = \"5m\", window = \"1s\" }}\n\
         [tier.client]\narrivals.herd = {{ clients = {clients} }}\n\
         [tier.client.call.backend]\n{call}\n\
         [tier.backend]\nwork.constant = \"1ms\"\n\
         [[trigger]]\nat = \"0s\"\nlasts = \"{down}\"\ndown = {{ backend = \"fail\" }}\n"
    );
    Model::parse(&text, &|_| Err("no file".into())).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

fn once(model: &Model) -> HerdFigures {
    let twins = metastable::experiment::run_twins(model, 1, 0.0, &(), |_| {});
    let client = model.tier_ids().find(|&tier| model.tier(tier).is_client()).unwrap();
    metastable::verdict::herd_figures(model, &twins.record, client).unwrap()
}

/// 2 x 2 s = 4 s of an outage of 30 s.
#[test]
fn three_attempts_two_seconds_apart_do_not_outlast_a_deployment() {
    let herd = once(&outage(500, "30s", "attempts = 3\nbackoff.fixed = \"2s\""));
    assert_eq!((herd.lost_share, herd.longest_wait_s, herd.attempts_max), (1.0, 4.0, Some(3)));
}

/// 1 + 2 + 4 + 8 s = 15 s, and every caller is in back-off meanwhile.
#[test]
fn four_retries_show_the_final_error_after_fifteen_seconds() {
    let call = "attempts = 5\nbackoff.exponential = { base = \"1s\" }";
    let herd = once(&outage(500, "30s", call));
    assert_eq!((herd.longest_wait_s, herd.backoff_max), (15.0, 500));
}

/// d x (1 + 0.2 x u) with d of 1, 2, 4 and 8 s: 15 to 18 s.
#[test]
fn additive_jitter_makes_waits_longer_and_never_shorter() {
    let call = "attempts = 5\nbackoff.exponential = { base = \"1s\", jitter.additive = \"20%\" }";
    let herd = once(&outage(500, "30s", call));
    assert!((15.0..18.0).contains(&herd.longest_wait_s), "{}", herd.longest_wait_s);
}

#[test]
fn a_thousand_instances_with_one_schedule_return_in_the_same_millisecond() {
    let text = "attempts = 5\nbackoff.exponential = { base = \"1s\" }";
    let mut model = outage(1000, "10s", text);
    model.run.window = metastable::kernel::Span::from_millis(20);
    let herd = once(&model);
    // At 0, 1, 3, 7 and 15 s; the last alone is after the outage.
    assert_eq!((herd.through_share, herd.sent), (1.0, 1000));
    assert_eq!(herd.peak_per_s, 1000.0 / 0.02);
    let longest = (herd.through_50_s, herd.through_all_s);
    assert_eq!(longest, (Some(15.001), Some(15.001)), "all of them at once");
}

/// Optimistic concurrency of N clients: calls and completion (ms) are means over 100 runs of the
/// published simulator, whose own spread is taken to be ours.
#[test]
fn jitter_halves_the_calls_of_optimistic_writers_as_published() {
    let t = StudentsT::new(0.0, 1.0, f64::from(SEEDS - 1)).unwrap().inverse_cdf(0.9995);
    let published = [
        ("no_backoff", 2422.0, 2.026, 51.0),
        ("exp_backoff", 1861.0, 63.572, 51.0),
        ("equal_jitter", 813.0, 6.620, 42.0),
        ("full_jitter", 795.0, 4.925, 39.0),
        ("decorrelated", 1000.0, 4.576, 38.0),
    ];
    let mut wrong = Vec::new();
    for (policy, calls, completion_s, calls_of_ten) in published {
        let retry = format!("tier.client.call.record.retry={policy}");
        let hundred = replicate(&shipped("aws_occ", &[&retry]));
        let ten = "tier.client.arrivals.herd.clients=10";
        let ten = replicate(&shipped("aws_occ", &[&retry, ten]));
        for (herds, figure, wanted, rounding) in [
            (&hundred, "sent", calls, 0.5),
            (&hundred, "through_all_s", completion_s, 0.0005),
            (&ten, "sent", calls_of_ten, 0.5),
        ] {
            let own = spread(herds, figure).unwrap();
            let error = own.sd * (1.0 / f64::from(SEEDS) + 1.0 / 100.0).sqrt();
            if (own.mean - wanted).abs() > t * error + rounding {
                wrong.push(format!("{policy} {figure}: {own:?}, not {wanted}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Attempts for each request over a whole run.
fn amplification(model: &Model, seed: u64) -> f64 {
    let record = metastable::simulation::Simulation::new(model, seed, 0.0).run(&mut ());
    record.totals.attempts as f64 / record.totals.requests as f64
}

/// 1 + p + p^2 + p^3; with a budget of a tenth of the first tries and five tokens at the start
/// 1.1 + 5 / (10/s x 25 s) = 1.12 where there is enough to retry. Published: 1.110, 1.873, 4.000
/// and 1.098, 1.121, about 1.12.
#[test]
fn three_retries_multiply_the_load_and_a_budget_does_not() {
    for (share, three, budget) in [(0.1f64, 1.110, 1.098), (0.5, 1.873, 1.121), (1.0, 4.0, 1.12)] {
        let errors = format!("tier.service.errors={}%", share * 100.0);
        let under = |policy: &str| {
            let retry = format!("tier.client.call.service.retry={policy}");
            amplification(&shipped("retry_budget_clients", &[&errors, &retry]), 1)
        };
        // A call makes at most four attempts: the variance of their number is below 2, and 25,000
        // calls give a standard error below 0.009.
        let closed_form = 1.0 + share + share.powi(2) + share.powi(3);
        assert!((under("three_retries") - closed_form).abs() < 0.03, "{share}");
        assert!((closed_form - three).abs() < 0.012, "{share}");
        assert!((under("budget") - budget).abs() < 0.01, "{share}: {}", under("budget"));
    }
}

/// At 100/s in total, 50 s, p = 0.5. Each client may spend its five tokens, and a tenth of its
/// requests besides, as far as it has anything to retry.
#[test]
fn many_small_clients_spend_their_first_tokens() {
    // One published run of 5,000 calls, whose retries have a standard deviation of up to 1.1:
    // three standard errors are 0.05, and much less where the budget decides alone. Ours is a mean
    // of ten.
    let cases = [(10, 1.109, 0.01), (100, 1.183, 0.02), (1000, 1.653, 0.05)];
    for (clients, published, most) in cases {
        let clients = format!("tier.client.clients={clients}");
        let settings = ["tier.client.arrivals.even=100/s", "run.duration=50s", &clients];
        let model = shipped("retry_budget_clients", &settings);
        let got = (1..=10).map(|seed| amplification(&model, seed)).sum::<f64>() / 10.0;
        assert!((got - published).abs() < most, "{clients}: {got}");
    }
}

fn failing_service(call: &str, server: &str) -> Model {
    let text = format!(
        "run = {{ duration = \"10m\", window = \"1s\" }}\n\
         [tier.client]\narrivals.poisson = \"1000/s\"\n\
         [tier.client.call.service]\n{call}\n[tier.service]\n{server}\n"
    );
    Model::parse(&text, &|_| Err("no file".into())).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

/// At most three attempts, and retries below a tenth of the requests of a client.
#[test]
fn a_limit_for_each_client_turns_a_growth_of_three_into_one_tenth() {
    let all_fail = "errors = \"100%\"";
    assert_eq!(amplification(&failing_service("attempts = 3", all_fail), 1), 3.0);
    let budget = "attempts = 3\nbudget = { ratio = \"10%\", deposit = \"request\" }";
    let growth = amplification(&failing_service(budget, all_fail), 1);
    // Ten tokens at the start are nothing among 600,000 requests.
    assert!((growth - 1.1).abs() < 0.0005, "{growth}");
}

/// K = 2 over two minutes: of what a server accepts, 100/s, it is asked for about twice as much,
/// however much is wanted.
#[test]
fn a_throttling_caller_sends_twice_what_is_accepted() {
    let limit = "admission = { rate = \"100/s\", burst = 10 }";
    let model = failing_service("throttle = { k = 2, window = \"2m\" }", limit);
    let record = metastable::simulation::Simulation::new(&model, 1, 0.0).run(&mut ());
    let service = model.names.find_tier("service").unwrap();
    let sum = record.tier_sum(service, 300..600);
    let ratio = sum.offered as f64 / sum.admitted as f64;
    assert!((1.9..2.1).contains(&ratio), "{ratio}");
    assert!((sum.admitted as f64 / 300.0 - 100.0).abs() < 1.0, "the server is kept busy");
}

/// A herd's first sends are drawn by the clients alone.
#[test]
fn a_change_of_policy_never_changes_the_first_sends() {
    let firsts = |policy: &str| {
        let model = herd(policy, &["run.duration=1m"]);
        let mut sends = std::collections::BTreeMap::new();
        metastable::experiment::run_twins(&model, 1, 1.0, &(), |rows| {
            let first = rows.iter().filter(|row| row.attempt == 1);
            sends.extend(first.map(|row| (row.request, row.sent)));
        });
        sends
    };
    let calm = firsts("exp_full_jitter");
    assert_eq!(calm.len(), 2000);
    for policy in ["fixed_5s", "decorrelated", "herd-safe", "none", "linkerd"] {
        assert_eq!(firsts(policy), calm, "{policy}");
    }
}

/// Users who leave after 40 s: who cancels sends nothing for them, who does not sends as many
/// attempts more as those clients would have needed.
#[test]
fn retries_of_users_who_have_left_are_ghosts() {
    let with = |cancel: bool| {
        let text =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/models/herd.toml"));
        let patience = format!("patience = {{ wait = \"40s\", cancel = {cancel} }}\ntimer");
        let text = text.unwrap().replacen("\ntimer", &format!("\n{patience}"), 1);
        let text = text.replace("\"exp_cap60\"\n\n[tier", "\"exp_full_jitter\"\n\n[tier");
        let model = Model::parse(&text, &|_| Err("no file".into()));
        once(&model.unwrap_or_else(|faults| panic!("{faults:#?}")))
    };
    let (cancelled, kept) = (with(true), with(false));
    assert_eq!(cancelled.ghosts, 0);
    assert!(kept.ghosts > 1000 && kept.sent == cancelled.sent + kept.ghosts, "{kept:?}");
    assert_eq!(cancelled.through_share, kept.through_share, "the ghosts come too late to disturb");
    assert!(cancelled.lost_share > 0.5 && cancelled.longest_wait_s <= 40.0);
}

/// 15,000 clients at a server that does 2,000 units of work a second: an answer is one unit, and a
/// refusal `cost`. Who is refused, or not answered within a second, sends again after that second.
fn refusing(cost: &str, retry_after: &str) -> HerdFigures {
    let text = format!(
        "run = {{ duration = \"2m\", window = \"1s\" }}\n\
         [tier.client]\narrivals.herd = {{ clients = 15000 }}\n\
         [tier.client.call.server]\nattempts = 1000\ntimeout = \"1s\"\nretry_after = \"exact\"\n\
         [tier.server]\nconcurrency = 1\nqueue.fifo = {{ capacity = 2000 }}\n\
         abandoned = \"skip\"\nwork.constant = \"500us\"\n\
         refusal = {{ retry_after = {retry_after}, cost = \"{cost}\" }}\n"
    );
    let model = Model::parse(&text, &|_| Err("no file".into()));
    once(&model.unwrap_or_else(|faults| panic!("{faults:#?}")))
}

/// Drained after 8, 10 and 14 s where a refusal costs nothing, 5 % and 10 % of an answer; never at
/// 14 %, since 15,000 x 0.1333 = 2,000. Times within 20 %, as the sheet says. At 13 % the sheet's
/// slots take 27 s, and here it is 19 s: of the first 15,000, the 2,000 in the queue cost no
/// refusal, and so close to the threshold that is half of what is left to serve with.
#[test]
fn refusals_that_cost_work_leave_none_for_answers_beyond_a_threshold() {
    let second = "\"1s\"";
    for (cost, drained_s) in [("0us", 8.0), ("25us", 10.0), ("50us", 14.0)] {
        let all = refusing(cost, second).through_all_s.unwrap();
        assert!((all / drained_s - 1.0).abs() < 0.2, "{cost}: {all}");
    }
    assert_eq!(refusing("65us", second).through_share, 1.0);
    assert!(refusing("70us", second).through_share < 0.05);
}

/// Where each comes again after U[0, W), a client comes 2/W times a second on average, and the
/// server has something left when W > 2 r N / C: 3 s at r = 0.2.
#[test]
fn a_retry_after_that_the_server_spreads_makes_room_for_answers() {
    let within = |w: &str| refusing("100us", &format!("{{ from = \"0s\", to = \"{w}\" }}"));
    assert!(within("2s").through_share < 0.05);
    assert_eq!(within("4s").through_share, 1.0);
}

#[test]
fn the_shipped_models_of_herds_meet_their_own_expectations() {
    for name in ["herd", "herd_deployment", "aws_occ", "retry_budget_clients"] {
        let model = shipped(name, &[]);
        assert!(!model.expect.is_empty() && !model.source.is_empty(), "{name}");
        let twins = metastable::experiment::run_twins(&model, model.run.seed, 0.0, &(), |_| {});
        let summary = metastable::output::Summary::of(&model, &twins);
        let missed: Vec<_> = summary.expectations.iter().filter(|held| !held.met).collect();
        assert!(missed.is_empty(), "{name}: {missed:#?}");
    }
}

/// 0 + 0, 2 + 2 and 1 + 2 + 4 + 8 s do not cover 30 s; 31 s do, with and without jitter.
#[test]
fn what_does_not_outlast_a_deployment_loses_everybody() {
    let lost = |policy: &str| {
        once(&shipped("herd_deployment", &[&format!("tier.caller.call.service.retry={policy}")]))
            .lost_share
    };
    for policy in ["immediately", "every_2s", "five_attempts"] {
        assert_eq!(lost(policy), 1.0, "{policy}");
    }
    // Of a thousand that come back at once, 50 are served, 500 wait, and the others are refused.
    assert_eq!(lost("six_attempts"), 0.45);
    assert_eq!((lost("six_with_jitter"), lost("patient")), (0.0, 0.0));
}

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

/// The shipped model under a policy, with further settings.
fn herd(policy: &str, settings: &[&str]) -> Model {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/herd.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let mut all = vec![format!("tier.client.call.backend.retry={policy}")];
    all.extend(settings.iter().map(|setting| (*setting).to_owned()));
    let text = overridden(&text, &all).unwrap();
    Model::parse(&text, &|_| Err("no file".into())).unwrap_or_else(|faults| panic!("{faults:#?}"))
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
    let client = model.names.find_tier("client").unwrap();
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
    assert_eq!((herd.longest_wait_s, herd.backoff_max), (15.0, 500.0));
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

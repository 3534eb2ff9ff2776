//! `run --seeds`: many seeds of one model.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use super::{assert_matches_schema, json, metastable, model_file, names, stderr, stdout};

/// Close to its tipping point: twice the demand for four seconds, and three attempts each, 150/s
/// against 100/s. Whether the queue grows past the callers' patience is a matter of luck.
pub const TIPPING: &str = r#"
run = { duration = "90s" }
[tier.client]
arrivals.poisson = "50/s"
[tier.client.call.api]
timeout  = "500ms"
attempts = 3
[tier.api]
concurrency      = 1
work.exponential = "10ms"
queue.fifo       = { capacity = 200 }
[[trigger]]
at     = "20s"
lasts  = "4s"
demand = { client = 2 }
[expect]
verdict = "stable"
[expect.before.client]
demand_per_s = [30, 70]
"#;

const SEEDS: [&str; 2] = ["--seeds", "16"];

/// The model in a folder of its own, and the arguments that run it with 16 seeds and more words.
fn tipping(more: &[&str]) -> (TempDir, Vec<String>) {
    let folder = TempDir::new().unwrap();
    let model = model_file(&folder, TIPPING);
    let words = ["run", model.to_str().unwrap()].into_iter().chain(SEEDS).chain(more.to_vec());
    let words = words.map(str::to_owned).collect();
    (folder, words)
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let outputs = ["1", "2", "16"].map(|threads| {
        let (folder, arguments) = tipping(&["--format", "json", "--threads", threads, "--out"]);
        let out = folder.path().join("out");
        let arguments = [words(&arguments), vec![out.to_str().unwrap()]].concat();
        let printed = stdout(&arguments, 0);
        assert_eq!(names(&out), ["ensemble.json", "seeds.parquet"]);
        assert!(printed == fs::read_to_string(out.join("ensemble.json")).unwrap());
        (printed, fs::read(out.join("seeds.parquet")).unwrap())
    });
    assert!(outputs[0] == outputs[1] && outputs[0] == outputs[2]);
}

#[test]
fn seeds_that_disagree_are_undecided_with_a_probability_and_its_interval() {
    let (_folder, arguments) = tipping(&["--format", "json"]);
    let summary = json(&words(&arguments));
    assert_matches_schema(&summary, "ensemble");
    let verdict = &summary["verdict"];
    assert_eq!(verdict["class"], "undecided");
    let number = |value: &Value| value.as_f64().unwrap();
    let metastable = &verdict["metastable"];
    let (low, high) = (number(&metastable["low"]), number(&metastable["high"]));
    assert!(0.0 < low && low < number(&metastable["share"]) && number(&metastable["share"]) < high);
    assert_eq!(metastable["seeds"], verdict["counts"]["metastable"]);
    let before = &summary["phases"][0]["tiers"]["client"]["offered_per_s"];
    assert!((number(&before["mean"]) - 50.0).abs() < 2.0 * number(&before["half_width"]));
    assert_eq!(before["seeds"], 16);
}

#[test]
fn a_seed_that_was_printed_does_the_same_again() {
    let (_folder, arguments) = tipping(&["--format", "json"]);
    let arguments = words(&arguments);
    let summary = json(&arguments);
    for replication in [0, 15] {
        let there = &summary["replications"][replication];
        let seed = there["seed"].to_string();
        let again = json(&["run", arguments[1], "--seed", &seed, "--format", "json"]);
        assert_eq!(again["seed"], there["seed"]);
        for field in ["class", "sentence", "recovery_time_s"] {
            assert_eq!(again["verdict"][field], there[field], "{field} of seed {seed}");
        }
    }
}

#[test]
fn the_page_begins_with_what_the_seeds_say_in_common() {
    let (_folder, arguments) = tipping(&[]);
    let page = stdout(&words(&arguments), 0);
    let lines: Vec<&str> = page.lines().collect();
    assert!(lines[1].starts_with("Undecided, since the seeds disagree: of 16,"), "{page}");
    for part in ["  seed ", "After (0:24 to 1:30)", "± ", "Assumptions", "means over 16 seeds"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(lines.iter().all(|line| line.chars().count() <= 100), "{page}");
}

#[test]
fn an_expectation_must_be_met_with_every_seed() {
    let (_folder, arguments) = tipping(&["--expect"]);
    let page = stdout(&words(&arguments), 1);
    assert!(page.contains("met in 16 of 16 seeds  before.client.demand_per_s"), "{page}");
    assert!(page.contains(" of 16 seeds  verdict: expected stable; seed "), "{page}");
    let calm = ["--expect", "--set", "trigger.0.demand.client=1.1"];
    let (_folder, arguments) = tipping(&calm);
    metastable(&words(&arguments)).code(0);
}

#[test]
fn one_seed_is_a_run_as_ever() {
    let folder = TempDir::new().unwrap();
    let model = model_file(&folder, TIPPING);
    let run = ["run", model.to_str().unwrap(), "--format", "json"];
    let one = [&run[..], &["--seeds", "1", "--threads", "2"]].concat();
    assert_eq!(stdout(&run, 0), stdout(&one, 0));
}

#[test]
fn impossible_numbers_of_seeds_and_threads_are_bad_usage() {
    for (option, value) in
        [("--seeds", "0"), ("--seeds", "-3"), ("--seeds", "many"), ("--threads", "0")]
    {
        let message = stderr(&["run", "models/checkout.toml", option, value], 2);
        assert!(message.contains(&format!("invalid value '{value}' for '{option}")), "{message}");
    }
    let folder = TempDir::new().unwrap();
    let out = folder.path().to_str().unwrap();
    let trace = ["run", "models/checkout.toml", "--seeds", "2", "--trace", "5%", "--out", out];
    let message = stderr(&trace, 2);
    assert!(message.contains("trace one of its seeds with --seed"), "{message}");
    assert!(names(folder.path()).is_empty());
}

/// A row for each seed, phase and tier.
#[cfg(feature = "parquet")]
#[test]
fn the_table_of_seeds_has_every_figure_of_every_seed() {
    let (folder, arguments) = tipping(&["--quiet", "--out"]);
    let out = folder.path().join("out");
    metastable(&[words(&arguments), vec![out.to_str().unwrap()]].concat()).code(0);
    let frame = super::read_parquet(&out.join("seeds.parquet"));
    assert_eq!(frame.height(), 16 * 5 * 2);
    let columns: Vec<&str> = frame.get_column_names().iter().map(|name| name.as_str()).collect();
    let named = ["seed", "verdict", "recovery_time_s", "phase", "from_s", "to_s", "tier"];
    assert_eq!(columns[..7], named);
    assert!(columns.contains(&"sojourn_p99_s"));
    assert_eq!(frame.column("seed").unwrap().n_unique().unwrap(), 16);
}

/// What is complete is kept; what is not is left out.
#[cfg(unix)]
#[test]
fn an_interrupted_ensemble_keeps_the_seeds_that_are_complete() {
    let folder = TempDir::new().unwrap();
    let model = model_file(&folder, TIPPING);
    let arguments = ["run", model.to_str().unwrap(), "--seeds", "100000", "--format", "json"];
    let output = super::interrupted(&arguments, std::time::Duration::from_secs(2));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["interrupted"], Value::Bool(true));
    let complete = summary["complete"].as_u64().unwrap();
    assert_eq!(summary["replications"].as_array().unwrap().len() as u64, complete);
    let said = format!("interrupted: {complete} of 100000 runs");
    assert!(super::text(&output.stderr).contains(&said), "{said}");
}

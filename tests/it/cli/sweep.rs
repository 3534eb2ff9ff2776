//! `sweep`: a model under every combination of some settings.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use super::ensemble::TIPPING;
use super::{assert_matches_schema, json, metastable, model_file, names, stderr, stdout};

const VARIED: [&str; 4] =
    ["--vary", "trigger.0.demand.client=1.1,3", "--vary", "tier.client.call.api.attempts=1,2,3"];

/// A sweep over six points with four seeds each, and more words.
fn sweep(folder: &TempDir, more: &[&str]) -> Vec<String> {
    let model = model_file(folder, TIPPING);
    let sweep = ["sweep", model.to_str().unwrap(), "--seeds", "4"];
    sweep.into_iter().chain(VARIED).chain(more.to_vec()).map(str::to_owned).collect()
}

fn summary(more: &[&str]) -> Value {
    let folder = TempDir::new().unwrap();
    let arguments = sweep(&folder, &[more, &["--format", "json"]].concat());
    json(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

fn seeds(point: &Value) -> Vec<u64> {
    let replications = point["replications"].as_array().unwrap();
    replications.iter().map(|replication| replication["seed"].as_u64().unwrap()).collect()
}

#[test]
fn every_combination_is_a_point_with_a_verdict_of_its_own() {
    let summary = summary(&[]);
    assert_matches_schema(&summary, "sweep");
    let points = summary["points"].as_array().unwrap();
    let settings: Vec<(&str, &str)> = points
        .iter()
        .map(|point| {
            let value = |path| point["settings"][path].as_str().unwrap();
            (value("trigger.0.demand.client"), value("tier.client.call.api.attempts"))
        })
        .collect();
    let expected = [("1.1", "1"), ("1.1", "2"), ("1.1", "3"), ("3", "1"), ("3", "2"), ("3", "3")];
    assert_eq!(settings, expected);
    assert_eq!(points[0]["verdict"]["class"], "stable");
    assert_eq!(points[5]["verdict"]["class"], "metastable");
}

#[test]
fn points_share_their_seeds_unless_told_otherwise() {
    let shared = summary(&[]);
    assert_eq!(seeds(&shared["points"][0]), seeds(&shared["points"][5]));
    let own = summary(&["--draws", "own"]);
    assert_eq!(own["draws"], "own");
    let all: Vec<u64> = (0..6).flat_map(|point| seeds(&own["points"][point])).collect();
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 24);
}

#[test]
fn a_point_and_its_seed_do_the_same_again() {
    let summary = summary(&["--seed", "9"]);
    let there = &summary["points"][4]["replications"][2];
    let folder = TempDir::new().unwrap();
    let model = model_file(&folder, TIPPING);
    let again = json(&[
        "run",
        model.to_str().unwrap(),
        "--set",
        "trigger.0.demand.client=3",
        "--set",
        "tier.client.call.api.attempts=2",
        "--seed",
        &there["seed"].to_string(),
        "--format",
        "json",
    ]);
    assert_eq!(again["verdict"]["sentence"], there["sentence"]);
}

/// The points differ in what they cost, so the order in which they run is not that of the grid.
#[test]
fn any_number_of_threads_gives_the_same_files() {
    let outputs = ["1", "2", "16"].map(|threads| {
        let folder = TempDir::new().unwrap();
        let out = folder.path().join("out");
        let arguments = sweep(&folder, &["--threads", threads, "--out", out.to_str().unwrap()]);
        let page = stdout(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), 0);
        let files = names(&out);
        assert_eq!(files, ["points.parquet", "seeds.parquet", "sweep.json"]);
        let contents = files.iter().map(|name| fs::read(out.join(name)).unwrap());
        let page = page.replace(out.to_str().unwrap(), "out");
        (page, contents.collect::<Vec<_>>())
    });
    assert!(outputs[0] == outputs[1] && outputs[0] == outputs[2]);
}

#[test]
fn the_page_has_a_row_for_each_point() {
    let folder = TempDir::new().unwrap();
    let arguments = sweep(&folder, &[]);
    let page = stdout(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), 0);
    let row = |start: [&str; 3]| {
        let words = page.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        words.into_iter().any(|words| words.starts_with(&start))
    };
    assert!(row(["1.1", "1", "stable"]) && row(["3", "3", "metastable"]), "{page}");
    assert!(page.contains("4 seeds a point, the same for all, hashed from seed 1"), "{page}");
    assert!(page.contains("client->api: timeout 500ms for each attempt"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
}

#[cfg(feature = "parquet")]
#[test]
fn the_table_of_points_has_settings_as_numbers_where_they_are_numbers() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out");
    let more = ["--vary", "trigger.0.lasts=2s,4s", "--out", out.to_str().unwrap()];
    let arguments = sweep(&folder, &more);
    metastable(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).code(0);
    let points = super::read_parquet(&out.join("points.parquet"));
    assert_eq!(points.height(), 12);
    let kind = |name: &str| points.column(name).unwrap().dtype().to_string();
    assert_eq!(kind("tier.client.call.api.attempts"), "f64");
    assert_eq!(kind("trigger.0.lasts"), "str");
    let seeds = super::read_parquet(&out.join("seeds.parquet"));
    assert_eq!(seeds.height(), 12 * 4 * 5 * 2);
}

#[test]
fn the_faults_of_all_points_are_shown_each_once() {
    let folder = TempDir::new().unwrap();
    let model = model_file(&folder, TIPPING);
    let message = stderr(
        &[
            "sweep",
            model.to_str().unwrap(),
            "--vary",
            "tier.client.call.api.timeout=500ms,5,6",
            "--vary",
            "tier.api.concurrency=1,2,-1",
        ],
        2,
    );
    for said in [
        "model.toml (with tier.client.call.api.timeout=5, tier.api.concurrency=1)",
        "model.toml (with tier.client.call.api.timeout=6, tier.api.concurrency=1)",
        "model.toml (with tier.client.call.api.timeout=500ms, tier.api.concurrency=-1)",
        "7 of 9 points have faults; nothing was run",
    ] {
        assert!(message.contains(said), "{said}: {message}");
    }
    assert_eq!(message.matches("error").count(), 3, "{message}");
}

#[test]
fn what_cannot_be_varied_is_bad_usage() {
    let bad =
        |vary: &[&str]| stderr(&[&["sweep", "models/checkout.toml", "--quiet"], vary].concat(), 2);
    for (vary, said) in [
        ("tier.db.concurency=1,2", "did you mean `concurrency`?"),
        ("tier.dv.concurrency=1,2", "the model has no `dv` there; known here:"),
        ("nonsense", "names no setting"),
        ("run.duration=1m,,2m", "has an empty value"),
        ("tier.db.queue.fifo={ capacity = 1", "never closed"),
    ] {
        let message = bad(&["--vary", vary]);
        assert!(message.contains(said), "{vary}: {message}");
    }
    assert!(bad(&[]).contains("--vary"));
    let all = bad(&["--vary", "tier.dv.concurrency=1", "--vary", "tier.x.concurrency=1"]);
    assert!(all.contains("`dv`") && all.contains("`x`"), "{all}");
    let twice = bad(&["--vary", "run.duration=1m", "--vary", "run.duration=2m"]);
    assert!(twice.contains("`run.duration` is varied twice"), "{twice}");
    let many = ["--vary", "run.duration=1m,2m", "--seeds", "100000"];
    assert!(bad(&many).contains("these are 200000 runs, more than 100000"));
    let grid: Vec<String> = (0..20).map(|n| format!("--vary=trigger.{n}.at=1m,2m")).collect();
    let message = bad(&grid.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(message.contains("these are 1048576 points, more than 10000"), "{message}");
}

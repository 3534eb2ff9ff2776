//! `policies`: a model under a list of retry policies.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use super::{assert_matches_schema, json, metastable, names, stderr, stdout};

const HERD: [&str; 6] =
    ["policies", "models/herd.toml", "--seeds", "4", "--set", "run.duration=3m"];
const FOUR: [&str; 2] =
    ["--policies", "exp_cap60,exp_full_jitter,exp_pm25,retry_after_full_jitter"];

fn summary(more: &[&str]) -> Value {
    json(&[&HERD[..], &FOUR, &["--format", "json"], more].concat())
}

fn order(summary: &Value) -> Vec<&str> {
    let policies = summary["policies"].as_array().unwrap();
    policies.iter().map(|policy| policy["name"].as_str().unwrap()).collect()
}

#[test]
fn each_goal_has_its_order_and_each_situation_its_policy() {
    let fastest = summary(&[]);
    assert_matches_schema(&fastest, "policies");
    let wanted = ["retry_after_full_jitter", "exp_pm25", "exp_full_jitter", "exp_cap60"];
    assert_eq!(order(&fastest), wanted);
    let gentle = summary(&["--goal", "peak"]);
    assert_eq!(order(&gentle)[..2], ["exp_full_jitter", "exp_pm25"]);
    assert_eq!(order(&summary(&["--goal", "sends"]))[0], "exp_full_jitter");
    let choices = fastest["choices"].as_array().unwrap();
    let chosen: Vec<&str> =
        choices.iter().map(|choice| choice["policy"].as_str().unwrap()).collect();
    let wanted =
        ["exp_full_jitter", "retry_after_full_jitter", "retry_after_full_jitter", "exp_pm25"];
    assert_eq!(chosen, wanted);
    // The slow one is not through by three minutes, and is the model's own.
    let last = &fastest["policies"][3];
    assert_eq!((&last["served"], &last["present"]), (&Value::from(0), &Value::from(true)));
}

#[test]
fn the_page_and_json_are_the_same_on_any_number_of_threads() {
    let page =
        |threads: &str| stdout(&[&HERD[..], &FOUR, &["--quiet", "--threads", threads]].concat(), 0);
    assert_eq!(page("1"), page("2"));
    assert_eq!(summary(&["--threads", "1"]), summary(&["--threads", "3"]));
    assert!(page("2").contains("exp_cap60 *"), "the model's own is marked");
}

#[test]
fn files_hold_the_figures_and_the_trade_off() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out");
    stdout(&[&HERD[..], &FOUR, &["--out", out.to_str().unwrap()]].concat(), 0);
    let file: Value =
        serde_json::from_str(&fs::read_to_string(out.join("policies.json")).unwrap()).unwrap();
    assert_eq!(file, summary(&[]));
    if cfg!(feature = "plot") {
        assert_eq!(names(&out), ["policies.json", "tradeoff.png", "tradeoff.svg"]);
    }
}

#[test]
fn without_a_list_a_model_without_policies_is_run_under_all_presets() {
    let summary = json(&[
        "policies",
        "models/amplification_27.toml",
        "--seeds",
        "1",
        "--set",
        "run.duration=2s",
        "--format",
        "json",
    ]);
    let listed = stdout(&["presets"], 0);
    let presets: Vec<&str> = listed.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(order(&summary).len(), presets.len() + 1, "and the one that it has");
    assert_eq!(listed.matches("  Source: ").count(), presets.len(), "{listed}");
    assert!(presets.contains(&"envoy") && presets.contains(&"aws-standard"));
}

#[test]
fn what_does_not_exist_is_refused_with_the_nearest_name() {
    let refused = |more: &[&str]| stderr(&[&["policies", "models/herd.toml"], more].concat(), 2);
    let policy = refused(&["--policies", "exp_cap6"]);
    assert!(policy.contains("did you mean `exp_cap60`?"), "{policy}");
    let edge = refused(&["--edge", "client->backnd"]);
    assert!(edge.contains("did you mean `client->backend`?"), "{edge}");
    let many = refused(&["--seeds", "100000"]);
    assert!(many.contains("take fewer"), "{many}");
    metastable(&["policies", "tests/it/bad_models/retry_policy_unknown.toml"]).code(2);
}
